#include "proxy/serve/body_beginning.hpp"

#include "proxy/net/client_stream.hpp"

#include <utility>

namespace reprise::proxy::serve {

namespace {
constexpr std::size_t client_read_size = 16u << 10;
}  // namespace

body_beginning::body_beginning(const http::body_framing& framing,
                               const http::chunked_limits& limits)
    : framing_{framing},
      decoder_{limits} {}

bool body_beginning::is_here(std::string_view input) {
    if (input.size() >= enough || framing_.kind == http::body_kind::none) {
        return true;
    }
    if (framing_.kind == http::body_kind::length) {
        return input.size() >= framing_.length;
    }
    while (seen_ < input.size()) {
        const auto step = decoder_.feed(input.substr(seen_));
        seen_ += step.consumed;
        if (step.done || step.error != nullptr) {
            return true;
        }
    }
    return false;
}

awaitable<ended> await_beginning(net::client_stream& client,
                                 body_beginning beginning,
                                 steady_time until) {
    auto& patience = client.patience();
    bool armed = false;
    auto how = ended::keep;
    while (!beginning.is_here(client.input().data())) {
        if (!armed) {
            patience.expire_at(until);
            armed = true;
        }
        const auto end = co_await client.read(client_read_size);
        if (end != net::client_stream::read_end::some) {
            how = end == net::client_stream::read_end::timed_out ? ended::keep : ended::gone;
            break;
        }
    }
    patience.clear();
    co_return how;
}

}  // namespace reprise::proxy::serve
