#pragma once
// The superblock as it is kept: two files, so that what damages one of them costs nothing.
//
// Each is written whole under another name, synced and renamed, the second when the first is done.
// Where they differ the first is the newer.
//
// Threads   none.
// Errors    values.

#include "proxy/cache/disk/files.hpp"
#include "proxy/cache/disk/format.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::proxy::cache::disk {

inline constexpr std::array<std::string_view, 2> superblock_names{"store", "store.copy"};

/// What each copy says, or why it says nothing; no_such_file_or_directory: it is not there.
using superblock_copies = std::array<result<superblock>, 2>;

/// The one to believe; none: neither can be read.
[[nodiscard]] std::optional<superblock> believed(const superblock_copies& copies) noexcept;
/// Neither is there: this is no store yet.
[[nodiscard]] bool neither_is_there(const superblock_copies& copies) noexcept;
/// One is whole, of another format: this is somebody's store, but not for this program.
[[nodiscard]] bool is_of_other_version(const superblock_copies& copies) noexcept;

[[nodiscard]] superblock_copies read_superblocks(filesystem& files, const std::string& directory);

/// Both, in turn. After a failure the first may be new and the second not.
[[nodiscard]] error_code write_superblocks(filesystem& files,
                                           const std::string& directory,
                                           const superblock& super);

/// Makes the copies that are missing, damaged or older say what the other says. A failure leaves
/// them as they were. True: something other than a second copy that was never made was mended.
bool mend_superblocks(filesystem& files,
                      const std::string& directory,
                      const superblock_copies& copies);

}  // namespace reprise::proxy::cache::disk
