#include "proxy/http/multipart.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>

namespace reprise::proxy::http {

namespace {

constexpr std::string_view alphabet = "abcdefghijklmnopqrstuvwxyz";
constexpr std::array<byte_range, 2> head_and_tail{byte_range{0, 2}, byte_range{23, 25}};

/// The body as a client would get it.
std::string sent(const multipart_ranges& body) {
    std::string text;
    for (std::size_t i = 0; i < body.parts().size(); ++i) {
        const auto& part = body.parts()[i];
        text.append(body.head(i)).append(alphabet.substr(part.first, part.size()));
    }
    return text.append(body.tail());
}

TEST_SUITE("http/multipart") {
    TEST_CASE("each part has its type and its place in the whole") {
        const multipart_ranges body{head_and_tail, 26, "text/plain", "B0und"};
        CHECK(sent(body) == "\r\n--B0und\r\n"
                            "Content-Type: text/plain\r\n"
                            "Content-Range: bytes 0-2/26\r\n"
                            "\r\n"
                            "abc\r\n"
                            "--B0und\r\n"
                            "Content-Type: text/plain\r\n"
                            "Content-Range: bytes 23-25/26\r\n"
                            "\r\n"
                            "xyz\r\n"
                            "--B0und--\r\n");
    }

    TEST_CASE("without a stored type the parts have none") {
        const multipart_ranges body{head_and_tail, 26, "", "b"};
        CHECK(sent(body).find("Content-Type") == std::string::npos);
    }

    TEST_CASE("its length is known before anything is sent") {
        const multipart_ranges body{head_and_tail, 26, "text/plain", "B0und"};
        CHECK(body.content_length() == sent(body).size());
        const std::array<byte_range, 2> huge{byte_range{0, (1ull << 40) - 1},
                                             byte_range{1ull << 41, (1ull << 41) + 9}};
        const multipart_ranges large{huge, 1ull << 42, "", "b"};
        CHECK(large.content_length() == (1ull << 40) + 10 + large.head(0).size() +
                                            large.head(1).size() + large.tail().size());
    }

    TEST_CASE("the head names the boundary and the length, and no Content-Range") {
        const multipart_ranges body{head_and_tail, 26, "text/plain", "B0und"};
        CHECK(body.boundary() == "B0und");
        std::string head;
        append_multipart_lines(head, body);
        CHECK(head == "Content-Type: multipart/byteranges; boundary=B0und\r\nContent-Length: " +
                          std::to_string(body.content_length()) + "\r\n");
        CHECK_FALSE(belongs_in_multipart({field_id::content_type, "Content-Type", ""}));
        CHECK_FALSE(belongs_in_multipart({field_id::content_length, "Content-Length", ""}));
        CHECK_FALSE(belongs_in_multipart({field_id::content_range, "Content-Range", ""}));
        CHECK(belongs_in_multipart({field_id::etag, "ETag", ""}));
        CHECK(belongs_in_multipart({field_id::unknown, "Content-Foo", ""}));
    }

    TEST_CASE("it may be moved and copied, and holds as many parts as a request may ask for") {
        std::array<byte_range, most_ranges> many{};
        for (std::size_t i = 0; i < many.size(); ++i) {
            many[i] = {i, i};
        }
        multipart_ranges body{many, 26, "a/b", std::string(70, 'x')};
        const auto text = sent(body);
        const auto copy = body;
        CHECK(sent(copy) == text);
        const auto moved = std::move(body);
        CHECK(sent(moved) == text);
    }
}

}  // namespace

}  // namespace reprise::proxy::http
