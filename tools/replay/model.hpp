#pragma once
// A cache that is asked a trace's requests: what it would have held, served and written.
//
// Models are made of the proxy's own classes (eviction policies, residents, the admission filter,
// the disk's space) over objects that have a key and a size and no bytes. What is theirs alone is
// the order of the steps, which is the exchange's: look up; on a miss ask admission; store what is
// admitted, or let it wait on probation; evict until it fits.

#include "tools/replay/request.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace reprise::replay {

/// Keys of a sketch that grows for each object that would fit, by the mean size of what is missed: its
/// counters are then halved about every 20 requests an object, half as often as TinyLFU's would, which
/// keeps what a large store holds apart.
inline constexpr std::uint64_t sketch_keys_an_object = 2;

struct tally {
    std::uint64_t requests = 0, bytes = 0;
    std::uint64_t hits = 0, hit_bytes = 0;
    std::uint64_t disk_hits = 0;                   ///< of these, from disk
    std::uint64_t written = 0, written_bytes = 0;  ///< to the tier that counts, carried ones too
    std::uint64_t carried_bytes = 0;               ///< of these, written anew to be kept
    std::uint64_t refused = 0, refused_bytes = 0;  ///< misses that admission kept out
    std::uint64_t too_large = 0;                   ///< misses of objects that could never fit
    std::uint64_t memory_bytes = 0;  ///< that the filter, sketches and ghosts take in the end
    /// Seconds: what all would have waited without a cache, and what those did who missed; of
    /// requests of which the trace tells.
    double waiting = 0, waited = 0;

    [[nodiscard]] std::uint64_t misses() const noexcept { return requests - hits; }
    [[nodiscard]] std::uint64_t origin_bytes() const noexcept { return bytes - hit_bytes; }
    void note(const request& wanted) noexcept {
        ++requests;
        bytes += wanted.bytes;
        waiting += wanted.wait().seconds();
    }
    [[nodiscard]] double hit_ratio() const noexcept { return ratio(hits, requests); }
    [[nodiscard]] double byte_hit_ratio() const noexcept { return ratio(hit_bytes, bytes); }

    /// The share of the seconds that the trace tells of which nobody waited.
    [[nodiscard]] double spared_ratio() const noexcept {
        return waiting > 0 ? (waiting - waited) / waiting : 0;
    }

    /// What came since `earlier`, which these figures once were; of memory, what is taken now.
    [[nodiscard]] tally since(const tally& earlier) const noexcept;

private:
    static double ratio(std::uint64_t part, std::uint64_t of) noexcept {
        return of == 0 ? 0 : static_cast<double>(part) / static_cast<double>(of);
    }
};

/// Threads  one at a time.
class model {
public:
    model() = default;
    model(const model&) = delete;
    model& operator=(const model&) = delete;
    virtual ~model() = default;

    /// The next requests of the trace. `objects`: how many different ones there were by their end;
    /// no number in `requests` is as large.
    virtual void feed(std::span<const request> requests, std::size_t objects) = 0;
    [[nodiscard]] virtual tally figures() const = 0;
    /// What "auto" came to be, where it was played (admission_rule::told).
    [[nodiscard]] virtual std::vector<std::string> told() const { return {}; }
};

/// The figures of the requests after the first `skipped`, which are played like the others.
class counted_late final : public model {
public:
    counted_late(std::unique_ptr<model> played, std::uint64_t skipped);

    void feed(std::span<const request> requests, std::size_t objects) override;
    [[nodiscard]] tally figures() const override;
    [[nodiscard]] std::vector<std::string> told() const override { return played_->told(); }

private:
    std::unique_ptr<model> played_;
    std::uint64_t left_;  // of those that do not count
    tally before_;
};

}  // namespace reprise::replay
