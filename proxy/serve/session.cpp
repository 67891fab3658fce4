#include "proxy/serve/session.hpp"

#include "proxy/base/log.hpp"
#include "proxy/base/recycled.hpp"
#include "proxy/base/seldom.hpp"
#include "proxy/net/access.hpp"
#include "proxy/net/coroutine.hpp"
#include "proxy/net/proxy_header_wait.hpp"
#include "proxy/net/tls.hpp"
#include "proxy/serve/interception.hpp"
#include "proxy/serve/own_reply.hpp"

// A connection from its place in the census to its lingering end. Between two requests it holds
// little, and no buffer.

namespace reprise::proxy::serve {

namespace {

constinit log::seldom ended_by_exception;
constexpr std::size_t read_size = 16u << 10;
constexpr std::size_t smallest_read = 4u << 10;
constexpr std::uint64_t linger_most = 256u << 10;
// So many of the requests that a client has pipelined are answered before the loop does something
// else. A look brings it 16 events, of which one may be 16 new connections (accept_loop): were they
// all to pipeline, these would be 124 hits. Whoever pipelines more pays a look for each four.
constexpr unsigned most_in_a_row = 4;
}  // namespace

session::session(thread::worker& w,
                 net::byte_stream stream,
                 std::size_t listener,
                 const tcp::endpoint& client,
                 open_connection open,
                 bool by_header)
    : w_{w},
      open_{std::move(open)},
      connection_{w, std::move(stream)},
      for_bytes_{w.io, *this},
      by_header_{by_header} {
    client_.listener = listener;
    connected_ = {net::canonical(client.address()), client.port()};
    name_client(connected_);
    insert_before(w.connections);  // nothing throws after this
}

void* session::operator new(std::size_t /*size*/) {
    return recycled<session>{}.allocate(1);
}

void session::operator delete(void* memory) noexcept {
    recycled<session>{}.deallocate(static_cast<session*>(memory), 1);
}

void session::end_if_idle() {
    if (!idle_) {
        return;
    }
    if (auto& stream = connection_.stream.socket(); stream.is_encrypted()) {
        error_code ignored;
        stream.cancel(ignored);  // wakes it to say close_notify, for which there may be no room yet
        return;
    }
    abort();
}

exchange_space& session::space() {
    if (!space_) {
        space_ = take_space();
    }
    return *space_;
}

// The buffer goes with it: of a connection that says nothing there is nothing to hold.
void session::put_space_away() {
    auto& input = connection_.stream.input();
    if (space_) {
        space_->input = std::move(input);
    }
    input.release();
    space_.reset();
}

void session::name_client(const net::forwarded_client& who) {
    client_.at = who.at;
    client_.port = who.port;
    client_.address = client_.ip().to_string();
}

// Whatever is answered to what is no request is answered to the front.
void session::name_connected() {
    if (!client_.inside && (client_.at != connected_.at || client_.port != connected_.port)) {
        name_client(connected_);
    }
}

// What is asked in an opened tunnel was written by the client alone: its front could not see it.
void session::name_forwarded() {
    if (client_.inside) {
        return;
    }
    const auto& access = w_.current->options.access;
    net::forwarded_path path{access.trusted_fronts, connected_};
    if (net::is_in(access.trusted_fronts, connected_.at)) {
        const auto& fields = space().memory.head.fields;
        for (auto line = fields.rbegin(); line != fields.rend(); ++line) {
            if (http::iequals(line->name, "X-Forwarded-For") && !path.follow(line->value)) {
                break;
            }
        }
    }
    name_client(path.client());
}

// What a front has said once, by a PROXY header of the connection or by the X-Forwarded-For of a tunnel's
// CONNECT, holds while it is trusted. (Of further fronts that this one named nobody is asked again.)
bool session::is_believed() {
    const auto& trusted = w_.current->options.access.trusted_fronts;
    if (by_header_ && client_.inside && !net::is_in(trusted, client_.inside->connected)) {
        return false;
    }
    if (by_header_ && !client_.inside) {
        error_code gone;
        const auto front = connection_.stream.socket().remote_endpoint(gone);
        if (gone || !net::is_in(trusted, net::canonical(front.address()))) {
            return false;
        }
    }
    return !client_.inside || client_.at == connected_.at || net::is_in(trusted, connected_.at);
}

// A front's for each request, else when the connection begins and under settings that are new since.
void session::judge_client() {
    if (judged_by_ != w_.current->number) {
        judged_by_ = w_.current->number;
        believed_ = is_believed();
    }
    client_.fronted = client_.fronted ||
                      net::is_in(w_.current->options.access.trusted_fronts, connected_.at);
    if (client_.fronted) {
        name_forwarded();
    }
    client_.refused = !believed_ || !net::is_in(w_.current->options.access.clients, client_.at);
    if (client_.refused) {
        w_.counts.client_refused.add();
    }
}

// Looks for a whole head at the front of the input; arms the deadline of what is waited for when
// there is none yet.
session::head_state session::look_for_head() {
    auto& client = connection_.stream;
    const auto& current = *w_.current;
    const auto& timeouts = current.options.timeouts;
    idle_ = client.input().empty();
    if (client_.fronted) [[unlikely]] {
        name_connected();
    }
    if (idle_) {
        resume_ = 0;
        head_begun_ = false;
        put_space_away();
        client.patience().expire_after(first_ ? timeouts.client_head : timeouts.client_idle);
        const bool over = w_.common.ends_idle_connections() && !first_;
        return over ? head_state::end : head_state::need_more;
    }
    auto& into = space().memory.head;
    const auto parsed = http::parse_request_head(
        client.input().data(), into, current.request_limits, resume_);
    if (parsed.state == http::head_state::done) {
        client.patience().clear();
        resume_ = 0;
        head_begun_ = false;
        return head_state::whole;
    }
    if (parsed.state == http::head_state::bad) {
        refuse_head(lend(), failure{parsed.code, parsed.why}, steady_now());
        return head_state::refused;
    }
    space_.reset();  // half a head holds its bytes alone
    resume_ = parsed.resume;
    if (!head_begun_) {
        head_begun_ = true;
        client.patience().expire_after(timeouts.client_head);
    }
    return head_state::need_more;
}

awaitable<ended> session::end_sending() {
    const auto& options = w_.current->options;
    return connection_.stream.end_sending(options.limits.body_rate, options.timeouts.client_body);
}

// Lets the last answer arrive: closing with unread input would reset the connection and take the
// answer with it.
awaitable<void> session::linger() {
    auto& client = connection_.stream;
    if (client.failed() || !client.socket().is_open()) {
        co_return;
    }
    if (client.reply_under_way()) {
        client.break_off();
        co_return;
    }
    const auto said = co_await end_sending();
    if (said == ended::gone) {
        co_return;
    }
    client.patience().expire_after(std::chrono::seconds{2});
    std::uint64_t dropped = 0;
    while (dropped < linger_most) {
        dropped += client.input().size();
        client.input().clear();
        const auto end = co_await client.read(read_size);
        if (end != net::client_stream::read_end::some) {
            break;
        }
    }
    client.patience().clear();
}

// A FIN waits for nothing, a close_notify for room behind what was sent. The connection counts as
// open meanwhile, so that a drain waits for it.
awaitable<void> session::end(bool lingers) {
    auto& client = connection_.stream;
    idle_ = false;
    if (lingers) {
        co_await linger();
    }
    if (client.socket().is_encrypted() && !client.failed() && !client.reply_under_way() &&
        client.socket().is_open()) {
        static_cast<void>(co_await end_sending());
    }
}

session::next session::take_place() {
    const auto current = w_.current;
    const auto& access = current->options.access;
    client_.fronted = net::is_in(access.trusted_fronts, connected_.at);
    believed_ = is_believed();
    client_.refused = !believed_ ||
                      (!client_.fronted && !net::is_in(access.clients, connected_.at));
    judged_by_ = current->number;
    if (!open_.place) {
        open_.place = connection_slot{w_, client_.at};
    }
    if (!open_.place || client_.refused) {
        w_.counts.client_refused.add();
    }
    if (!open_.place) {
        refuse_head(
            lend(), failure{failure_code::too_many_connections, client_.address}, steady_now());
        drop_unread();
        return next::end;
    }
    // Most clients have sent their request by the time that they are accepted.
    return look_for_head() == head_state::end ? next::end : take_bytes({});
}

// Closed over unread input a connection is reset, and the client may lose what it was told. One look is all that a
// client without a place is worth.
void session::drop_unread() {
    auto& room = space().input;
    error_code ignored;
    const auto into = room.prepare(smallest_read);
    (void)connection_.stream.socket().try_read(
        asio::buffer(into.data(), std::min(into.size(), read_size)), ignored);
}

session::next session::take_bytes(error_code over) {
    auto& client = connection_.stream;
    std::size_t got = 0;
    if (!over) {
        if (idle_) {
            client.input() = std::move(space().input);
        }
        const auto room = client.input().prepare(smallest_read);
        got = client.socket().try_read(asio::buffer(room.data(), std::min(room.size(), read_size)),
                                       over);
        same_turn_ = true;
    }
    if (got > 0) {
        client.note_read(got);
        return take_requests();
    }
    if (idle_) {
        put_space_away();
    }
    if (!over && !client.patience().expired()) {
        return next::bytes;
    }
    if (client.patience().expired() && !client.input().empty()) {
        const failure late{failure_code::request_timeout,
                           "the request's head did not arrive in time"};
        refuse_head(lend(), late, steady_now());
    }
    if (over && idle_ && !client.patience().expired()) {
        note_leaving(w_, client_);  // by itself, and not by our patience
    }
    return next::end;
}

// A hit runs through this loop and nothing else.
session::next session::take_requests() {
    for (unsigned in_a_row = 0;; ++in_a_row) {
        if (in_a_row == most_in_a_row && !connection_.stream.input().empty()) {
            return next::turn;
        }
        switch (look_for_head()) {
        case head_state::end: return next::end;
        case head_state::refused: return next::linger;
        case head_state::need_more:
            return connection_.stream.patience().expired() ? next::end : next::bytes;
        case head_state::whole: break;
        }
        first_ = false;
        if (client_.fronted || judged_by_ != w_.current->number) [[unlikely]] {
            judge_client();
        }
        if (client_.opened != steady_time{}) [[unlikely]] {
            note_asking(w_, client_);
        }
        const auto how = space_->one.emplace(lend(), steady_now()).begin();
        if (!how) {
            answer_later();
            return next::answer;
        }
        if (const auto then = after(*how); then != next::answer) {
            return then;
        }
    }
}

// next::answer: the next request's. A client that has said that it sends nothing more (RFC 9112 9.6)
// needs no reading, and a close that finds nothing unread resets nothing: it says the end at once. By
// TLS its close_notify may be there unread.
session::next session::after(ended how) {
    auto& client = connection_.stream;
    const bool last = !client.socket().is_encrypted() && space_->one->was_clients_last();
    space_->one.reset();
    if (becomes_) {
        return next::sequel;
    }
    if (client.reply_under_way()) {
        return next::linger;
    }
    if (how == ended::keep) {
        return next::answer;
    }
    return how == ended::close && last && !client.failed() ? next::end : next::linger;
}

// What runs to its end without a wait is told of by the loop too, never within this call.
void session::answer_later() {
    auto on_end = [this](const std::exception_ptr& broken, ended how) { answered(broken, how); };
    net::begin_coroutine(w_.io, space_->one->run(), std::move(on_end));
}

void session::answered(const std::exception_ptr& broken, ended how) {
    same_turn_ = false;
    go_on([&] {
        if (broken) {
            std::rethrow_exception(broken);
        }
        const auto then = after(how);
        return then == next::answer ? take_requests() : then;
    });
}

void session::on_readable(error_code over) {
    if (std::exchange(awaits_turn_, false)) {
        same_turn_ = false;
        go_on([&] { return connection_.stream.socket().is_open() ? take_requests() : next::end; });
        return;
    }
    go_on([&] {
        const auto then = take_bytes(over);
        // It may be drain() that woke it, but something of TLS alone had come just then.
        const bool no_more = w_.common.ends_idle_connections();
        return then == next::bytes && idle_ && no_more ? next::end : then;
    });
}

namespace {
void note_broken(const std::exception_ptr& broken) {
    const auto more = ended_by_exception.due();
    if (!more) {
        return;
    }
    try {
        std::rethrow_exception(broken);
    } catch (const std::exception& what) {
        log::error("a connection ended by an exception: ", std::string_view{what.what()}, *more);
    } catch (...) {
        log::error("a connection ended by an exception", *more);
    }
}
}  // namespace

// The session may be gone when this returns.
template <class Step>
void session::go_on(Step step) {
    try {
        switch (const auto what = step()) {
        case next::answer: return;
        case next::bytes: wait_for_bytes(); return;
        case next::turn:
            awaits_turn_ = true;
            for_bytes_.start_at_once();
            return;
        case next::sequel: begin_sequel(); return;
        case next::linger:
        case next::end: finish(what); return;
        }
    } catch (...) {
        note_broken(std::current_exception());
    }
    delete this;
}

// What it waits for may be long in coming: nothing of the request's space stays.
void session::begin_sequel() {
    if (connection_.stream.input().empty()) {
        put_space_away();
    } else {
        connection_.stream.input().trim();
        space_.reset();
    }
    becomes_->begin(*this);
}

void session::on_next(std::unique_ptr<sequel> other) {
    becomes_ = std::move(other);
    go_on([] { return next::sequel; });
}

std::shared_ptr<void> session::keep_open() {
    if (!open_for_others_) {
        open_for_others_ = std::make_shared<open_connection>(std::move(open_));
    }
    return open_for_others_;
}

void session::on_over(const std::exception_ptr& broken, ended how) {
    same_turn_ = false;
    go_on([&] {
        becomes_.reset();
        if (broken) {
            std::rethrow_exception(broken);
        }
        const bool goes_on = how == ended::keep && !connection_.stream.reply_under_way();
        return goes_on ? take_requests() : next::linger;
    });
}

// A reset that came with the bytes shows when the answer is written. Half a head has none: there
// the kernel is asked.
void session::wait_for_bytes() {
    connection_.stream.socket().wait_readable(for_bytes_, same_turn_ && idle_);
}

void session::finish(next how) {
    space_.reset();
    if (how == next::end && !connection_.stream.socket().is_encrypted()) {
        delete this;
        return;
    }
    net::begin_coroutine(w_.io, end(how == next::linger), [this](const std::exception_ptr& broken) {
        if (broken) {
            note_broken(broken);
        }
        delete this;
    });
}

void session::begin(thread::worker& w,
                    net::byte_stream stream,
                    std::size_t listener,
                    const tcp::endpoint& client,
                    open_connection open,
                    bool by_header) {
    auto* const one = new session{
        w, std::move(stream), listener, client, std::move(open), by_header};
    one->go_on([one] { return one->take_place(); });
}

namespace {
// A handshake takes memory and time before anything is asked: only a client with a place may begin
// one.
awaitable<void> begin_tls(thread::worker& w,
                          tcp_socket socket,
                          std::size_t listener,
                          tcp::endpoint client,
                          net::tls_identity_ptr identity,
                          open_connection open,
                          bool by_header) {
    open.place = connection_slot{w, net::canonical(client.address())};
    if (!open.place) {
        w.counts.client_refused.add();
        co_return;
    }
    const auto until = steady_now() + w.current->options.timeouts.client_head;
    auto secured = co_await net::accept_tls(std::move(socket), std::move(identity), w.timer, until);
    if (!secured) {
        log::debug("TLS with ",
                   client.address().to_string(),
                   " on listeners[",
                   listener,
                   "]: ",
                   secured.error().detail);
        co_return;
    }
    session::begin(w, std::move(*secured), listener, client, std::move(open), by_header);
}

// A front says whose connection it is before anything else of it, TLS's first byte included.
awaitable<void> begin_fronted(thread::worker& w,
                              tcp_socket socket,
                              std::size_t listener,
                              tcp::endpoint front,
                              open_connection open) {
    const auto current = w.current;
    const auto at = net::canonical(front.address());
    open.place = connection_slot{w, at};
    if (!open.place || !net::is_in(current->options.access.trusted_fronts, at)) {
        w.counts.client_refused.add();
        co_return;
    }
    const auto until = steady_now() + current->options.timeouts.client_head;
    const auto said = co_await net::take_proxy_header(socket, w.timer, until);
    if (!said) {
        w.counts.client_refused.add();
        log::debug(
            front.address().to_string(), " on listeners[", listener, "]: ", said.error().detail);
        co_return;
    }
    const auto client = said->client.value_or(front);
    open.place = {};  // the client's own is another
    if (const auto identity = current->identities[listener]) {
        co_await begin_tls(w, std::move(socket), listener, client, identity, std::move(open), true);
    } else {
        session::begin(w, std::move(socket), listener, client, std::move(open), true);
    }
}

void begin_apart(thread::worker& w, awaitable<void> beginning) {
    net::begin_coroutine(w.io, std::move(beginning), [](const std::exception_ptr& broken) {
        if (broken) {
            note_broken(broken);
        }
    });
}
}  // namespace

void serve_client(thread::worker& w, net::accepted client, std::size_t listener) {
    w.counts.client_accepted.add();
    open_connection open{w};
    if (w.current->options.listeners[listener].proxy_protocol) {
        begin_apart(
            w, begin_fronted(w, std::move(client.socket), listener, client.from, std::move(open)));
        return;
    }
    if (const auto& identity = w.current->identities[listener]) {
        begin_apart(w,
                    begin_tls(w,
                              std::move(client.socket),
                              listener,
                              client.from,
                              identity,
                              std::move(open),
                              false));
        return;
    }
    session::begin(w, std::move(client.socket), listener, client.from, std::move(open));
}

}  // namespace reprise::proxy::serve
