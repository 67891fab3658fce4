#include "proxy/serve/identification.hpp"

#include "proxy/net/client_stream.hpp"
#include "proxy/net/wakeup.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <utility>

namespace reprise::proxy::serve {

namespace {

// Above what a check may cost, and what may wait before it.
constexpr std::chrono::seconds longest_check{20};

answer refuse(failure_code code, std::string why = {}) {
    return answers::refused{failure{code, std::move(why)}};
}

// What another thread found out; outlives whoever waits for it.
struct found {
    std::atomic<bool> there{false};
    net::user_ptr whose{};
};

}  // namespace

std::optional<answer> identify(exchange_state& x) {
    const auto& users = x.settings->users;
    if (!users) {
        return std::nullopt;
    }
    const bool is_peer = x.w.peers && x.w.peers->book->is_peer(x.client.ip());
    if (x.client.inside && (x.client.inside->user || !is_peer)) {
        x.book.user = x.client.inside->user;
        if (x.book.user && users->holds(x.book.user->mark)) {
            return std::nullopt;
        }
        x.out.keeps = false;  // the next CONNECT is asked who it is
        return refuse(failure_code::user_unknown,
                      "the users, or what they show, have changed since the tunnel was opened");
    }
    if (x.asked.accelerator || is_peer || x.is_siblings_question()) {
        return std::nullopt;
    }
    if (!x.is_unseen() && !x.settings->options.access.plaintext_passwords) {
        return refuse(failure_code::user_in_clear);
    }
    const auto said = x.asked.login;
    if (said.empty()) {
        return refuse(failure_code::user_unknown, "no Proxy-Authorization");
    }
    if (said.size() > net::most_of_login) {
        return refuse(failure_code::user_unknown, "a Proxy-Authorization that is too long");
    }
    const auto which = x.w.hash_login(said);
    if (!which) {
        return refuse(failure_code::internal, "OpenSSL makes no hash");
    }
    if (auto whose = x.w.logins.find(*which, *users, x.started)) {
        x.book.user = std::move(whose);
        return std::nullopt;
    }
    auto login = net::read_login(said);
    if (!login) {
        return refuse(failure_code::user_unknown, "a Proxy-Authorization that is not understood");
    }
    if (!login->by_token) {
        return answers::unverified{*which, std::move(*login)};
    }
    const auto owner = users->owner_of(login->secret);
    if (owner.empty()) {
        return refuse(failure_code::user_unknown, "nobody's token");
    }
    x.book.user = std::make_shared<const net::known_user>(
        net::known_user{std::string{owner}, users->token_mark(login->secret)});
    x.w.logins.note(*which, *users, x.book.user, x.started);
    return std::nullopt;
}

awaitable<std::optional<failure>> verify(exchange_state& x, answers::unverified& what) {
    net::wakeup woken{x.w.timer};
    const auto result = std::make_shared<found>();
    const auto users = x.settings->users;
    const auto which = what.which;
    const auto tell = [result, signal = woken.handle()](net::user_ptr whose) {
        result->whose = std::move(whose);
        result->there.store(true, std::memory_order_release);
        signal.notify();
    };
    const auto now = steady_now();
    net::password_checks::order order{which,
                                      x.client.at,
                                      users,
                                      std::move(what.login.user),
                                      std::move(what.login.secret),
                                      x.w.speaks_for_many(x.client.at)};
    if (!x.w.common.passwords.begin(std::move(order), tell, now)) {
        co_return failure{failure_code::too_many_tries, x.client.address};
    }
    (void)co_await woken.wait(now + longest_check);
    if (!result->there.load(std::memory_order_acquire)) {
        co_return failure{failure_code::too_many_tries, "the password was not tried in time"};
    }
    if (!result->whose) {
        co_return failure{failure_code::user_unknown, "no such name, or another password"};
    }
    x.book.user = result->whose;
    x.w.logins.note(which, *users, result->whose, now);
    co_return std::nullopt;
}

}  // namespace reprise::proxy::serve
