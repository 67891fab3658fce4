#pragma once
// A store with both its tiers, for tests: opened, and opened again; and versions of one URL's object.

#include "proxy/cache/store.hpp"
#include "tests/unit/cache/disk/disk_store.hpp"
#include "tests/unit/cache/disk/memory_files.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace reprise::proxy::cache::test::of_store {

using namespace disk::test;
using namespace std::chrono_literals;

inline constexpr std::uint64_t memory_bytes = 256u << 10;

/// Both tiers over files in memory; opened again, the disk's alone are kept.
struct both {
    explicit both(disk_write when, contents_listener* told = nullptr, double carry = 0.25)
        : when_{when},
          told_{told},
          carry_{carry} {
        open();
    }

    void open() {
        made.reset();
        set_log_level(config::log_level::off);
        memory_plan plan;
        plan.capacity = memory_bytes;
        plan.policy = eviction_kind::lru;
        plan.stripes = 1;
        plan.told = told_;
        made = std::make_unique<cache::store>(plan);
        disk::tier_settings settings;
        settings.path = "/store";
        settings.size = 16u << 20;
        settings.write_after = std::chrono::milliseconds{1};
        settings.retry_after = 1h;  // a disk that failed is not tried again while a test looks
        settings.told = told_;
        settings.carry = carry_;
        made->attach(std::make_unique<disk::tier>(
                         settings, files, made->purges(), made->memory().invalidated()),
                     when_);
        REQUIRE(eventually(
            [this] { return made->disk()->figures().state != disk::tier_state::loading; }));
    }
    cache::store* operator->() { return made.get(); }

    void put(std::string_view url, const stored_ptr& response) {
        CHECK(made->put(key_of(url), url, response, made->mark(key_of(url))));
    }
    /// As a body that is too large for memory comes, to its end.
    [[nodiscard]] bool put_on_disk(std::string_view url, const stored_ptr& response) {
        const auto key = key_of(url);
        const auto writing = made->begin_on_disk(key, url, response->size(), "", made->mark(key));
        REQUIRE(writing);
        for (const auto& piece : response->content()->slices) {
            REQUIRE(writing->append(piece));
        }
        const drafted head{response->draft_without_content()};
        return made->finish_on_disk(*writing, key, url, *head);
    }
    [[nodiscard]] stored_ptr in_memory(std::string_view url) {
        return made->find(key_of(url), url, {}).response;
    }
    [[nodiscard]] stored_ptr on_disk(std::string_view url) {
        disk::disk_lookup lookup{*made->disk(), key_of(url), url, {}};
        REQUIRE(eventually([&] { return lookup.step({}); }));
        return lookup.result.response;
    }
    /// What there is room for no more leaves memory, and what goes to disk is there.
    void push_out(std::string_view url) {
        for (unsigned i = 0; in_memory_at_all(url); ++i) {
            REQUIRE(i < 1000);
            const auto other = "http://other.example/" + std::to_string(next_++);
            put(other, object(other, 10'000));
        }
        settle();
    }
    void settle() {
        REQUIRE(eventually([this] { return made->disk()->figures().queued_bytes == 0; }));
        std::atomic<bool> kept{false};
        made->keep_purges([&kept] { kept = true; });
        REQUIRE(eventually([&] { return kept.load(); }));
    }

    std::shared_ptr<disk::test::memory_files> files = std::make_shared<disk::test::memory_files>();
    std::unique_ptr<cache::store> made;

private:
    [[nodiscard]] bool in_memory_at_all(std::string_view url) {
        return !made->variants(key_of(url), url).empty();
    }
    const disk_write when_;
    contents_listener* const told_;
    const double carry_;
    unsigned next_ = 0;
};

/// Asked for and come so long after the start of the test; later versions at later times.
inline drafted version(std::string_view url,
                       std::size_t size,
                       unsigned number,
                       std::chrono::milliseconds asked,
                       std::chrono::milliseconds came) {
    static const auto start = resident_now();
    auto made = object(url, size, number);
    made->asked_at = start + asked;
    made->freshness.response_time = start + came;
    return made;
}

inline bool is_version(const stored_ptr& response, std::string_view url, unsigned number) {
    return response && response->has_content() &&
           bytes_of(*response->content()) == body_for(url, response->size(), number);
}

}  // namespace reprise::proxy::cache::test::of_store
