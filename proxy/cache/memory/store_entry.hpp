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

class store_entry;
struct end_store_entry {
    void operator()(store_entry* one) const noexcept;
};
using store_entry_ptr = std::unique_ptr<store_entry, end_store_entry>;

/// Threads   its stripe's lock.
class store_entry : public evictable {
public:
    /// @throws std::bad_alloc
    [[nodiscard]] static store_entry_ptr make(const filter::key_hash& key, std::string_view url);

    store_entry(const store_entry&) = delete;
    store_entry& operator=(const store_entry&) = delete;

    [[nodiscard]] std::string_view url() const noexcept {
        return {reinterpret_cast<const char*>(this + 1), url_size};
    }
    /// It was held against the purges up to this epoch.
    void note_checked(std::uint64_t epoch) noexcept { checked = epoch & (~std::uint64_t{0} >> 1); }
    /// What an entry takes from the heap, in bytes.
    [[nodiscard]] static std::size_t footprint(std::string_view url) noexcept;

    std::uint32_t last_used = 0;  ///< the store's tick; when it came in, if never used
    const std::uint32_t url_size;
    store_entry* next = nullptr;    ///< in its chain of the table
    std::uint64_t checked : 63;     ///< against the purges, up to this epoch
    std::uint64_t found_since : 1;  ///< served since it came in
    stored_ptr response;

private:
    friend struct end_store_entry;
    store_entry(const filter::key_hash& of, std::string_view url) noexcept;
    ~store_entry() = default;
};

}  // namespace reprise::proxy::cache
