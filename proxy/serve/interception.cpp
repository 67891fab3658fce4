#include "proxy/serve/interception.hpp"

#include "proxy/base/log.hpp"
#include "proxy/base/relaxed.hpp"
#include "proxy/http/characters.hpp"
#include "proxy/net/access.hpp"
#include "proxy/net/carried.hpp"
#include "proxy/net/client_stream.hpp"
#include "proxy/net/leaf_store.hpp"
#include "proxy/net/tls.hpp"
#include "proxy/serve/tunnel.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

// A client is answered 200 before it has said whom it wants, since it says so in its hello alone.
// What is not opened then is dialled then, and a failure of that ends the connection.

namespace reprise::proxy::serve {

namespace {

using hello_state = net::client_hello_reader::state;

// A client that waits for its server to speak first gets it this much later.
constexpr std::chrono::seconds hello_patience{1};

// Whoever leaves an opened tunnel later than this was no longer looking at a certificate: browsers
// connect ahead of what they will ask, and leave when they have asked nothing for some seconds.
constexpr std::chrono::seconds refuses_within{1};

// A handshake that stalls behind its hello holds some 45 KiB of OpenSSL's: so many may, in the whole
// process, and no longer than this.
constexpr std::uint32_t most_shaking_hands = 512;
constexpr std::chrono::milliseconds handshake_patience{5'000};

struct counted_handshake {
    explicit counted_handshake(std::atomic<std::uint32_t>& all) : all_{all} {
        all_.fetch_add(1, relaxed);
    }
    ~counted_handshake() { all_.fetch_sub(1, relaxed); }
    counted_handshake(const counted_handshake&) = delete;
    counted_handshake& operator=(const counted_handshake&) = delete;
    std::atomic<std::uint32_t>& all_;
};

// The connection, for a session of its own: of a client that reaches us by TLS what that carries.
attempt<tcp_socket> inner_end(net::client_stream& client, net::deadlines& timer) {
    if (!client.socket().is_encrypted()) {
        return client.socket().take_socket();
    }
    return net::carry(std::move(client.socket()), timer);
}

// The client takes no certificate of ours for the host.
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

void note_leaving(thread::worker& w, const client_identity& client) {
    const auto now = steady_now();
    if (client.inside && now < client.opened + refuses_within &&
        w.common.refusals.is_refusal(client.at, client.inside->host, now)) {
        w.counts.tunnels_refused.add();
        w.common.tunnels.note_refused(client.inside->host, false);
        remember_refusal(w, client, client.inside->host, "it left without a word");
    }
}

void note_asking(thread::worker& w, client_identity& client) {
    w.common.refusals.note_taken(client.at, client.inside->host, steady_now());
    client.opened = {};
}

awaitable<ended_or_next> interception::give() {
    const auto sent = co_await say_connected();
    if (sent != ended::keep) {
        co_return sent;
    }
    const auto found = co_await judge_hello();
    if (!found.identity) {
        co_return co_await pass_on(found.why);
    }
    co_return co_await open(found.identity, found.is_new);
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

// Thousands may stall here: the wait has little but this frame.
awaitable<interception::judged> interception::judge_hello() {
    auto& client = x_.stream;
    client.patience().expire_after(hello_patience);
    net::client_hello_reader reader;
    auto state = reader.read(client.input().data());
    while (state == hello_state::more) {
        auto reading = client.socket().is_encrypted()
                           ? client.read(net::client_hello_reader::most)
                           : client.read_lean(net::client_hello_reader::most);
        const auto read = co_await std::move(reading);
        if (read != net::client_stream::read_end::some) {
            break;  // it has said no more by then, or has left
        }
        state = reader.read(client.input().data());
    }
    client.patience().clear();
    co_return judge(reader, state);
}

interception::judged interception::judge(const net::client_hello_reader& reader,
                                         hello_state state) const {
    if (state != hello_state::done) {
        return {.why = state == hello_state::other ? reader.why() : "no hello in time"};
    }
    const auto host = http::connect_host(x_.asked.target);
    if (const auto why = why_passed_on(reader.hello(), host); !why.empty()) {
        return {.why = why};
    }
    judged out;
    if (x_.w.common.shaking_hands.load(relaxed) >= most_shaking_hands) {
        out.why = "too many handshakes";
        return out;
    }
    std::string_view named = host;
    if (named.ends_with('.')) {
        named.remove_suffix(1);  // as in its hello
    }
    out.identity = x_.settings->leaves->identity_for(named, wall_now(), &out.is_new);
    out.why = "no certificate can be made";
    return out;
}

awaitable<ended_or_next> interception::pass_on(std::string_view why) {
    x_.w.counts.tunnels_passed_on.add();
    x_.w.common.tunnels.note_passed_on(http::connect_host(x_.asked.target), why);
    tunnel one{x_, why};
    co_return co_await one.connect_answered();
}

awaitable<ended_or_next> interception::open(net::tls_identity_ptr identity, bool new_leaf) {
    auto& client = x_.stream;
    const auto& options = x_.settings->options;
    const auto host = http::connect_host(x_.asked.target);
    std::string hello{client.input().data()};
    client.input().clear();
    const auto until = steady_now() + std::min(options.timeouts.client_head, handshake_patience);
    auto inner = inner_end(client, x_.w.timer);
    if (!inner) {
        x_.book.error = inner.error().detail;
        co_return ended::gone;
    }
    std::optional<counted_handshake> counted{x_.w.common.shaking_hands};
    auto secured = co_await net::accept_tls(
        std::move(*inner), std::move(identity), x_.w.timer, until, std::move(hello));
    counted.reset();
    if (secured.has_error()) {
        x_.w.common.tunnels.note_refused(host, new_leaf);
        x_.book.error = secured.error().detail;
        x_.book.reason = "certificate-refused";
        x_.w.counts.tunnels_refused.add();
        if (steady_now() < until) {
            remember_refusal(x_.w, x_.client, host, secured.error().detail);
        }
        co_return ended::gone;
    }
    x_.w.counts.tunnels_opened.add();
    x_.book.reason = "opened";
    client.go_on_over(std::move(*secured));
    x_.enter(x_.asked.target, x_.w.common.tunnels.note_opened(host, new_leaf));
    x_.out.keeps = true;
    co_return x_.out.end();
}

}  // namespace reprise::proxy::serve
