#pragma once
// How many questions may go out beside others that are silent (fetch/sibling_query): one in twenty, and
// eight more where there were few lately. Each worker has its own.
//
// So many find whoever is silent out, and the rate of its answers falls. Where many are late at the same moment it
// is this node, or its link, that has too much to do, and to ask twice makes more of it: of a node that
// woke from a stop with 500 requests a third more went to origins so, and a quarter fewer with this
// bound than where nothing was asked twice. Dean and Barroso ("The Tail at Scale", CACM 56(2), 2013) bound theirs
// likewise.
//
// Threads   its worker's.

#include <algorithm>

namespace reprise::proxy::peer {

class hedges {
public:
    static constexpr unsigned one_in = 20;
    static constexpr unsigned most = 8;  ///< that are saved up

    /// A question goes out that is beside none.
    void note_first() noexcept { saved_ = std::min(saved_ + 1, one_in * most); }
    /// One beside it may go out now; it counts then.
    [[nodiscard]] bool take() noexcept {
        const bool may = saved_ >= one_in;
        saved_ -= may ? one_in : 0;
        return may;
    }

private:
    unsigned saved_ = one_in * most;  // in questions
};

}  // namespace reprise::proxy::peer
