#include "proxy/serve/stored_pieces.hpp"

#include "proxy/http/conditional.hpp"
#include "proxy/http/date.hpp"
#include "proxy/serve/https_prefix.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <random>

// A hit is composed of the stored head, some fields of its own and views of the body's blocks. What
// the client's preconditions and Range make of that is decided here: 200, 304, 206 or 416.

namespace reprise::proxy::serve {

namespace {

using http::field_id;

void append_number(std::string& out, std::int64_t number) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    out.append(digits, end);
}

}  // namespace

// What a reply adds to a stored head, into fields(); it begins the reply.
void stored_pieces::compose_fields(wall_time now, const http::cache_status& how) {
    auto& fields = x_.out.fields();
    fields.assign("Age: ");
    append_number(fields, http::current_age(from_.freshness(), now).count());
    fields.append("\r\nCache-Status: ");
    http::append_cache_status(fields, x_.w.common.cache_name, how);
    fields.append("\r\n");
    x_.out.append_connection(fields);
    fields.append("\r\n");
    x_.out.begin();
}

void stored_pieces::add_head() {
    if (!x_.asked.https_prefix || !is_redirect(from_.status())) [[likely]] {
        x_.out.add(from_.head());
        return;
    }
    auto& text = x_.out.text;
    text.clear();
    append_prefixed(text, from_.head(), x_.asked.target, x_.settings->options.access);
    x_.out.add(text);
}

std::uint64_t stored_pieces::length() const {
    return from_.parts() ? from_.parts()->total : from_.size();
}

namespace {

/// Beside its lengths: a digest is of the whole's content, and a Content-Range, which means nothing in a whole
/// response (RFC 9110 14.4), is some origin's count of what a page of its lists.
bool speaks_of_whole_alone(std::string_view lines) {
    return http::has_line(lines, "Content-Range") || http::has_line(lines, "Content-Digest") ||
           http::has_line(lines, "Content-MD5");
}

bool belongs_in_part(const http::field& line) {
    return line.id != field_id::content_range && line.id != field_id::content_length &&
           !http::is_content_digest(line);
}

}  // namespace

void stored_pieces::compose_part_head(http::byte_range part) {
    x_.book.status = 206;
    const auto lines_of_whole = from_.head().substr(from_.status_line_size(),
                                                    from_.length_at() - from_.status_line_size());
    auto& text = x_.out.text;
    text.clear();
    x_.out.add("HTTP/1.1 206 Partial Content\r\n");
    if (speaks_of_whole_alone(lines_of_whole)) {
        for (const auto& line : from_.fields()) {
            if (belongs_in_part(line)) {
                http::append_field_line(text, line.name, line.value);
            }
        }
    } else {
        x_.out.add(lines_of_whole);
    }
    text.append("Content-Range: ");
    if (from_.parts() && !from_.parts()->knows_total()) {
        text.append("bytes ").append(std::to_string(part.first)).append("-");
        text.append(std::to_string(part.last)).append("/*");
    } else {
        http::append_content_range(text, part, length());
    }
    text.append("\r\nContent-Length: ").append(std::to_string(part.size())).append("\r\n");
    x_.out.add(text);
    x_.out.add(x_.out.fields());
}

void stored_pieces::compose_head(std::optional<http::byte_range> part,
                                 wall_time now,
                                 const http::cache_status& how) {
    compose_fields(now, how);
    if (part) {
        compose_part_head(*part);
        return;
    }
    x_.book.status = from_.status();
    add_head();
    x_.out.add(x_.out.fields());
}

void stored_pieces::compose_bytes(http::byte_range part) {
    if (from_.on_disk()) {
        disk_body_.emplace(answers::body_on_disk{
            from_.on_disk()->read_from(part.first, x_.out.wakeup().handle()), part.last + 1});
        return;
    }
    x_.out.note_body(body_source::store, part.size());
    if (from_.parts()) {
        from_.parts()->each_slice(
            part, [this](const cache::slice& slice, std::size_t skip, std::size_t size) {
                x_.out.add(slice.view().substr(skip, size));
            });
    } else {
        from_.each_piece(part, [this](std::string_view piece) { x_.out.add(piece); });
    }
}

