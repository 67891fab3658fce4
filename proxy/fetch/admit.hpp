#pragma once
// Whether what is not stored may be: the one question to admission, wherever it is asked: by a fetch
// (before its head and behind it), by requests that join one or wait for a whole, by what is found on
// probation, and by /explain.

#include "filter/key_hash.hpp"
#include "proxy/cache/admission/admission_gate.hpp"
#include "proxy/thread/worker.hpp"

#include <cstddef>
#include <string_view>

namespace reprise::proxy::fetch {

struct admission_question {
    const filter::key_hash& key;
    std::string_view url;
    const cache::admission_choice_for& by;
    bool with_siblings = false;  ///< what a sibling has seen lately is seen, where they share that
};

/// What admission says of one more sight behind `pending` that are not recorded yet; records
/// nothing. The policy in the ruling is the one that ruled, never "auto".
[[nodiscard]] cache::admission_ruling rule_on(thread::worker& w,
                                              const admission_question& asked,
                                              std::size_t pending = 0);
/// The same for whoever is no worker. `seen`: what siblings have seen, as this thread reads it; may
/// be null where not asked.with_siblings.
[[nodiscard]] cache::admission_ruling rule_on(const thread::common_state& common,
                                              peer::seen_elsewhere::reader* seen,
                                              const admission_question& asked,
                                              std::size_t pending = 0);

}  // namespace reprise::proxy::fetch
