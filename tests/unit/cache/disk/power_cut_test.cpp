// What a store serves after the power went, or the process was killed, at any moment: no wrong
// byte, nothing that a kept purge had dropped; and all that was there when it was closed.

#include "proxy/cache/disk/format.hpp"
#include "proxy/cache/disk/tier.hpp"
#include "tests/unit/cache/disk/disk_store.hpp"
#include "tests/unit/cache/disk/memory_files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <string>

namespace reprise::proxy::cache::disk {

using namespace test;

namespace {

constexpr unsigned urls = 24;

// Sanitizers make a store's threads ten times as slow; what a seed brings is the same with them.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr unsigned share = 10;
#else
constexpr unsigned share = 1;
#endif

/// How many beginnings of chance are tried: REPRISE_SEEDS for a long form.
std::uint64_t seeds(std::uint64_t usual) {
    const char* asked = std::getenv("REPRISE_SEEDS");
    return asked != nullptr ? std::strtoull(asked, nullptr, 10) : usual / share;
}

/// What is known of a URL.
struct history {
    unsigned last = 0;   ///< the version put last; versions begin with 1
    unsigned least = 0;  ///< a kept purge dropped all before this
};

std::size_t size_of(unsigned url, unsigned version) {
    return url % 6 == 0 ? 90'000 + 20'000 * (version % 3) : 200 + 900 * ((url * 7 + version) % 20);
}

drafted version_of(unsigned url, unsigned version) {
    auto made = object(url_of(url), size_of(url, version), version);
    made->freshness.lifetime = std::chrono::seconds{version};  // so that a reader can tell
    made->reusable_until = http::fresh_until(made->freshness);
    return made;
}

/// One turn of traffic on the store.
void disturb(disk_store& s, std::map<unsigned, history>& known, std::mt19937_64& random) {
    const auto number = static_cast<unsigned>(random() % urls);
    const auto url = url_of(number);
    auto& of = known[number];
    const auto what = random() % 40;
    if (what < 34) {
        (void)s.put(url, version_of(number, ++of.last));
    } else if (what < 36) {
        s.invalidate(url);
        of.least = of.last + 1;
    } else if (what < 37) {
        s.purges->ban_prefix(url, "", purge_mode::hard, wall_now());
        s.keep_bans();
        for (auto& [other, history] : known) {
            if (url_of(other).starts_with(url)) {
                history.least = history.last + 1;
            }
        }
    } else {
        (void)s.find(url);
    }
}

/// Everything that is served is what was stored, and no older than what the purges left.
unsigned check(disk_store& s, const std::map<unsigned, history>& known) {
    unsigned there = 0;
    for (const auto& [number, of] : known) {
        const auto url = url_of(number);
        const auto got = s.find(url).response;
        if (!got) {
            continue;
        }
        ++there;
        const auto version = static_cast<unsigned>(got->freshness().lifetime.count());
        CAPTURE(url);
        CHECK(version >= of.least);
        CHECK(version <= of.last);
        if (const auto content = whole_body(*got)) {
            const bool right = *content == body_for(url, size_of(number, version), version);
            CHECK(right);
        }
    }
    return there;
}

}  // namespace

TEST_SUITE("cache/disk/power_cut") {

    TEST_CASE("the power may go at any moment, again and again") {
        unsigned there = 0;
        const auto last = seeds(80);
        for (std::uint64_t seed = 1; seed <= last; ++seed) {
            CAPTURE(seed);
            std::mt19937_64 random{seed};
            auto files = std::make_shared<memory_files>();
            disk_store s{files, smallest_store};
            s.settings.readers = 1;
            s.settings.write_queue = 256u << 10;
            std::map<unsigned, history> known;
            for (int life = 0; life < 3; ++life) {
                s.begin_to_open();
                for (auto turns = random() % 250; turns != 0; --turns) {
                    disturb(s, known, random);
                }
                const bool kill = random() % 4 == 0;
                files = kill ? files->after_kill() : files->cut(random());
                s.go_on_with(files);
                there += check(s, known);
                files = files->after_kill();
                s.close();
                s.files = files;
            }
        }
        CHECK(there > 10 * last);  // it was worth checking
    }

    TEST_CASE("what was there when a store was closed is there after the power went") {
        for (std::uint64_t seed = 1; seed <= seeds(20); ++seed) {
            CAPTURE(seed);
            std::mt19937_64 random{seed};
            auto files = std::make_shared<memory_files>();
            disk_store s{files, 8u << 20};
            s.open();
            std::map<unsigned, history> known;
            for (int turns = 0; turns < 200; ++turns) {
                disturb(s, known, random);
            }
            s.close();
            s.open();
            const auto before = check(s, known);
            s.close();
            s.files = files->cut(seed);
            s.open();
            CHECK(check(s, known) == before);
            CHECK(s->figures().damaged == 0);
        }
    }

    TEST_CASE("what a closed segment has survives the power, what is purged does not come back") {
        // Wrapping, so that segments are used again while their old records still lie in them.
        for (std::uint64_t seed = 1; seed <= seeds(10); ++seed) {
            CAPTURE(seed);
            std::mt19937_64 random{seed};
            auto files = std::make_shared<memory_files>();
            disk_store s{files, smallest_store};
            s.settings.write_queue = 128u << 10;
            s.open();
            std::map<unsigned, history> known;
            for (int turns = 0; turns < 1200; ++turns) {
                disturb(s, known, random);
            }
            s.close();
            s.files = files->cut(seed);
            s.open();
            (void)check(s, known);
        }
    }

    TEST_CASE("flipped bits and cut-off files are never served") {
        auto files = std::make_shared<memory_files>();
        std::map<unsigned, history> known;
        std::mt19937_64 random{7};
        {
            disk_store s{files, smallest_store};
            s.open();
            for (int turns = 0; turns < 150; ++turns) {
                disturb(s, known, random);
            }
        }
        for (std::uint64_t seed = 1; seed <= seeds(40); ++seed) {
            CAPTURE(seed);
            auto hurt = files->after_kill();
            for (const auto& path : hurt->paths()) {
                if (path.find("/s-") == std::string::npos) {
                    continue;
                }
                const auto size = hurt->contents(path).size();
                if (random() % 8 == 0) {
                    (void)(*hurt->open(path, open_mode::update))->resize(random() % size);
                    continue;
                }
                for (int flips = 0; flips < 8; ++flips) {
                    const auto at = random() % size;
                    const char byte = static_cast<char>(hurt->contents(path)[at] ^
                                                        (1 << random() % 8));
                    hurt->damage(path, at, {&byte, 1});
                }
            }
            disk_store s{hurt, smallest_store};
            s.open();
            auto so_far = known;
            (void)check(s, so_far);
            for (int turns = 0; turns < 20; ++turns) {
                disturb(s, so_far, random);
            }
            (void)check(s, so_far);
        }
    }
}

}  // namespace reprise::proxy::cache::disk
