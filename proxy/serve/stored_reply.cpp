#include "proxy/serve/stored_reply.hpp"

#include "proxy/http/conditional.hpp"
#include "proxy/http/date.hpp"
#include "proxy/serve/look_up.hpp"
#include "proxy/serve/relay.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <random>

// A hit is composed of the stored head, some fields of its own and views of the body's blocks. What
// the client's preconditions and Range make of that is decided here: 200, 304, 206 or 416.

namespace reprise::proxy::serve {

namespace {

using http::field_id;
using body_news = cache::disk_body_reader::news;

void append_number(std::string& out, std::int64_t number) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    out.append(digits, end);
}

// What a request that goes on where the disk fails has to know.
cache::head_ptr head_of(const cache::stored_response& stored) {
    auto head = std::make_shared<cache::fetched_head>();
    head->status = stored.status;
    head->length = stored.size();
    const auto lines = stored.fields();
    if (const auto* etag = http::find(lines, field_id::etag);
        etag != nullptr && http::is_strong(etag->value) && etag->value.starts_with('"')) {
        head->strong_etag = etag->value;
    }
    return head;
}

}  // namespace

std::optional<answers::body_on_disk> compose_stored(exchange_state& x,
                                                    const answers::stored& what) {
    const bool fresh = x.verdict.what == cache::ruling::hit;
    x.book.how = what.collapsed ? outcome::collapsed : fresh ? outcome::hit : outcome::stale;
    x.sending = x.stored.response;
    const auto how = cache::status_of(x.verdict, *x.sending);
    x.book.reason = how.detail;
    stored_reply made{x, *x.sending};
    made.compose(x.judged_at, how);
    return made.take_disk_body();
}

std::optional<answers::body_on_disk> compose_stand_in(exchange_state& x, std::string_view detail) {
    const auto now = resident_now();
    x.book.how = outcome::stale;
    x.book.reason = detail;
    x.sending = x.stored.response;
    http::cache_status how;
    how.hit = true;
    how.ttl = http::remaining(x.sending->freshness, now);
    how.detail = detail;
    stored_reply made{x, *x.sending};
    made.compose(now, how);
    return made.take_disk_body();
}

// What a reply adds to a stored head, into fields(); it begins the reply.
void stored_reply::compose_fields(wall_time now, const http::cache_status& how) {
    auto& fields = x_.out.fields();
    fields.assign("Age: ");
    append_number(fields, http::current_age(from_.freshness, now).count());
    fields.append("\r\nCache-Status: ");
    http::append_cache_status(fields, "reprise", how);
    fields.append("\r\n");
    x_.out.append_connection(fields);
    fields.append("\r\n");
    x_.out.begin();
}

std::uint64_t stored_reply::length() const {
    return from_.parts ? from_.parts->total : from_.size();
}

void stored_reply::compose_part_head(http::byte_range part) {
    x_.book.status = 206;
    auto& text = x_.out.text;
    text.assign("Content-Range: ");
    if (from_.parts && !from_.parts->knows_total()) {
        text.append("bytes ").append(std::to_string(part.first)).append("-");
        text.append(std::to_string(part.last)).append("/*");
    } else {
        http::append_content_range(text, part, length());
    }
    text.append("\r\nContent-Length: ").append(std::to_string(part.size())).append("\r\n");
    x_.out.add("HTTP/1.1 206 Partial Content\r\n");
    x_.out.add(
        {from_.head.data() + from_.status_line_size, from_.length_at - from_.status_line_size});
    x_.out.add(text);
    x_.out.add(x_.out.fields());
}

void stored_reply::compose_head(std::optional<http::byte_range> part,
                                wall_time now,
                                const http::cache_status& how) {
    compose_fields(now, how);
    if (part) {
        compose_part_head(*part);
        return;
    }
    x_.book.status = from_.status;
    x_.out.add(from_.head);
    x_.out.add(x_.out.fields());
}

void stored_reply::compose_bytes(http::byte_range part) {
    if (from_.on_disk) {
        disk_body_.emplace(answers::body_on_disk{
            from_.on_disk->read_from(part.first, x_.out.news().handle()), part.last + 1});
        return;
    }
    x_.out.note_body(body_source::store, part.size());
    const auto add = [this](const cache::slice& slice, std::size_t skip, std::size_t size) {
        x_.out.add(slice.view().substr(skip, size));
    };
    if (from_.parts) {
        from_.parts->each_slice(part, add);
    } else {
        cache::each_slice({0, from_.content}, part, add);
    }
}

