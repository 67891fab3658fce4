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

/// A connection through a parent was not made, by the parent's fault, so that another may be asked:
/// it can't be reached, is not whom it should be, or leads back here, or into another loop. That not
/// where others had passed the request on before us (`has_via`): a client could write a Via that
/// makes any proxy find a loop.
[[nodiscard]] bool is_parents_fault(failure_code why, bool has_via) noexcept;
/// Whether another parent may be asked: by this one's fault, or since local ports are used up, which are each
/// destination's own.
[[nodiscard]] inline bool may_ask_another(failure_code why, bool has_via) noexcept {
    return is_parents_fault(why, has_via) || why == failure_code::out_of_memory;
}

/// The parent of this index has failed at what began then. What this proxy lacks itself
/// (is_our_own_lack) is no failure of the parent, and noted nowhere.
void note_parent_failed(const peer_book& book,
                        std::size_t parent,
                        steady_time begun,
                        const failure& why);
/// It has done what it was asked.
void note_parent_works(const peer_book& book, std::size_t parent);
/// It has answered that it makes no connection: so it lives. But one that was down since it does not know us may say
/// just that.
void note_parent_refused(const peer_book& book, std::size_t parent);

}  // namespace reprise::proxy::peer
