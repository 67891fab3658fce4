#include "proxy/base/heap_use.hpp"
#include "proxy/base/sanitized.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <thread>
#include <vector>

namespace reprise::proxy::test::of_heap_use_test {

// What is in use more than at the beginning. (operator new does not count here.)
struct difference {
    std::uint64_t before = heap::in_use();
    [[nodiscard]] std::uint64_t now() const { return heap::in_use() - before; }
};

TEST_SUITE_BEGIN("base/heap_use");

TEST_CASE("what is taken is in use, with what it costs the heap, until it is given") {
    const difference in_use;
    void* const small = heap::take(1);
    CHECK(in_use.now() >= 9);
    CHECK(in_use.now() <= 64);
    void* const large = heap::take(1'000'000);
    CHECK(in_use.now() >= 1'000'000);
    CHECK(in_use.now() < 1'010'000);
    heap::give(large);
    heap::give(small);
    heap::give(nullptr);
    CHECK(in_use.now() == 0);
}

TEST_CASE("what is resized counts as it is then, and keeps its bytes") {
    const difference in_use;
    auto* block = static_cast<char*>(heap::resize(nullptr, 100));
    std::memset(block, 'a', 100);
    block = static_cast<char*>(heap::resize(block, 50'000));
    CHECK(block[99] == 'a');
    CHECK(in_use.now() >= 50'000);
    CHECK(in_use.now() < 51'000);
    block = static_cast<char*>(heap::resize(block, 200));
    CHECK(in_use.now() < 51'000);
    CHECK(block[99] == 'a');
    CHECK(heap::resize(block, 0) == nullptr);
    CHECK(in_use.now() == 0);
}

TEST_CASE("what there is not counts for nothing") {
    const difference in_use;
    volatile std::size_t too_much = static_cast<std::size_t>(-1) / 4;
    if (!heap_is_watched) {  // a sanitizer ends the program instead
        CHECK(heap::take(too_much) == nullptr);
        void* const block = heap::take(100);
        CHECK(heap::resize(block, too_much) == nullptr);
        CHECK(in_use.now() >= 100);
        heap::give(block);
    }
    CHECK(in_use.now() == 0);
}

TEST_CASE("what one thread takes another may give, however many threads there were") {
    const difference in_use;
    constexpr std::size_t threads = 100, each = 50;
    std::vector<std::array<void*, each>> blocks(threads);
    for (std::size_t from = 0; from < threads; from += 10) {  // ten at once
        std::vector<std::jthread> all;
        for (auto i = from; i < from + 10; ++i) {
            all.emplace_back([&mine = blocks[i]] {
                for (auto& block : mine) {
                    block = heap::take(1'000);
                }
            });
        }
    }
    CHECK(in_use.now() >= threads * each * 1'000);
    CHECK(in_use.now() <= threads * each * 1'040);
    for (const auto& some : blocks) {
        for (void* const block : some) {
            heap::give(block);
        }
    }
    CHECK(in_use.now() == 0);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::test::of_heap_use_test
