#include "tools/from_squid/lost_lists.hpp"

#include "tools/from_squid/rule_chains.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace reprise::from_squid {

namespace {

struct lost_list {
    std::string_view name;
    std::size_t at;  // of its action; behind it, where a name comes first: one list for each
    std::string_view action;  // by which more was restrained
    const char* why;
    const char* setting;
};

constexpr lost_list lost_lists[]{
    {"http_reply_access", 1, "deny", "responses are not refused", "access"},
    {"miss_access", 1, "deny", "who may have what is stored may have the rest", "access"},
    {"http_access2", 1, "deny", "only http_access is judged", "access"},
    {"adapted_http_access", 1, "deny", "only http_access is judged", "access"},
    {"follow_x_forwarded_for",
     1,
     "allow",
     "a client is who connects, and what rules say of clients behind him is lost; see "
     "access.trusted_fronts",
     "access"},
    {"store_miss",
     1,
     "deny",
     "what came is stored whatever it is: only URLs can be kept from that, by `cache` or "
     "admission.rules",
     "admission"},
    {"send_hit", 1, "deny", "what is stored is sent whatever it is", "admission"},
    {"reply_header_access", 2, "deny", "fields are passed on as they came", "forwarding"},
    {"http_upgrade_request_protocols", 2, "deny", "WebSocket handshakes are passed on", "access"},
};

}  // namespace

bool is_lost_list(std::string_view name) {
    return std::any_of(std::begin(lost_lists), std::end(lost_lists), [&](const lost_list& one) {
        return one.name == name;
    });
}

void convert_lost_lists(draft& into, const std::map<std::string, statements>& lines) {
    for (const auto& one : lost_lists) {
        const auto found = lines.find(std::string{one.name});
        if (found == lines.end()) {
            continue;
        }
        const auto chains = one.at == 1 ? std::vector<statements>{found->second}
                                        : by_name(found->second);
        for (const auto& chain : chains) {
            say_lost(into, lines_with(one.action, chain, one.at, into.acls), one.why, one.setting);
        }
    }
}

}  // namespace reprise::from_squid
