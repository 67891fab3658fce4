#include "proxy/http/chunked.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace reprise::proxy::http;

namespace {

// All that can be seen of a decoded body.
struct outcome {
    std::string data;
    std::vector<std::pair<std::string, std::string>> trailers;
    std::string rest;
    std::string error;
    bool done = false;
    bool operator==(const outcome&) const = default;
};

void feed_all(chunked_decoder& decoder, std::string_view piece, outcome& seen) {
    while (!piece.empty() && !seen.done && seen.error.empty()) {
        const auto step = decoder.feed(piece);
        seen.data += step.data;
        seen.done = step.done;
        if (step.error != nullptr) {
            seen.error = step.error;
            return;
        }
        REQUIRE(step.consumed > 0);
        REQUIRE(step.consumed <= piece.size());
        piece.remove_prefix(step.consumed);
    }
    seen.rest += piece;
}

outcome decode(const std::vector<std::string_view>& pieces, const chunked_limits& limits = {}) {
    chunked_decoder decoder{limits};
    outcome seen;
    for (const auto piece : pieces) {
        feed_all(decoder, piece, seen);
    }
    if (seen.done) {
        for (const auto& line : decoder.trailers()) {
            seen.trailers.emplace_back(line.name, line.value);
        }
    }
    return seen;
}
outcome decode(std::string_view whole, const chunked_limits& limits = {}) {
    return decode(std::vector{whole}, limits);
}

const std::vector<std::string_view> messages{
    "5\r\nhello\r\n0\r\n\r\n",
    "0\r\n\r\nGET / HTTP/1.1\r\n",
    "000A;a;b=c; d = \"e;\\\"\\\\\"\r\n0123456789\r\n1\r\nx\r\n00\r\n\r\n",
    "3\r\nabc\r\n0;last\r\nETag: \"x\"\r\nContent-Length: 3\r\nX-Sum: 1\r\n\r\nrest",
    "3\r\nabcd\r\n0\r\n\r\n",
    "3\nabc\r\n0\r\n\r\n",
    "3\r\nabc\n0\r\n\r\n",
    "5 \r\nhello\r\n0\r\n\r\n",
    "0\r\nA : b\r\n\r\n",
    "0\r\nA: b\n\r\n",
    "0\r\n\n",
};

}  // namespace

TEST_SUITE_BEGIN("http/chunked");

TEST_CASE("chunks are put together, extensions and framing dropped") {
    CHECK(decode(messages[0]).data == "hello");
    CHECK(decode(messages[0]).done);
    CHECK(decode(messages[2]).data == "0123456789x");
    CHECK(decode(messages[2]).done);
}

TEST_CASE("what follows the body is left alone") {
    CHECK(decode(messages[1]).rest == "GET / HTTP/1.1\r\n");
    CHECK(decode(messages[3]).rest == "rest");
}

TEST_CASE("every message reads the same, cut at every one and at every two bytes") {
    for (const auto message : messages) {
        const auto whole = decode(message);
        for (std::size_t first = 0; first <= message.size(); ++first) {
            for (std::size_t second = first; second <= message.size(); ++second) {
                CAPTURE(message);
                CAPTURE(first);
                CAPTURE(second);
                const auto cut = decode({message.substr(0, first),
                                         message.substr(first, second - first),
                                         message.substr(second)});
                CHECK(cut.data == whole.data);
                CHECK(cut.done == whole.done);
                CHECK(cut.error == whole.error);
                CHECK(cut.trailers == whole.trailers);
                if (whole.error.empty()) {
                    CHECK(cut.rest == whole.rest);
                }
            }
        }
    }
}

TEST_CASE("no proper prefix of a body is a whole body") {
    const std::string_view message = "3;x=\"y\"\r\nabc\r\n0\r\nA: b\r\n\r\n";
    for (std::size_t size = 0; size < message.size(); ++size) {
        CAPTURE(size);
        const auto seen = decode(message.substr(0, size));
        CHECK_FALSE(seen.done);
        CHECK(seen.error.empty());
    }
    CHECK(decode(message).done);
}

TEST_CASE("odd chunk lines are refused") {
    for (const std::string_view message : {"\r\n",
                                           "x\r\n",
                                           "-1\r\n",
                                           "+1\r\n",
                                           " 1\r\n",
                                           "1 \r\n",
                                           "0x1\r\n",
                                           "1\t\r\n",
                                           "1 2\r\n",
                                           "1;\r\n",
                                           "1;=b\r\n",
                                           "1;a=\r\n",
                                           "1;a=\"b\r\n",
                                           "1;a=\"b\\\r\n",
                                           "1;a=\"\x01\"\r\n",
                                           "1;a=b\rc\r\n",
                                           "1;a=\"b\"c\r\n",
                                           "1\n",
                                           "1\r\r\n",
                                           "8000000000000000\r\n",
                                           "ffffffffffffffff\r\n",
                                           "10000000000000000\r\n",
                                           "00000000000000001\r\n",
                                           "1\r\nab",
                                           "1\r\na\r\r\n",
                                           "1\r\na\n",
                                           "1\r\na0\r\n\r\n",
                                           "7fffffffffffffff0\r\n"}) {
        CAPTURE(message);
        CHECK_FALSE(decode(message).error.empty());
    }
}

