#pragma once
// The admission filter's state as a file: read once at the start, written now and then.
// Reads and writes block: not for an event loop.

#include "filter/admission.hpp"
#include "filter/key_hash.hpp"

#include <boost/system/error_code.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reprise::proxy::cache {

/// The file's bytes, at most `most`; none when there is no such file, or it can't be read, or is no
/// regular file (said in the log).
[[nodiscard]] std::optional<std::vector<std::byte>> read_state(const std::string& path,
                                                               std::uint64_t most);

/// What another release wrote is kept for that one, as PATH.other-version (what was there before goes),
/// and the log says so: else the next write_state would take its place.
void put_aside(const std::string& path);

/// Writes the state: to a temporary file, mode 0600, synced, then renamed over the old one.
[[nodiscard]] boost::system::error_code write_state(const std::string& path,
                                                    const filter::admission_filter& state,
                                                    const filter::hash_seed& seed);

}  // namespace reprise::proxy::cache
