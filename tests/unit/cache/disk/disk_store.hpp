#pragma once
// A tier with what it needs around it, for tests: opened, killed, opened again; and objects whose
// bodies follow from their URLs, so that any byte served can be checked.

#include "proxy/base/log.hpp"
#include "proxy/cache/disk/files.hpp"
#include "proxy/cache/disk/tier.hpp"
#include "proxy/cache/memory/invalidations.hpp"
#include "proxy/cache/memory/purges.hpp"
#include "tests/support/waiting.hpp"
#include "tests/unit/cache/responses.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::proxy::cache::disk::test {

using cache::test::bytes_of;
using cache::test::drafted;
using cache::test::key_of;
using tests::eventually;
using namespace std::chrono_literals;

/// The `version`-th body of a URL.
inline std::string body_for(std::string_view url, std::size_t size, unsigned version = 0) {
    std::uint64_t word = std::hash<std::string_view>{}(url) + version * 0x9e3779b97f4a7c15;
    std::string out(size + sizeof word, '\0');
    for (std::size_t i = 0; i < size; i += sizeof word) {
        word = word * 6364136223846793005 + 1442695040888963407;
        std::memcpy(out.data() + i, &word, sizeof word);
    }
    out.resize(size);
    return out;
}

inline std::string url_of(std::uint64_t number) {
    return "http://a.example/" + std::to_string(number);
}

inline drafted object(std::string_view url, std::size_t size, unsigned version = 0) {
    const auto content = body_for(url, size, version);
    auto made = cache::test::response({.content = content});
    made->freshness.response_time = wall_now();
    made->freshness.lifetime = 1h;
    made->reusable_until = http::fresh_until(made->freshness);
    return made;
}

/// What outlives a tier, and the tier.
struct disk_store {
    explicit disk_store(std::shared_ptr<filesystem> system,
                        std::uint64_t size = 8u << 20,
                        std::string path = "/store")
        : files{std::move(system)} {
        // What the tiers say of the faults made here would hide what failed.
        set_log_level(std::getenv("REPRISE_TEST_LOG") != nullptr ? config::log_level::info
                                                                 : config::log_level::off);
        settings.path = std::move(path);
        settings.size = size;
        settings.readers = 2;
        settings.patience = tests::patience;  // whoever is about a disk that hangs has less
        settings.write_after = 1ms;
        settings.retry_after = 5ms;
        settings.retry_at_most = 20ms;
    }

    /// Opens it anew; what was in memory is forgotten. What is stored is looked at meanwhile: a variant or a newer head
    /// that comes before that is over is not written.
    void begin_to_open() {
        tiers.reset();
        purges = std::make_unique<purge_list>();
        lately = std::make_unique<invalidations>();
        tiers = std::make_unique<tier>(settings, files, *purges, *lately);
    }
    void open() {
        begin_to_open();
        REQUIRE(eventually([this] { return tiers->figures().state != tier_state::loading; }));
    }
    void close() { tiers.reset(); }
    /// Whom it tells when it is opened next, to its own end: so it has its share.
    void tells(std::shared_ptr<contents_listener> whom) {
        close();
        listener = std::move(whom);
        settings.told = listener.get();
    }
    /// As it is after a kill, a power cut or a copy: closed, and opened over that.
    void go_on_with(std::shared_ptr<filesystem> system) {
        close();
        files = std::move(system);
        open();
    }
    tier& operator*() { return *tiers; }
    tier* operator->() { return tiers.get(); }

    invalidation_mark mark(std::string_view url) {
        return {lately->count(key_of(url)), purges->epoch()};
    }
    bool put(std::string_view url, const stored_ptr& response) {
        return tiers->put(key_of(url), url, response, mark(url));
    }
    /// Puts it however full the queue is, and waits until it can be found.
    void put_surely(std::string_view url, const stored_ptr& response) {
        REQUIRE(eventually([&] { return put(url, response); }));
        const auto id = response->disk_record.load();
        REQUIRE(eventually([&] {
            const auto there = find(url);
            return there.response && there.response->disk_record.load() == id;
        }));
    }
    /// For a disk in trouble, which skips what waits. While one that was put again waits nothing is
    /// found, so it is put anew only now and then.
    [[nodiscard]] bool put_until_found(std::string_view url, std::size_t size) {
        unsigned looks = 0;
        return eventually([&] {
            if (tiers->figures().state == tier_state::ready && has(url)) {
                return true;
            }
            if (looks++ % 64 == 0) {
                (void)put(url, object(url, size));
            }
            return false;
        });
    }
    [[nodiscard]] lookup_result find(std::string_view url, http::field_list request = {}) {
        disk_lookup lookup{*tiers, key_of(url), url, {}};
        REQUIRE(eventually([&] { return lookup.step(request); }));
        uses = lookup.uses;
        return std::move(lookup.result);
    }
    [[nodiscard]] bool has(std::string_view url) { return find(url).what == lookup::present; }
    void invalidate(std::string_view url) {
        lately->note(key_of(url));
        std::promise<void> kept;
        tiers->invalidate(key_of(url), [&kept] { kept.set_value(); });
        REQUIRE(kept.get_future().wait_for(tests::patience) == std::future_status::ready);
    }
    /// By an operator's order.
    void purge(std::string_view url) {
        lately->note(key_of(url));
        std::promise<void> kept;
        tiers->purge(key_of(url), [&kept] { kept.set_value(); });
        REQUIRE(kept.get_future().wait_for(tests::patience) == std::future_status::ready);
    }
    void keep_bans() {
        std::promise<void> kept;
        tiers->keep_bans([&kept] { kept.set_value(); });
        REQUIRE(kept.get_future().wait_for(tests::patience) == std::future_status::ready);
    }

    std::shared_ptr<filesystem> files;
    std::shared_ptr<contents_listener> listener;
    tier_settings settings;
    std::unique_ptr<purge_list> purges;
    std::unique_ptr<invalidations> lately;
    std::unique_ptr<tier> tiers;
    unsigned uses = 0;
};

/// All of [begin, end) of a body that is not in memory; none: it could not be read.
inline std::optional<std::string> read(const disk_body& from,
                                       std::uint64_t begin,
                                       std::uint64_t end) {
    const auto reader = from.read_from(begin, {});
    std::string out;
    std::vector<slice> pieces;
    while (reader->offset() < end) {
        pieces.clear();
        auto came = disk_body_reader::read_result::waiting;
        REQUIRE(eventually([&] {
            came = reader->next(end, 100'000, pieces);
            return came != disk_body_reader::read_result::waiting;
        }));
        if (came != disk_body_reader::read_result::data) {
            return std::nullopt;
        }
        REQUIRE_FALSE(pieces.empty());
        for (const auto& piece : pieces) {
            out.append(piece.view());
        }
    }
    return out;
}

inline std::optional<std::string> whole_body(const stored_response& of) {
    return of.has_content() ? bytes_of(*of.content()) : read(*of.on_disk(), 0, of.size());
}

}  // namespace reprise::proxy::cache::disk::test
