#include "proxy/serve/connection_logins.hpp"

#include <algorithm>

namespace reprise::proxy::serve {

void connection_logins::note(std::string_view host, std::uint16_t port) {
    if (has(host, port)) {
        return;
    }
    if (places_.size() == most) {
        places_.erase(places_.begin());
    }
    places_.push_back({std::string{host}, port});
}

bool connection_logins::has(std::string_view host, std::uint16_t port) const noexcept {
    return std::any_of(places_.begin(), places_.end(), [&](const place& one) {
        return one.port == port && one.host == host;
    });
}

}  // namespace reprise::proxy::serve