// RFC 9110 15.3.7.2
void stored_reply::compose_multipart(http::field_list fields,
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
            text.append(line.name).append(": ").append(line.value).append("\r\n");
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

void stored_reply::compose_not_modified(http::field_list fields) {
    x_.book.status = 304;
    auto& text = x_.out.text;
    text.assign("HTTP/1.1 304 Not Modified\r\n");
    for (const auto& line : fields) {
        if (http::belongs_in_not_modified(line)) {
            text.append(line.name).append(": ").append(line.value).append("\r\n");
        }
    }
    x_.out.add(text);
    x_.out.add(x_.out.fields());
}

void stored_reply::compose_unsatisfied() {
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

http::range_set stored_reply::ranges_asked(http::field_list fields, wall_time now) const {
    const auto& head = *x_.asked.head;
    http::range_set asked;
    if (!from_.parts) {
        asked = http::judge_ranges(head.method_text, head.fields, fields, from_.size(), now);
    } else if (x_.verdict.part.use == cache::part_use::held) {
        asked.answer = http::range_answer::part;
        asked.count = 1;
        asked.parts[0] = x_.verdict.part.wanted;
    } else if (x_.verdict.part.use == cache::part_use::unsatisfiable) {
        asked.answer = http::range_answer::unsatisfiable;
    }
    return asked;
}

void stored_reply::compose_whole() {
    x_.out.add(from_.head);
    x_.out.add(x_.out.fields());
    if (x_.asked.facts.is_head) {
        return;
    }
    if (from_.on_disk && from_.on_disk->size() > 0) {
        compose_bytes({0, from_.on_disk->size() - 1});
    } else if (from_.content) {
        x_.out.note_body(body_source::store, from_.content->size);
        for (const auto& slice : from_.content->slices) {
            x_.out.add(slice.view());
        }
    }
}

void stored_reply::compose(wall_time now, const http::cache_status& how) {
    compose_fields(now, how);
    x_.book.status = from_.status;
    const auto& facts = x_.asked.facts;
    if (!facts.has_conditions && !facts.has_range) {
        compose_whole();
        return;
    }
    const auto fields = from_.fields();
    if (facts.has_conditions &&
        http::judge_preconditions(
            x_.asked.head->fields, from_.status, fields, from_.freshness.response_time, now) ==
            http::precondition::not_modified) {
        compose_not_modified(fields);
        return;
    }
    if (!facts.has_range || from_.status != 200) {
        compose_whole();
        return;
    }
    const auto asked = ranges_asked(fields, now);
    if (asked.answer == http::range_answer::unsatisfiable) {
        compose_unsatisfied();
    } else if (asked.answer == http::range_answer::part && asked.count == 1) {
        compose_part_head(asked.parts[0]);
        compose_bytes(asked.parts[0]);
    } else if (asked.answer == http::range_answer::part && from_.content) {
        compose_multipart(fields, asked.ranges());
    } else {
        compose_whole();  // of a body on disk for several ranges too: RFC 9110 14.2 allows it
    }
}

// Until a first piece of the body is there nothing goes out, so that a body that proves unreadable
// is fetched as if it were not stored; after that the rest is asked of the origin under the
// validator of what was sent, or the reply breaks off.
awaitable<ended_or_next> disk_body_reply::give() {
    auto& reader = *what_.reader;
    std::vector<cache::slice> pieces;
    while (reader.offset() < what_.end) {
        pieces.clear();
        const auto what = reader.next(what_.end, body_batch, pieces);
        if (what == body_news::waiting) {
            const auto waited = co_await x_.out.wait();
            if (waited != ended::keep) {
                co_return x_.out.leave();
            }
            continue;
        }
        if (what != body_news::data) {
            co_return co_await go_on(what);
        }
        std::size_t size = 0;
        for (const auto& piece : pieces) {
            size += piece.size;
        }
        x_.out.note_body(body_source::store, size);
        for (const auto& piece : pieces) {
            x_.out.add(piece.view());
        }
        const auto sent = co_await x_.out.send();
        if (sent != ended::keep) {
            co_return sent;
        }
    }
    co_return x_.out.end();
}

awaitable<ended_or_next> disk_body_reply::go_on(body_news what) {
    const auto stored = x_.sending;
    if (what == body_news::lost) {
        (void)x_.w.common.store.drop(x_.asked.key, x_.asked.url, stored);
    }
    if (!x_.out.under_way()) {
        x_.out.drop_pieces();
        x_.sending = nullptr;
        co_return judge_without_store(x_);
    }
    if (x_.book.status != 200) {
        co_return x_.out.break_off(outcome::cut_short, "disk");
    }
    const auto head = head_of(*stored);
    co_return co_await go_on_alone(x_, head, what_.reader->offset(), false, "disk");
}

}  // namespace reprise::proxy::serve
