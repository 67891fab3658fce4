#include "proxy/net/read_wait.hpp"

#include <boost/asio/post.hpp>

// An operation of Asio's reactor that performs nothing: it is done when its event has come.

namespace reprise::proxy::net {

#if REPRISE_KNOWS_THE_REACTOR

read_wait::read_wait(asio::io_context& io, waiter& to)
    : reactor_op{error_code{}, &read_wait::look, &read_wait::end},
      to_{to},
      reactor_{asio::use_service<reactor>(io)} {}

void read_wait::start(tcp_socket& of, mode how) {
    ec_ = error_code{};
    // Whoever enters the loop is told of what is there.
    just_seen_ = watch(of) || how == mode::just_seen;
    auto& known = detail::registered::of(of).reactor_data_;
    reactor_.start_op(reactor::read_op, of.native_handle(), known, this, false, just_seen_);
    just_seen_ = false;
}

void read_wait::start_at_once() {
    ec_ = error_code{};
    reactor_.post_immediate_completion(this, false);
}

// Asked when an event has come; and by start(), of whatever came before.
read_wait::status read_wait::look(asio::detail::reactor_op* base) {
    return static_cast<read_wait*>(base)->just_seen_ ? not_done : done;
}

void read_wait::end(void* loop,
                    asio::detail::scheduler_operation* base,
                    const error_code&,
                    std::size_t) {
    auto& mine = *static_cast<read_wait*>(base);
    if (loop == nullptr) {
        mine.to_.on_loop_gone();
        return;
    }
    mine.to_.on_readable(mine.ec_);
}

#else

read_wait::read_wait(asio::io_context& io, waiter& to) : to_{to}, io_{io} {}

void read_wait::start_at_once() {
    asio::post(io_, [this] { to_.on_readable({}); });
}

void read_wait::start(tcp_socket& of, mode) {
    of.async_wait(tcp_socket::wait_read, [this](const error_code& over) { to_.on_readable(over); });
}

#endif

}  // namespace reprise::proxy::net
