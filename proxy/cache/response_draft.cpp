#include "proxy/cache/response_draft.hpp"

#include "proxy/cache/memory/tags.hpp"

#include <algorithm>

namespace reprise::proxy::cache {

namespace {
constexpr std::string_view length_name = "\r\nContent-Length: ";
}  // namespace

void index_head(response_draft& response) {
    response.status_line_size = status_line_size(response.head);
    // We wrote Content-Length last and in this spelling, so the last occurrence is ours.
    const auto at = response.head.rfind(length_name);
    response.length_at = at == std::string::npos ? response.head.size() : at + 2;
    response.tags = read_tags(std::string_view{response.head}.substr(response.status_line_size));
}

void end_at(response_draft& response, wall_time when) noexcept {
    auto& facts = response.freshness;
    facts.lifetime = std::min(facts.lifetime, http::current_age(facts, when));
    response.reusable_until = wall_time::min();
    response.purged_softly = true;
}

}  // namespace reprise::proxy::cache
