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

// Errors   none: what lacks memory is read again when there is some.

#include "proxy/cache/disk/core.hpp"
#include "proxy/cache/disk/memory_patience.hpp"

namespace reprise::proxy::cache::disk {

/// @pre from.settings.told. Says loaded() at the end, unless `patience` was stopped.
void tell_contents(core& from, memory_patience& patience);

/// A variant of `primary` has come, has gone, or was given a new end, lately or a while ago: says what
/// holds now. When its last variant has gone the directory goes too. A read for each variant: for the
/// writer's thread. Does nothing where nobody listens. Where there is no memory for that it says that nothing of the URL is
/// of use: a sibling then asks elsewhere, until something more is told.
void tell_variants(core& from, const filter::key_hash& primary) noexcept;

}  // namespace reprise::proxy::cache::disk
