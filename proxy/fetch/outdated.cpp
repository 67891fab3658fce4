#include "proxy/fetch/outdated.hpp"

#include "proxy/cache/memory/tags.hpp"

#include <algorithm>

namespace reprise::proxy::fetch {

namespace {

/// How much older something may be than its Age says: that is in whole seconds, rounded down when
/// it was stored and again when it was sent.
constexpr std::chrono::seconds age_error{2};

}  // namespace

bool may_be_outdated(const cache::store& here,
                     const filter::key_hash& key,
                     std::string_view url,
                     std::string_view head,
                     steady_time asked_at,
                     std::chrono::seconds age) {
    head.remove_prefix(std::min(head.find("\r\n") + 2, head.size()));
    return here.invalidated_since(key, url, cache::read_tags(head), asked_at - age - age_error);
}

// Memory knows nothing of what is on disk alone: the look-up does, and nothing of what came since.
cache::stored_ptr held_for(const cache::store& here, const fetch_order& order) {
    if (auto validated = order.validating()) {
        return validated;
    }
    auto in_memory = here.peek(order.key, order.url, order.request->head.fields);
    return in_memory.response ? in_memory.response : order.found;
}

}  // namespace reprise::proxy::fetch
