#pragma once
// A listener to what the store holds, primary key by primary key, tier by tier, and what is on its
// way there: what a digest is made of. The store tells, and the table of fetches, and neither knows
// its listener.

#include "filter/key_hash.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/cache/stored_response.hpp"

#include <cstdint>
#include <string_view>
#include <utility>

namespace reprise::proxy::cache {

/// Who has a key; bits, so that several are one number.
enum class holder : std::uint8_t {
    memory = 1,
    disk = 2,
    /// No tier yet: a fetch brings it that will be stored, or probably, and that a sibling may join. It has
    /// no time of its own, and stands until it is taken back.
    under_way = 4,
};

/// Threads   called on any thread, under the locks of the tier that speaks: it may push to a queue
///           behind a short lock, and no more.
/// Order     what is said of one key and one tier is said in the order in which it happened.
class contents_listener {
public:
    contents_listener() = default;
    contents_listener(const contents_listener&) = delete;
    contents_listener& operator=(const contents_listener&) = delete;
    virtual ~contents_listener() = default;

    /// The tier holds copies of `url`; the longest-lived answers without its origin until `until`
    /// (resident time, base/clock.hpp), which may be past. Called for the first copy, and whenever one
    /// is added, freshened or removed while others remain.
    virtual void held(holder by,
                      const filter::key_hash& key,
                      std::string_view url,
                      wall_time until) noexcept = 0;
    /// The last copy has gone. Only the part of `key` that the disk's index keeps
    /// (record_index::partial) need be right; may be called for keys that are not primary.
    virtual void gone(holder by, const filter::key_hash& key) noexcept = 0;
    /// All copies in all tiers are stale from now on.
    virtual void outdated(const filter::key_hash& key) noexcept = 0;
    /// All that was on disk at the start has been said.
    virtual void loaded() noexcept = 0;
};

/// That a key is under way, from its making to its end: nobody can forget to take it back.
class promise {
public:
    promise() = default;
    promise(contents_listener& told,
            const filter::key_hash& key,
            std::string_view url,
            wall_time until) noexcept
        : told_{&told},
          key_{key} {
        told.held(holder::under_way, key, url, until);
    }
    promise(promise&& other) noexcept
        : told_{std::exchange(other.told_, nullptr)},
          key_{other.key_} {}
    promise& operator=(promise&& other) noexcept {
        promise{std::move(other)}.swap(*this);
        return *this;
    }
    ~promise() {
        if (told_ != nullptr) {
            told_->gone(holder::under_way, key_);
        }
    }

    [[nodiscard]] explicit operator bool() const noexcept { return told_ != nullptr; }

private:
    void swap(promise& other) noexcept {
        std::swap(told_, other.told_);
        std::swap(key_, other.key_);
    }

    contents_listener* told_ = nullptr;
    filter::key_hash key_{};
};

/// Until when a response answers without its origin, in resident time as its response_time is;
/// wall_time::min(): never.
[[nodiscard]] wall_time useful_until(const http::freshness_facts& freshness,
                                     const http::response_directives& directives) noexcept;

}  // namespace reprise::proxy::cache
