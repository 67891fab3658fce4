#pragma once
// What the memory tier keeps of one stored response beside it: its place in the table and in its
// policy's order, and its URL. One allocation, the URL's bytes behind the members.

#include "proxy/cache/policy/eviction.hpp"
#include "proxy/cache/stored_response.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace reprise::proxy::cache {

class memory_entry;
struct end_memory_entry {
    void operator()(memory_entry* one) const noexcept;
};
using memory_entry_ptr = std::unique_ptr<memory_entry, end_memory_entry>;

/// Threads   its stripe's lock.
class memory_entry : public evictable {
public:
    /// @throws std::bad_alloc
    [[nodiscard]] static memory_entry_ptr make(const filter::key_hash& key, std::string_view url);

    memory_entry(const memory_entry&) = delete;
    memory_entry& operator=(const memory_entry&) = delete;

    [[nodiscard]] std::string_view url() const noexcept {
        return {reinterpret_cast<const char*>(this + 1), url_size};
    }

    /// @pre there is one: from its first exchange on
    [[nodiscard]] const stored_response& response() const noexcept {
        return *unpacked<const stored_response>(response_);
    }
    [[nodiscard]] stored_ptr held_response() const noexcept {
        return stored_ptr{unpacked<const stored_response>(response_)};
    }
    /// What was there before, null where nothing was.
    stored_ptr exchange(stored_ptr response) noexcept;

    /// The next in its chain of the table.
    [[nodiscard]] memory_entry* next() const noexcept { return unpacked<memory_entry>(next_); }
    void set_next(memory_entry* other) noexcept { next_ = packed(other); }

    /// It was held against the purges up to this epoch, as purge_list::counted_from_start counts.
    [[nodiscard]] std::uint64_t checked() const noexcept {
        return std::uint64_t{checked_high_} << 20 | checked_low_;
    }
    /// Of more purges than most_checked, a thousand a second for 17 years, it is held against the
    /// last ones again and again.
    void note_checked(std::uint64_t epoch) noexcept;
    static constexpr std::uint64_t most_checked = (std::uint64_t{1} << 39) - 1;

    /// It was served since it came in.
    [[nodiscard]] bool was_found() const noexcept { return found_; }
    void note_found() noexcept { found_ = 1; }

    /// What an entry takes from the heap, in bytes.
    [[nodiscard]] static std::size_t footprint(std::string_view url) noexcept;

    std::uint32_t last_used = 0;  ///< the tier's tick; when it came in, if never used
    const std::uint32_t url_size;

private:
    friend struct end_memory_entry;
    memory_entry(const filter::key_hash& of, std::string_view url) noexcept;
    ~memory_entry() { exchange(nullptr); }

    // The heap gives addresses of 48 bits, of which the last four are zero: two of them leave 40 bits
    // of 128 for other things.
    static constexpr unsigned address_bits = 44;
    [[nodiscard]] static std::uint64_t packed(const void* there) noexcept;
    template <class T>
    [[nodiscard]] static T* unpacked(std::uint64_t address) noexcept {
        return reinterpret_cast<T*>(address << 4);
    }

    std::uint64_t next_ : address_bits;
    std::uint64_t checked_low_ : 20;
    std::uint64_t response_ : address_bits;
    std::uint64_t checked_high_ : 19;
    std::uint64_t found_ : 1;
};

}  // namespace reprise::proxy::cache
