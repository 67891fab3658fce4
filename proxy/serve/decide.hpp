#pragma once
// Which answer a request gets: pure functions, which look nothing up, read no clock and send no
// byte. An exchange does what they say, /explain prints it.

#include "proxy/cache/verdict.hpp"
#include "proxy/serve/answer.hpp"
#include "proxy/serve/request.hpp"

#include <optional>
#include <string_view>

namespace reprise::proxy::serve {

struct decision {
    answer what;
    cache::verdict why;
};

/// What a request gets whatever is stored. None: the store is asked.
/// @param pseudonym  this proxy's, in Via
[[nodiscard]] std::optional<decision> decide(const request& asked,
                                             const thread::settings& now,
                                             std::string_view pseudonym);

/// What a peer's question is to have beside what any client would.
struct peers_question {
    bool hits_alone = false;  ///< what is fresh, and nothing else: a Squid's
    /// What is on its way and will be stored is as good as what is: a Reprise's, with
    /// only-if-cached, while its key is fetched.
    bool joins = false;
    /// What is neither is asked of this node's siblings: another site's.
    bool asks_members = false;
};

/// What it gets by what the store has, and `why`.
/// @param kept  found for this request
/// @pre decide(asked, now, pseudonym) said nothing
[[nodiscard]] answer decide(const request& asked,
                            const cache::lookup_result& kept,
                            const thread::settings& now,
                            std::string_view pseudonym,
                            peers_question by,
                            wall_time at,
                            cache::verdict& why);

}  // namespace reprise::proxy::serve
