#include "proxy/serve/passed_reply.hpp"

#include "proxy/serve/body_beginning.hpp"
#include "proxy/serve/fetch_relay.hpp"
#include "proxy/serve/orders.hpp"
#include "proxy/serve/request_body.hpp"

namespace reprise::proxy::serve {

awaitable<ended_or_next> passed_reply::give() {
    const auto& asked = x_.asked;
    const auto order = make_order(x_);
    // What a POST's answer says that later GETs may have of it (RFC 9110 9.3.3).
    order->may_store = asked.head->method == boost::beast::http::verb::post &&
                       !asked.facts.asked.no_store && !asked.websocket;
    ask_as_the_client_does(x_, *order);
    if (asked.has_body()) {
        x_.upload = make_upload(x_);
        std::get<fetch::wanted::passed>(order->what).body = x_.upload;
        const auto began = co_await await_body();
        if (began != ended::keep) {
            co_return began;
        }
    }
    const auto reader = fetch_alone(x_, order);
    fetch_relay relay{x_, *order, fetch_role::leads};
    auto out = co_await relay.give(*reader);
    relay.note_unseen_head(*reader);
    co_return std::move(*out);  // only followers are sent away
}

awaitable<ended> passed_reply::await_body() {
    if (x_.asked.waits_for_continue()) {
        co_return ended::keep;
    }
    const auto& limits = x_.settings->options.limits;
    body_beginning beginning{x_.asked.body, {limits.head_size, limits.fields}};
    const auto until = x_.started + body_beginning::patience;
    const auto waited = co_await await_beginning(x_.stream, std::move(beginning), until);
    co_return waited == ended::keep ? waited : x_.out.leave();
}

}  // namespace reprise::proxy::serve
