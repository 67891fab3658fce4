#include "proxy/serve/tunnel.hpp"

#include "proxy/net/client_stream.hpp"
#include "proxy/serve/far_end.hpp"

#include <algorithm>
#include <utility>

namespace reprise::proxy::serve {

awaitable<ended_or_next> tunnel::connect() {
    const wanted_far_end to{x_.w,
                            *x_.settings,
                            x_.asked.target,
                            *x_.asked.head,
                            x_.book,
                            why_,
                            x_.w.share_of(x_.client.at)};
    auto reached = co_await reach_far_end(to);
    if (!reached) {
        co_return answers::refused{std::move(reached.error())};
    }
    const auto sent = co_await send_head("HTTP/1.1 200 Connection established\r\n\r\n", 200);
    if (sent == ended::keep) {
        std::string behind{reached->behind.data()};
        x_.becomes = std::make_unique<standing_tunnel>(
            x_.part(), std::move(reached->stream), std::move(behind), why_);
    }
    co_return sent;
}

awaitable<ended_or_next> tunnel::upgrade(answers::upgraded& what) {
    const auto sent = co_await send_head(std::move(what.head), 101);
    if (sent == ended::keep) {
        x_.book.origin = what.lease.endpoint();
        std::string behind{what.lease.buffer().data()};
        x_.becomes = std::make_unique<standing_tunnel>(
            x_.part(), std::move(what.lease), std::move(behind), std::string_view{});
    }
    co_return sent;
}

awaitable<ended> tunnel::send_head(std::string text, unsigned status) {
    x_.out.keeps = false;
    x_.out.text = std::move(text);
    x_.out.begin();
    x_.out.add(x_.out.text);
    x_.book.status = status;
    x_.book.how = outcome::tunnel;  // unless its client turns out to have left
    co_return co_await x_.out.send();
}

standing_tunnel::standing_tunnel(parted_request_ptr request,
                                 far_end far,
                                 std::string from_far,
                                 std::string_view why_not_opened)
    : request_{std::move(request)},
      far_{std::move(far)},
      from_far_{std::move(from_far)},
      why_{why_not_opened},
      relaying_{request_->stream.socket(),
                far_stream(),
                request_->w.timer,
                *this,
                request_->stream.share()} {}

net::byte_stream& standing_tunnel::far_stream() {
    auto* const lease = std::get_if<net::origin_lease>(&far_);
    return lease != nullptr ? lease->socket() : std::get<net::byte_stream>(far_);
}

void standing_tunnel::begin(sequel::owner& to) {
    owner_ = &to;
    auto from_client = request_->take_input();
    early_ = from_client.size();
    relaying_.begin(std::move(from_client),
                    std::move(from_far_),
                    request_->settings->options.timeouts.tunnel_idle);
}

void standing_tunnel::on_relayed(const net::relay_result& how) {
    auto& counts = request_->w.counts;
    counts.bytes_to_origins.add(how.a_to_b);
    counts.bytes_from_origins.add(how.b_to_a);
    request_->stream.note_relayed(how.a_to_b - std::min<std::uint64_t>(how.a_to_b, early_),
                                  how.b_to_a);
    if (how.end == net::relay_end::finished) {
        request_->stream.reply_is_whole();
    }
    std::exception_ptr broken;
    try {
        note_connect(how.a_to_b + how.b_to_a);
    } catch (...) {
        broken = std::current_exception();
    }
    owner_->on_over(broken, ended::close);
}

void standing_tunnel::note_connect(std::uint64_t bytes) const {
    const auto& target = request_->asked.target;
    if (target.form == http::target_form::authority) {
        request_->w.common.tunnels.note_tunnel(
            http::connect_host(target), target.port, why_, bytes);
    }
}

}  // namespace reprise::proxy::serve
