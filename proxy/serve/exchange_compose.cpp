#include "proxy/http/conditional.hpp"
#include "proxy/http/date.hpp"
#include "proxy/http/range.hpp"
#include "proxy/serve/exchange.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <random>

// A reply made of a stored response: what it adds to the stored head, and which of its bytes it
// has. Put into session_state's parts; what must live while they are sent is in held_ and tail.

namespace reprise::proxy::serve {

namespace {

using http::field_id;

void append_number(std::string& out, std::int64_t number) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    out.append(digits, end);
}

}  // namespace

void exchange::append_connection(std::string& out) {
    if (!keep_) {
        out.append("Connection: close\r\n");
    } else if (head_->version == 10) {
        out.append("Connection: keep-alive\r\n");
    }
}

// A reply begins, in place of what was composed before. Only where nothing of that has gone out:
// nobody may read a second head, or a body without one, as the answer to the next request.
void exchange::compose_anew() {
    ledger_.settle();
    s_.parts.clear();
    if (s_.client.reply_under_way()) {
        keep_ = false;
        s_.client.break_off();
    }
}

// What a reply adds to a stored head, into tail; parts are empty then.
void exchange::compose_reply_fields(const cache::stored_response& stored,
                                    wall_time now,
                                    const http::cache_status& how) {
    auto& tail = s_.tail;
    tail.assign("Age: ");
    append_number(tail, http::current_age(stored.freshness, now).count());
    tail.append("\r\nCache-Status: ");
    http::append_cache_status(tail, "reprise", how);
    tail.append("\r\n");
    append_connection(tail);
    tail.append("\r\n");
    compose_anew();
}

// A 206's head, of a stored whole or of parts.
void exchange::compose_part_head(const cache::stored_response& stored, http::byte_range part) {
    ledger_.status = 206;
    held_.assign("Content-Range: ");
    if (stored.parts && !stored.parts->knows_total()) {
        held_.append("bytes ").append(std::to_string(part.first)).append("-");
        held_.append(std::to_string(part.last)).append("/*");
    } else {
        const auto length = stored.parts ? stored.parts->total : stored.size();
        http::append_content_range(held_, part, length);
    }
    held_.append("\r\nContent-Length: ").append(std::to_string(part.size())).append("\r\n");
    constexpr std::string_view status_line = "HTTP/1.1 206 Partial Content\r\n";
    s_.parts.emplace_back(status_line.data(), status_line.size());
    s_.parts.emplace_back(stored.head.data() + stored.status_line_size,
                          stored.length_at - stored.status_line_size);
    s_.parts.emplace_back(held_.data(), held_.size());
    s_.parts.emplace_back(s_.tail.data(), s_.tail.size());
}

// Bytes of a body that is stored, or of a part that is. `stored` outlives their sending.
void exchange::compose_bytes(const cache::stored_response& stored, http::byte_range part) {
    if (stored.outside) {
        compose_outside(stored, part);
        return;
    }
    ledger_.note_body(body_source::store, part.size());
    const auto add = [&](const cache::slice& slice, std::size_t skip, std::size_t size) {
        s_.parts.emplace_back(slice.view().data() + skip, size);
    };
    if (stored.parts) {
        stored.parts->each_slice(part, add);
    } else {
        cache::each_slice({0, stored.content}, part, add);
    }
}

// The same of a body on disk: it follows what is composed (send_outside).
void exchange::compose_outside(const cache::stored_response& stored, http::byte_range part) {
    outside_ = stored.outside->read_from(part.first, s_.arrived.handle());
    outside_end_ = part.last + 1;
}