// RFC 9110 15.3.7.2
void stored_pieces::compose_multipart(http::field_list fields,
                                      std::span<const http::byte_range> ranges) {
    // The maker of the object cannot have put this boundary into it.
    std::random_device random;
    std::array<char, 33> boundary{};
    std::snprintf(boundary.data(),
                  boundary.size(),
                  "%08x%08x%08x%08x",
                  random(),
                  random(),
                  random(),
                  random());
    const auto* type = http::find(fields, field_id::content_type);
    auto& between = x_.out.multipart;
    between.emplace(ranges,
                    from_.size(),
                    type != nullptr ? type->value : std::string_view{},
                    std::string_view{boundary.data(), boundary.size() - 1});
    x_.book.status = 206;
    auto& text = x_.out.text;
    text.assign("HTTP/1.1 206 Partial Content\r\n");
    for (const auto& line : fields) {
        if (http::belongs_in_multipart(line)) {
            http::append_field_line(text, line.name, line.value);
        }
    }
    http::append_multipart_lines(text, *between);
    x_.out.add(text);
    x_.out.add(x_.out.fields());
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        x_.out.add(between->head(i));
        compose_bytes(between->parts()[i]);
    }
    x_.out.add(between->tail());
}

void stored_pieces::compose_not_modified(http::field_list fields) {
    x_.book.status = 304;
    auto& text = x_.out.text;
    text.assign("HTTP/1.1 304 Not Modified\r\n");
    for (const auto& line : fields) {
        if (http::belongs_in_not_modified(line)) {
            http::append_field_line(text, line.name, line.value);
        }
    }
    x_.out.add(text);
    x_.out.add(x_.out.fields());
}

void stored_pieces::compose_unsatisfied() {
    x_.book.status = 416;
    const auto date = http::format_date(wall_now());
    auto& text = x_.out.text;
    text.assign("HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: ");
    http::append_unsatisfied_range(text, length());
    text.append("\r\nDate: ").append(date.data(), date.size());
    text.append("\r\nContent-Length: 0\r\n");
    x_.out.add(text);
    x_.out.add(x_.out.fields());
}

http::range_set stored_pieces::ranges_asked(http::field_list fields, wall_time now) const {
    const auto& head = *x_.asked.head;
    http::range_set asked;
    if (!from_.parts()) {
        const auto judge = [&](http::field_list lines) {
            return http::judge_ranges(head.method_text, head.fields, lines, from_.size(), now);
        };
        asked = from_.weak_last_modified() ? judge(from_.validating_fields()) : judge(fields);
    } else if (x_.verdict.part.use == cache::part_use::held) {
        asked.answer = http::range_answer::part;
        asked.count = 1;
        asked.parts[0] = x_.verdict.part.wanted;
    } else if (x_.verdict.part.use == cache::part_use::unsatisfiable) {
        asked.answer = http::range_answer::unsatisfiable;
    }
    return asked;
}

void stored_pieces::compose_whole() {
    add_head();
    x_.out.add(x_.out.fields());
    if (x_.asked.facts.is_head) {
        return;
    }
    if (from_.has_content()) {
        x_.out.note_body(body_source::store, from_.size());
        from_.each_piece([this](std::string_view piece) { x_.out.add(piece); });
    } else if (from_.on_disk() && from_.size() > 0) {
        compose_bytes({0, from_.size() - 1});
    }
}

void stored_pieces::compose(wall_time now, const http::cache_status& how) {
    compose_fields(now, how);
    x_.book.status = from_.status();
    const auto& facts = x_.asked.facts;
    if (!facts.has_conditions && !facts.has_range) {
        compose_whole();
        return;
    }
    const auto fields = from_.fields();
    if (facts.has_conditions &&
        http::judge_preconditions(
            x_.asked.head->fields, from_.status(), fields, from_.freshness().response_time, now) ==
            http::precondition::not_modified) {
        compose_not_modified(fields);
        return;
    }
    if (!facts.has_range || from_.status() != 200) {
        compose_whole();
        return;
    }
    const auto asked = ranges_asked(fields, now);
    if (asked.answer == http::range_answer::unsatisfiable) {
        compose_unsatisfied();
    } else if (asked.answer == http::range_answer::part && asked.count == 1) {
        compose_part_head(asked.parts[0]);
        compose_bytes(asked.parts[0]);
    } else if (asked.answer == http::range_answer::part && from_.has_content()) {
        compose_multipart(fields, asked.ranges());
    } else {
        compose_whole();  // of a body on disk for several ranges too: RFC 9110 14.2 allows it
    }
}

}  // namespace reprise::proxy::serve
