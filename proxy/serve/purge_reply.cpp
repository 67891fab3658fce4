#include "proxy/serve/purge_reply.hpp"

#include "proxy/net/access.hpp"
#include "proxy/serve/purge.hpp"

#include <atomic>
#include <memory>

namespace reprise::proxy::serve {

awaitable<ended_or_next> purge_reply::give() {
    const auto& purgers = x_.settings->options.access.purge_clients;
    if (!net::client_allowed(purgers, x_.client.ip())) {
        co_return answers::refused{failure{failure_code::purge_refused, x_.client.address}};
    }
    const auto read = read_purge_request(x_.asked.url, x_.asked.head->fields);
    if (!read.wrong.empty()) {
        co_return answers::refused{failure{failure_code::bad_request, read.wrong}};
    }
    auto purged = carry_out(x_.w.common, read.order, resident_now());
    x_.book.reason = "purge";
    answers::local said{std::move(purged.json), "application/json", purged.status};
    if (x_.w.common.store.disk() != nullptr || x_.w.common.beside.get()) {
        const bool kept = co_await is_kept();
        if (!kept) {
            said = {std::string{purge_not_kept}, "text/plain", purge_not_kept_status};
        }
    }
    co_return std::move(said);
}

awaitable<bool> purge_reply::is_kept() {
    const auto kept = std::make_shared<std::atomic<bool>>(false);
    auto tell = [kept, sleeper = x_.out.wakeup().handle()] {
        kept->store(true);
        sleeper.notify();
    };
    x_.w.common.keep_purges(std::move(tell));
    const auto until = steady_now() + purge_patience;
    while (!kept->load() && steady_now() < until) {
        const bool signalled = co_await x_.out.wakeup().wait(until);
        if (!signalled) {
            break;
        }
    }
    co_return kept->load();
}

}  // namespace reprise::proxy::serve
