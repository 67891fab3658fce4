#pragma once
// A store on disk as somebody sees it who only reads: its proxy may be running, and writes on
// meanwhile. Nothing here locks, writes or waits for it: what is overwritten while it is read fails
// its sequence or checksum, and is skipped.
//
// The same rules as at the proxy's start decide what is there: the newest record of a key counts,
// unless the journal says it is dead; bans and soft purges are held against it.
//
// Threads   one.
// Memory    20 bytes a record, and what is being read.

#include "filter/key_hash.hpp"
#include "proxy/cache/disk/index.hpp"
#include "proxy/cache/disk/journal.hpp"
#include "proxy/cache/disk/recovery.hpp"
#include "proxy/cache/disk/variants.hpp"
#include "proxy/cache/memory/purges.hpp"

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::store {

namespace disk = proxy::cache::disk;
using proxy::wall_time;

/// A file of the store, opened for reading. Links are not followed and pipes not waited for, as by
/// the proxy.
class store_file {
public:
    /// Not open when there is no such file, or it may not be read.
    explicit store_file(const std::string& path);
    ~store_file();
    store_file(const store_file&) = delete;
    store_file& operator=(const store_file&) = delete;
    /// None: not open, or no regular file.
    [[nodiscard]] std::optional<std::uint64_t> size() const;
    [[nodiscard]] bool read(std::uint64_t offset, std::span<char> into) const;

private:
    int file_;
};

struct segment_summary {
    std::uint32_t number = 0;
    disk::recovered_segment found;  ///< its entries are given up once they are in the index
    std::uint64_t records = 0;
    std::uint64_t bytes = 0;                       ///< of records
    std::uint64_t current = 0, current_bytes = 0;  ///< of those that count
};

/// A whole record, verified, and what is to be known beside it.
struct read_record {
    std::vector<char> bytes;
    disk::record_header header;
    disk::footer_entry entry;
    std::uint32_t segment = 0;

    [[nodiscard]] std::span<const char> body() const noexcept {
        return std::span{bytes}.subspan(header.front_bytes, header.body_bytes);
    }
};

/// A stored response.
struct stored_object {
    read_record record;
    disk::object_view view;  ///< its texts lie in `record`, or in `refreshed` for the head's part
    std::optional<read_record> refreshed;
    bool purged = false;      ///< a ban met it: it goes when it is next looked up
    wall_time fresh_until{};  ///< soft purges counted
    bool is_whole = true;     ///< all of a large object's extents are there
};

class opened_store {
public:
    /// @throws std::runtime_error (path and reason) when there is no store, or of another version
    explicit opened_store(std::string path);

    [[nodiscard]] const disk::superblock& block() const noexcept { return block_; }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    /// Why the journal is not believed; empty if it is. The proxy would begin anew.
    [[nodiscard]] const std::string& journal_trouble() const noexcept { return journal_trouble_; }
    /// Newest first; unused ones last.
    [[nodiscard]] const std::vector<segment_summary>& segments() const noexcept {
        return segments_;
    }
    [[nodiscard]] std::uint64_t records() const noexcept { return index_.records(); }

    /// Every stored response, in the order of their writing, newest segment first, until `see`
    /// gives false.
    void for_each_object(const std::function<bool(const stored_object&)>& see) const;
    /// All variants of a URL, the last stored first.
    [[nodiscard]] std::vector<stored_object> find(std::string_view url) const;
    /// The body, verified, wherever it is. False: part of it is damaged or gone; what was written
    /// until then is its beginning.
    [[nodiscard]] bool write_body(const stored_object& object, std::ostream& to) const;

    /// A segment, every record of it read and verified, whether it has a footer or not.
    [[nodiscard]] disk::recovered_segment scan(std::uint32_t number) const;

private:
    void read_journal();
    void load();
    [[nodiscard]] disk::recovered_segment recover(std::uint32_t number, bool by_footer) const;
    [[nodiscard]] std::optional<read_record> read(const filter::key_hash& key) const;
    [[nodiscard]] std::optional<read_record> read(std::uint32_t segment,
                                                  std::uint64_t sequence,
                                                  const disk::footer_entry& entry) const;
    [[nodiscard]] std::optional<stored_object> object_of(read_record record) const;
    [[nodiscard]] std::string file_of(std::uint32_t number) const;

    std::string path_;
    disk::superblock block_;
    filter::hash_secret secret_;
    disk::verdicts says_;
    std::string journal_trouble_;
    proxy::cache::purge_list purges_;
    disk::record_index index_;
    std::vector<segment_summary> segments_;
    std::vector<std::uint64_t> sequences_;  // by number
};

}  // namespace reprise::store
