#include "tests/framing/grammar.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace reprise::framing {
namespace {

std::string hex(std::size_t number) {
    char text[24];
    std::snprintf(text, sizeof text, "%zx", number);
    return text;
}

}  // namespace

grammar::grammar(std::uint64_t seed, std::uint64_t trial) {
    std::seed_seq mixed{static_cast<std::uint32_t>(seed),
                        static_cast<std::uint32_t>(seed >> 32),
                        static_cast<std::uint32_t>(trial),
                        static_cast<std::uint32_t>(trial >> 32)};
    random_.seed(mixed);
}

std::string grammar::eol() {
    static constexpr std::string_view ends[] = {
        "\r\n", "\n", "\r", "\r\r\n", "\n\r\n", "\r\n\r\n", " \r\n", "\x0b\r\n", ""};
    return !sober_ && one_in(oddness_ * 8) ? (plain_ = false, std::string{ends[below(9)]}) : "\r\n";
}

// Text of a body, which may look like what a request or a response begins with.
std::string grammar::content() {
    static constexpr std::string_view inner[] = {
        "hello",
        "",
        "GET /smuggled HTTP/1.1\r\nHost: evil\r\nX-F-Id: evil\r\n\r\n",
        "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: evil\r\nX-F-Id: evil\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-F-Id: evil\r\nContent-Length: 4\r\n\r\nEVIL",
        "\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\n\r\n",
        "\r\n\r\n",
    };
    auto out = std::string{inner[below(std::size(inner))]};
    if (one_in(40)) {
        out += std::string(below(40'000), 'b');
    }
    return out;
}

std::string grammar::chunked_body(std::string_view body) {
    static constexpr std::string_view before[] = {
        "", "0", "000", "+", "-", "0x", " ", "\t", "10000000000000000"};
    static constexpr std::string_view behind[] = {"",
                                                  ";a=b",
                                                  ";a",
                                                  ";a=\"b;c\"",
                                                  " ;a=b",
                                                  " ",
                                                  "\t",
                                                  ";",
                                                  ";a=\"\r\n\"",
                                                  "h",
                                                  ";\x01",
                                                  ",",
                                                  ";a\n"};
    static constexpr std::string_view ends[] = {"\r\n", "\n", "", "\r", "x\r\n", "\r\n\r\n"};
    static constexpr std::string_view trailers[] = {"",
                                                    "X-Trail: 1\r\n",
                                                    "Content-Length: 7\r\n",
                                                    "Transfer-Encoding: chunked\r\n",
                                                    "Host: evil\r\n",
                                                    "bad line\r\n",
                                                    "X-Trail : 1\r\n",
                                                    " folded\r\n",
                                                    "X-F-Id: evil\r\n"};
    static constexpr std::string_view lasts[] = {
        "0", "00", "000000000000000000000", "", "0;a=b", "-0", "0x0", " 0", "0 "};
    std::string out;
    while (!body.empty()) {
        const auto size = 1 + below(std::max<std::size_t>(body.size(), 1));
        const auto piece = body.substr(0, size);
        body.remove_prefix(piece.size());
        const auto said = odd() ? (plain_ = false,
                                   piece.size() + below(5) - std::min<std::size_t>(piece.size(), 2))
                                : piece.size();
        auto digits = hex(said);
        if (one_in(3)) {
            std::transform(digits.begin(), digits.end(), digits.begin(), [](char c) {
                return c >= 'a' ? static_cast<char>(c - 32) : c;
            });
        }
        out += pick(before) + digits + pick(behind) + eol();
        out.append(piece);
        out += pick(ends);
    }
    out += pick(lasts) + eol() + pick(trailers) + eol();
    return out;
}

std::string grammar::framing_fields(std::size_t size, bool& chunked) {
    static constexpr std::string_view names[] = {"Content-Length",
                                                 "content-length",
                                                 "Content-Length ",
                                                 " Content-Length",
                                                 "Content-Length\t",
                                                 "Content_Length",
                                                 "Content-Length\x0b",
                                                 "Content-Length:",
                                                 "\xef\xbb\xbf"
                                                 "Content-Length"};
    static constexpr std::string_view codings[] = {
        "Transfer-Encoding: chunked",
        "transfer-encoding: chunked",
        "Transfer-Encoding: Chunked",
        "Transfer-Encoding:chunked",
        "Transfer-Encoding:\tchunked\t",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: identity, chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: chunked;q=1",
        "Transfer-Encoding: \"chunked\"",
        "Transfer-Encoding: ,chunked",
        "Transfer-Encoding: chunked,",
        "Transfer-Encoding: \x0b"
        "chunked",
        "Transfer-Encoding: chunked\x0b",
        "Transfer-Encoding:\r\n chunked",
        "Transfer-Encoding: chunked\r\n x",
        "Transfer-Encoding",
        "Transfer-Encoding:",
        " Transfer-Encoding: chunked",
        "X: y\rTransfer-Encoding: chunked",
        "X: y\nTransfer-Encoding: chunked",
        "Transfer\xc2\xad-Encoding: chunked",
        "Transfer-Encoding: cow",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: cow",
        "Transfer-Encoding: cow\r\nTransfer-Encoding: chunked",
        "Transfer_Encoding: chunked"};
    const auto length = [&] {
        const auto right = std::to_string(size);
        if (!odd()) {
            return right;
        }
        plain_ = false;
        const std::array<std::string, 24> others{
            std::to_string(size + 1),
            std::to_string(size > 0 ? size - 1 : 3),
            "+" + right,
            "-" + right,
            "0" + right,
            "0x" + right,
            right + ",",
            right + "," + right,
            right + ", " + std::to_string(size + 1),
            "," + right,
            right + ";",
            right + " ",
            right + " " + right,
            "\"" + right + "\"",
            "",
            right + ".0",
            "18446744073709551616",
            "9223372036854775808",
            right + "\r\nContent-Length: " + right,
            right + "\r\nContent-Length: " + std::to_string(size + 5),
            "\x0b" + right,
            right + std::string(1, '\0'),
            right + "e0",
            "\t" + right + "\t"};
        return others[below(others.size())];
    };
    std::string out;
    chunked = one_in(2);
    const bool both = odd() && one_in(2);
    plain_ = plain_ && !both;
    if (!chunked || both) {
        out += pick(names) + ":" + (one_in(8) ? "" : " ") + length() + eol();
    }
    if (chunked || both) {
        const auto line = pick(codings) + eol();
        out = one_in(2) ? out + line : line + out;
    }
    return out;
}

std::string grammar::extra_fields() {
    static constexpr std::string_view lines[] = {
        "X-F-Note: plain",
        "X-F-Note: a\tb  c",
        "X-F-Note:",
        "X-F-Note: \xc3\xbc",
        "x-f-note: twice\r\nX-F-Note: twice",
        "X-F-Note : space",
        "X-F-Note\r\n",
        "X-F-Note: folded\r\n line",
        "X-F-Note: a\rb",
        "X-F-Note: a\nX-F-Other: b",
        "X-F-No te: a",
        ": no name",
        "X-F-(Note): a",
        "X-F-Note: \x01",
        "X-F-Note: \x7f",
        "Connection: X-F-Note\r\nX-F-Note: hop",
        "Connection: Content-Length, Transfer-Encoding, Host",
        "Connection: keep-alive",
        "Keep-Alive: timeout=5",
        "TE: trailers",
        "Proxy-Connection: keep-alive",
        "Trailer: X-Trail",
        "Upgrade: h2c\r\nConnection: Upgrade",
    };
    std::string out;
    while (one_in(3)) {
        const auto last = sober_ || !one_in(3) ? 4 : std::size(lines);
        const auto which = below(last);
        plain_ = plain_ && which < 4;
        out += std::string{lines[which]} + eol();
    }
    return out;
}

// Bytes put in, taken out, changed or doubled, near where messages are told apart.
void grammar::bend(std::string& bytes) {
    static constexpr std::string_view odd_bytes{
        "\r\n\t :,;0123456789abcdefx\0\x0b\x0c\x1f\x7f\x80\xff", 34};
    if (sober_ || !one_in(10) || bytes.empty()) {
        return;
    }
    plain_ = false;
    for (auto times = 1 + below(3); times > 0 && !bytes.empty(); --times) {
        const auto near = one_in(2) ? bytes.find_first_of("\r:", below(bytes.size()))
                                    : below(bytes.size());
        const auto at = std::min<std::size_t>(near, bytes.size() - 1);
        const char byte = odd_bytes[below(odd_bytes.size())];
        switch (below(4)) {
        case 0: bytes.insert(at, 1, byte); break;
        case 1: bytes.erase(at, 1 + below(2)); break;
        case 2: bytes[at] = byte; break;
        default: bytes.insert(at, bytes.substr(at, 1 + below(12))); break;
        }
    }
}

std::string grammar::plain_request(std::string_view authority,
                                   std::string_view id,
                                   std::string_view method,
                                   std::string_view fields) {
    std::string out{method};
    out.append(" http://").append(authority).append("/f/").append(id).append(" HTTP/1.1\r\nHost: ");
    out.append(authority).append("\r\nX-F-Id: ").append(id).append("\r\n").append(fields);
    return out + "\r\n";
}

std::string grammar::request(std::string_view authority, std::string_view id) {
    static constexpr std::string_view methods[] = {"POST",
                                                   "GET",
                                                   "PUT",
                                                   "DELETE",
                                                   "PATCH",
                                                   "OPTIONS",
                                                   "FOO",
                                                   "HEAD",
                                                   "TRACE",
                                                   "get",
                                                   "CONNECT",
                                                   "P@ST",
                                                   "",
                                                   "GET\t",
                                                   " GET"};
    static constexpr std::string_view versions[] = {"HTTP/1.1",
                                                    "HTTP/1.0",
                                                    "HTTP/1.2",
                                                    "HTTP/2.0",
                                                    "HTTP/1",
                                                    "http/1.1",
                                                    "HTTP/1.1 ",
                                                    "HTTP/01.1",
                                                    "HTTP /1.1",
                                                    "",
                                                    "HTTP/1.10"};
    static constexpr std::string_view spaces[] = {" ", "  ", "\t", " \t", "\x0b", "\r", ""};
    static constexpr std::string_view fronts[] = {
        "", "\r\n", "\r\n\r\n", "\n", "\r", " ", "\t", "X"};
    static constexpr std::string_view paths[] = {
        "", "?a=b", ";p=1", "%0d%0a", "?a b", "#x", "\x80", "\\", "?http://evil/", "\"", "\r"};
    static constexpr std::string_view hosts[] = {"Host: ",
                                                 "host: ",
                                                 "Host:",
                                                 "Host : ",
                                                 "Host: evil\r\nHost: ",
                                                 "X-No-Host: ",
                                                 "Host: user@",
                                                 "Host: a,"};
    static constexpr std::string_view expects[] = {
        "", "Expect: 100-continue\r\n", "Expect: 200-ok\r\n", "Expect:\r\n"};
    plain_ = true;
    sober_ = one_in(3);
    auto method = one_in(2) || odd() ? pick(methods) : std::string{"GET"};
    const bool has_body = method != "GET" && method != "HEAD" ? !one_in(4) : one_in(6);
    std::string out = pick(fronts) + method + pick(spaces) + "http://" + std::string{authority} +
                      "/f/" + std::string{id} + pick(paths) + pick(spaces) + pick(versions) + eol();
    out += pick(hosts) + std::string{authority} + eol();
    out += "X-F-Id: " + std::string{id} + eol();
    out += extra_fields();
    out += pick(expects);
    std::string body;
    if (has_body) {
        body = content();
        bool chunked = false;
        out += framing_fields(body.size(), chunked);
        if (chunked) {
            body = chunked_body(body);
        }
    }
    out += eol();
    const bool bend_body = one_in(2);
    if (bend_body) {
        out += body;
        bend(out);
    } else {
        bend(out);
        out += body;
    }
    return out;
}

std::string grammar::response(std::string_view method, std::string_view id) {
    static constexpr std::string_view versions[] = {"HTTP/1.1",
                                                    "HTTP/1.0",
                                                    "HTTP/1.2",
                                                    "HTTP/2.0",
                                                    "http/1.1",
                                                    "ICY",
                                                    " HTTP/1.1",
                                                    "HTTP/1.1 ",
                                                    "\r\nHTTP/1.1",
                                                    ""};
    static constexpr std::string_view statuses[] = {"200",
                                                    "204",
                                                    "304",
                                                    "404",
                                                    "500",
                                                    "206",
                                                    "301",
                                                    "600",
                                                    "99",
                                                    "0200",
                                                    "20",
                                                    "2000",
                                                    "2x0",
                                                    "",
                                                    "101",
                                                    "199",
                                                    "700"};
    static constexpr std::string_view reasons[] = {
        " OK", "", " ", " \xff", "  Odd  reason", "\tOK", " a\rb", " a\x01"};
    static constexpr std::string_view interims[] = {
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
        "HTTP/1.1 102 Processing\r\n\r\n",
        "HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 103 Early\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 100\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"};
    plain_ = true;
    sober_ = one_in(4);
    std::string out;
    while (!sober_ && one_in(12)) {
        plain_ = false;
        out += std::string{interims[below(std::size(interims))]};
    }
    out += pick(versions) + " " + (one_in(4) ? pick(statuses) : "200") + pick(reasons) + eol();
    out += "X-F-Id: " + std::string{id} + eol();
    out += "Cache-Control: no-store" + eol();
    out += extra_fields();
    if (odd()) {
        plain_ = false;
        out += "Connection: close" + eol();
    }
    std::string body = content();
    if (sober_ || !one_in(8)) {
        bool chunked = false;
        out += framing_fields(body.size(), chunked);
        if (chunked) {
            body = chunked_body(body);
        }
    } else {
        plain_ = false;  // until it closes
    }
    out += eol();
    if (method != "HEAD" || odd()) {
        plain_ = plain_ && method != "HEAD";
        out += body;
    }
    bend(out);
    if (!sober_ && one_in(8)) {
        // What comes behind is nobody's answer.
        plain_ = false;
        out += "HTTP/1.1 200 OK\r\nX-F-Id: evil\r\nCache-Control: max-age=99\r\nContent-Length: "
               "4\r\n\r\nEVIL";
    }
    return out;
}

}  // namespace reprise::framing
