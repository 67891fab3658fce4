#pragma once
// A source that tells news, on a clock of the test's, and a reader that follows it without a network.

#include "filter/digest_replica.hpp"
#include "filter/digest_wire.hpp"
#include "proxy/peer/digest_source.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace reprise::proxy::peer::test::of_news_bench {

using namespace std::chrono_literals;
using filter::test::nth_key;

inline constexpr wall_time start{1'763'668'089'000ms};
inline constexpr steady_time zero{1h};

inline std::string url_of(std::uint64_t i) {
    return "http://origin.example/" + std::to_string(i);
}

inline source_plan plan() {
    source_plan made;
    made.news = 200ms;
    return made;
}

struct world {
    explicit world(const source_plan& with = plan())
        : source{with,
                 secret,
                 [this] { return ++drawn; },
                 {.stir = [this] { ++stirred; },
                  .told =
                      [this] {
                          ++told;
                          std::exchange(on_told, [] {})();
                      },
                  .readers = [this] { return waiting; }}} {}

    void hold(std::uint64_t i, std::chrono::seconds fresh = 1h) {
        source.held(holder::memory, nth_key(1, i), url_of(i), wall() + fresh, wall());
    }
    void drop(std::uint64_t i) { source.gone(holder::memory, nth_key(1, i)); }
    void tell(holder by, std::uint64_t i, std::chrono::seconds fresh = 1h) {
        source.held(by, nth_key(1, i), url_of(i), wall() + fresh, wall());
    }
    void take_back(holder by, std::uint64_t i) { source.gone(by, nth_key(1, i)); }
    void pass(std::chrono::milliseconds time) {
        passed += time;
        source.tick(zero + passed, wall());
    }
    [[nodiscard]] wall_time wall() const { return start + passed; }
    [[nodiscard]] news_shelf& shelf() { return *source.news(); }

    std::uint64_t drawn = 100;
    unsigned stirred = 0, told = 0;
    std::function<void()> on_told = [] {};
    std::size_t waiting = 0;  // for news
    std::chrono::milliseconds passed{0};
    fleet_secret secret = fleet_secret::none();
    digest_source source;
};

/// What a sibling does, without a network: asks from what it holds, and takes what is there.
struct reader {
    explicit reader(world& of) : w{of} {}

    /// False: nothing was there yet.
    bool ask() {
        if (held) {
            const auto found = w.shelf().look(held->now().stamp().generation);
            if (found.what == news_shelf::state::current) {
                return true;
            }
            if (found.what == news_shelf::state::ready) {
                const auto by_name = [this](std::uint64_t name) { return key_of(name, w.secret); };
                const auto turned = held->apply(*found.wire, by_name);
                REQUIRE(turned.has_value());
                ++news;
                bytes += found.wire->size();
                return ask();  // for what comes next
            }
            if (found.what == news_shelf::state::soon) {
                return false;
            }
        }
        const auto newest = w.source.digests().now();
        if (!newest ||
            w.shelf().look(newest->bits->stamp().generation).what == news_shelf::state::beyond) {
            w.shelf().want_whole();
            return false;
        }
        held = std::make_unique<filter::digest_replica>(
            *filter::decode_digest(*newest->whole, w.secret.id()));
        ++wholes;
        return ask();
    }
    /// Asks until it holds what is the newest.
    void catch_up() {
        for (int i = 0; i < 50; ++i) {
            if (ask() && held->now().stamp().generation == w.shelf().newest()) {
                return;
            }
            w.pass(100ms);
        }
        FAIL("it does not catch up");
    }
    /// News as soon as it may be told, until the pace is all that is left.
    void use_all_that_is_saved() {
        for (std::uint64_t i = 0; i < 20; ++i) {
            w.hold(1'000'000 + i);
            w.pass(0ms);
            if (w.source.due_at() != steady_time::max()) {
                w.pass(std::chrono::ceil<std::chrono::milliseconds>(w.source.due_at() - zero -
                                                                    w.passed));
            }
            CHECK(ask());
        }
    }
    [[nodiscard]] bool lists(std::uint64_t i) const {
        return held->now().may_contain(key_of(name_of(url_of(i), w.secret), w.secret));
    }

    world& w;
    std::unique_ptr<filter::digest_replica> held;
    unsigned news = 0, wholes = 0;
    std::uint64_t bytes = 0;
};

/// Follows a source that is loaded, has all of it, and has heard nothing for a while.
inline reader quiet_reader(world& w) {
    w.source.loaded();
    w.pass(100ms);
    reader made{w};
    made.catch_up();
    w.pass(10s);
    return made;
}

}  // namespace reprise::proxy::peer::test::of_news_bench
