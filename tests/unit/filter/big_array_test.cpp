#include "filter/big_array.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>

namespace reprise::filter {

namespace {

std::uint64_t address_of(const big_array<std::uint64_t>& array) {
    return reinterpret_cast<std::uintptr_t>(array.begin());
}

}  // namespace

TEST_SUITE("filter/big_array") {
    TEST_CASE("memory is zero and on a boundary of a cache line, from 4 MiB on of a huge page") {
        for (const std::size_t size : {0, 1, 7, 1'000, (4 << 20) / 8, (4 << 20) / 8 + 1}) {
            CAPTURE(size);
            big_array<std::uint64_t> array{size};
            CHECK(array.size() == size);
            CHECK(array.bytes() == size * 8);
            CHECK(std::count(array.begin(), array.end(), 0) == static_cast<std::ptrdiff_t>(size));
            CHECK(address_of(array) % (size * 8 >= 4 << 20 ? 2 << 20 : 64) == 0);
            std::fill(array.begin(), array.end(), 1);
            array.clear();
            CHECK(std::count(array.begin(), array.end(), 0) == static_cast<std::ptrdiff_t>(size));
        }
    }

    TEST_CASE("a copy is of its own, a move leaves nothing") {
        big_array<std::uint64_t> first{10};
        first[3] = 5;
        auto copy = first;
        CHECK(copy == first);
        copy[3] = 6;
        CHECK(first[3] == 5);
        auto moved = std::move(first);
        CHECK(moved[3] == 5);
        CHECK(first.size() == 0);  // NOLINT: what is promised of it
        copy = moved;
        CHECK(copy == moved);
        first = std::move(copy);
        CHECK(first == moved);
    }

    TEST_CASE("more than any memory is refused") {
        CHECK_THROWS_AS(big_array<std::uint64_t>{SIZE_MAX / 8}, std::bad_alloc);
    }
}

}  // namespace reprise::filter
