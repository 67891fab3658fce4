#include "proxy/serve/reply.hpp"

// Sending and waiting on HTTP/1.1: one reply at a time, in the order of the requests.

namespace reprise::proxy::serve {

namespace {
constexpr std::chrono::milliseconds between_looks{250};  // for clients that left
}  // namespace

reply::reply(session_state& on, const thread::settings& now, ledger& book) noexcept
    : on_{on},
      now_{now},
      book_{book} {}

void reply::begin() {
    book_.settle();
    on_.parts.clear();
    if (under_way()) {
        keeps = false;
        on_.client.break_off();
    }
}

void reply::append_connection(std::string& out) const {
    if (!keeps) {
        out.append("Connection: close\r\n");
    } else if (version == 10) {
        out.append("Connection: keep-alive\r\n");
    }
}

void reply::ends_by_closing() {
    keeps = false;
    on_.client.reply_ends_by_closing();
}

std::optional<ended> reply::send_now() {
    const bool all = on_.client.send_now(on_.parts);
    book_.note_first_byte();
    if (!all) {
        return std::nullopt;
    }
    if (failed()) {
        book_.how = outcome::client_gone;
        keeps = false;
    }
    return end();
}

awaitable<ended> reply::send() {
    const auto& options = now_.options;
    const bool sent = co_await on_.client.send(
        on_.parts, options.limits.body_rate, options.timeouts.client_body);
    book_.settle();
    book_.note_first_byte();
    if (!sent) {
        keeps = false;
        book_.how = outcome::client_gone;
    }
    co_return sent ? ended::keep : ended::gone;
}

awaitable<ended> reply::wait(steady_time until) {
    if (on_.client_gone) {
        co_return ended::gone;
    }
    auto& w = on_.w;
    on_.waiting = true;
    if (w.watched++ == 0) {
        w.watch.expire_after(between_looks);
    }
    const bool signalled = co_await on_.arrived.wait(until);
    on_.waiting = false;
    --w.watched;
    if (!signalled && on_.client.client_left()) {
        on_.client_gone = true;  // shorter waits than between_looks are not looked at
    }
    const bool program_ends = !signalled && steady_now() < until;
    co_return program_ends || on_.client_gone ? ended::gone : ended::keep;
}

ended reply::end() {
    if (failed()) {
        return ended::gone;
    }
    on_.client.reply_is_whole();
    return keeps ? ended::keep : ended::close;
}

ended reply::break_off(outcome how, std::string_view reason) {
    keeps = false;
    on_.client.break_off();
    on_.parts.clear();
    book_.how = how;
    book_.reason = reason;
    return ended::gone;
}

ended reply::leave() {
    if (under_way()) {
        return break_off(outcome::client_gone, book_.reason);
    }
    keeps = false;
    book_.how = outcome::client_gone;
    return ended::gone;
}

}  // namespace reprise::proxy::serve
