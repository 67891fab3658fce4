#include "proxy/serve/exchange.hpp"

#include "proxy/net/known_refusal.hpp"
#include "proxy/serve/decide.hpp"
#include "proxy/serve/fetched_reply.hpp"
#include "proxy/serve/identification.hpp"
#include "proxy/serve/interception.hpp"
#include "proxy/serve/members_reply.hpp"
#include "proxy/serve/own_reply.hpp"
#include "proxy/serve/partial_reply.hpp"
#include "proxy/serve/passed_reply.hpp"
#include "proxy/serve/peer_page.hpp"
#include "proxy/serve/proxy_pac.hpp"
#include "proxy/serve/purge_reply.hpp"
#include "proxy/serve/request_body.hpp"
#include "proxy/serve/stored_reply.hpp"
#include "proxy/serve/tunnel.hpp"
#include "proxy/serve/under_way_reply.hpp"

// Which answer, and then that answer: nothing here knows how one is made.

namespace reprise::proxy::serve {

// A file per kind gives it. A kind that is missing here does not compile.
struct exchange::giver {
    exchange& of;

    awaitable<ended_or_next> operator()(answers::fetched& what) const {
        fetched_reply one{of.x_};
        co_return co_await one.give(what);
    }
    awaitable<ended_or_next> operator()(answers::body_on_disk& what) const {
        disk_body_reply one{of.x_, what};
        co_return co_await one.give();
    }
    awaitable<ended_or_next> operator()(answers::under_way&) const {
        under_way_reply one{of.x_};
        co_return co_await one.give();
    }
    awaitable<ended_or_next> operator()(answers::of_members&) const {
        members_reply one{of.x_};
        co_return co_await one.give();
    }
    awaitable<ended_or_next> operator()(answers::passed&) const {
        passed_reply one{of.x_};
        co_return co_await one.give();
    }
    awaitable<ended_or_next> operator()(answers::partial&) const {
        partial_reply one{of.x_};
        co_return co_await one.give();
    }
    awaitable<ended_or_next> operator()(answers::tunnel& what) const {
        tunnel one{of.x_, what.why};
        co_return co_await one.connect();
    }
    awaitable<ended_or_next> operator()(answers::opened&) const {
        interception one{of.x_};
        co_return co_await one.give();
    }
    awaitable<ended_or_next> operator()(answers::upgraded& what) const {
        tunnel one{of.x_, {}};
        co_return co_await one.upgrade(what);
    }
    awaitable<ended_or_next> operator()(answers::for_peer&) const {
        peer_page one{of.x_};
        co_return co_await one.give();
    }
    awaitable<ended_or_next> operator()(answers::purge&) const {
        purge_reply one{of.x_};
        co_return co_await one.give();
    }
    awaitable<ended_or_next> operator()(answers::unverified& what) const {
        return of.verify_client(what);
    }
    awaitable<ended_or_next> operator()(answers::from_disk&) const { return of.look_on_disk(); }

