#include "proxy/cache/stored_response.hpp"

#include "proxy/cache/memory/tags.hpp"
#include "proxy/http/message_head.hpp"

#include <algorithm>
#include <limits>

namespace reprise::proxy::cache {

namespace {
constexpr std::string_view length_name = "\r\nContent-Length: ";
}  // namespace

void index_head(stored_response& response) {
    const auto first_line = response.head.find("\r\n");
    response.status_line_size = first_line == std::string::npos ? 0 : first_line + 2;
    // We wrote Content-Length last and in this spelling, so the last occurrence is ours.
    const auto at = response.head.rfind(length_name);
    response.length_at = at == std::string::npos ? response.head.size() : at + 2;
    response.tags = read_tags(std::string_view{response.head}.substr(response.status_line_size));
}

stored_ptr ended_at(const stored_response& response, wall_time when) {
    auto ended = std::make_shared<stored_response>(response);
    auto& facts = ended->freshness;
    facts.lifetime = std::min(facts.lifetime, http::current_age(facts, when));
    ended->reusable_until = wall_time::min();
    ended->purged_softly = true;
    return ended;
}

std::vector<http::field> stored_response::fields() const {
    // The head was written by us from a parsed one, so it cannot fail to parse.
    std::vector<http::field> lines;
    const auto bytes = std::string_view{head}.substr(status_line_size);
    (void)http::parse_field_lines(bytes, lines, std::numeric_limits<unsigned>::max());
    return lines;
}

std::size_t stored_response::footprint() const noexcept {
    return heap_cost(sizeof(stored_response) + control_block) + heap_cost(head) +
           heap_cost(vary.names) + heap_cost(selecting) +
           (tags.capacity() == 0 ? 0 : heap_cost(tags.capacity() * sizeof tags[0])) +
           (content ? content->footprint() : 0) +
           (parts ? heap_cost(sizeof(partial_body) + control_block) + parts->footprint() : 0);
}

}  // namespace reprise::proxy::cache
