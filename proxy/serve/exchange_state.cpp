#include "proxy/serve/exchange_state.hpp"

#include "proxy/http/connection_login.hpp"
#include "proxy/net/client_stream.hpp"
#include "proxy/serve/connection_logins.hpp"

namespace reprise::proxy::serve {

exchange_state::exchange_state(const lent& by, steady_time begun_at)
    : w{by.w},
      client{by.client},
      stream{by.stream},
      memory{by.memory},
      settings{by.w.current},
      started{begun_at},
      book{by.w, by.client, by.sink, begun_at},
      out{by.sink, by.memory, *settings, book},
      becomes{by.becomes},
      client_{by.client},
      sink_{by.sink},
      head_bytes_{by.stream.input().data().substr(0, by.memory.head.bytes)} {
    asked_.head = &memory.head;
    out.version = memory.head.version;
}

bool exchange_state::is_squids_question() const noexcept {
    return w.peers &&
           http::has_token(asked.head->fields, http::field_id::cache_control, "only-if-cached") &&
           w.peers->book->is_peer(client.ip(), true);
}

bool exchange_state::is_siblings_question() const noexcept {
    return w.peers && asked.facts.asked.only_if_cached && asked.facts.is_get &&
           w.peers->book->may_ask(client.ip());
}

bool exchange_state::is_sites_question() const noexcept {
    return asked.names_site && is_siblings_question() && w.common.peers->is_gateway();
}

bool exchange_state::is_handed_on() const noexcept {
    return asked.names_home && w.peers && w.peers->book->is_peer(client.ip(), false);
}

bool exchange_state::is_unseen() const {
    return is_encrypted() ||
           (client.ip().is_loopback() && !client.fronted && !listener().proxy_protocol);
}

void exchange_state::read_request() {
    asked_ = serve::read_request(
        memory.head,
        {listener(), settings->options.access, is_unseen(), client.inside.get(), is_encrypted()},
        w.common.admission.secret(),
        memory.url);
    ignore_reload(asked_, *settings);
    if (asked_.facts.has_authorization || client_.logins) [[unlikely]] {
        note_login();
    }
}

// So that what is logged in on it is logged in for nobody else. A front writes nothing into a tunnel.
bool exchange_state::is_one_clients() const {
    return client_.inside || (!client_.fronted && !w.speaks_for_many(client_.at));
}

bool exchange_state::keeps_logins_apart() const {
    return !asked_.accelerator && !asked_.inside && is_one_clients();
}

void exchange_state::note_login() {
    if (asked_.refused) {
        return;
    }
    const bool logs_in = asked_.facts.has_authorization &&
                         http::logs_connection_in(asked_.head->fields);
    if (!logs_in && !client_.logins) {
        return;
    }
    if (!is_one_clients()) {
        // Its next request is another client's: what was logged in serves this one, and ends.
        client_.logins.reset();
        asked_.owner = logs_in ? net::owner_of_one_request : 0;
        return;
    }
    const auto host = http::connect_host(asked_.target);
    const auto port = asked_.target.port;
    if (logs_in) {
        if (!client_.logins) {
            client_.logins = std::make_shared<connection_logins>(w.origins);
        }
        client_.logins->note(host, port);
    }
    if (client_.logins->has(host, port)) {
        asked_.owner = client_.logins->owner();
        asked_.facts.has_authorization = true;
    }
}

// A connection asks mostly for one client.
void exchange_state::limit_client() {
    const auto user = book.user ? std::string_view{book.user->name} : std::string_view{};
    const net::client_name whose{client.at, user};
    if (stream.is_limited_as(whose)) {
        return;
    }
    auto bucket = user.empty() && w.speaks_for_many(client.at)
                      ? nullptr
                      : w.common.client_rates.bucket_of(whose, started);
    stream.limit_to(std::move(bucket), w.counts.client_rate_waits);
}

void exchange_state::consume_head() {
    stream.input().consume(head_bytes_.size());
    head_bytes_ = {};
}

const std::shared_ptr<const fetch::request_copy>& exchange_state::copy() {
    if (!copy_) {
        copy_ = fetch::copy_request(*asked.head, head_bytes_);
        asked_ = moved_to(*copy_, head_bytes_, asked_);
        consume_head();
    }
    return copy_;
}

parted_request_ptr exchange_state::part() {
    parted_request::known what{.copy = copy()};
    what.target = asked_.target;
    what.key = asked_.key;
    if (asked_.inside) {
        what.url = asked_.url;
        what.inside = client_.inside->counts;
    }
    const lent by{w, client_, sink_, memory, stream, becomes};
    return std::make_unique<parted_request>(by, settings, std::move(what), std::move(book));
}

void exchange_state::copy_and_shrink() {
    static_cast<void>(copy());
    decltype(memory.head.fields){}.swap(memory.head.fields);
    stream.input().trim();
}

}  // namespace reprise::proxy::serve
