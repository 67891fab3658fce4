#pragma once
// Numbers the objects of a trace by first appearance, and keeps what the trace says of each.

#include "filter/key_hash.hpp"
#include "tools/replay/request.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace reprise::replay {

/// Memory   32 bytes an object, and 8 to 16 for its place. The key's text is not kept: two keys of
///          one 128-bit hash are one object.
/// Threads  none.
class object_table {
public:
    struct object {
        filter::key_hash key;
        std::uint64_t bytes = 0;  ///< the largest size seen so far
        std::uint32_t requests = 0;
        proxy::cache::packed_wait wait{};  ///< of its fetch, as last told
    };

    object_table();

    /// One request for `key`; a new key gets the next number. `bytes` is the object's size as this
    /// request tells it, 0 if it does not. @throws std::length_error at 2^32 - 1 objects
    object_number note(const filter::key_hash& key, std::uint64_t bytes);

    /// Its fetch took so long.
    void note_wait(object_number number, proxy::cache::packed_wait took) noexcept {
        objects_[number].wait = took;
    }

    /// Starts loading where `key` is looked for.
    void prefetch(const filter::key_hash& key) const noexcept {
        __builtin_prefetch(&slots_[key.low & (slots_.size() - 1)]);
    }

    [[nodiscard]] const object& operator[](object_number number) const { return objects_[number]; }
    [[nodiscard]] std::size_t size() const noexcept { return objects_.size(); }

    struct totals {
        std::uint64_t objects = 0;
        std::uint64_t bytes = 0;       ///< of every object once
        std::uint64_t asked_once = 0;  ///< objects
        std::uint64_t asked_once_bytes = 0;
    };
    /// The totals of the objects numbered from `first` on.
    [[nodiscard]] totals sum(std::size_t first = 0) const noexcept;

private:
    // A piece of the hash beside the number: a probe that fails seldom touches the object.
    struct slot {
        std::uint32_t number = ~std::uint32_t{0};
        std::uint32_t piece = 0;
    };

    void grow();

    std::vector<object> objects_;
    std::vector<slot> slots_;  // linear probing, a power of two, at most half full
};

}  // namespace reprise::replay
