#pragma once
// What a restart must know beside the segments: what was purged, and when in the log (FORMAT.md,
// "The journal").
//
// An entry carries the position that the log had reached, and kills the records it concerns that
// lie before. So records are never rewritten, and an entry can go once every segment is younger
// than it.
//
// Entries are appended; each says how much of the file was synced when it was written. A bad entry
// behind that is what a crash tore, and nobody was told that it is kept. A bad entry before it was
// damaged later: purges may be lost, and then everything stored so far is taken for purged.
//
// Threads   none: the constructor of the tier, then its writer.
// Errors    values. Whatever takes memory comes before the file is touched, so that a std::bad_alloc leaves it, and
//           this, as they were.

#include "proxy/cache/disk/core.hpp"
#include "proxy/cache/memory/purges.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <variant>
#include <vector>

namespace reprise::proxy::cache::disk {

/// Every older record of this URL is dead.
struct dropped_url {
    filter::key_hash primary{};
};
/// Every older record of this URL with this discriminator (record.hpp) is dead.
struct dropped_variant {
    filter::key_hash primary{};
    std::uint64_t discriminator = 0;
};
/// Every older record of this URL is stale since then.
struct expired_url {
    filter::key_hash primary{};
    wall_time time{};
};
/// Everything older is dead.
struct dropped_all {};
/// The process that wrote what follows numbers its bans from here on.
struct epochs_begin {
    std::uint64_t epoch = 0;
};
/// Says only how much is synced: stands behind entries that somebody was told are kept.
struct sealed {};

using journal_fact = std::variant<dropped_url,
                                  dropped_variant,
                                  expired_url,
                                  dropped_all,
                                  epochs_begin,
                                  kept_ban,
                                  forgotten_bans,
                                  sealed>;

struct journal_entry {
    log_position at;
    journal_fact fact;
};

/// One entry as bytes, a multiple of 16. `synced`: bytes of the journal that are.
void append_entry(std::vector<char>& to,
                  const journal_entry& entry,
                  std::uint64_t synced,
                  std::uint64_t store_id);

inline constexpr std::size_t journal_header_bytes = 32;
[[nodiscard]] std::vector<char> journal_header(std::uint64_t store_id);

struct journal_contents {
    std::vector<journal_entry> entries;
    std::uint64_t end = 0;  ///< behind the last good entry
    bool damaged = false;   ///< something that was synced can't be read: purges may be lost
};
/// Whatever the bytes. Pure; O(bytes).
/// @throws std::bad_alloc
[[nodiscard]] journal_contents read_journal(std::span<const char> bytes, std::uint64_t store_id);

/// What the entries say, gathered.
struct verdicts {
    std::unordered_map<filter::key_hash, log_position> urls;
    struct of_variant {
        dropped_variant which;
        log_position before;
    };
    std::unordered_map<filter::key_hash, of_variant> variants;  ///< by an object's index key
    std::unordered_map<filter::key_hash, soft_expiries::mark> expiries;
    log_position all;
    std::vector<kept_ban> bans;
    forgotten_bans forgotten;
    std::uint64_t epoch = 0;  ///< the last that was used
    log_position last;        ///< of any entry

    void add(const journal_entry& entry);
    [[nodiscard]] bool is_dead(const footer_entry& record, std::uint64_t sequence) const;
    /// As few entries as say the same of what is as old as `oldest` or younger.
    [[nodiscard]] std::vector<journal_entry> entries(const log_position& oldest) const;
};

/// The file itself.
class journal {
public:
    journal(std::string path, std::shared_ptr<filesystem> files, std::uint64_t store_id);

    struct loaded {
        verdicts says;
        bool damaged = false;
        bool missing = false;
        error_code failed;  ///< it is there but could not be read
    };
    /// Reads it all. Unless it is damaged, append() goes on behind its last good entry.
    /// @throws std::bad_alloc, as the next two
    [[nodiscard]] loaded load();

    /// Writes the entries, and waits until they are synced if `lasting`. After a failure it is not
    /// known what the file has: replace() is next.
    [[nodiscard]] error_code append(std::span<const journal_entry> entries, bool lasting);
    /// A new file with these entries alone, synced, in the place of this one.
    [[nodiscard]] error_code replace(std::span<const journal_entry> entries);

    [[nodiscard]] std::uint64_t bytes() const noexcept { return end_; }

private:
    [[nodiscard]] error_code write(std::span<const char> bytes) noexcept;

    std::string path_;
    std::shared_ptr<filesystem> files_;
    std::uint64_t store_id_;
    std::shared_ptr<file> file_;
    std::uint64_t end_ = 0, synced_ = 0;
};

}  // namespace reprise::proxy::cache::disk
