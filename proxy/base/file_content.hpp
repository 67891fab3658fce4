#pragma once
// A small file that settings name, read whole where waiting for a disk is allowed.
//
// Whoever names a file by mistake is told what is wrong with it, in the system's words; none is waited
// for longer than a disk takes, which rules out pipes.

#include <cstddef>
#include <string>

namespace reprise::proxy {

struct file_content {
    std::string bytes{};
    std::string wrong{};  ///< "cannot be read: Permission denied"; empty: nothing is
    bool is_too_long = false;
};

/// A regular file of at most `most` bytes. One that is written meanwhile is wrong, since its beginning
/// would pass for the whole. Leaves no copy of a secret but `bytes`. O(bytes). Blocks for the disk.
/// @throws std::bad_alloc
[[nodiscard]] file_content read_regular_file(const std::string& path, std::size_t most);

}  // namespace reprise::proxy
