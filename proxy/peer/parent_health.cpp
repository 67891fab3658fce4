#include "proxy/peer/parent_health.hpp"

#include "proxy/base/log.hpp"

namespace reprise::proxy::peer {

bool is_parents_fault(failure_code why, bool has_via) noexcept {
    return is_of_parent(why) || (why == failure_code::loop_detected && !has_via);
}

void note_parent_failed(const peer_book& book,
                        std::size_t parent,
                        steady_time begun,
                        const failure& why) {
    if (!is_our_own_lack(why.code) && book.choice->failed(parent, begun, steady_now(), why.code)) {
        log::warn("peers: ",
                  book.parents[parent].name,
                  ": a parent that is gone around from now on: ",
                  facts_of(why.code).name,
                  why.detail.empty() ? "" : ": ",
                  why.detail);
    }
}

void note_parent_works(const peer_book& book, std::size_t parent) {
    if (book.choice->succeeded(parent, steady_now())) {
        log::info("peers: ", book.parents[parent].name, ": a parent that answers again");
    }
}

void note_parent_refused(const peer_book& book, std::size_t parent) {
    const auto& choice = *book.choice;
    if (!choice.has_failed(parent) || choice.trouble(parent) != failure_code::parent_refused) {
        note_parent_works(book, parent);
    }
}

}  // namespace reprise::proxy::peer
