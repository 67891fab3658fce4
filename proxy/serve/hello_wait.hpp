#pragma once
// Behind the 200 of a CONNECT to a listed host: the client's hello is waited for, and then its tunnel
// is opened, or passed on with every byte.

#include "proxy/net/address.hpp"
#include "proxy/net/client_hello.hpp"
#include "proxy/net/read_wait.hpp"
#include "proxy/net/tls_context.hpp"
#include "proxy/serve/sequel.hpp"
#include "proxy/thread/worker.hpp"

#include <memory>
#include <string_view>

namespace reprise::proxy::serve {

/// Its wait, of a second at most, holds the bytes that came and no coroutine.
class hello_wait final : public sequel, private net::read_wait::waiter {
public:
    explicit hello_wait(parted_request_ptr request);

    void begin(owner& to) override;

private:
    using hello_state = net::client_hello_reader::state;
    /// One of those that shake hands, from begin() to end().
    class handshake {
    public:
        handshake() = default;
        ~handshake() { end(); }
        handshake(const handshake&) = delete;
        handshake& operator=(const handshake&) = delete;

        /// False: there are too many already. @throws std::bad_alloc
        [[nodiscard]] bool begin(thread::worker& w, const net::address_bytes& client);
        void end() noexcept;

    private:
        thread::client_census* among_ = nullptr;
        net::address_bytes whose_{};
    };
    struct judged {
        std::string_view why{};            ///< static text: it is passed on
        net::tls_identity_ptr identity{};  ///< not null: it is opened with this
        bool is_new = false;               ///< the leaf was made for it
    };
    void on_readable(error_code over) override;
    void on_loop_gone() noexcept override { owner_->on_loop_gone(); }
    void read(error_code over);
    void wait();
    void settle_later();
    void settled(const std::exception_ptr& broken, ended how);

    [[nodiscard]] awaitable<ended> settle();
    [[nodiscard]] judged judge();
    [[nodiscard]] awaitable<ended> pass_on(std::string_view why);
    [[nodiscard]] awaitable<ended> open(net::tls_identity_ptr identity, bool new_leaf);

    parted_request_ptr request_;
    net::read_wait for_bytes_;
    net::client_hello_reader reader_;
    hello_state state_ = hello_state::more;
    handshake shakes_hands_;  // once its hello is known to be opened
    owner* owner_ = nullptr;
    std::unique_ptr<sequel> next_;
};

}  // namespace reprise::proxy::serve
