#pragma once
// What becomes known of a parent as it is used: it is gone around, or answers again, and the log
// says either once.
//
// Threads   any number.

#include "proxy/base/clock.hpp"
#include "proxy/base/failure.hpp"
#include "proxy/peer/peer_book.hpp"

#include <cstddef>

namespace reprise::proxy::peer {

/// The parent of this index has failed at what began then. That all connections to it, or one
/// client's, are in use is no failure of the parent.
void note_parent_failed(const peer_book& book,
                        std::size_t parent,
                        steady_time begun,
                        const failure& why);
/// It has done what it was asked.
void note_parent_works(const peer_book& book, std::size_t parent);

}  // namespace reprise::proxy::peer
