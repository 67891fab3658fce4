#pragma once
// The files that a conversion reads, and the one that it writes.
// All else here is pure; tests and the fuzzer bring their own files.

#include "tools/from_squid/squid_conf.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace reprise::from_squid {

/// All of a file, a pipe's too; none: it can't be read, or is larger than 16 MiB.
[[nodiscard]] std::optional<std::string> contents_of(const std::string& path);

/// The files of this machine, but for `path`, which says `text` whenever it is read: a pipe says what
/// it has to say once.
[[nodiscard]] file_source files_beside(std::string path, std::string text);

/// Whether both are names of one file that is there.
[[nodiscard]] bool is_one_file(const std::string& path, const std::string& other);

/// Puts `text` into the file, all of it or nothing: it is written and synced beside it under another
/// name, which then takes its place, with its mode, owner and group. Where the path leads by links, what
/// they lead to is replaced; what is there and is no file (a pipe, a device) is written to as it is.
/// @throws std::system_error, whose text says what could not be done; what was there is as it was then
void replace_file(const std::string& path, std::string_view text);

}  // namespace reprise::from_squid
