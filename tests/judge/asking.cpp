#include "tests/judge/asking.hpp"

#include <algorithm>
#include <thread>

namespace reprise::tests::judge {

std::string_view to_string(answer_end end) noexcept {
    switch (end) {
    case answer_end::none: return "not at its end";
    case answer_end::whole: return "whole";
    case answer_end::closed: return "closed in order before its end";
    case answer_end::broken: return "broken off";
    case answer_end::malformed: return "malformed";
    case answer_end::starved: return "nothing more came";
    case answer_end::left: return "the client left";
    case answer_end::refused: return "no connection";
    }
    return "";
}

bool answer_seen::is_from_store() const {
    const auto text = cache_status();
    return text.find("; hit") != std::string::npos && text.find("fwd=") == std::string::npos;
}

bool answer_seen::is_joined() const {
    return cache_status().find("collapsed") != std::string::npos;
}

stream& asker::connected(const wish& what) {
    const bool other = from_ != what.from || (what.tls ? !secure_ : !plain_);
    may_be_ending_ = !other;
    if (other) {
        hang_up();
        from_ = what.from;
        if (what.tls) {
            const auto limit = what.leave_after.count() > 0 ? what.leave_after : place_.bound;
            secure_ = std::make_unique<tls_client>(place_.tls, tls_peer::wishes{.limit = limit});
        } else {
            plain_ = std::make_unique<stream>(stream::connect(place_.plain, what.from));
        }
    }
    auto& out = what.tls ? secure_->http().connection() : *plain_;
    if (what.receive_buffer > 0) {
        out.shrink_receive_buffer(what.receive_buffer);
    }
    return out;
}

std::string asker::head_of(const wish& what) const {
    auto out = what.method + " " + (place_.accelerator ? "" : "http://" + place_.origin) +
               what.path + (what.http10 ? " HTTP/1.0" : " HTTP/1.1") +
               "\r\nHost: " + place_.origin + "\r\n" + what.fields;
    out += what.range.empty() ? "" : "Range: " + what.range + "\r\n";
    out += what.if_none_match.empty() ? "" : "If-None-Match: " + what.if_none_match + "\r\n";
    out += what.reload ? "Cache-Control: no-cache\r\n" : "";
    out += what.path.find(".vary") == std::string::npos
               ? ""
               : "X-Flavour: " + std::string{what.flavour} + "\r\n";
    if (what.upload > 0) {
        out += "X-Upload: " + std::to_string(what.upload_number) + "\r\n";
        out += what.upload_chunked ? "Transfer-Encoding: chunked\r\n"
                                   : "Content-Length: " + std::to_string(what.upload) + "\r\n";
    } else if (what.method == "POST" || what.method == "PUT") {
        out += "Content-Length: 0\r\n";
    }
    return out + "\r\n";
}

answer_seen asker::ask(const wish& what) {
    for (bool again = true;; again = false) {
        answer_seen out;
        out.begun = steady::now();
        try {
            auto& to = connected(what);
            if (to.send(head_of(what), place_.bound) && what.upload > 0) {
                send_upload(to, what, out);
            }
            read_answer(to, what, out);
        } catch (const std::runtime_error& trouble) {
            // Whoever means to leave does so in the middle of a handshake, too.
            const bool left = what.leave_after.count() > 0 &&
                              steady::now() >= out.begun + what.leave_after;
            out.end = left ? answer_end::left : answer_end::refused;
            out.trouble = trouble.what();
        }
        out.ended = steady::now();
        const auto persists = out.end == answer_end::whole && !what.http10 &&
                              out.framed != framing::until_close &&
                              lower(out.fields.get("Connection")).find("close") ==
                                  std::string::npos;
        const bool was_used = may_be_ending_;
        if (!persists) {
            hang_up();
        }
        // A kept connection may have been closed while we had nothing to ask.
        const bool idle_end = was_used && out.start_line.empty() && what.upload == 0 &&
                              what.method == "GET" &&
                              (out.end == answer_end::closed || out.end == answer_end::broken);
        if (!idle_end || !again) {
            return out;
        }
    }
}

// Steadily, whatever comes back meanwhile; stops when the other side takes no more.
void asker::send_upload(stream& to, const wish& what, answer_seen& out) {
    const body_id of{identity_of(what.path), what.upload_number, 'u'};
    const std::uint64_t most = what.pace == 0 ? 64 << 10 : what.pace / 20 + 1;
    const auto begun = steady::now();
    auto last = begun;
    for (std::uint64_t done = 0; done < what.upload;) {
        const auto take = std::min(most, what.upload - done);
        const auto piece = body_piece(of, done, static_cast<std::size_t>(take));
        if (!to.send(what.upload_chunked ? chunk(piece) : piece, place_.bound)) {
            return;
        }
        done += take;
        const auto now = steady::now();
        out.own_pause = std::max(out.own_pause,
                                 std::chrono::duration_cast<milliseconds>(now - last));
        last = now;
        if (what.pace != 0) {
            std::this_thread::sleep_until(begun + milliseconds{done * 1000 / what.pace});
        }
    }
    out.upload_sent = !what.upload_chunked || to.send(chunk(""), place_.bound);
}

read_end asker::take(stream& from, milliseconds limit, std::size_t most) {
    return from.read_some(left_over_, limit, most);
}

void asker::read_answer(stream& from, const wish& what, answer_seen& out) {
    const auto until = steady::now() + place_.bound;
    std::optional<message_head> head;
    for (;;) {
        // What is no head is told at once: it would never have an end.
        constexpr std::string_view beginning = "HTTP/1.";
        const auto there = std::min(left_over_.size(), beginning.size());
        if (left_over_.compare(0, there, beginning.substr(0, there)) != 0) {
            out.end = answer_end::malformed;
            out.trouble = "in place of a head: " + excerpt(left_over_, 0);
            return;
        }
        head = take_head(left_over_);
        if (head && head->start_line.size() > 9 && head->start_line[9] == '1') {
            continue;  // a 1xx
        }
        if (head) {
            break;
        }
        if (what.leave_after.count() > 0 && steady::now() > out.begun + what.leave_after) {
            out.end = answer_end::left;
            return;
        }
        const auto limit = what.leave_after.count() > 0 ? milliseconds{50} : place_.bound;
        switch (take(from, limit, 64 << 10)) {
        case read_end::data: continue;
        case read_end::closed: out.end = answer_end::closed; return;
        case read_end::reset: out.end = answer_end::broken; return;
        case read_end::timed_out:
            if (steady::now() >= until) {
                out.end = answer_end::starved;
                return;
            }
        }
    }
    out.head_at = steady::now();
    out.start_line = head->start_line;
    out.fields = head->fields;
    if (out.start_line.size() >= 12) {
        out.status = std::atoi(out.start_line.substr(9, 3).c_str());
    }
    read_body(from, what, out);
}

void asker::read_body(stream& from, const wish& what, answer_seen& out) {
    auto reader = body_of_response(what.method, out.status, out.fields);
    out.framed = reader.how();
    const std::size_t most = what.pace == 0
                                 ? 64 << 10
                                 : static_cast<std::size_t>(std::max<std::uint64_t>(
                                       512, std::min<std::uint64_t>(what.pace / 20, 64 << 10)));
    std::uint64_t read = 0;
    bool stalled = false;
    const auto begun = steady::now();
    auto until = begun + place_.bound;
    auto last = begun;
    for (;;) {
        reader.feed(left_over_, out.body);
        if (!reader.error().empty()) {
            out.end = answer_end::malformed;
            out.trouble = reader.error();
            return;
        }
        if (reader.is_complete() && reader.how() != framing::until_close) {
            out.end = answer_end::whole;
            return;
        }
        if (out.body.size() >= what.leave_at ||
            (what.leave_after.count() > 0 && steady::now() > out.begun + what.leave_after)) {
            out.end = answer_end::left;
            from.reset();
            return;
        }
        if (out.body.size() >= what.stall_at && !stalled) {
            std::this_thread::sleep_for(what.stall);
            stalled = true;
            last = steady::now();
        }
        if (what.pace != 0) {
            std::this_thread::sleep_until(begun + what.stall * (stalled ? 1 : 0) +
                                          milliseconds{read * 1000 / what.pace});
        }
        const auto now = steady::now();
        out.own_pause = std::max(out.own_pause,
                                 std::chrono::duration_cast<milliseconds>(now - last));
        const auto before = left_over_.size();
        const auto end = take(from, milliseconds{500}, most);
        last = steady::now();
        read += left_over_.size() - before;
        switch (end) {
        case read_end::data: until = last + place_.bound; break;
        case read_end::closed:
            out.end = reader.how() == framing::until_close ? answer_end::whole : answer_end::closed;
            if (what.tls && secure_->end() == tls_end::truncated) {
                out.end = answer_end::broken;
            }
            return;
        case read_end::reset: out.end = answer_end::broken; return;
        case read_end::timed_out:
            if (last >= until) {
                out.end = answer_end::starved;
                return;
            }
        }
    }
}

}  // namespace reprise::tests::judge
