// What store and fetch say of memory, against what they really allocate. For that, this program's
// operator new counts what is allocated and not freed, with the allocator's own header and
// rounding.

#include "proxy/cache/fetch.hpp"
#include "proxy/cache/memory/memory_tier.hpp"
#include "proxy/cache/memory/purges.hpp"
#include "tests/unit/cache/fetching.hpp"
#include "tests/unit/cache/responses.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

namespace {

std::atomic<std::size_t> allocated{0};
thread_local bool lacks_memory = false;

// What glibc takes for a piece: one word before it, and all in steps of 16, four words at least. It is
// noted in front of each, since what malloc really gave hangs on what lies around it: a rest that is
// too short for another piece is left to this one.
constexpr std::size_t note = 16;
std::size_t cost_of(std::size_t size) {
    return std::max<std::size_t>((size + sizeof(std::size_t) + 15) / 16 * 16, 32);
}

}  // namespace

// Not inlined: GCC 12 would see new beside free and warn of a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
    void* memory = lacks_memory ? nullptr : std::malloc(note + size);
    if (memory == nullptr) {
        throw std::bad_alloc{};
    }
    const auto cost = cost_of(size);
    std::memcpy(memory, &cost, sizeof cost);
    allocated.fetch_add(cost, std::memory_order_relaxed);
    return static_cast<char*>(memory) + note;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    if (memory != nullptr) {
        void* const begin = static_cast<char*>(memory) - note;
        std::size_t cost = 0;
        std::memcpy(&cost, begin, sizeof cost);
        allocated.fetch_sub(cost, std::memory_order_relaxed);
        std::free(begin);
    }
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    operator delete(memory);
}

