#include "proxy/serve/body_beginning.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace reprise::proxy::serve::test::of_body_beginning {

namespace {

body_beginning beginning_of(http::body_kind kind, std::uint64_t length = 0) {
    http::body_framing framing;
    framing.kind = kind;
    framing.length = length;
    return {framing, http::chunked_limits{}};
}

const std::string chunks = "5;x=y\r\nhello\r\n3\r\nyou\r\n0\r\nX-Trailer: 1\r\n\r\n";

/// How much of `input` must be there, when it comes in pieces of `step` bytes.
std::size_t needed(body_beginning beginning, std::string_view input, std::size_t step) {
    for (std::size_t here = 0; here < input.size(); here += step) {
        if (beginning.is_here(input.substr(0, here))) {
            return here;
        }
    }
    return beginning.is_here(input) ? input.size() : std::string_view::npos;
}

}  // namespace

TEST_SUITE_BEGIN("serve/body_beginning");

TEST_CASE("no body is waited for where there is none") {
    CHECK(beginning_of(http::body_kind::none).is_here(""));
    CHECK(beginning_of(http::body_kind::length, 0).is_here(""));
}

TEST_CASE("of a stated length all is waited for, and what follows it changes nothing") {
    auto beginning = beginning_of(http::body_kind::length, 5);
    CHECK(!beginning.is_here(""));
    CHECK(!beginning.is_here("hell"));
    CHECK(beginning.is_here("hello"));
    CHECK(beginning.is_here("hello GET / HTTP/1.1"));
}

TEST_CASE("of a longer body so much is enough, and one byte less is not") {
    const std::string much(body_beginning::enough, 'x');
    const std::string_view less{much.data(), much.size() - 1};
    auto long_one = beginning_of(http::body_kind::length, 10 * body_beginning::enough);
    CHECK(!long_one.is_here(less));
    CHECK(long_one.is_here(much));

    const auto chunk = "100000\r\n" + much;
    auto chunked = beginning_of(http::body_kind::chunked);
    CHECK(!chunked.is_here(std::string_view{chunk}.substr(0, body_beginning::enough - 1)));
    CHECK(chunked.is_here(std::string_view{chunk}.substr(0, body_beginning::enough)));
}

TEST_CASE("a chunked body is here with its last byte, in whatever pieces it came") {
    for (std::size_t step = 1; step <= chunks.size(); ++step) {
        CAPTURE(step);
        const auto got = needed(beginning_of(http::body_kind::chunked), chunks, step);
        CHECK(got >= chunks.size());
        CHECK(got != std::string_view::npos);
    }
    for (std::size_t cut = 0; cut < chunks.size(); ++cut) {
        CAPTURE(cut);
        auto whole_cut = beginning_of(http::body_kind::chunked);
        CHECK(!whole_cut.is_here(std::string_view{chunks}.substr(0, cut)));
    }
}

TEST_CASE("a body that is framed wrongly is not waited for") {
    auto wrong = beginning_of(http::body_kind::chunked);
    CHECK(!wrong.is_here("5\r\nhel"));
    CHECK(wrong.is_here("5\r\nhelloworld"));
    auto at_once = beginning_of(http::body_kind::chunked);
    CHECK(at_once.is_here("no size\r\n"));
}

TEST_CASE("asked again with nothing new, it waits on") {
    auto beginning = beginning_of(http::body_kind::chunked);
    for (int times = 0; times < 3; ++times) {
        CHECK(!beginning.is_here("5\r\nhel"));
    }
    CHECK(beginning.is_here("5\r\nhello\r\n0\r\n\r\n"));
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_body_beginning
