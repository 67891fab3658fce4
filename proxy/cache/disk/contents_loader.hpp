#pragma once
// Says what the store has at the start, URL by URL, to whoever listens (contents_listener.hpp).
//
// The index knows hashes alone, so the beginning of each record is read once, in the order in which
// records lie on disk. What comes or goes meanwhile is told as it happens, and wins: what changed
// while it was read is read again, and nothing is said of the first reading. What is carried
// meanwhile, and so told by nobody, is looked up again and read in its new place.
//
// Cost     one read of 4 KiB per response, on the loader's thread, after the index is loaded and
//          traffic served from it: the speed of the disk.
// Memory   32 bytes for each of at most a million records at a time: the index is walked in as many
//          parts.

#include "proxy/cache/disk/core.hpp"

#include <atomic>

namespace reprise::proxy::cache::disk {

/// @pre from.settings.told. Says loaded() at the end, unless `stopping` came true.
void tell_contents(core& from, const std::atomic<bool>& stopping);

/// A variant of `primary` has come, has gone, or was given a new end, lately or a while ago: says what
/// holds now. When its last variant has gone the directory goes too. A read for each variant: for the
/// writer's thread. Does nothing where nobody listens.
void tell_variants(core& from, const filter::key_hash& primary);

}  // namespace reprise::proxy::cache::disk
