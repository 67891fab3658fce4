#include "tests/support/client.hpp"

#include <charconv>
#include <utility>

namespace reprise::tests {

std::string_view to_string(ending end) noexcept {
    switch (end) {
    case ending::none: return "not at its end";
    case ending::complete: return "complete";
    case ending::cut_short: return "cut short";
    case ending::timed_out: return "timed out";
    }
    return "";
}

cache_status cache_status_of(const response& answer) {
    cache_status out;
    // Only what was added last, the member nearest to us, is Reprise's here.
    const auto text = answer.fields.all("Cache-Status");
    const auto at = text.rfind("reprise");
    if (at == std::string::npos || (at != 0 && text[at - 1] != ' ' && text[at - 1] != ',')) {
        return out;
    }
    out.present = true;
    std::string_view rest = std::string_view{text}.substr(at);
    while (!rest.empty()) {
        const auto end = rest.find(';');
        auto parameter = rest.substr(0, end);
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        while (!parameter.empty() && parameter.front() == ' ') {
            parameter.remove_prefix(1);
        }
        const auto equals = parameter.find('=');
        const auto name = parameter.substr(0, equals);
        auto value = equals == std::string_view::npos ? std::string_view{}
                                                      : parameter.substr(equals + 1);
        if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
            value = value.substr(1, value.size() - 2);
        }
        if (name == "hit") {
            out.hit = value.empty() || value == "?1";
        } else if (name == "stored") {
            out.stored = value.empty() || value == "?1";
        } else if (name == "collapsed") {
            out.collapsed = value.empty() || value == "?1";
        } else if (name == "fwd") {
            out.fwd = value;
        } else if (name == "fwd-status") {
            out.fwd_status = value;
        } else if (name == "detail") {
            out.detail = value;
        } else if (name == "ttl") {
            out.ttl = value;
        }
    }
    return out;
}

bool is_hit(const response& answer) {
    const auto status = cache_status_of(answer);
    return status.hit && status.fwd.empty();
}

std::string hit_body(const response& answer) {
    return is_hit(answer) ? answer.body : "no hit: " + answer.get("Cache-Status");
}

client::client(std::uint16_t port, const std::string& from)
    : stream_{stream::connect(port, from)} {}

client::client(stream connection) : stream_{std::move(connection)} {}

bool client::fill(response& into, std::chrono::milliseconds limit) {
    switch (stream_.read_some(buffer_, limit)) {
    case read_end::data: return true;
    case read_end::closed:
        body_.end_of_stream();
        finish(into, body_.is_complete() ? ending::complete : ending::cut_short);
        return false;
    case read_end::reset:
        into.was_reset = true;
        finish(into, ending::cut_short);
        return false;
    case read_end::timed_out: finish(into, ending::timed_out); return false;
    }
    return false;
}

void client::finish(response& into, ending end) {
    into.end = end;
    into.trailers = body_.trailers();
    into.chunk_lines_are_canonical = body_.chunk_lines_are_canonical();
}

bool client::take_one_head(response& into) {
    body_ = body_reader{framing::length, 1};  // an end of the stream here is never complete
    auto head = take_head(buffer_);
    while (!head) {
        if (!fill(into, patience)) {
            return false;
        }
        head = take_head(buffer_);
    }
    const std::string_view line = head->start_line;
    into.version = line.substr(0, line.find(' '));
    const auto code = line.substr(std::min(line.find(' ') + 1, line.size())).substr(0, 3);
    std::from_chars(code.data(), code.data() + code.size(), into.status);
    into.reason = line.substr(std::min(into.version.size() + 5, line.size()));
    into.fields = head->fields;
    into.head = std::move(*head);
    return true;
}

response client::read_one_head() {
    response out;
    if (take_one_head(out)) {
        out.end = ending::complete;
    }
    return out;
}

response client::read_head(std::string_view method) {
    response out;
    for (;;) {
        if (!take_one_head(out)) {
            return out;
        }
        if (out.status / 100 != 1 || out.status == 101) {
            break;
        }
        auto before = std::move(out.interim);
        out.interim.clear();
        before.push_back(std::move(out));
        out = response{};
        out.interim = std::move(before);
    }
    // What follows a 101 is no body: it stays for read_raw, as after a CONNECT.
    body_ = out.status == 101 ? body_reader{} : body_of_response(method, out.status, out.fields);
    out.framed_by = body_.how();
    body_.feed(buffer_, out.body);
    if (body_.is_complete()) {
        finish(out, ending::complete);
    }
    return out;
}

void client::read_body(response& into, std::size_t bytes, std::chrono::milliseconds limit) {
    while (into.end == ending::none && into.body.size() < bytes) {
        if (fill(into, limit)) {
            body_.feed(buffer_, into.body);
            if (body_.is_complete()) {
                finish(into, ending::complete);
            } else if (!body_.error().empty()) {
                finish(into, ending::cut_short);
            }
        }
    }
}

response client::read(std::string_view method, const std::function<void(std::string_view)>& sink) {
    auto out = read_head(method);
    for (;;) {
        if (sink && !out.body.empty()) {
            sink(out.body);
            out.body.clear();
        }
        if (out.end != ending::none) {
            return out;
        }
        read_body(out, out.body.size() + 1);
    }
}

response client::ask(std::string_view raw) {
    const auto method = raw.substr(0, raw.find(' '));
    send(raw);  // when this fails the answer may have come all the same
    return read(method);
}

std::string client::read_raw(std::size_t bytes, std::chrono::milliseconds limit) {
    while (buffer_.size() < bytes && stream_.read_some(buffer_, limit) == read_end::data) {
    }
    return std::exchange(buffer_, {});
}

client::rest client::read_to_end(std::chrono::milliseconds limit) {
    for (;;) {
        const auto end = stream_.read_some(buffer_, limit);
        if (end != read_end::data) {
            return {std::exchange(buffer_, {}), end};
        }
    }
}

bool client::is_closed_by_proxy(std::chrono::milliseconds limit) {
    const auto end = read_to_end(limit);
    return end.bytes.empty() && end.end != read_end::timed_out;
}

}  // namespace reprise::tests
