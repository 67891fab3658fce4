#include "tests/crash/origin.hpp"

#include "tests/support/message.hpp"

namespace reprise::tests::crash {

origin::origin(const catalogue& what, sabotage wrong) : catalogue_{what}, wrong_{wrong} {
    served_.otherwise([this](origin_request& request, origin_connection& connection) {
        thread_local std::string out;
        out.clear();
        append_answer(request, out);
        connection.send(out);
    });
}

void origin::append_answer(const origin_request& asked, std::string& out) {
    const auto url = catalogue_.url_of(asked.target);
    if (!url) {
        out = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        return;
    }
    if (asked.method != "GET") {
        out = "HTTP/1.1 204 No Content\r\n\r\n";
        return;
    }
    const auto what = catalogue_.kind_of(*url);
    const auto flavour = what == kind::varied
                             ? number_in(asked.get("X-Flavour")).value_or(0) % flavours
                             : 0;
    const auto at = catalogue_.current(*url);
    const auto etag = catalogue::etag_of(static_cast<unsigned>(flavour), at);
    const bool same = asked.get("If-None-Match") == etag;
    const bool lasts = what != kind::freshened || same;

    thread_local std::string body;
    if (!same) {
        catalogue_.make_body(*url, static_cast<unsigned>(flavour), at, body);
    }
    // What is lost must be more than one in a hundred of some hundreds, whatever chance does.
    const auto unlucky = mix(requests()) % (wrong_ == sabotage::lost ? 10 : 50) == 0;
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
    const auto condition = asked.get("If-Range");
    const auto range = condition.empty() || condition == etag
                           ? span_of(asked.get("Range"), body.size())
                           : std::nullopt;
    if (range) {
        out = "HTTP/1.1 206 Partial Content\r\n" + fields + content_range(*range, body.size()) +
              "Content-Length: " + std::to_string(range->count) + "\r\n\r\n";
        out.append(body, range->first, range->count);
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
