// What happens while the index is filled: what leaves it then is not followed by what is older.

#include "proxy/cache/disk/tier.hpp"
#include "tests/unit/cache/disk/disk_store.hpp"
#include "tests/unit/cache/disk/memory_files.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

namespace reprise::proxy::cache::disk {

using namespace test;

TEST_SUITE("cache/disk/loading") {

    namespace {

    constexpr std::size_t small_body = 100;

    /// A store that was there before, whose first segment is not read until it may be; and what else fails or waits.
    class slow_start {
    public:
        struct doors {  // the hook's too
            tests::gate loading, writing;
            std::atomic<bool> holds_writes{false}, is_writing{false}, is_loading{false},
                refuses_reads{false};
            std::atomic<unsigned> reads{0};
        };

        slow_start(disk_store& of, memory_files& files) : store_{of} {
            files.set_hook([here = here_](operation what, std::string_view path) {
                const bool is_read = what == operation::read || what == operation::read_cached;
                if (is_read && path == "/store/s-00000000") {
                    // Behind its header, which is looked at before anything is written.
                    if (here->reads++ != 0) {
                        here->is_loading = true;
                        (void)here->loading.wait(std::chrono::hours{1});
                    }
                } else if (is_read && here->refuses_reads && path.starts_with("/store/s-")) {
                    return boost::system::errc::make_error_code(boost::system::errc::io_error);
                }
                if (what == operation::write && here->holds_writes &&
                    path.starts_with("/store/s-")) {
                    here->is_writing = true;
                    (void)here->writing.wait(std::chrono::hours{1});
                }
                return error_code{};
            });
            store_.begin_to_open();
            REQUIRE(eventually([this] { return here_->is_loading.load(); }));
        }
        slow_start(const slow_start&) = delete;
        slow_start& operator=(const slow_start&) = delete;
        ~slow_start() = default;

        [[nodiscard]] doors& at() { return *here_; }
        void load_the_rest() {
            here_->loading.open();
            REQUIRE(eventually([this] { return store_->figures().state == tier_state::ready; }));
        }

    private:
        // A member's end, for the constructor may fail, and the store's end waits for the thread that is held up.
        struct opened_at_last {
            explicit opened_at_last(doors& from) : all{from} {}
            opened_at_last(const opened_at_last&) = delete;
            opened_at_last& operator=(const opened_at_last&) = delete;
            ~opened_at_last() {
                all.writing.open();
                all.loading.open();
            }
            doors& all;
        };

        disk_store& store_;
        const std::shared_ptr<doors> here_ = std::make_shared<doors>();
        const opened_at_last opens_{*here_};
    };

    /// Several segments' worth.
    void put_others(disk_store& s) {
        for (unsigned i = 100; i < 130; ++i) {
            s.put_surely(url_of(i), object(url_of(i), 10'000));
        }
    }

    bool has_first_version(disk_store& s, std::string_view url) {
        const auto found = s.find(url).response;
        return found && whole_body(*found) == body_for(url, small_body, 1);
    }

    }  // namespace

    TEST_CASE("purges of others that can't be told from its own bring back nothing older") {
        const auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        const auto url = url_of(1);
        s.put_surely(url, object(url, small_body, 1));
        put_others(s);
        s.close();
        slow_start start{s, *files};
        s.put_surely(url_of(2), object(url_of(2), small_body));  // the log goes on
        start.at().holds_writes = true;
        REQUIRE(s.put(url, object(url, small_body, 2)));
        REQUIRE(eventually([&] { return start.at().is_writing.load(); }));
        const auto asked = s.lately->count(key_of(url));
        // Of its stripe and its slot (invalidations.hpp), more than are known one by one.
        auto others = key_of(url);
        others.high ^= std::uint64_t{1} << 63;
        for (unsigned i = 0; i <= 64; ++i) {
            s.lately->note(others);
        }
        REQUIRE(s.lately->since(key_of(url), asked));
        start.at().writing.open();
        s.put_surely(url_of(3), object(url_of(3), small_body));
        start.load_the_rest();
        CHECK_FALSE(has_first_version(s, url));
        CHECK(s.has(url_of(100)));
        s.open();
        CHECK_FALSE(has_first_version(s, url));
    }

    TEST_CASE("what a newer head could not be written for is not followed by what is older") {
        const auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        const auto url = url_of(1);
        s.put_surely(url, object(url, small_body, 1));
        put_others(s);
        s.put_surely(url, object(url, small_body, 2));
        put_others(s);
        s.close();
        slow_start start{s, *files};
        s.put_surely(url_of(2), object(url_of(2), small_body));
        const auto current = s.find(url).response;
        REQUIRE(current);
        REQUIRE_FALSE(has_first_version(s, url));
        start.at().refuses_reads = true;
        auto newer = drafted{current->draft()};
        newer->freshness.lifetime = 7h;
        REQUIRE(s->freshen(key_of(url), url, *current, *newer, s.mark(url)));
        REQUIRE(eventually([&] { return s->figures().behind == 0s; }));
        start.at().refuses_reads = false;
        start.load_the_rest();
        CHECK_FALSE(has_first_version(s, url));
        CHECK(s.has(url_of(100)));
    }
}

}  // namespace reprise::proxy::cache::disk