    // What is composed by now.
    awaitable<ended_or_next> operator()(answers::composed&) const { return of.send_composed(); }
    awaitable<ended_or_next> operator()(answers::refused&) const { return of.send_composed(); }
    awaitable<ended_or_next> operator()(answers::local&) const { return of.send_composed(); }
    awaitable<ended_or_next> operator()(answers::stored&) const { return of.send_composed(); }
    awaitable<ended_or_next> operator()(answers::stand_in&) const { return of.send_composed(); }
};

namespace {

asked_over what_was_stored(http::forward_reason why) noexcept {
    switch (why) {
    case http::forward_reason::stale: return asked_over::stale;
    case http::forward_reason::request: return asked_over::reload;
    default: return asked_over::nothing;  // nothing that could have answered
    }
}

}  // namespace

exchange::~exchange() {
    if (x_.upload) {
        x_.upload->abandon();
    }
    auto& book = x_.book;
    // Whatever was meant to be said of it, an answer that is not whole by now never will be.
    const bool counts_as_whole = book.how != outcome::client_gone && book.how != outcome::tunnel &&
                                 book.how != outcome::error;
    if (x_.out.under_way() && counts_as_whole) {
        book.how = outcome::cut_short;
    }
    book.close({.head = x_.asked.head,
                .url = x_.asked.inside ? x_.asked.url : std::string_view{},
                .unconsumed = x_.unconsumed(),
                .key = x_.asked.key,
                .sent = x_.sending.get(),
                .inside = x_.asked.inside ? x_.client.inside->counts.get() : nullptr,
                .over = what_was_stored(x_.verdict.forward)});
    x_.memory.clear();
    x_.consume_head();
}

std::optional<ended> exchange::begin() {
    find_answer();
    if (!compose()) {
        return std::nullopt;
    }
    const auto sent = x_.out.send_now();
    const bool body_unread = x_.asked.has_body() && !x_.upload;
    return sent == ended::keep && body_unread ? std::nullopt : sent;
}

bool exchange::was_clients_last() const noexcept {
    const auto& asked = x_.asked;
    return asked.framed && !asked.persistent && !asked.has_body() &&
           x_.stream.input().size() == x_.unconsumed();
}

void exchange::find_answer() {
    if (is_for_peers(x_)) {
        answer_ = answers::for_peer{};
        return;
    }
    if (x_.client.refused) {
        answer_ = answers::refused{failure{failure_code::client_refused, x_.client.address}};
        return;
    }
    if (find_pac()) {
        return;
    }
    x_.read_request();
    const auto& asked = x_.asked;
    x_.book.handed_on = x_.is_handed_on();
    x_.book.of_sibling = x_.book.handed_on || x_.is_siblings_question();
    x_.out.keeps = asked.persistent && asked.framed && !asked.last &&
                   !x_.w.common.draining.load(std::memory_order_relaxed);
    if (asked.refused) {
        answer_ = answers::refused{*asked.refused};
        return;
    }
    if (auto unknown = identify(x_)) {
        answer_ = std::move(*unknown);
        return;
    }
    find_answer_for_known();
}

// A client that sets itself up by it has said nothing of who it is yet.
bool exchange::find_pac() {
    const auto& head = *x_.asked.head;
    if (head.target.empty() || head.target.front() != '/' || x_.client.inside ||
        x_.listener().mode != config::listener_mode::forward || !asks_for_pac(head)) {
        return false;
    }
    const auto framing = http::request_framing(head);
    const auto* host = http::find(head.fields, http::field_id::host);
    auto script =
        framing && framing->kind == http::body_kind::none && host != nullptr
            ? proxy_pac(host->value, x_.is_encrypted(), x_.settings->options.peering.never_direct)
            : std::nullopt;
    if (!script) {
        return false;  // refused as any path is that a proxy is asked for
    }
    x_.out.keeps = false;
    answer_ = answers::local{std::move(*script), pac_type};
    return true;
}

// For a client that may ask, and has said who it is where it must.
void exchange::find_answer_for_known() {
    if (x_.w.common.client_rates.are_limited()) [[unlikely]] {
        x_.limit_client();
    }
    const auto& asked = x_.asked;
    if (auto decided = decide(asked, *x_.settings, x_.w.common.pseudonym)) {
        x_.verdict = decided->why;
        answer_ = std::move(decided->what);
        if (auto* passed_on = std::get_if<answers::tunnel>(&answer_)) {
            passed_on->why = interception::why_not(x_);
            if (passed_on->why.empty()) {
                open_tunnel();
            }
        }
        return;
    }
    ask_store();
}

// A tunnel that is passed on is judged when it is dialled; one that is opened may never be.
void exchange::open_tunnel() {
    const auto& target = x_.asked.target;
    auto refused = net::known_refusal(
        *x_.settings->guard, x_.w.names, http::connect_host(target), target.port);
    if (refused) {
        answer_ = answers::refused{std::move(*refused)};
    } else {
        answer_ = answers::opened{};
    }
}

void exchange::ask_store() {
    answer_ = look_up_in_memory(x_, resident_at(wall_now(), x_.started));
    if (std::holds_alternative<answers::stored>(answer_)) {
        if (auto* disk = x_.w.common.store.disk()) {
            disk->note_request(x_.asked.key);
        }
        return;
    }
    on_disk_ = disk_look_up::begin(x_);
    if (!on_disk_) {
        return;
    }
    if (on_disk_->step()) {
        answer_ = std::exchange(on_disk_, nullptr)->adopt();  // the page cache had it
    } else {
        answer_ = answers::from_disk{};
    }
}

// Composes what needs no waiting. False: there is more to it than to send it.
bool exchange::compose() {
    std::optional<answers::body_on_disk> behind;
    if (const auto* stored = std::get_if<answers::stored>(&answer_)) {
        behind = compose_stored(x_, *stored);
    } else if (const auto* stale = std::get_if<answers::stand_in>(&answer_)) {
        behind = compose_stand_in(x_, *stale);
    } else if (const auto* refused = std::get_if<answers::refused>(&answer_)) {
        compose_failure(x_, refused->why);
    } else if (const auto* local = std::get_if<answers::local>(&answer_)) {
        compose_local(x_, *local);
    } else {
        return std::holds_alternative<answers::composed>(answer_);
    }
    if (behind) {
        answer_ = std::move(*behind);
        return false;
    }
    answer_ = answers::composed{};
    return true;
}

awaitable<ended> exchange::run() {
    giver by{*this};
    for (;;) {
        (void)compose();
        auto came = co_await std::visit(by, answer_);
        if (auto* next = std::get_if<answer>(&came)) {
            take_instead(std::move(*next));
            continue;
        }
        if (x_.becomes) {
            co_return ended::keep;
        }
        x_.book.note_answered();
        auto how = std::get<ended>(came);
        if (x_.upload || x_.asked.has_body()) {
            how = co_await finish_request_body(x_, how);
        }
        co_return how == ended::keep && !x_.out.keeps ? ended::close : how;
    }
}

// Drops what was composed of the answer before, unless the next is just that, composed.
void exchange::take_instead(answer next) {
    answer_ = std::move(next);
    if (!std::holds_alternative<answers::composed>(answer_) &&
        !std::holds_alternative<answers::body_on_disk>(answer_)) {
        x_.out.drop_pieces();
    }
}

awaitable<ended_or_next> exchange::send_composed() {
    if (const auto at_once = x_.out.send_now()) {
        co_return *at_once;
    }
    const auto sent = co_await x_.out.send();
    co_return sent == ended::keep ? x_.out.end() : sent;
}

awaitable<ended_or_next> exchange::verify_client(answers::unverified& what) {
    auto refused = co_await verify(x_, what);
    if (refused) {
        co_return answers::refused{std::move(*refused)};
    }
    find_answer_for_known();
    co_return std::move(answer_);
}

awaitable<ended_or_next> exchange::look_on_disk() {
    while (!on_disk_->step()) {
        const auto waited = co_await x_.out.wait();
        if (waited != ended::keep) {
            on_disk_.reset();
            co_return x_.out.leave();
        }
    }
    co_return std::exchange(on_disk_, nullptr)->adopt();
}

}  // namespace reprise::proxy::serve
