#include "proxy/base/recycled.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace reprise::proxy::test::of_recycled {

namespace {

struct thing {
    std::array<std::uint64_t, 9> numbers{};
    std::string text = "a text that is too long to stand in the string itself";
};

std::shared_ptr<thing> make_thing() {
    return std::allocate_shared<thing>(recycled<thing>{});
}

#ifdef __SANITIZE_ADDRESS__
constexpr bool keeps = false;
#else
constexpr bool keeps = true;
#endif

}  // namespace

TEST_SUITE_BEGIN("base/recycled");

TEST_CASE("what was given back last is there for the next, made anew") {
    auto one = make_thing();
    one->numbers[8] = 7;
    const auto* const at = one.get();
    one.reset();
    one = make_thing();
    CHECK((one.get() == at) == keeps);
    CHECK(one->numbers[8] == 0);
    CHECK(one->text.starts_with("a text"));
}

TEST_CASE(
    "a text's memory is there for the next, which begins empty, and no two that live share it") {
    const char* at = nullptr;
    {
        recycled_text one;
        one->assign(300, 'x');
        at = one->data();
    }
    recycled_text next;
    CHECK(next->empty());
    next->assign(200, 'y');
    CHECK((next->data() == at) == keeps);
    recycled_text other;
    other->assign(200, 'z');
    CHECK(other->data() != next->data());
    // What is short, or long, is as every string is.
    for (const std::size_t size : {3u, 100'000u}) {
        recycled_text { } -> assign(size, 'w'); }
    std::vector<recycled_text> many(3 * recycled_text::most_spare);
    for (auto& one : many) {
        one->assign(100, 'v');
    }
    many.clear();
    CHECK(*next == std::string(200, 'y'));
    std::thread{[] {
        recycled_text {
            } -> assign(500, 't');
    }}.join();
}

TEST_CASE("no two objects that live have the same memory, however many there are") {
    for (int round = 0; round < 3; ++round) {
        std::vector<std::shared_ptr<thing>> all;
        std::set<const thing*> places;
        for (std::size_t i = 0; i < 3 * spare_blocks::most_spare; ++i) {
            all.push_back(make_thing());
            places.insert(all.back().get());
        }
        CHECK(places.size() == all.size());
    }
}

TEST_CASE("so many blocks stay and no more") {
    spare_blocks some;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < spare_blocks::most_spare + 5; ++i) {
        void* const block = ::operator new(64);
        if (some.keep(block)) {
            ++kept;
        } else {
            ::operator delete(block);
        }
    }
    CHECK(kept == (keeps ? spare_blocks::most_spare : 0));
    for (std::size_t i = 0; i < kept; ++i) {
        void* const block = some.take();
        REQUIRE(block != nullptr);
        ::operator delete(block);
    }
    CHECK(some.take() == nullptr);
}

TEST_CASE("what is made on one thread may end on another, and what a thread keeps ends with it") {
    std::vector<std::shared_ptr<thing>> all;
    for (std::size_t i = 0; i < 100; ++i) {
        all.push_back(make_thing());
    }
    std::thread{[&] {
        all.clear();
        all.push_back(make_thing());
    }}.join();
    CHECK(all.front()->text.starts_with("a text"));
}

TEST_SUITE_END();

}  // namespace reprise::proxy::test::of_recycled
