#include "proxy/serve/reply.hpp"

// What is sent is told to the ledger, and how it ended.

namespace reprise::proxy::serve {

reply::reply(reply_sink& to, scratch& memory, const thread::settings& now, ledger& book) noexcept
    : to_{to},
      pieces_{memory.pieces},
      fields_{memory.fields},
      now_{now},
      book_{book} {}

void reply::begin() {
    book_.settle();
    pieces_.clear();
    if (under_way()) {
        keeps = false;
        to_.break_off();
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
    to_.ends_by_closing();
}

std::optional<ended> reply::send_now() {
    const auto before = to_.bytes_out();
    const bool all = to_.send_now(pieces_);
    note_sent_since(before);
    if (!all) {
        return std::nullopt;
    }
    if (failed()) {
        book_.how = outcome::client_gone;
        keeps = false;
    }
    return end();
}

std::optional<ended> reply::try_send() {
    const auto before = to_.bytes_out();
    const bool all = to_.send_now(pieces_);
    note_sent_since(before);
    if (!all) {
        return std::nullopt;
    }
    return sent(failed() ? ended::gone : ended::keep);
}

awaitable<ended> reply::send(const std::atomic<bool>* others_wait) {
    const auto& options = now_.options;
    const reply_sink::pace owed{
        options.limits.body_rate, options.timeouts.client_body, others_wait};
    const auto before = to_.bytes_out();
    const auto how = co_await to_.send(pieces_, owed);
    note_sent_since(before);
    co_return sent(how);
}

// A client that takes nothing, or has left, has had no first byte.
void reply::note_sent_since(std::uint64_t bytes_out) {
    if (to_.bytes_out() != bytes_out) {
        book_.note_first_byte();
    }
}

ended reply::sent(ended how) {
    book_.settle();
    if (how == ended::gone) {
        keeps = false;
        book_.how = outcome::client_gone;
    }
    return how;
}

awaitable<ended> reply::end_sending() {
    const auto& options = now_.options;
    return to_.end_sending({options.limits.body_rate, options.timeouts.client_body, nullptr});
}

ended reply::end() {
    if (failed()) {
        return ended::gone;
    }
    to_.is_whole();
    return keeps ? ended::keep : ended::close;
}

ended reply::break_off(outcome how, std::string_view reason) {
    keeps = false;
    to_.break_off();
    pieces_.clear();
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
