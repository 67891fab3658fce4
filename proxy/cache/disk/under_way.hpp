#pragma once
// Which objects have a newer response on its way to the disk.
//
// A response that memory has let go of while its record still waits for the writer is nowhere to be
// found, but an older one may be: in the index, or ahead in the queue. A look-up in between would
// see the older come back. So while a key is under way nothing of it is found on disk, nor, while one without
// Vary is, any variant, nor the other way round; the request goes to the origin. A response that the queue has no room for outdates what is ahead in it.
//
// So a large object that is asked for faster than the disk writes it would be fetched, queued and
// hidden again for ever. A second copy of a representation that is under way is therefore not
// written: strong entity tags tell (RFC 9110 8.8.3.3: no two representations of one resource share
// one).
//
// Threads   any; one short mutex, which nobody takes while nothing is under way.
// Memory    about 100 bytes for each object that waits in the writer's queue, which is bounded.

#include "filter/key_hash.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace reprise::proxy::cache::disk {

/// A representation of the resource with this key, by its strong entity tag; none without one. Two
/// tags of one resource may collide: then a copy that might have been written is not.
[[nodiscard]] inline std::optional<filter::key_hash> representation_of(
    const filter::key_hash& primary, std::string_view strong_etag) noexcept {
    if (strong_etag.empty()) {
        return std::nullopt;
    }
    return filter::key_hash{primary.low, primary.high ^ std::hash<std::string_view>{}(strong_etag)};
}

/// What a task in the queue is about.
struct task_subject {
    filter::key_hash object{};  ///< the index' key
    std::optional<filter::key_hash> representation;
    std::uint64_t asked = 0;  ///< the count of invalidations when the representation was asked for
    std::optional<filter::key_hash> variant_of{};  ///< the primary key of one that has Vary
};

class under_way {
public:
    /// A task about this is queued. Returns its number: later ones have larger.
    /// @throws std::bad_alloc, and then none is
    std::uint64_t begin(const task_subject& what) {
        const std::lock_guard lock{guard_};
        try {
            auto& waits = waiting_[what.object];
            auto* const beside = what.variant_of ? &variants_[*what.variant_of] : nullptr;
            if (what.representation) {
                auto& known = representations_[*what.representation];
                ++known.tasks;
                known.asked = std::max(known.asked, what.asked);
            }
            ++waits.tasks;
            if (beside != nullptr) {
                ++beside->tasks;
            }
        } catch (...) {
            prune(what);
            throw;
        }
        many_.store(waiting_.size(), std::memory_order_release);
        return ++last_;
    }
    /// That task has been carried out, and what it wrote can be found; or it never will be.
    void end(const task_subject& what) noexcept {
        const std::lock_guard lock{guard_};
        if (what.representation) {
            count_down(representations_, *what.representation);
        }
        if (what.variant_of) {
            count_down(variants_, *what.variant_of);
        }
        count_down(waiting_, what.object);
        prune(what);
        many_.store(waiting_.size(), std::memory_order_release);
    }
    /// What is queued by now of this object of the URL, and of the other form (has_either_form), is not to be
    /// written any more.
    void outdate(const filter::key_hash& object, const filter::key_hash& primary) noexcept {
        const std::lock_guard lock{guard_};
        note_outdated(waiting_, object);
        note_outdated(object == primary ? variants_ : waiting_, primary);
    }
    /// Whether that was said of the task with this number, which has not ended.
    [[nodiscard]] bool is_outdated(const task_subject& what, std::uint64_t number) const {
        const std::lock_guard lock{guard_};
        return number <= outdated_in(waiting_, what.object) ||
               (what.variant_of && number <= outdated_in(variants_, *what.variant_of));
    }
    /// Whether this object of the URL is, or one of the other form: a variant's is that without Vary, which has the
    /// primary key itself, and that one's is any variant.
    [[nodiscard]] bool has_either_form(const filter::key_hash& object,
                                       const filter::key_hash& primary) const {
        if (is_empty()) {
            return false;
        }
        const std::lock_guard lock{guard_};
        return waiting_.contains(object) ||
               (object == primary ? variants_ : waiting_).contains(primary);
    }
    /// When the last copy of this representation under way was asked for, as a count of
    /// invalidations; none: none is.
    [[nodiscard]] std::optional<std::uint64_t> asked_for(
        const filter::key_hash& representation) const {
        if (is_empty()) {
            return std::nullopt;
        }
        const std::lock_guard lock{guard_};
        const auto known = representations_.find(representation);
        return known == representations_.end() ? std::nullopt : std::optional{known->second.asked};
    }

private:
    [[nodiscard]] bool is_empty() const noexcept {
        return many_.load(std::memory_order_acquire) == 0;
    }
    struct tasks_of {
        std::uint32_t tasks = 0;
        std::uint64_t outdated = 0;  // up to this number
    };
    struct copies_of {
        std::uint32_t tasks = 0;
        std::uint64_t asked = 0;
    };
    // With guard_ held.
    template <class Map>
    static void count_down(Map& in, const filter::key_hash& key) noexcept {
        if (const auto at = in.find(key); at != in.end()) {
            --at->second.tasks;
        }
    }
    template <class Map>
    static void prune_one(Map& in, const filter::key_hash& key) noexcept {
        if (const auto at = in.find(key); at != in.end() && at->second.tasks == 0) {
            in.erase(at);
        }
    }
    void prune(const task_subject& what) noexcept {
        prune_one(waiting_, what.object);
        if (what.variant_of) {
            prune_one(variants_, *what.variant_of);
        }
        if (what.representation) {
            prune_one(representations_, *what.representation);
        }
    }

    using tasks_by_key = std::unordered_map<filter::key_hash, tasks_of>;
    void note_outdated(tasks_by_key& in, const filter::key_hash& key) noexcept {
        if (const auto at = in.find(key); at != in.end()) {
            at->second.outdated = last_;
        }
    }
    [[nodiscard]] static std::uint64_t outdated_in(const tasks_by_key& in,
                                                   const filter::key_hash& key) {
        const auto at = in.find(key);
        return at == in.end() ? 0 : at->second.outdated;
    }

    mutable std::mutex guard_;
    tasks_by_key waiting_;
    tasks_by_key variants_;  // by primary key
    std::unordered_map<filter::key_hash, copies_of> representations_;
    std::uint64_t last_ = 0;
    std::atomic<std::size_t> many_{0};
};

}  // namespace reprise::proxy::cache::disk
