#pragma once
// What this node's cache holds, as its siblings are told. The cache tells what it stores and never what it forgets; but it is a
// ring, so that what was written longest ago is gone. How many bytes the ring keeps is the server's word at
// first, less what it is seen to keep: the bytes between two of its wraps (proxy.process.cache.wrap_count).

#include "filter/plugins/trafficserver/fleet_words.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <reprise/digest.h>
#include <string>

namespace reprise::trafficserver {

/// Never destroyed. Threads: any, but where it says so.
class own_digest {
public:
    own_digest(const fleet_options& options, const unsigned char* seed);

    /// The cache has stored an object: so many bytes of head and body, which take some more of it (ring_bytes.hpp).
    void came(reprise_key key, std::uint64_t bytes) noexcept;

    /// Each second, on a thread that may wait: opened once the cache says its size; published; saved when due.
    void tick() noexcept;
    void save() noexcept;

    struct served {
        enum class kind { not_ready, unchanged, bytes } what = kind::not_ready;
        std::string body{};
        std::string etag{};
    };
    /// What makes a reader of this generation (0, 0: none) current. May take milliseconds. @throws std::bad_alloc
    [[nodiscard]] served since(std::uint64_t epoch, std::uint64_t counter);

    void answered() noexcept { answers_.fetch_add(1, std::memory_order_relaxed); }
    void refused() noexcept { refusals_.fetch_add(1, std::memory_order_relaxed); }

private:
    void open();
    void follow_total(reprise_source* source) noexcept;
    void calibrate() noexcept;
    void show() noexcept;

    fleet_options options_;
    const unsigned char* seed_;
    std::atomic<reprise_source*> source_{nullptr};
    std::atomic<std::uint64_t> objects_{0}, written_{0};
    std::atomic<std::uint64_t> sector_{512};
    std::atomic<std::uint64_t> answers_{0}, refusals_{0}, saves_{0}, failed_saves_{0};
    std::mutex saving_;
    bool save_failed_ = false;  // said once; under saving_
    // Only tick's thread touches these.
    std::chrono::steady_clock::time_point next_save_;
    bool open_failed_ = false;
    std::int64_t total_ =
        0;  ///< what the server last said that its cache has; `room=` goes before it
    std::optional<std::int64_t> last_wraps_, first_wraps_;
    std::uint64_t written_at_first_ = 0;
    std::array<int, 10> figures_{};
};

}  // namespace reprise::trafficserver
