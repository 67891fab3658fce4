#pragma once
// The filters that rules share by name, what they count, and the keeping of their state.
//
// Nothing of it is ever destroyed: at the server's end its threads go on while statics of a plug-in would go, and after
// exit() none of the server's functions may be called. For the same reason this library stays where it was loaded (server.hpp).

#include "filter/plugins/trafficserver/rule_words.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <reprise/admission.h>
#include <string>
#include <ts/ts.h>
#include <vector>

namespace reprise::trafficserver {

/// The ledger, by filter/plugins/README.md's names. These are counted as they happen,
enum class counted : unsigned {
    objects_not_stored,
    bytes_not_stored,
    objects_admitted,
    bytes_admitted,
    hits_lost,
    saves,
    failed_saves,
};
/// these are read off the filter once a second.
enum class told : unsigned {
    first_sights,
    repeats,
    refreshes,
    young_fill,
    old_fill,
    strangers_known,
    remembers_for,
    memory,
};
inline constexpr std::size_t counted_count = 7;
inline constexpr std::size_t told_count = 8;

/// A filter and its figures. Threads: any.
class gate {
public:
    gate(const rule_options& options, unsigned load);
    gate(const gate&) = delete;
    gate& operator=(const gate&) = delete;
    ~gate();

    [[nodiscard]] reprise_admission* filter() const noexcept { return filter_; }
    [[nodiscard]] const rule_options& options() const noexcept { return options_; }
    /// Whether the filter has to be told of a hit: not where this mark, a URL's, was here in the
    /// present generation already. Where two URLs share a place each is told anew.
    [[nodiscard]] bool is_to_be_told(std::uint64_t mark) noexcept {
        constexpr std::uint64_t generation_bits = 0xffff;
        const auto now = (mark & ~generation_bits) |
                         (reprise_admission_generation(filter_) & generation_bits);
        auto& place = told_[(mark & generation_bits) % told_.size()];
        if (place.load(std::memory_order_relaxed) == now) {
            return false;
        }
        place.store(now, std::memory_order_relaxed);
        return true;
    }
    void count(counted what, std::int64_t by) const noexcept {
        if (const auto id = counters_[static_cast<unsigned>(what)]; id >= 0) {
            TSStatIntIncrement(id, by);
        }
    }

private:
    friend class gates;

    void show(std::int64_t now) const noexcept;
    void save() noexcept;  ///< blocks

    rule_options options_;
    reprise_admission* filter_ = nullptr;
    std::array<int, counted_count> counters_{};
    std::array<int, told_count> gauges_{};
    std::array<std::atomic<std::uint64_t>, 1 << 13> told_{};  ///< URLs of the last hits that told
    unsigned born_;           ///< in which reading of the configuration it was opened
    unsigned said_;           ///< in which a rule last named it
    bool is_pinned_ = false;  ///< plugin.config's, which is not read anew
    std::mutex saving_;       ///< of the two that save: the task, and what ends
    std::chrono::steady_clock::time_point next_save_;  ///< under saving_
    bool failed_ = false;                              ///< the last save: said once, not each time
};

/// All of them. Threads: any; none of it on a request's way.
class gates {
public:
    /// This library's.
    static gates& here();

    /// The filter that these options name: the one that is there, or a new one. Options that say a name alone are those of the first
    /// rule of that name, or the defaults where they are the first. A filter whose options are others than those before a reload takes
    /// the place of the one before, if all of the new configuration is good.
    /// `is_pinned`: for plugin.config. @throws std::invalid_argument where two rules of one configuration
    /// differ, std::runtime_error where it can't be opened, std::bad_alloc
    std::shared_ptr<gate> open(const rule_options& options, bool is_pinned);

    /// remap.config is about to be read anew. Saves: another version of this library may be loaded, and reads the
    /// states then. Nothing is saved until that has ended, when it is known whose a file is.
    void before_reload();
    /// It was read. What lost is forgotten, and saved no more; rules that transactions still go by keep theirs. `is_good`:
    /// the new one is in use. `is_used`: this copy of the library has rules in it.
    void after_reload(bool is_good, bool is_used);
    /// Each second, on a thread that may wait.
    void tick() noexcept;
    void save_all() noexcept;

private:
    gates() = default;
    /// Those that may be saved now.
    std::vector<std::shared_ptr<gate>> settled() const;

    mutable std::mutex names_;
    std::vector<std::shared_ptr<gate>> open_;
    unsigned load_ = 0;
    bool is_loading_ = false;
};

/// Sees to it that what is open is shown and saved, now and then and at the end; once.
void start_keeping();

}  // namespace reprise::trafficserver
