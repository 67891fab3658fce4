// Eight threads of the server's, as many requests as they like, while the configuration is read anew, seconds pass, states are
// saved and digests sent: what the plug-ins share is shared well. ThreadSanitizer's build is what this is for.

#define XXH_INLINE_ALL
#include "filter/plugins/trafficserver/follower.hpp"
#include "filter/plugins/trafficserver/gates.hpp"
#include "filter/plugins/trafficserver/neighbours.hpp"
#include "filter/plugins/trafficserver/own_digest.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/filter/plugins/trafficserver/threads/fake_server.hpp"

#include <doctest/doctest.h>
#include <xxhash.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <reprise/digest.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>
// This order: remap.h includes nothing of what it needs.
// clang-format off
#include <ts/ts.h>
#include <ts/remap.h>
// clang-format on

namespace reprise::trafficserver::test {

namespace {

constexpr unsigned threads_at_once = 8;

/// `work(which)` on each of the threads, and `beside()` on this one, again and again until they are done.
template <class Work, class Beside>
void at_once(Work&& work, Beside&& beside) {
    std::atomic<unsigned> busy{threads_at_once};
    std::vector<std::thread> all;
    for (unsigned which = 0; which < threads_at_once; ++which) {
        all.emplace_back([&, which] {
            work(which);
            --busy;
        });
    }
    do {
        beside();
    } while (busy > 0);
    for (auto& each : all) {
        each.join();
    }
}

std::int64_t ledger(const char* name, const char* what) {
    return figure(std::string{"plugin.reprise_admission."} + name + "." + what);
}

struct read_rule {
    void* made = nullptr;  ///< null: it is refused,
    std::string why;       ///< for this
};

/// A rule of remap.config.
read_rule read_rule_of(std::vector<std::string> words) {
    words.insert(words.begin(), {"from", "to"});
    std::vector<char*> pointers;
    for (auto& each : words) {
        pointers.push_back(each.data());
    }
    std::array<char, 300> error{};
    read_rule out;
    const auto code = TSRemapNewInstance(static_cast<int>(pointers.size()),
                                         pointers.data(),
                                         &out.made,
                                         error.data(),
                                         static_cast<int>(error.size()));
    if (code != TS_SUCCESS) {
        out = {nullptr, error.data()};
    }
    return out;
}

/// One that has to be good.
void* rule_of(const std::vector<std::string>& words) {
    const auto read = read_rule_of(words);
    CHECK_MESSAGE(read.made != nullptr, read.why);
    return read.made;
}

/// remap.config is read anew, up to the first rule that is refused: why it was, or nothing. The server deletes the rules of a
/// configuration that it does not take, which `in_use` keeps if it does, in place of those before.
std::string reload(std::vector<void*>& in_use, const std::vector<std::vector<std::string>>& lines) {
    TSRemapPreConfigReload();
    std::vector<void*> made;
    std::string why;
    for (const auto& words : lines) {
        const auto read = read_rule_of(words);
        why = read.why;
        if (read.made == nullptr) {
            break;
        }
        made.push_back(read.made);
    }
    TSRemapPostConfigReload(why.empty() ? TSREMAP_CONFIG_RELOAD_SUCCESS_PLUGIN_USED
                                        : TSREMAP_CONFIG_RELOAD_FAILURE);
    if (why.empty()) {
        in_use.swap(made);
    }
    for (auto* const each : made) {
        TSRemapDeleteInstance(each);
    }
    return why;
}

}  // namespace

TEST_SUITE("filter/plugins/trafficserver/threads/shared") {
    TEST_CASE(
        "requests, hits, reloads, seconds and saves at once: each is counted, and none is lost") {
        constexpr unsigned rounds = 400;
        const tests::temp_dir folder;
        const auto state = "state=" + folder.file("seen");
        std::array<const char*, 4> words{
            "reprise_admission.so", "objects=100k", "name=all", "refresh=1"};
        TSPluginInit(static_cast<int>(words.size()), words.data());
        threads_are_ready();
        TSRemapPreConfigReload();
        const std::vector<std::string> ruled{
            "name=ruled", "objects=100k", state, "refresh=1", "save=1s"};
        std::vector<void*> rules{rule_of(ruled)};
        TSRemapPostConfigReload(TSREMAP_CONFIG_RELOAD_SUCCESS_PLUGIN_USED);
        std::atomic<void*> rule{rules.front()};
        std::atomic<unsigned> stored_first{0}, refused_second{0};
        const auto one = [&](unsigned which, unsigned round, bool by_rule, int found) {
            fake_txn txn{.id = round * threads_at_once + which,
                         .path = std::to_string(which) + '/' + std::to_string(round) +
                                 (by_rule ? "/ruled" : "/all"),
                         .found = found};
            if (by_rule) {
                TSRemapDoRemap(rule.load(), txn.as_txn(), nullptr);
            }
            txn.run();
            return txn.is_refused;
        };
        at_once(
            [&](unsigned which) {
                for (unsigned round = 0; round < rounds; ++round) {
                    const bool by_rule = round % 2 != 0;
                    stored_first += one(which, round, by_rule, TS_CACHE_LOOKUP_MISS) ? 0 : 1;
                    refused_second += one(which, round, by_rule, TS_CACHE_LOOKUP_MISS) ? 1 : 0;
                    one(which, round, by_rule, TS_CACHE_LOOKUP_HIT_FRESH);
                    one(threads_at_once,
                        0,
                        by_rule,
                        TS_CACHE_LOOKUP_HIT_STALE);  // all of them the same
                }
            },
            [&] {
                second_passes();
                TSRemapPreConfigReload();
                // The server keeps the one before for as long as a transaction goes by it.
                rules.push_back(rule_of(ruled));
                TSRemapPostConfigReload(TSREMAP_CONFIG_RELOAD_SUCCESS_PLUGIN_USED);
                rule = rules.back();
            });
        CHECK(stored_first.load() < 5);  // strangers taken for known: one in a thousand at most
        CHECK(refused_second.load() == 0);
        server_ends();
        second_passes();
        constexpr std::int64_t each = threads_at_once * rounds / 2;
        for (const auto* const name : {"all", "ruled"}) {
            CAPTURE(name);
            CHECK(ledger(name, "objects_not_stored") + ledger(name, "objects_admitted") ==
                  2 * each);
            CHECK(ledger(name, "objects_not_stored") > each - 5);
            CHECK(ledger(name, "bytes_not_stored") == 1'000 * ledger(name, "objects_not_stored"));
            CHECK(ledger(name, "first_sights") + ledger(name, "repeats") == 2 * each);
        }
        CHECK(ledger("ruled", "saves") > 0);
        CHECK(ledger("ruled", "failed_saves") == 0);
        for (auto* const done : rules) {
            TSRemapDeleteInstance(done);
        }
    }

    TEST_CASE(
        "a reload refuses what a start refuses, and goes by the defaults where a start does") {
        const tests::temp_dir folder;
        const auto state = "state=" + folder.file("seen");
        std::vector<void*> rules;
        // Two names with one file, of which the one that comes last had it before.
        REQUIRE(reload(rules, {{"name=had", "objects=20k", state}}) == "");
        const auto two = reload(
            rules, {{"name=has", "objects=20k", state}, {"name=had", "objects=20k", state}});
        CHECK_MESSAGE(two.find("is that of name=has") != std::string::npos, two);
        // The refused ones are as if they had not been: the same may be said again, and the file may go to the other.
        CHECK(reload(rules, {{"name=had", "objects=20k", state}, {"name=had"}}) == "");
        CHECK(reload(rules, {{"name=has", "objects=20k", state}}) == "");
        // What belongs to the name, behind a rule that says no more than the name.
        const auto behind = reload(rules, {{"name=has"}, {"name=has", "objects=20k", state}});
        CHECK_MESSAGE(behind.find("in the first rule of that name") != std::string::npos, behind);
        // A name alone, where there were options before.
        const auto memory_of = [](const char* name) {
            gates::here().tick();
            return ledger(name, "memory");
        };
        REQUIRE(reload(rules, {{"name=shrunk", "objects=20k"}, {"name=usual"}}) == "");
        const auto before = memory_of("shrunk");
        CHECK(reload(rules, {{"name=shrunk"}, {"name=usual"}}) == "");
        CHECK(memory_of("shrunk") > before);
        CHECK(memory_of("shrunk") == memory_of("usual"));
        CHECK(reload(rules, {}) == "");
    }

    TEST_CASE("a digest takes the cache to keep no more than the server says, also after it was "
              "made smaller") {
        const tests::temp_dir folder;
        static constexpr std::array<unsigned char, 32> seed{7};
        constexpr std::int64_t mib = 1 << 20;
        const auto say_total = [](std::int64_t bytes) {
            set_figure("proxy.process.cache.bytes_total", bytes);
            set_figure("proxy.process.cache.volume_0.bytes_total", bytes);
        };
        const auto room = [] { return figure("plugin.reprise_siblings.own.room"); };
        say_total(64 * mib);
        set_figure("proxy.process.cache.span.online", 1);
        std::int64_t wraps = 1'000;
        fleet_options options;
        options.state = folder.file("digest");
        options.objects = 10'000;
        static std::array<own_digest*, 2> kept{};  // never destroyed, as in a server
        kept[0] = new own_digest{options, seed.data()};
        for (std::uint64_t round = 0; round < 3; ++round) {
            set_figure("proxy.process.cache.wrap_count", ++wraps);
            kept[0]->tick();
            for (std::uint64_t i = 0; i < 4'000; ++i) {
                kept[0]->came({round, i * 0x9e37'79b9'7f4a'7c15U}, 14'000);
            }
        }
        kept[0]->tick();
        CHECK(room() > 50 * mib);
        CHECK(room() < 64 * mib);  // what it has shown
        kept[0]->save();
        say_total(16 * mib);
        kept[1] = new own_digest{options, seed.data()};
        kept[1]->tick();
        CHECK(room() == 16 * mib);
        // A disk is lost while the server runs.
        say_total(8 * mib);
        kept[1]->tick();
        CHECK(room() == 8 * mib);
        say_total(64 * mib);
    }

    TEST_CASE("what is stored is told while the digest is published, saved and sent") {
        const tests::temp_dir folder;
        static constexpr std::array<unsigned char, 32> seed{7};
        set_figure("proxy.process.cache.bytes_total", 64 << 20);
        set_figure("proxy.process.cache.span.online", 1);
        set_figure("proxy.process.cache.volume_0.bytes_total", 64 << 20);
        fleet_options options;
        options.state = folder.file("digest");
        static own_digest* kept = nullptr;  // never destroyed, as in a server
        kept = new own_digest{options, seed.data()};
        auto& digest = *kept;
        digest.tick();
        std::atomic<std::uint64_t> sent{0};
        std::int64_t wraps = 0;
        at_once(
            [&](unsigned which) {
                for (std::uint64_t i = 0; i < 3'000; ++i) {
                    digest.came({which * 10'000 + i, i * 0x9e37'79b9'7f4a'7c15U}, 10'000);
                    digest.answered();
                    if (i % 500 == which) {
                        sent += digest.since(0, 0).body.size();
                    }
                }
            },
            [&] {
                set_figure("proxy.process.cache.wrap_count", ++wraps / 100);
                digest.tick();
                digest.save();
            });
        digest.tick();
        CHECK(sent.load() > 0);
        CHECK(figure("plugin.reprise_siblings.own.objects") == 8 * 3'000);
        CHECK(figure("plugin.reprise_siblings.own.answers") == 8 * 3'000);
        CHECK(figure("plugin.reprise_siblings.own.failed_saves") == 0);
        CHECK(figure("plugin.reprise_siblings.own.saves") > 0);
    }

    TEST_CASE("states are saved when they are due, though the clock was set back by a month") {
        using namespace std::chrono_literals;
        const tests::temp_dir folder;
        static constexpr std::array<unsigned char, 32> seed{7};
        set_figure("proxy.process.cache.bytes_total", 64 << 20);
        fleet_options options;
        options.state = folder.file("digest");
        options.save = 1s;
        static own_digest* kept = nullptr;  // never destroyed, as in a server
        kept = new own_digest{options, seed.data()};
        kept->tick();
        TSRemapPreConfigReload();
        auto* const rule = rule_of(
            {"name=late", "objects=100k", "state=" + folder.file("seen"), "save=1s"});
        TSRemapPostConfigReload(TSREMAP_CONFIG_RELOAD_SUCCESS_PLUGIN_USED);
        set_clock_back(30 * 24 * 3600);
        const auto are_saved = [] {
            return ledger("late", "saves") > 0 && figure("plugin.reprise_siblings.own.saves") > 0;
        };
        const auto until = std::chrono::steady_clock::now() + 20s;
        while (!are_saved() && std::chrono::steady_clock::now() < until) {
            std::this_thread::sleep_for(100ms);
            second_passes();
            kept->tick();
        }
        CHECK(are_saved());
        set_clock_back(0);
        TSRemapDeleteInstance(rule);
    }

    TEST_CASE(
        "there is room for the digests of as many siblings, of as many objects, as may be said") {
        constexpr std::uint64_t gib = std::uint64_t{1} << 30;
        constexpr std::uint64_t places = most_objects * 204 / 10;
        for (std::uint64_t siblings = 1; siblings <= REPRISE_MOST_SIBLINGS; ++siblings) {
            CAPTURE(siblings);
            const auto room = digest_room(siblings, 1'000 * gib);
            const auto news = siblings * places / 8;
            CHECK(siblings * places + news <= room);  // each of another size
            for (std::uint64_t columns = 8; columns <= 64; columns *= 2) {
                // All of one size; or pairs, each of a size, of numbers that differ by half of the columns.
                if (siblings > columns / 2) {
                    CHECK(places * columns / 8 + news <= room);
                    const auto pairs = std::min(siblings - columns / 2, columns / 2);
                    CHECK(pairs * places * columns / 8 + news <= room);
                }
            }
        }
        CHECK(digest_room(64, 16 * gib) == 8 * gib);
        CHECK(digest_room(64, 1 * gib) == 1 * gib);
        CHECK(digest_room(0, 0) == 1 * gib);
    }

    TEST_CASE("two siblings may have as many objects as may be said, though one of them would fill "
              "a GiB") {
        const std::array<unsigned char, 32> seed{7};
        reprise_source_options held = REPRISE_SOURCE_OPTIONS_INIT;
        held.seed = seed.data();
        held.keys = 1'000;
        reprise_source* source = nullptr;
        REQUIRE(reprise_source_open(&held, &source, nullptr) == REPRISE_OK);
        reprise_source_came(source, {1, 2}, 0);
        REQUIRE(reprise_source_publish(source, nullptr) == REPRISE_OK);
        std::string wire;
        const auto append = [](void* to, const void* piece, std::size_t bytes) {
            static_cast<std::string*>(to)->append(static_cast<const char*>(piece), bytes);
            return 0;
        };
        REQUIRE(reprise_source_serve(source, 0, 0, append, &wire, nullptr) == REPRISE_OK);
        reprise_source_close(source);
        fleet_options options;
        for (const auto* const name : {"small", "large"}) {
            options.siblings.push_back({name, {}});
        }
        static neighbours* kept = nullptr;  // never destroyed, as in a server
        kept = new neighbours{options, seed.data()};
        REQUIRE(reprise_siblings_take(kept->digests(), 0, wire.data(), wire.size(), nullptr) ==
                REPRISE_OK);
        // A head that says 2^30 places, before a body that is refused for another reason, when its size is found to be good: so it
        // takes no memory.
        const auto put = [&wire](std::size_t at, std::uint64_t number) {
            std::memcpy(wire.data() + at, &number, sizeof number);
        };
        put(16, std::uint64_t{1} << 30);
        put(120, XXH3_64bits(wire.data(), 120));
        wire += '!';
        const auto memory = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                            static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
        const bool has_room = digest_room(2, memory) > (std::uint64_t{1} << 30) + (1 << 20);
        reprise_error error = REPRISE_ERROR_INIT;
        CHECK(reprise_siblings_take(kept->digests(), 1, wire.data(), wire.size(), &error) ==
              REPRISE_REFUSED);
        const std::string why = error.text;
        CHECK_MESSAGE(why.find(has_room ? "bytes follow its end" : "larger than the limit") !=
                          std::string::npos,
                      why);
    }

    TEST_CASE("a large digest that can't be used is not asked for again at once") {
        using namespace std::chrono_literals;
        constexpr std::size_t large = 2 << 20;
        CHECK(pause_after(0, 0) == 1s);
        CHECK(pause_after(1, 1'000) == 2s);
        CHECK(pause_after(1'000, 1'000) == 60s);
        CHECK(pause_after(0, large) == 10min);
        CHECK(pause_after(1'000, large) == 10min);
    }

    TEST_CASE("siblings are asked while their digests come, and some fail") {
        const std::array<unsigned char, 32> seed{7};
        reprise_source_options held = REPRISE_SOURCE_OPTIONS_INIT;
        held.seed = seed.data();
        held.keys = 1'000;
        reprise_source* source = nullptr;
        REQUIRE(reprise_source_open(&held, &source, nullptr) == REPRISE_OK);
        const auto key_of = [](std::uint64_t i) {
            return reprise_key{i * 0x9e37'79b9'7f4a'7c15U, i * 0xbf58'476d'1ce4'e5b9U};
        };
        for (std::uint64_t i = 1; i <= 1'000; ++i) {
            reprise_source_came(source, key_of(i), 0);
        }
        fleet_options options;
        for (const auto* const name : {"one", "two", "three"}) {
            options.siblings.push_back({name, {}});
        }
        static neighbours* kept = nullptr;  // never destroyed, as in a server
        kept = new neighbours{options, seed.data()};
        auto& all = *kept;
        std::atomic<std::uint64_t> asked{0};
        std::uint64_t next = 1'000;
        const auto send_all = [&] {
            reprise_source_came(source, key_of(++next), 0);
            (void)reprise_source_publish(source, nullptr);
            for (unsigned number = 0; number < 3; ++number) {
                std::string wire;
                const auto append = [](void* to, const void* piece, std::size_t bytes) {
                    static_cast<std::string*>(to)->append(static_cast<const char*>(piece), bytes);
                    return 0;
                };
                reprise_sibling here = REPRISE_SIBLING_INIT;
                (void)reprise_siblings_read(all.digests(), number, &here);
                if (reprise_source_serve(
                        source, here.epoch, here.counter, append, &wire, nullptr) == REPRISE_OK) {
                    CHECK(reprise_siblings_take(
                              all.digests(), number, wire.data(), wire.size(), nullptr) ==
                          REPRISE_OK);
                }
                all.all()[number]->show();
            }
            if (next % 16 == 0) {
                reprise_siblings_forget(all.digests(), 2);
            }
        };
        send_all();
        at_once(
            [&](unsigned which) {
                for (std::uint64_t i = 1; i <= 4'000; ++i) {
                    const auto key = key_of(i % 1'000 + 1);
                    if (auto* const whom = all.likely_holder(key)) {
                        ++asked;
                        whom->count(met::asked);
                        if (i % 97 == which) {
                            all.asked_in_vain(key);
                        }
                        i % 2 == 0 ? whom->worked() : whom->count(met::bytes, 100);
                        if (which == 0 && whom->number == 1 && i % 1'000 == 0) {
                            whom->failed();
                        }
                    }
                }
            },
            send_all);
        std::int64_t shown = 0;
        for (const auto& each : all.all()) {
            each->show();
            shown += figure("plugin.reprise_siblings." + each->name + ".asked");
        }
        CHECK(asked.load() > 0);
        CHECK(shown == static_cast<std::int64_t>(asked.load()));
        reprise_source_close(source);
    }
}

}  // namespace reprise::trafficserver::test
