#pragma once
// A store on disk to be measured: made objects, a tier over a directory, and how both are driven.

#include "proxy/cache/disk/tier.hpp"
#include "proxy/cache/memory/invalidations.hpp"
#include "proxy/cache/memory/purges.hpp"
#include "proxy/cache/stored_response.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace reprise::tools {

namespace cache = proxy::cache;
namespace disk = proxy::cache::disk;

/// Objects by number, all of one size: a head such as origins send, a body that the number makes.
class object_maker {
public:
    explicit object_maker(std::size_t body_bytes) : body_bytes_{body_bytes} {}

    [[nodiscard]] static std::string url(std::uint64_t number);
    [[nodiscard]] cache::stored_ptr make(std::uint64_t number) const;
    /// True when `response` has the body of this number.
    [[nodiscard]] bool is_right(std::uint64_t number, const cache::stored_response& response) const;
    [[nodiscard]] std::size_t body_bytes() const noexcept { return body_bytes_; }

private:
    std::size_t body_bytes_;
};

/// A tier and what the proxy would have beside it.
class opened_tier {
public:
    /// Begins to open it; loading goes on after that. `segment`: bytes, or 0 for what the size
    /// makes.
    opened_tier(const std::string& path, std::uint64_t size, std::uint64_t segment = 0);

    /// Puts object `number`, waiting while the writer's queue is full.
    /// @throws std::runtime_error when it is not taken for a minute
    void put(std::uint64_t number, const object_maker& objects);
    void put(std::uint64_t number, const cache::stored_ptr& response);
    /// The stored response, waiting for reads; none when it is not there.
    [[nodiscard]] cache::stored_ptr find(std::uint64_t number);
    /// Until all that was put is in the index.
    void wait_until_written();
    void wait_until_ready();

    [[nodiscard]] disk::tier_figures figures() const { return tier_.figures(); }
    void stop() { tier_.stop(); }

private:
    [[nodiscard]] filter::key_hash key_of(std::string_view url) const;

    cache::purge_list purges_;
    cache::invalidations invalidated_;
    disk::tier tier_;
    std::uint64_t last_put_ = 0;
};

/// Resident bytes of this process.
[[nodiscard]] std::uint64_t resident_bytes();
/// Writes out what is dirty of the files in a directory, and lets the page cache drop them.
void forget_pages(const std::string& directory);
/// All files of a directory are on the disk.
void sync_files(const std::string& directory);

}  // namespace reprise::tools