TEST_CASE("a size below 2^63 is believed, and all sizes together stay below it") {
    CHECK(decode("7fffffffffffffff\r\nabc").error.empty());
    CHECK_FALSE(decode("1\r\na\r\n7fffffffffffffff\r\nabc").error.empty());
}

TEST_CASE("a chunk line has a bounded length") {
    CHECK(decode("1;" + std::string(252, 'a') + "\r\nx").error.empty());
    CHECK_FALSE(decode("1;" + std::string(253, 'a') + "\r\nx").error.empty());
    CHECK_FALSE(decode(std::string(257, '0')).error.empty());
}

TEST_CASE("a body that is mostly extensions is refused, one that is mostly data is not") {
    const std::string extension = ";" + std::string(200, 'e');
    std::string mostly_extensions;
    std::string mostly_data;
    for (int i = 0; i < 200; ++i) {
        mostly_extensions += "1" + extension + "\r\nx\r\n";
        mostly_data += "100" + extension + "\r\n" + std::string(256, 'x') + "\r\n";
    }
    CHECK_FALSE(decode(mostly_extensions).error.empty());
    CHECK(decode(mostly_data).error.empty());
}

TEST_CASE("trailers come out without those that frame, route, authenticate or control") {
    const auto seen = decode("0\r\n"
                             "X-Checksum: 1\r\n"
                             "Transfer-Encoding: chunked\r\n"
                             "content-length: 7\r\n"
                             "Host: evil\r\n"
                             "Authorization: x\r\n"
                             "Set-Cookie: a=b\r\n"
                             "Cache-Control: max-age=9\r\n"
                             "CDN-Cache-Control: max-age=9\r\n"
                             "Content-Type: text/html\r\n"
                             "Content-Encoding: gzip\r\n"
                             "Content-Range: bytes 0-1/2\r\n"
                             "Connection: close\r\n"
                             "X-Forwarded-For: 1.2.3.4\r\n"
                             "Age: 3\r\n"
                             "Vary: *\r\n"
                             "Content-Digest: sha-256=:x:\r\n"
                             "ETag: \"e\"\r\n\r\n");
    REQUIRE(seen.done);
    const std::vector<std::pair<std::string, std::string>> kept{
        {"X-Checksum", "1"}, {"Content-Digest", "sha-256=:x:"}, {"ETag", "\"e\""}};
    CHECK(seen.trailers == kept);
}

TEST_CASE("trailers have limits of their own") {
    const chunked_limits limits{.trailer_bytes = 64, .trailer_fields = 2};
    CHECK(decode("0\r\nA: 1\r\nB: 2\r\n\r\n", limits).done);
    CHECK_FALSE(decode("0\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n", limits).error.empty());
    CHECK_FALSE(decode("0\r\nA: " + std::string(64, 'x') + "\r\n\r\n", limits).error.empty());
    CHECK_FALSE(decode("0\r\nA: " + std::string(64, 'x'), limits).error.empty());
}

TEST_CASE("an error is final, and a decoder can begin again") {
    chunked_decoder decoder;
    REQUIRE(decoder.feed("zz\r\n").error != nullptr);
    CHECK(decoder.feed("1\r\na\r\n").error != nullptr);
    decoder.reset();
    outcome seen;
    feed_all(decoder, "1\r\na\r\n0\r\n\r\n", seen);
    CHECK(seen.done);
    CHECK(seen.data == "a");
    CHECK(decoder.feed("more").done);
    CHECK(decoder.feed("more").consumed == 0);
}

TEST_CASE("what is encoded has one form, and decodes again") {
    std::string wire;
    append_chunk_header(wire, 0x1a2b);
    CHECK(wire == "1a2b\r\n");
    CHECK(chunk_header{~0ull}.view() == "ffffffffffffffff\r\n");
    wire.clear();
    append_chunk_header(wire, 5);
    wire += "hello\r\n";
    const std::vector<field> trailers{{field_id::etag, "ETag", "\"x\""}};
    append_last_chunk(wire, trailers);
    CHECK(wire == "5\r\nhello\r\n0\r\nETag: \"x\"\r\n\r\n");
    const auto seen = decode(wire);
    CHECK(seen.done);
    CHECK(seen.data == "hello");
    CHECK(seen.trailers.size() == 1);
}

TEST_SUITE_END();