namespace reprise::proxy::cache::test::of_memory {

TEST_SUITE_BEGIN("cache/memory");

/// Of one stored object, beside its head and body: its own numbers, the entry with its URL, a bucket,
/// and what malloc adds to two allocations. README.md of cache/memory/ has the table.
constexpr std::size_t most_beside = 190;

TEST_CASE("a store is charged with at least what its responses really take, and not much more") {
    struct shape {
        std::size_t content;
        std::size_t url;
        const char* vary;
    };
    constexpr const char* long_vary = "Accept-Encoding, Accept-Language, Accept, "
                                      "X-Some-Rather-Long-Field-Name, Cookie, User-Agent";
    for (const auto& [content, url_size, vary] : {shape{1, 30, ""},
                                                  shape{700, 60, ""},
                                                  shape{700, 60, "Accept-Encoding"},
                                                  shape{10, 2'000, long_vary},
                                                  shape{40'000, 100, ""}}) {
        CAPTURE(content);
        CAPTURE(url_size);
        CAPTURE(vary);
        const std::string bytes(content, 'x');
        const auto url_of = [size = url_size](int n) {
            auto url = "http://origin.test/" + std::to_string(100'000 + n) + "/";
            url.resize(size, 'u');
            return url;
        };
        memory_tier store{1u << 30};
        const auto before = allocated.load();
        constexpr int count = 3'000;
        for (int n = 0; n < count; ++n) {
            const auto url = url_of(n);
            REQUIRE(store.put(key_of(url), url, response({.content = bytes, .vary = vary})));
        }
        const auto real = allocated.load() - before;
        const auto charged = store.figures().bytes;
        CHECK(charged >= real);
        CHECK(charged <= real + real / 20);
        for (int n = 0; n < count; ++n) {
            const auto url = url_of(n);
            REQUIRE(store.invalidate(key_of(url), url) == 1);
        }
        // Only empty tables stay.
        CHECK(allocated.load() - before < count * 32);
    }
}

TEST_CASE("an object takes what its head and body do, and with its URL at most 190 bytes beside") {
    memory_tier store{1u << 30};
    std::string head = "HTTP/1.1 200 OK\r\nServer: origin\r\nContent-Type: text/css\r\n";
    head.append("Cache-Control: max-age=600\r\nETag: \"1f3a-65a8\"\r\nContent-Length: 1024\r\n");
    const auto before = allocated.load();
    constexpr std::size_t count = 10'000;
    for (std::size_t n = 0; n < count; ++n) {
        const auto url = "http://origin.test/asset/" + std::to_string(100'000 + n);
        auto made = response({.content = std::string(1'024, 'x')});
        made->head = head;
        index_head(made);
        made->directives.max_age = std::chrono::seconds{600};
        REQUIRE(store.put(key_of(url), url, made));
    }
    CHECK((allocated.load() - before) / count - head.size() - 1'024 <= most_beside);
    const auto charged = store.figures().bytes;
    CHECK(charged >= allocated.load() - before);
    CHECK(charged / count - head.size() - 1'024 <= most_beside);
}

TEST_CASE("a block that passes is there for the next of about its size") {
    auto one = block::make_passing(1'024);
    const auto taken = allocated.load();
    CHECK(one->capacity() == 1'024);
    CHECK(one->footprint() >= 1'024 + sizeof(block));
    one.reset();
    for (const std::size_t size : {1'024u, 1'100u, 1'520u}) {
        one = block::make_passing(size);
        CHECK(one->capacity() == size);
        std::fill_n(one->data(), size, 'x');
        CHECK(allocated.load() == taken);
        one.reset();
    }
    for (const std::size_t size : {1u, 496u, 497u, 4'096u}) {
        one = block::make_passing(size);
        std::fill_n(one->data(), size, 'x');
    }
}

TEST_CASE("a body of many blocks is charged with all of them") {
    memory_tier store{1u << 30};
    const std::string url = "http://origin.test/";
    store.put(key_of(url), url, response({}));
    store.invalidate(key_of(url), url);  // the index has its first table now
    const auto before = allocated.load();
    {
        const auto source = std::make_shared<fetch>(fetch_limits{});
        const client one{source};
        REQUIRE(source->keep_whole());
        source->producer_head(head_of());
        const std::string piece(1'000, 'x');
        for (int i = 0; i < 5'000; ++i) {
            source->producer_append(piece);
        }
        auto kept = response({});
        kept->content = source->whole_body();
        REQUIRE(store.put(key_of(url), url, std::move(kept)));
    }
    const auto real = allocated.load() - before;
    CHECK(store.figures().bytes >= real);
    CHECK(store.figures().bytes <= real + real / 8);
}

TEST_CASE("a fetch holds at most its window, the blocks at both ends and a little beside") {
    // Of the window's bytes the first and the last may lie in blocks of 64 KiB that reach beyond.
    constexpr fetch_limits limits{.window = 1u << 20,
                                  .read_ahead = 256u << 10,
                                  .first_bytes = 256u << 10,
                                  .finish = 16u << 10};
    constexpr std::size_t most = limits.window + 2 * (64u << 10) + 16'384;
    for (const std::size_t cut : {1'000u, 16'384u, 65'536u, 200'000u}) {
        CAPTURE(cut);
        const std::string piece(cut, 'x');
        const auto before = allocated.load();
        const auto source = std::make_shared<fetch>(limits);
        source->producer_head(cache::test::resumable_head_of());
        bool head_known = false;
        const auto fast = fetch::join(source, {}, head_known);
        const auto slow = fetch::join(source, {}, head_known);
        const auto stalled = fetch::join(source, {}, head_known);
        fetch_reader::report report;
        std::size_t held = 0;
        std::uint64_t taken_by_slow = 0;
        while (source->received() < 20 * limits.window) {
            source->producer_append(piece);
            held = std::max(held, allocated.load() - before);
            while (fast->offset() < source->received()) {
                fast->next(report, 1u << 18);
            }
            // Half as fast, until it falls out.
            while (taken_by_slow < source->received() / 2) {
                slow->next(report, 10'000);
                if (report.what == event::fell_out) {
                    break;
                }
                taken_by_slow = slow->offset();
            }
            report.clear();
        }
        CHECK(held <= most + cut);
        stalled->next(report, 1);
        stalled->next(report, 1);
        CHECK(report.what == event::fell_out);
        // Those who fell out hold nothing.
        while (fast->offset() < source->received()) {
            fast->next(report, 1u << 18);
        }
        report.clear();
        CHECK(allocated.load() - before <= 2 * (64u << 10) + 16'384);
    }
}

TEST_CASE("a reader alone that stalls costs no more than the read-ahead") {
    constexpr fetch_limits limits{.window = 8u << 20,
                                  .read_ahead = 256u << 10,
                                  .first_bytes = 256u << 10,
                                  .finish = 16u << 10};
    const auto before = allocated.load();
    const auto source = std::make_shared<fetch>(limits);
    client one{source};
    source->producer_head(head_of(1u << 30));
    while (!source->producer_must_pause()) {
        const auto room = source->producer_space(64u << 10).second;
        source->producer_commit(room);
    }
    CHECK(allocated.load() - before <= limits.read_ahead + (64u << 10) + 16'384);
}

// Of whoever meets it while there is no memory. False: it needed none.
template <class Work>
bool lacks_memory_for(const Work& work) {
    lacks_memory = true;
    try {
        work();
    } catch (const std::bad_alloc&) {
        lacks_memory = false;
        return true;
    }
    lacks_memory = false;
    return false;
}

TEST_CASE("what a soft purge has met stays purged, though there was no memory to note it") {
    memory_tier store{1u << 20};
    const std::string url = "http://origin.test/a";
    REQUIRE(store.put(key_of(url), url, response({})));
    const auto fresh = store.find(key_of(url), url, {}).response;
    store.purges().ban_prefix("http://origin.test/", "", purge_mode::soft, wall_now());
    CHECK(lacks_memory_for([&] { (void)store.find(key_of(url), url, {}); }));
    const auto found = store.find(key_of(url), url, {}).response;
    REQUIRE(found);
    CHECK(found != fresh);
    CHECK(store.figures().purged == 1);
}

TEST_CASE("what is to go goes, though there is no memory for the list of what went") {
    memory_tier store{1u << 20};
    const std::string url = "http://origin.test/a";
    for (const std::string vary : {"", "A", "B"}) {
        REQUIRE(store.put(key_of(url), url, response({.vary = vary})));
    }
    SUBCASE("invalidated") {
        std::size_t count = 0;
        CHECK(!lacks_memory_for([&] { count = store.invalidate(key_of(url), url); }));
        CHECK(count == 3);
    }
    SUBCASE("purged") {
        store.purges().ban_prefix("http://origin.test/", "", purge_mode::hard, wall_now());
        CHECK(!lacks_memory_for([&] { CHECK(!store.find(key_of(url), url, {}).response); }));
        CHECK(store.figures().purged == 3);
    }
    CHECK(store.variants(key_of(url), url).empty());
    CHECK(store.figures().objects == 0);
}

TEST_CASE("a ban for which there is no memory takes with it neither an earlier one nor room") {
    // Texts so short that they take no memory: what is lacking is a place in the list.
    constexpr unsigned most = 16;
    bool lacked = false;
    for (unsigned others = 0; others < most; ++others) {
        CAPTURE(others);
        purge_list list{{.bans = 100, .bytes = 10 * (most + 2)}};
        const auto ban = [&list](char name) {
            list.ban_prefix(std::string{"http://"} + name + '/', "", purge_mode::hard, wall_now());
        };
        ban('a');
        for (unsigned i = 0; i < others; ++i) {
            ban(static_cast<char>('b' + i));
        }
        if (!lacks_memory_for([&] { ban('a'); })) {
            continue;
        }
        lacked = true;
        for (int i = 0; i < 100; ++i) {
            CHECK(lacks_memory_for([&] { ban('z'); }));
        }
        CHECK(list.judge("http://a/", {}, 0).hard);
        CHECK(list.epoch() == 1 + others);
        CHECK(list.figures().prefixes == 1 + others);
        ban('z');
        CHECK(list.figures().bans == 2 + others);
        CHECK(list.figures().forgotten == 0);
    }
    CHECK(lacked);
}

TEST_CASE("all variants are made stale or none is, where memory ends in between") {
    memory_tier store{1u << 20};
    const std::string url = "http://origin.test/a";
    for (const std::string vary : {"", "A", "B"}) {
        REQUIRE(store.put(key_of(url), url, response({.vary = vary})));
    }
    const auto before = store.variants(key_of(url), url);
    CHECK(lacks_memory_for([&] { (void)store.expire(key_of(url), url, wall_now()); }));
    CHECK(store.variants(key_of(url), url) == before);
    CHECK(store.expire(key_of(url), url, wall_now()) == 3);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::cache::test::of_memory
