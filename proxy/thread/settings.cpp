#include "proxy/thread/settings.hpp"

#include "proxy/base/clock.hpp"
#include "proxy/base/log.hpp"
#include "proxy/cache/admission/admission_gate.hpp"

#include <atomic>
#include <stdexcept>
#include <string>
#include <utility>

namespace reprise::proxy::thread {

namespace {

// One key for the leaves of all reloads, so that no client's session ends with one.
std::shared_ptr<net::kept_leaves> read_authority(
    const std::optional<config::intercept_options>& wanted) {
    if (!wanted) {
        return nullptr;
    }
    auto read = net::leaf_authority::read(*wanted, wall_now());
    for (const auto& warning : read.warnings) {
        log::warn(warning);
    }
    if (!read.authority) {
        std::string all;
        for (const auto& mistake : read.mistakes) {
            all.append(all.empty() ? "" : "\n").append(mistake);
        }
        throw std::runtime_error{all};
    }
    static const auto key = net::make_leaf_key();
    if (!key) {
        throw std::runtime_error{"intercept: OpenSSL makes no key"};
    }
    net::leaf_maker maker{std::move(read.authority), key, wanted->leaf_lifetime};
    return std::make_shared<net::kept_leaves>(std::move(maker), wanted->leaves);
}

http::overrides overrides_of(const std::vector<config::overridden>& named) {
    http::overrides out;
    for (const auto one : named) {
        switch (one) {
        case config::overridden::expires: out.expires = true; break;
        case config::overridden::max_age: out.max_age = true; break;
        case config::overridden::s_maxage: out.s_maxage = true; break;
        case config::overridden::no_store: out.no_store = true; break;
        case config::overridden::no_cache: out.no_cache = true; break;
        case config::overridden::private_response: out.private_ = true; break;
        case config::overridden::must_revalidate: out.must_revalidate = true; break;
        }
    }
    return out;
}

url_freshness made_of(const config::freshness_rule& rule, const http::freshness_rules& general) {
    url_freshness out{rule.url, general, rule.reload == config::reload_answer::ignore};
    out.rules.at_least = rule.at_least;
    out.rules.at_most = rule.at_most;
    out.rules.heuristic_fraction = rule.heuristic_fraction.value_or(general.heuristic_fraction);
    out.rules.heuristic_most = rule.heuristic_most.value_or(general.heuristic_most);
    out.rules.set_aside = overrides_of(rule.overrides);
    return out;
}

// Throws, where there are any.
void refuse_mistakes(const std::vector<std::string>& mistakes) {
    std::string all;
    for (const auto& one : mistakes) {
        all.append(all.empty() ? "" : "\n").append(one);
    }
    if (!all.empty()) {
        throw std::runtime_error{all};
    }
}

net::user_list_ptr read_users(const config::access_options& access) {
    auto read = net::user_list::read(access);
    refuse_mistakes(read.mistakes);
    return std::move(read.users);
}

net::block_list_ptr read_blocked(const config::access_options& access) {
    auto read = net::block_list::read(access);
    refuse_mistakes(read.mistakes);
    return std::move(read.list);
}

}  // namespace

const url_freshness* freshness_rule_for(const settings& now, std::string_view url) noexcept {
    for (const auto& one : now.freshness_rules) {
        if (cache::url_matches(one.url, url)) {
            return &one;
        }
    }
    return nullptr;
}

other_files read_other_files(const config::options& options) {
    other_files files;
    for (std::size_t i = 0; i < options.listeners.size(); ++i) {
        const auto& tls = options.listeners[i].tls;
        const auto setting = "listeners[" + std::to_string(i) + "].tls";
        files.identities.push_back(tls ? net::tls_identity::read(*tls, setting) : nullptr);
    }
    files.trust = net::tls_trust::read(options.origins);
    files.leaves = read_authority(options.intercept);
    files.users = read_users(options.access);
    files.blocked = read_blocked(options.access);
    return files;
}

settings_ptr make_settings(config::options options) {
    auto files = read_other_files(options);
    return make_settings(std::move(options), std::move(files));
}

settings_ptr make_settings(config::options options, other_files files) {
    static std::atomic<std::uint64_t> made{0};
    auto next = std::make_shared<settings>();
    next->number = ++made;
    next->identities = std::move(files.identities);
    next->trust = std::move(files.trust);
    next->leaves = std::move(files.leaves);
    next->users = std::move(files.users);
    next->blocked = std::move(files.blocked);
    next->guard = net::make_guard(options.access);
    next->request_limits.bytes = options.limits.head_size;
    next->request_limits.fields = options.limits.fields;
    next->request_limits.target = options.limits.url_length;
    next->response_limits.bytes = options.limits.head_size;
    next->response_limits.fields = options.limits.fields;
    next->freshness.heuristic_fraction = options.freshness.heuristic_fraction;
    next->freshness.heuristic_most = options.freshness.heuristic_most;
    next->freshness.heuristic_errors = options.freshness.heuristic_errors;
    next->freshness.negative = options.freshness.negative;
    for (const auto& rule : options.freshness.rules) {
        next->freshness_rules.push_back(made_of(rule, next->freshness));
    }
    next->storing.never_cookies = options.caching.set_cookie == config::cookie_storing::never;
    // The setting bounds the memory; three sixteenths of it are for what is not counted while it is
    // held: the batches that clients' sockets are being sent, half-filled blocks, the heap's gaps
    // (tests/scenario/shared_fetch.cpp measures the sum).
    next->fetches.window = options.collapsing.window / 16 * 13;
    next->fetches.finish = options.collapsing.finish;
    // The smaller figures follow the window, so that one setting bounds what a fetch holds.
    next->fetches.read_ahead = std::min<std::uint64_t>(256u << 10, options.collapsing.window / 4);
    next->fetches.first_bytes = next->fetches.read_ahead;
    next->fetches.unattended.of_one = options.origins.connections_per_client;
    next->fetches.unattended.of_all = std::max(1u, options.limits.client_connections / 4);
    next->options = std::move(options);
    return next;
}

}  // namespace reprise::proxy::thread
