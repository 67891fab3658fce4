#include "proxy/base/tunnel_hosts.hpp"

#include "proxy/base/relaxed.hpp"

namespace reprise::proxy {

std::shared_ptr<inside_counts> tunnel_hosts::note_opened(std::string_view host, bool new_leaf) {
    const std::lock_guard lock{guard_};
    auto& one = listed_.add(host, 1);
    if (!one.inside) {
        one.inside = std::make_shared<inside_counts>();
    }
    ++one.opened;
    one.leaves += new_leaf ? 1 : 0;
    return one.inside;
}

void tunnel_hosts::note_refused(std::string_view host, bool new_leaf) {
    const std::lock_guard lock{guard_};
    auto& one = listed_.add(host, 1);
    ++one.refused;
    one.leaves += new_leaf ? 1 : 0;
}

void tunnel_hosts::note_passed_on(std::string_view host, std::string_view why) {
    const std::lock_guard lock{guard_};
    auto& reasons = listed_.add(host, 1).passed_on;
    for (auto& [reason, times] : reasons) {
        if (reason == why) {
            ++times;
            return;
        }
    }
    reasons.emplace_back(why, 1);
}

void tunnel_hosts::note_tunnel(std::string_view host,
                               std::uint16_t port,
                               std::string_view why,
                               std::uint64_t bytes) {
    const std::lock_guard lock{guard_};
    auto& one = unlisted_.add(host, bytes);
    ++one.tunnels;
    one.port = port;
    one.why = why;
}

tunnel_hosts::report tunnel_hosts::figures() const {
    const std::lock_guard lock{guard_};
    report out;
    for (auto& one : listed_.in_order()) {
        const auto& is = one.about;
        const auto& inside = is.inside;
        out.opened.push_back({std::move(one.key),
                              is.opened,
                              is.refused,
                              is.leaves,
                              inside ? inside->requests.load(relaxed) : 0,
                              inside ? inside->hits.load(relaxed) : 0,
                              is.passed_on});
    }
    for (auto& one : unlisted_.in_order()) {
        const auto& is = one.about;
        out.most_bytes.push_back({std::move(one.key), one.own(), is.tunnels, is.port, is.why});
    }
    return out;
}

}  // namespace reprise::proxy
