#include "tests/crash/origin.hpp"

#include "tests/support/fake_origin.hpp"
#include "tests/support/message.hpp"

#include <algorithm>

namespace reprise::tests::crash {

namespace {

constexpr std::chrono::milliseconds glance{200};  // how long a thread sleeps before it looks round

struct byte_range {
    std::size_t first, end;
};

// One range "bytes=a-b" or "bytes=a-"; none for anything else, which then gets the whole.
std::optional<byte_range> read_range(std::string_view text, std::size_t size) {
    constexpr std::string_view unit = "bytes=";
    if (!text.starts_with(unit)) {
        return std::nullopt;
    }
    text.remove_prefix(unit.size());
    const auto dash = text.find('-');
    const auto first = number_in(text.substr(0, dash));
    if (dash == std::string_view::npos || !first || *first >= size) {
        return std::nullopt;
    }
    const auto last = text.substr(dash + 1);
    const auto given = number_in(last);
    if (!last.empty() && !given) {
        return std::nullopt;
    }
    return byte_range{*first, std::min(size, given ? *given + 1 : size)};
}

}  // namespace

origin::origin(const catalogue& what, sabotage wrong)
    : catalogue_{what},
      wrong_{wrong},
      accepts_{[this] { accept_all(); }} {}

origin::~origin() {
    stopping_ = true;
    accepts_.join();
    for (auto& one : threads_) {
        one.join();
    }
}

std::string origin::authority() const {
    return "127.0.0.1:" + std::to_string(acceptor_.port());
}

void origin::accept_all() {
    while (!stopping_) {
        auto connection = acceptor_.accept(glance);
        if (connection.is_open()) {
            threads_.emplace_back(
                [this, taken = std::move(connection)]() mutable { serve(taken); });
        }
    }
}

void origin::serve(stream& connection) {
    std::string buffer, out;
    while (!stopping_) {
        const auto head = take_head(buffer);
        if (!head) {
            const auto got = connection.read_some(buffer, glance);
            if (got == read_end::closed || got == read_end::reset) {
                return;
            }
            continue;
        }
        requests_.fetch_add(1, std::memory_order_relaxed);
        out.clear();
        append_answer(*head, out);
        if (!connection.send(out)) {
            return;
        }
    }
}

void origin::append_answer(const message_head& asked, std::string& out) {
    const std::string_view line = asked.start_line;
    const auto method = line.substr(0, line.find(' '));
    const auto path = line.substr(method.size() + 1, line.rfind(' ') - method.size() - 1);
    const auto url = catalogue_.url_of(path);
    if (!url) {
        out = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        return;
    }
    if (method != "GET") {
        out = "HTTP/1.1 204 No Content\r\n\r\n";
        return;
    }
    const auto what = catalogue_.kind_of(*url);
    const auto flavour = what == kind::varied
                             ? number_in(asked.fields.get("X-Flavour")).value_or(0) % flavours
                             : 0;
    const auto at = catalogue_.current(*url);
    const auto etag = catalogue::etag_of(static_cast<unsigned>(flavour), at);
    const bool same = asked.fields.get("If-None-Match") == etag;
    const bool lasts = what != kind::freshened || same;

    thread_local std::string body;
    if (!same) {
        catalogue_.make_body(*url, static_cast<unsigned>(flavour), at, body);
    }
    const auto unlucky = mix(requests_.load(std::memory_order_relaxed)) % 50 == 0;
    if (unlucky && wrong_ == sabotage::torn && !same) {
        body.back() = static_cast<char>(body.back() ^ 1);
    }
    std::string fields = "Date: " + http_date() + "\r\nETag: " + etag + "\r\nSurrogate-Key: t" +
                         std::to_string(catalogue::tag_of(*url)) +
                         "\r\nCache-Control: max-age=" + (lasts ? "86400" : "1") + "\r\n";
    if (unlucky && wrong_ == sabotage::lost) {
        fields += "Cache-Control: no-cache\r\n";
    }
    if (what == kind::varied) {
        fields += "Vary: X-Flavour\r\n";
    }
    if (same) {
        out = "HTTP/1.1 304 Not Modified\r\n" + fields + "\r\n";
        return;
    }
    const auto condition = asked.fields.get("If-Range");
    const auto range = condition.empty() || condition == etag
                           ? read_range(asked.fields.get("Range"), body.size())
                           : std::nullopt;
    if (range) {
        out = "HTTP/1.1 206 Partial Content\r\n" + fields + "Content-Range: bytes " +
              std::to_string(range->first) + "-" + std::to_string(range->end - 1) + "/" +
              std::to_string(body.size()) +
              "\r\nContent-Length: " + std::to_string(range->end - range->first) + "\r\n\r\n";
        out.append(body, range->first, range->end - range->first);
    } else if (what == kind::chunked) {
        out = "HTTP/1.1 200 OK\r\n" + fields + "Transfer-Encoding: chunked\r\n\r\n";
        for (std::size_t i = 0; i < body.size(); i += 50'000) {
            out += chunk(std::string_view{body}.substr(i, 50'000));
        }
        out += chunk("");
    } else {
        out = "HTTP/1.1 200 OK\r\n" + fields + "Content-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body;
    }
}

}  // namespace reprise::tests::crash
