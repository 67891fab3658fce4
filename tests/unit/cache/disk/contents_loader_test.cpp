#include "proxy/cache/disk/index.hpp"
#include "tests/unit/cache/disk/disk_store.hpp"
#include "tests/unit/cache/disk/memory_files.hpp"

#include <doctest/doctest.h>

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace reprise::proxy::cache::disk {
namespace {

using namespace test;

drafted variant(std::string_view url, std::string_view asked, std::chrono::seconds lifetime = 1h) {
    auto made = object(url, 100);
    const http::field vary{http::field_id::vary, "Vary", "X"};
    made->vary = http::read_vary({&vary, 1});
    const http::field line{http::field_id::unknown, "X", asked};
    made->selecting = http::selecting_values(made->vary, {&line, 1});
    made->freshness.lifetime = lifetime;
    return made;
}

/// Holds up one operation on files, until told to go on.
class pause {
public:
    pause(memory_files& files, operation what, int nth = 1) : here_{std::make_shared<state>(nth)} {
        files.set_hook([here = here_, what, test = std::this_thread::get_id()](operation is,
                                                                               std::string_view) {
            if (is == what && std::this_thread::get_id() != test && --here->left == 0) {
                here->reached = true;
                (void)here->told_to.wait(std::chrono::hours{1});
            }
            return error_code{};
        });
    }
    pause(const pause&) = delete;
    pause& operator=(const pause&) = delete;
    ~pause() { go_on(); }

    [[nodiscard]] bool reached() const { return here_->reached; }
    void go_on() { here_->told_to.open(); }

private:
    struct state {
        explicit state(int nth) : left{nth} {}
        std::atomic<int> left;
        std::atomic<bool> reached{false};
        tests::gate told_to;
    };
    std::shared_ptr<state> here_;  // the hook's too, which may be under way when this goes
};

struct listener final : contents_listener {
    void held(holder /*by*/,
              const filter::key_hash& /*key*/,
              std::string_view url,
              wall_time until) noexcept override {
        const std::lock_guard lock{guard};
        urls[std::string{url}] = until;
        ++sayings[std::string{url}];
    }
    void gone(holder /*by*/, const filter::key_hash& key) noexcept override {
        const std::lock_guard lock{guard};
        std::erase_if(urls, [&](const auto& one) {
            return record_index::partial(key_of(one.first)) == record_index::partial(key);
        });
    }
    void outdated(const filter::key_hash& key) noexcept override {
        const std::lock_guard lock{guard};
        for (auto& [url, until] : urls) {
            until = key_of(url) == key ? wall_time::min() : until;
        }
    }
    void loaded() noexcept override { all_said = true; }

    [[nodiscard]] bool heard(const std::string& url) {
        const std::lock_guard lock{guard};
        return urls.contains(url);
    }

    std::mutex guard;
    [[nodiscard]] bool is_listed(const std::string& url) {
        const std::lock_guard lock{guard};
        const auto it = urls.find(url);
        return it != urls.end() && it->second > wall_now();
    }

    /// How often it was said to be held.
    [[nodiscard]] unsigned times_held(const std::string& url) {
        const std::lock_guard lock{guard};
        return sayings[url];
    }

    std::map<std::string, wall_time> urls;
    std::map<std::string, unsigned> sayings;
    std::atomic<bool> all_said{false};
};

struct told_to {
    std::shared_ptr<listener> heard_by = std::make_shared<listener>();
    listener& told = *heard_by;
    std::shared_ptr<memory_files> memory = std::make_shared<memory_files>();
};

/// Open, and heard by a listener.
struct told_store : told_to, disk_store {
    told_store() : disk_store{memory} {
        tells(heard_by);
        open();
    }

    /// Waits until what was put before is said, directories too. They are said last of what is
    /// written with them, so it is what is written after `first` that shows that they were.
    void say_all(std::uint64_t first) {
        for (const auto number : {first, first + 1}) {
            REQUIRE(eventually([&] { return put(url_of(number), object(url_of(number), 100)); }));
            REQUIRE(eventually([&] { return told.is_listed(url_of(number)); }));
        }
    }
};

/// As small as may be and heard by a listener, so that segments are soon reclaimed, with nothing carried.
struct wrapping_store : told_to, disk_store {
    wrapping_store() : disk_store{memory, smallest_store} {
        tells(heard_by);
        settings.carry = 0;
        settings.write_queue = 128u << 10;
        open();
        REQUIRE(eventually([&] { return told.all_said.load(); }));
    }
    void put_other() {
        REQUIRE(number < 2000);
        const auto other = url_of(number++);
        REQUIRE(eventually([&] { return put(other, object(other, 10'000)); }));
    }
    unsigned number = 100;
};

}  // namespace

TEST_SUITE("cache/disk/contents_loader") {
    TEST_CASE("what is carried elsewhere while records are read for the digest is told too") {
        constexpr unsigned objects = 600;
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        for (unsigned i = 0; i < objects; ++i) {
            REQUIRE(eventually([&] { return s.put(url_of(i), object(url_of(i), 10'000)); }));
        }
        REQUIRE(eventually([&] { return s.has(url_of(objects - 1)); }));
        s.close();

        // The loader's thread is held up at its first read after the index is there.
        const auto heard_by = std::make_shared<listener>();
        auto& told = *heard_by;
        std::atomic<tier*> opened{nullptr};
        std::atomic<bool> may_read{false};
        std::mutex guard;
        std::thread::id loader;
        const auto test_thread = std::this_thread::get_id();
        files->set_hook([&](operation what, std::string_view) {
            if (what == operation::read && std::this_thread::get_id() != test_thread) {
                {
                    const std::lock_guard lock{guard};
                    if (loader == std::thread::id{}) {
                        loader = std::this_thread::get_id();
                    }
                    if (loader != std::this_thread::get_id()) {
                        return error_code{};
                    }
                }
                (void)eventually([&] {
                    auto* const known = opened.load();
                    return known != nullptr &&
                           (known->figures().state == tier_state::loading || may_read.load());
                });
            }
            return error_code{};
        });
        s.tells(heard_by);
        s.settings.write_queue = 128u << 10;  // so that what is put is soon there
        s.begin_to_open();
        opened = s.tiers.get();
        REQUIRE(eventually([&] { return s->figures().state == tier_state::ready; }));
        REQUIRE_FALSE(told.all_said);
        // What is asked for is carried, when what comes needs the room.
        for (unsigned round = 0; round < 3; ++round) {
            for (unsigned i = 0; i < objects; i += 4) {
                (void)s.has(url_of(i));
            }
        }
        for (unsigned i = objects; s->figures().carried < 20; ++i) {
            REQUIRE(i < 4 * objects);
            REQUIRE(eventually([&] { return s.put(url_of(i), object(url_of(i), 10'000)); }));
        }
        may_read = true;
        REQUIRE(eventually([&] { return told.all_said.load(); }));
        unsigned there = 0;
        unsigned untold = 0;
        for (unsigned i = 0; i < objects; ++i) {
            if (s.has(url_of(i))) {
                ++there;
                // The writer may still be making room: what goes, goes before it is said to.
                untold += !told.heard(url_of(i)) && s.has(url_of(i)) ? 1 : 0;
            }
        }
        CHECK(there > 20);
        CHECK(untold == 0);
        s.close();
    }

    TEST_CASE("a newer head that a soft purge ends before it is written is not listed") {
        told_store s;
        const auto url = url_of(1);
        s.put_surely(url, object(url, 100));
        const auto current = s.find(url).response;
        CHECK(
            eventually([&] { return s.told.is_listed(url); }));  // it is said once it can be found
        const auto updated = object(url, 100);
        std::atomic<bool> writing{false};
        std::atomic<bool> may_write{false};
        s.memory->set_hook([&](operation what, std::string_view) {
            if (what == operation::write) {
                writing = true;
                (void)eventually([&] { return may_write.load(); });
            }
            return error_code{};
        });
        REQUIRE(s->freshen(key_of(url), url, *current, *updated, s.mark(url)));
        REQUIRE(eventually([&] { return writing.load(); }));
        // As tiers do it.
        s.lately->note(key_of(url));
        s->expire(key_of(url), wall_now(), {});
        may_write = true;
        s.put_surely(url_of(2), object(url_of(2), 100));  // behind it
        CHECK(s.find(url).response->purged_softly());
        CHECK_FALSE(s.told.is_listed(url));
        s.close();
    }

    TEST_CASE("a variant that is dropped while another is being written does not stay listed") {
        told_store s;
        const auto url = url_of(1);
        const stored_ptr fresh = variant(url, "1");
        REQUIRE(s.put(url, fresh));
        REQUIRE(eventually([&] { return s.told.is_listed(url); }));
        // The stale one is at the log's end already when its directory is read.
        pause directory{*s.memory, operation::read};
        REQUIRE(s.put(url, variant(url, "2", 0s)));
        REQUIRE(eventually([&] { return directory.reached(); }));
        REQUIRE(s.put(url_of(2), object(url_of(2), 100)));  // before which is what is noted
        (void)s->drop(key_of(url), *fresh);
        directory.go_on();
        s.say_all(3);
        CHECK_FALSE(s.told.is_listed(url));
        CHECK(s.told.heard(url));
        s.close();
    }

    TEST_CASE("a newer head of what never was written is not said, and ends no other's") {
        told_store s;
        const auto url = url_of(1);
        auto stale = object(url, 100);
        stale->freshness.lifetime = 0s;
        s.put_surely(url, stale);
        auto dying = object(url, 100, 1);
        dying->freshness.lifetime = 0s;
        const stored_ptr late = dying;
        REQUIRE(s.put(url, late));
        const auto lost = late->disk_record.load();
        late->disk_record = lost + 1'000'000;  // of nothing
        const auto newer = object(url, 100, 1);
        REQUIRE(s->freshen(key_of(url), url, *late, *newer, s.mark(url)));
        const auto behind = url_of(2);
        s.put_surely(behind, object(behind, 100));
        CHECK_FALSE(s.told.is_listed(url));

        late->disk_record = lost;
        REQUIRE(s->freshen(key_of(url), url, *late, *newer, s.mark(url)));
        CHECK(eventually([&] { return s.told.is_listed(url); }));
        // Nor is that head lost to one of what is not there any more.
        stale->disk_record = lost + 2'000'000;
        auto older = object(url, 100);
        older->freshness.lifetime = 0s;
        REQUIRE(s->freshen(key_of(url), url, *stale, *older, s.mark(url)));
        s.put_surely(behind, object(behind, 200));
        CHECK(s.told.is_listed(url));
        CHECK(s.find(url).response->freshness().lifetime == 1h);
        s.close();
    }

    TEST_CASE("a soft purge while variants are read is not spoken over") {
        told_store s;
        int paused = 0;
        for (int nth = 1; nth <= 8; ++nth) {
            CAPTURE(nth);
            const auto url = url_of(static_cast<std::uint64_t>(nth));
            const stored_ptr first = variant(url, "1");
            REQUIRE(s.put(url, first));
            REQUIRE(s.put(url, variant(url, "2")));
            REQUIRE(s.put(url, variant(url, "3")));
            s.say_all(100 + 2 * static_cast<std::uint64_t>(nth));
            REQUIRE(s.told.is_listed(url));
            // Its going makes the writer read what is left: somewhere there the purge comes.
            pause reading{*s.memory, operation::read, nth};
            (void)s->drop(key_of(url), *first);
            // Four reads at least: the variant, the directory, the two others.
            const auto limit = nth <= 4 ? tests::patience : tests::a_moment;
            const bool reached = eventually([&] { return reading.reached(); }, limit);
            paused += reached ? 1 : 0;
            s.lately->note(key_of(url));
            std::promise<void> kept;
            s->expire(key_of(url), wall_now(), [&kept] { kept.set_value(); });
            reading.go_on();
            REQUIRE(kept.get_future().wait_for(tests::patience) == std::future_status::ready);
            CHECK_FALSE(s.told.is_listed(url));
            s.memory->set_hook({});
        }
        CHECK(paused >= 4);
        s.close();
    }

    TEST_CASE("a URL whose variants go with one segment is told once, when the next is open") {
        constexpr unsigned in_first = 8;
        wrapping_store s;
        const auto url = url_of(1);
        const auto put_variant = [&](unsigned number) {
            const auto made = variant(url, std::to_string(number));
            REQUIRE(eventually([&] { return s.put(url, made); }));
            const auto discriminator = variant_discriminator(
                key_of(url), made->vary.names, made->selecting);
            const auto key = index_key(record_kind::object, key_of(url), discriminator);
            REQUIRE(eventually([&] { return s->may_hold(key); }));
            return key;
        };
        // Directories are said last of what is written with them.
        const auto say_all = [&] {
            for (int i = 0; i < 2; ++i, ++s.number) {
                s.put_surely(url_of(s.number), object(url_of(s.number), 100));
            }
        };
        std::vector<filter::key_hash> first;
        for (unsigned i = 0; i < in_first; ++i) {
            first.push_back(put_variant(i));
        }
        REQUIRE(s.memory->contents("/store/s-00000001").empty());
        while (s.memory->contents("/store/s-00000001").empty()) {
            s.put_other();
        }
        // Of the ninth, and of the directory, which lie elsewhere, it takes two reads to tell.
        const auto staying = put_variant(in_first);
        say_all();
        REQUIRE(s.told.is_listed(url));
        const auto before = s.told.times_held(url);
        std::atomic<bool> is_begun_anew{false};
        std::atomic<unsigned> early_reads{0};
        s.memory->set_hook([&](operation what, std::string_view path) {
            const bool of_first = path == "/store/s-00000000";
            if (what == operation::write && of_first) {
                is_begun_anew = true;
            } else if (what == operation::read && !of_first && path.starts_with("/store/s-") &&
                       !is_begun_anew) {
                ++early_reads;
            }
            return error_code{};
        });
        while (s->may_hold(first.front())) {
            s.put_other();
        }
        REQUIRE(eventually([&] { return s.told.times_held(url) > before; }));
        say_all();
        CHECK(s.told.times_held(url) == before + 1);
        CHECK(s.told.is_listed(url));
        CHECK(s->may_hold(staying));
        for (const auto& one : first) {
            CHECK_FALSE(s->may_hold(one));
        }
        CHECK(early_reads == 0);
        s.close();
        s.memory->set_hook({});
    }

    TEST_CASE(
        "a URL whose last variants go with a segment is told to be gone before a stop is over") {
        wrapping_store s;
        const auto url = url_of(1);
        const stored_ptr second = variant(url, "2");
        REQUIRE(s.put(url, variant(url, "1")));
        REQUIRE(eventually([&] { return s.told.is_listed(url); }));
        while (s.memory->contents("/store/s-00000001").empty()) {
            s.put_other();
        }
        // Its directory lies in a later segment, and lists two; only the first is left.
        REQUIRE(eventually([&] { return s.put(url, second); }));
        s.put_surely(url_of(2), object(url_of(2), 100));
        s.put_surely(url_of(3), object(url_of(3), 100));
        REQUIRE(s->drop(key_of(url), *second));
        s.put_surely(url_of(4), object(url_of(4), 100));
        REQUIRE(s.told.is_listed(url));
        const auto oldest = s.memory->contents("/store/s-00000000").substr(0, 64);
        while (s.memory->contents("/store/s-00000000").substr(0, 64) == oldest) {
            s.put_other();
        }
        s.close();
        CHECK_FALSE(s.told.heard(url));
    }
}

}  // namespace reprise::proxy::cache::disk
