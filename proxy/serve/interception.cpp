#include "proxy/serve/interception.hpp"

#include "proxy/base/log.hpp"
#include "proxy/http/characters.hpp"
#include "proxy/net/access.hpp"
#include "proxy/serve/hello_wait.hpp"

#include <algorithm>
#include <utility>

// Which tunnels are opened, and who refuses that. The opening itself is hello_wait's.

namespace reprise::proxy::serve {

namespace {

// Whoever leaves an opened tunnel later than this was no longer looking at a certificate: browsers
// connect ahead of what they will ask, and leave when they have asked nothing for some seconds.
constexpr std::chrono::seconds refuses_within{1};

bool is_named(std::string_view host, std::string_view lower_case) noexcept {
    if (lower_case.ends_with('.')) {
        lower_case.remove_suffix(1);  // no name is sent with it (RFC 6066 3)
    }
    return http::iequals(host, lower_case);
}

}  // namespace

std::string_view entry_for(const std::vector<std::string>& patterns,
                           std::string_view host) noexcept {
    if (host.ends_with('.')) {
        host.remove_suffix(1);
    }
    const auto found = std::find_if(
        patterns.begin(), patterns.end(), [host](const std::string& pattern) {
            return pattern.starts_with("*.")
                       ? host.size() > pattern.size() - 1 &&
                             host.ends_with(std::string_view{pattern}.substr(1))
                       : host == pattern;
        });
    return found == patterns.end() ? std::string_view{} : *found;
}

std::string_view why_passed_on(const thread::settings& now, const http::target& target) {
    if (!now.leaves) {
        return "off";
    }
    const auto& wanted = *now.options.intercept;
    const auto host = http::connect_host(target);
    if (net::read_numeric_host(host)) {
        return "address";
    }
    if (entry_for(wanted.hosts, host).empty()) {
        return "not-listed";
    }
    if (!entry_for(wanted.except, host).empty()) {
        return "except";
    }
    const bool port = std::find(wanted.ports.begin(), wanted.ports.end(), target.port) !=
                      wanted.ports.end();
    return port ? "" : "port";
}

std::string_view why_passed_on(const net::client_hello& hello, std::string_view host) {
    if (!hello.tls_1_2) {
        return "tls-version";
    }
    if (!is_named(hello.host, host)) {
        return "sni";
    }
    return hello.has_alpn && !hello.http_1_1 ? "alpn" : "";
}

std::string_view interception::why_not(const exchange_state& x) {
    const auto host = http::connect_host(x.asked.target);
    auto why = why_passed_on(*x.settings, x.asked.target);
    if (why == "except" || why == "port") {
        x.w.common.tunnels.note_passed_on(host, why);
    }
    if (!why.empty()) {
        return why;
    }
    const auto now = steady_now();
    const auto& known = x.w.common.refusals;
    const auto& wanted = *x.settings->options.intercept;
    if (!net::is_in(wanted.clients, x.client.at)) {
        why = "client";
    } else if (wanted.on_refusal == config::refusal_answer::tunnel &&
               known.has_client(x.client.at, host, now)) {
        why = "client-refused";
    } else if (known.has_host(host, x.asked.target.port, now)) {
        why = "host-refused";
    }
    if (!why.empty()) {
        x.w.common.tunnels.note_passed_on(host, why);
    }
    return why;
}

void remember_refusal(thread::worker& w,
                      const client_identity& client,
                      std::string_view host,
                      std::string_view why) {
    // The connection's own settings may be older: it counts what holds for the next one.
    const auto& intercept = w.current->options.intercept;
    if (!intercept || intercept->on_refusal != config::refusal_answer::tunnel) {
        return;
    }
    if (w.speaks_for_many(client.at)) {
        return;  // one of those behind it would close the host for all of them
    }
    const auto now = steady_now();
    if (w.common.refusals.note_client(client.at, host, now + intercept->refusal_memory, now)) {
        log::info("intercept: ",
                  client.address,
                  " does not take our certificate for ",
                  host,
                  ", which is tunnelled for it from now on: ",
                  why);
    }
}

void note_leaving(thread::worker& w, const client_identity& client) {
    const auto now = steady_now();
    if (client.inside && now < client.opened + refuses_within &&
        w.common.refusals.is_refusal(client.at, client.inside->host, now)) {
        remember_refusal(w, client, client.inside->host, "it left without a word");
        w.common.tunnels.note_refused(client.inside->host, false);
        w.counts.tunnels_refused.add();
    }
}

void note_asking(thread::worker& w, client_identity& client) {
    w.common.refusals.note_taken(client.at, client.inside->host, steady_now());
    client.opened = {};
}

awaitable<ended_or_next> interception::give() {
    const auto sent = co_await say_connected();
    if (sent == ended::keep) {
        x_.becomes = std::make_unique<hello_wait>(x_.part());
    }
    co_return sent;
}

awaitable<ended> interception::say_connected() {
    x_.copy_and_shrink();  // the input is the hello's from now on
    x_.book.how = outcome::tunnel;
    x_.book.status = 200;
    x_.out.text = "HTTP/1.1 200 Connection established\r\n\r\n";
    x_.out.begin();
    x_.out.add(x_.out.text);
    co_return co_await x_.out.send();
}

}  // namespace reprise::proxy::serve
