#include "proxy/fetch/admit.hpp"

namespace reprise::proxy::fetch {

cache::admission_ruling rule_on(thread::worker& w,
                                const admission_question& asked,
                                std::size_t pending) {
    const auto& gate = w.common.admission;
    const auto ruling = gate.peek(asked.key, asked.by, pending);
    if (ruling.admitted || !asked.with_siblings || !w.common.peers->shares() ||
        !w.peers->seen.may_contain(w.common.peers->key_of(asked.url))) {
        return ruling;
    }
    return gate.peek(asked.key, asked.by, pending + 1);
}

}  // namespace reprise::proxy::fetch
