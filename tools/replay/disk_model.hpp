#pragma once
// The disk half of two tiers: what is on it, what is worth writing, what leaves.
//
// Two of them. `segmented_disk` is the proxy's: a log of segments under disk::space, footers kept
// in vectors. `object_disk` is the yardstick beside it: the same worth of a byte, but an object at
// a time, with nothing to carry; what segments cost is the difference.

#include "proxy/cache/disk/space.hpp"
#include "proxy/cache/policy/disk_ghost.hpp"
#include "proxy/cache/policy/frequency_sketch.hpp"
#include "tools/replay/object_pool.hpp"
#include "tools/replay/request.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace reprise::replay {

using proxy::cache::packed_wait;

/// Bytes are the model's own, whatever the trace's unit.
class disk_model {
public:
    disk_model() = default;
    disk_model(const disk_model&) = delete;
    disk_model& operator=(const disk_model&) = delete;
    virtual ~disk_model() = default;

    /// Objects numbered below this may be asked for from now on.
    virtual void make_room(std::size_t objects) = 0;
    virtual void prefetch(std::span<const request> requests, std::size_t at) const noexcept = 0;
    /// The time from now on.
    void at(std::uint32_t seconds) noexcept { now_ = seconds; }
    /// For about how long what nobody asks for stays; none while nothing had to leave, or where
    /// that is not known.
    [[nodiscard]] virtual std::optional<std::chrono::seconds> eviction_age() const = 0;
    /// The sketch has halved its counters so often.
    virtual void aged_to(std::uint64_t agings) noexcept = 0;

    [[nodiscard]] virtual bool holds(object_number object) const noexcept = 0;
    /// A request for what it holds. How many there were before, since it was written.
    virtual unsigned hit(object_number object) noexcept = 0;
    /// Whether an object that admission let in would be kept rather than what leaves for it.
    [[nodiscard]] virtual bool is_worth_writing(const filter::key_hash& key,
                                                std::uint64_t bytes,
                                                packed_wait wait) noexcept = 0;
    /// Whatever is written takes nobody's room.
    [[nodiscard]] virtual bool filling() const noexcept = 0;
    /// Whether it could be written at all.
    [[nodiscard]] virtual bool has_room_for(std::uint64_t bytes) const noexcept = 0;
    /// @pre has_room_for, and it does not hold the object
    virtual void write(object_number object,
                       const filter::key_hash& key,
                       std::uint64_t bytes,
                       packed_wait wait) = 0;

    /// Written once more, to be kept.
    [[nodiscard]] virtual std::uint64_t carried_bytes() const noexcept = 0;

    /// How size counts in what a byte is worth from now on.
    virtual void set_exponent(double exponent) noexcept = 0;

protected:
    std::uint32_t now_ = 0;
};

/// An object may have at most a quarter of the disk. Larger ones than an extent are written in
/// several; an object that loses one is gone.
class segmented_disk final : public disk_model {
public:
    /// `sketch` has counted every request, and outlives this. A segment has `extents`.
    segmented_disk(const proxy::cache::disk::space_settings& settings,
                   unsigned extents,
                   const proxy::cache::frequency_sketch& sketch);

    void make_room(std::size_t objects) override { stored_.make_room(objects); }
    void prefetch(std::span<const request> requests, std::size_t at) const noexcept override {
        stored_.prefetch(requests, at);
    }
    void aged_to(std::uint64_t agings) noexcept override { space_.aged_to(agings); }
    [[nodiscard]] bool holds(object_number object) const noexcept override {
        return stored_.find(object) != nullptr;
    }
    /// The age of the oldest segment, as the proxy has it.
    [[nodiscard]] std::optional<std::chrono::seconds> eviction_age() const override;
    unsigned hit(object_number object) noexcept override { return stored_.find(object)->uses++; }
    [[nodiscard]] bool is_worth_writing(const filter::key_hash& key,
                                        std::uint64_t bytes,
                                        packed_wait wait) noexcept override;
    void write(object_number object,
               const filter::key_hash& key,
               std::uint64_t bytes,
               packed_wait wait) override;
    [[nodiscard]] bool filling() const noexcept override { return space_.filling(); }
    [[nodiscard]] bool has_room_for(std::uint64_t bytes) const noexcept override;
    [[nodiscard]] std::uint64_t carried_bytes() const noexcept override {
        return space_.figures().carried_bytes;
    }
    void set_exponent(double exponent) noexcept override { space_.set_exponent(exponent); }

private:
    using segment_number = proxy::cache::disk::segment_number;
    static constexpr segment_number nowhere = ~segment_number{0};

    /// Where each of an object's extents is.
    struct on_disk {
        filter::key_hash key;
        std::uint64_t bytes = 0;
        unsigned uses = 0;
        packed_wait wait{};
        std::vector<segment_number> places;
    };
    /// What a segment's footer says of a record.
    struct record {
        object_number object = 0;
        std::uint32_t extent = 0;
        std::uint64_t bytes = 0;
    };

    void append(const record& what, bool carried);
    void begin_segment();
    void drop(object_number object);
    [[nodiscard]] proxy::cache::disk::occupant occupant_of(const record& what) const;

    const proxy::cache::frequency_sketch& sketch_;
    std::uint64_t bytes_;
    std::uint64_t segment_bytes_;
    std::uint64_t extent_bytes_;
    proxy::cache::disk::space space_;
    std::vector<std::vector<record>> footers_;
    std::vector<std::uint64_t> filled_;
    std::vector<std::uint32_t> begun_;  // seconds
    bool has_evicted_ = false;
    segment_number open_ = nowhere;
    std::uint64_t sequence_ = 0;
    object_pool<on_disk> stored_;
};

/// An object at a time (cache/policy/disk_ghost).
class object_disk final : public disk_model {
public:
    object_disk(std::uint64_t bytes,
                double exponent,
                const proxy::cache::frequency_sketch& sketch,
                bool by_wait = false)
        : held_{bytes, exponent, sketch, by_wait} {}

    void make_room(std::size_t objects) override { stored_.make_room(objects); }
    void prefetch(std::span<const request> requests, std::size_t at) const noexcept override {
        stored_.prefetch(requests, at);
    }
    void aged_to(std::uint64_t /*agings*/) noexcept override {}  // it asks the sketch
    [[nodiscard]] std::optional<std::chrono::seconds> eviction_age() const override {
        return std::nullopt;
    }
    [[nodiscard]] bool holds(object_number object) const noexcept override {
        return stored_.find(object) != nullptr;
    }
    unsigned hit(object_number object) noexcept override {
        auto& found = *stored_.find(object);
        held_.use(found);
        return found.uses++;
    }
    [[nodiscard]] bool is_worth_writing(const filter::key_hash& key,
                                        std::uint64_t bytes,
                                        packed_wait wait) noexcept override {
        return held_.is_worth_writing(key, bytes, wait);
    }
    void write(object_number object,
               const filter::key_hash& key,
               std::uint64_t bytes,
               packed_wait wait) override;
    [[nodiscard]] bool filling() const noexcept override { return held_.filling(); }
    [[nodiscard]] bool has_room_for(std::uint64_t bytes) const noexcept override {
        return held_.has_room_for(bytes);
    }
    [[nodiscard]] std::uint64_t carried_bytes() const noexcept override { return 0; }
    void set_exponent(double exponent) noexcept override { held_.set_exponent(exponent); }

private:
    struct entry : proxy::cache::evictable {
        object_number object = 0;
        unsigned uses = 0;
    };

    proxy::cache::disk_ghost held_;
    object_pool<entry> stored_;
};

}  // namespace reprise::replay
