#include "proxy/net/read_buffer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace reprise::proxy;
using namespace reprise::proxy::net;

namespace {
void put(read_buffer& buffer, std::string_view text) {
    const auto room = buffer.prepare(text.size());
    REQUIRE(room.size() >= text.size());
    std::copy(text.begin(), text.end(), room.begin());
    buffer.commit(text.size());
}
}  // namespace

TEST_SUITE_BEGIN("net/read_buffer");

TEST_CASE("what goes in comes out in order, whatever the pieces") {
    read_buffer buffer;
    std::string expected;
    for (int i = 0; i < 500; ++i) {
        const std::string piece(static_cast<std::size_t>(i % 37), static_cast<char>('a' + i % 26));
        put(buffer, piece);
        expected += piece;
        const auto used = std::min<std::size_t>(expected.size(), static_cast<std::size_t>(i % 29));
        buffer.consume(used);
        expected.erase(0, used);
        REQUIRE(buffer.data() == expected);
    }
}

TEST_CASE("room is made by moving before it is made by growing") {
    read_buffer buffer;
    put(buffer, std::string(1000, 'x'));
    const auto capacity = buffer.capacity();
    buffer.consume(900);
    static_cast<void>(buffer.prepare(capacity - 100));
    CHECK(buffer.capacity() == capacity);
    CHECK(buffer.data() == std::string(100, 'x'));
}

TEST_CASE("an empty buffer gives back what is more than it may keep") {
    read_buffer buffer;
    put(buffer, std::string(1000, 'x'));
    buffer.consume(1000);
    buffer.release(2000);
    CHECK(buffer.capacity() == 1000);
    buffer.release(500);
    CHECK(buffer.capacity() == 0);
    put(buffer, "again");
    CHECK(buffer.data() == "again");
}

TEST_CASE("a moved-from buffer is empty and usable") {
    read_buffer buffer;
    put(buffer, "text");
    read_buffer other{std::move(buffer)};
    CHECK(other.data() == "text");
    CHECK(buffer.empty());
    put(buffer, "more");
    CHECK(buffer.data() == "more");
    buffer = std::move(other);
    CHECK(buffer.data() == "text");
}

TEST_SUITE_END();
