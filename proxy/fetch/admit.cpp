#include "proxy/fetch/admit.hpp"

namespace reprise::proxy::fetch {

cache::admission_ruling rule_on(thread::worker& w,
                                const admission_question& asked,
                                std::size_t pending) {
    return rule_on(w.common, w.peers ? &w.peers->seen : nullptr, asked, pending);
}

cache::admission_ruling rule_on(const thread::common_state& common,
                                peer::seen_elsewhere::reader* seen,
                                const admission_question& asked,
                                std::size_t pending) {
    const auto& gate = common.admission;
    const auto ruling = gate.peek(asked.key, asked.by, pending);
    if (ruling.admitted || !asked.with_siblings || !common.peers->shares() ||
        !seen->may_contain(common.peers->key_of(asked.url))) {
        return ruling;
    }
    return gate.peek(asked.key, asked.by, pending + 1);
}

}  // namespace reprise::proxy::fetch
