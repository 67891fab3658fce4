#pragma once
// How many bytes of a stripe an object takes. What is stored is rounded up three times: by fragments, by the coarse sizes that
// the directory has, and to whole sectors of what the stripe lies on. An object of 4 KiB takes 8 of a file.

#include <cstdint>

namespace reprise::trafficserver {

/// The least that a stripe writes at once.
inline constexpr std::uint64_t least_sector = 512;

/// What head and body take where writes are of whole sectors:
/// proxy.config.cache.target_fragment_size being what it is unless said.
[[nodiscard]] std::uint64_t ring_bytes(std::uint64_t object, std::uint64_t sector) noexcept;

/// The sector of the cache that storage.config describes, the smallest where there are several; least_sector where that is not to
/// be known. What is counted too large would make the digest forget what is held; so in doubt it is small.
/// `forced` is proxy.config.cache.force_sector_size. Opens files: not for a request's thread.
[[nodiscard]] std::uint64_t sector_of(const char* storage_config,
                                      const char* prefix,
                                      std::uint64_t forced) noexcept;

}  // namespace reprise::trafficserver