// A multipart/byteranges reply (RFC 9110 15.3.7.2).
void exchange::compose_multipart(const cache::stored_response& stored,
                                 http::field_list fields,
                                 std::span<const http::byte_range> ranges) {
    // Who made the object cannot have put this boundary into it.
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
    multipart_.emplace(ranges,
                       stored.size(),
                       type != nullptr ? type->value : std::string_view{},
                       std::string_view{boundary.data(), boundary.size() - 1});
    ledger_.status = 206;
    held_.assign("HTTP/1.1 206 Partial Content\r\n");
    for (const auto& line : fields) {
        if (http::belongs_in_multipart(line)) {
            held_.append(line.name).append(": ").append(line.value).append("\r\n");
        }
    }
    http::append_multipart_lines(held_, *multipart_);
    const auto add = [&](std::string_view bytes) {
        s_.parts.emplace_back(bytes.data(), bytes.size());
    };
    add(held_);
    add(s_.tail);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        add(multipart_->head(i));
        compose_bytes(stored, multipart_->parts()[i]);
    }
    add(multipart_->tail());
}

// Fills parts with a whole reply made of a stored response: 200 as stored, 304, 206 or 416 as the
// request's fields ask. Where only parts are stored the verdict has said which.
void exchange::compose_stored(const cache::stored_response& stored,
                              wall_time now,
                              const http::cache_status& how) {
    compose_reply_fields(stored, now, how);
    const auto& tail = s_.tail;
    ledger_.status = stored.status;
    const std::string_view head{stored.head};
    const auto add = [&](std::string_view bytes) {
        if (!bytes.empty()) {
            s_.parts.emplace_back(bytes.data(), bytes.size());
        }
    };
    if (facts_.has_conditions || facts_.has_range) {
        const auto fields = stored.fields();
        if (facts_.has_conditions &&
            http::judge_preconditions(
                head_->fields, stored.status, fields, stored.freshness.response_time, now) ==
                http::precondition::not_modified) {
            ledger_.status = 304;
            held_.assign("HTTP/1.1 304 Not Modified\r\n");
            for (const auto& line : fields) {
                if (http::belongs_in_not_modified(line)) {
                    held_.append(line.name).append(": ").append(line.value).append("\r\n");
                }
            }
            add(held_);
            add(tail);
            return;
        }
        if (facts_.has_range && stored.status == 200) {
            http::range_set asked;
            if (!stored.parts) {
                asked = http::judge_ranges(
                    head_->method_text, head_->fields, fields, stored.size(), now);
            } else if (verdict_.part.use == cache::part_use::held) {
                asked.answer = http::range_answer::part;
                asked.count = 1;
                asked.parts[0] = verdict_.part.wanted;
            } else if (verdict_.part.use == cache::part_use::unsatisfiable) {
                asked.answer = http::range_answer::unsatisfiable;
            }
            if (asked.answer == http::range_answer::unsatisfiable) {
                ledger_.status = 416;
                const auto date = http::format_date(wall_now());
                const auto length = stored.parts ? stored.parts->total : stored.size();
                held_.assign("HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: ");
                http::append_unsatisfied_range(held_, length);
                held_.append("\r\nDate: ").append(date.data(), date.size());
                held_.append("\r\nContent-Length: 0\r\n");
                add(held_);
                add(tail);
                return;
            }
            if (asked.answer == http::range_answer::part && asked.count == 1) {
                compose_part_head(stored, asked.parts[0]);
                compose_bytes(stored, asked.parts[0]);
                return;
            }
            // Of a body on disk several ranges get the whole, as RFC 9110 14.2 allows.
            if (asked.answer == http::range_answer::part && stored.content) {
                compose_multipart(stored, fields, asked.ranges());
                return;
            }
        }
    }
    add(head);
    add(tail);
    if (facts_.is_head) {
        return;
    }
    if (stored.outside && stored.outside->size() > 0) {
        compose_outside(stored, {0, stored.outside->size() - 1});
    } else if (stored.content) {
        ledger_.note_body(body_source::store, stored.content->size);
        for (const auto& slice : stored.content->slices) {
            add(slice.view());
        }
    }
}

}  // namespace reprise::proxy::serve
