// A fetch and its readers over schedules made from seeds: however the body is cut, whoever joins,
// stalls and leaves, a reader has the body's beginning at any time and all of it at the end.

#include "tests/support/must.hpp"
#include "tests/unit/cache/fetching.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::cache::test::of_fetch {

namespace {

constexpr std::size_t block_size = 64u << 10;
constexpr std::size_t enough = 12;  // clients: each keeps what it had

void run(std::uint64_t seed) {
    std::mt19937_64 random{seed};
    const auto below = [&](std::uint64_t limit) {
        return static_cast<std::size_t>(random() % limit);
    };
    const fetch_limits limits{.window = (2 + below(6)) * block_size,
                              .read_ahead = 1 + below(block_size),
                              .first_bytes = below(2 * block_size),
                              .finish = below(block_size)};
    const std::size_t size = below(8) == 0 ? below(1u << 18) : (1u << 18) + below(1u << 20);
    const auto expected = pattern(size);
    const auto source = std::make_shared<fetch>(limits);
    const bool kept = below(3) == 0;
    const bool resumable = below(2) == 0;  // else nobody may fall out
    if (kept) {
        REQUIRE(source->keep_whole());
    }
    std::vector<std::unique_ptr<client>> clients;
    clients.push_back(std::make_unique<client>(source));  // stays
    // Of what was right up to `from`: so each byte is looked at once, and once more at the end.
    const auto is_beginning = [&](const std::string& bytes, std::size_t from) {
        return bytes.size() <= size &&
               std::memcmp(bytes.data() + from, expected.data() + from, bytes.size() - from) == 0;
    };
    const auto length = below(2) == 0 ? std::optional<std::uint64_t>{size} : std::nullopt;
    source->producer_head(resumable ? resumable_head_of(length) : head_of(length));
    bool pausing = false;
    unsigned pauses = 0;
    std::size_t made = 0;
    const std::size_t largest_cut = 1 + below(50'000);
    while (made < size) {
        if (source->abandoned()) {
            // Those in front have left; who is still here had fallen out.
            REQUIRE(resumable);
            for (const auto& one : clients) {
                REQUIRE(one->drain() == event::fell_out);
            }
            return;
        }
        switch (below(8)) {
        case 0:
            if (clients.size() == enough) {
                break;
            }
            if (auto late = std::make_unique<client>(source); late->reader) {
                clients.push_back(std::move(late));
            } else {
                REQUIRE(!kept);
                REQUIRE((made > limits.first_bytes || (pausing && !resumable) || pauses >= 3));
            }
            break;
        case 1:
            if (clients.size() > 1 && below(4) == 0) {
                clients.erase(clients.begin() + 1 +
                              static_cast<std::ptrdiff_t>(below(clients.size() - 1)));
            }
            break;
        case 2:
        case 3:
            pausing = source->producer_must_pause();
            pauses += pausing;
            if (pausing) {
                // Whoever is in front goes on, and then the producer may.
                for (const auto& one : clients) {
                    one->drain();
                }
                MUST(!source->producer_must_pause());
            } else {
                const auto cut = std::min(size - made, 1 + below(largest_cut));
                source->producer_append(std::string_view{expected}.substr(made, cut));
                made += cut;
            }
            break;
        default: {
            auto& one = *clients[below(clients.size())];
            const auto had = one.bytes.size();
            const auto before = made - had;
            if (one.step(1 + below(100'000)) == event::fell_out) {
                REQUIRE(!kept);
                REQUIRE(resumable);
                REQUIRE(before + block_size > limits.window);
            }
            MUST(is_beginning(one.bytes, had));
            MUST(one.reader->offset() == one.bytes.size());
        }
        }
    }
    if (kept) {
        const auto whole = source->whole_body();
        REQUIRE(whole);
        REQUIRE(whole->size == size);
    }
    REQUIRE(source->received() == size);
    source->producer_finish("");
    std::size_t whole_bodies = 0;
    for (const auto& one : clients) {
        const auto end = one->drain();
        REQUIRE((end == event::end || (end == event::fell_out && !kept && resumable)));
        REQUIRE(is_beginning(one->bytes, 0));
        REQUIRE((end != event::end || one->bytes.size() == size));
        whole_bodies += end == event::end;
    }
    REQUIRE(whole_bodies > 0);
}

}  // namespace

TEST_SUITE("property/fetch") {
    TEST_CASE("readers have the body's beginning at any time and the whole at its end") {
        for (std::uint64_t seed = 1; seed <= 300; ++seed) {
            CAPTURE(seed);
            run(seed);
        }
    }
}

}  // namespace reprise::proxy::cache::test::of_fetch
