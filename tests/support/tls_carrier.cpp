#include "tests/support/tls_carrier.hpp"

#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

namespace reprise::tests {

namespace {
bool write_all(int to, std::string_view bytes) {
    while (!bytes.empty()) {
        const auto sent = ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}
}  // namespace

tls_carrier::tls_carrier(tls_peer peer) : peer_{std::move(peer)} {
    // What arrives may be no data (a session ticket), and what is to be sent must not wait for it.
    peer_.read_for(std::chrono::milliseconds{1});
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        throw std::runtime_error("no socket pair");
    }
    plain_ = ends[1];
    given_ = stream{ends[0]};
    carrier_ = std::thread{[this] { carry(); }};
}

tls_carrier::~tls_carrier() {
    stop_ = true;
    if (carrier_.joinable()) {
        carrier_.join();
    }
    ::close(plain_);
}

void tls_carrier::carry() {
    bool reading = true;
    std::string block;
    // Behind the other side's end what is sent goes on, until the other side takes no more.
    while (!stop_ && (reading || (sending_ && end_ == tls_end::closed))) {
        const bool decrypted = reading && peer_.has_decrypted();
        pollfd both[2] = {{reading ? peer_.socket() : -1, POLLIN, 0},
                          {sending_ ? plain_ : -1, static_cast<short>(POLLIN), 0}};
        ::poll(both, 2, decrypted ? 0 : 5);
        if (stop_) {
            return;
        }
        if (both[1].revents != 0) {
            char bytes[16 << 10];
            const auto got = ::recv(plain_, bytes, sizeof bytes, MSG_DONTWAIT);
            if (got > 0) {
                const bool sent = peer_.send({bytes, static_cast<std::size_t>(got)});
                sending_ = sending_ && (sent || reading);
            } else if (got == 0) {
                peer_.finish_sending();
                sending_ = false;
            }
        }
        if (both[0].revents != 0 || decrypted) {
            block.clear();
            const auto end = peer_.read_some(block, 16 << 10);
            if (end == tls_end::data) {
                reading = write_all(plain_, block);
            } else if (end != tls_end::timed_out) {
                end_ = end;
                reading = false;
                ::shutdown(plain_, SHUT_WR);
            }
        }
    }
    sending_ = false;
    ::shutdown(plain_, SHUT_WR);
}

void tls_carrier::leave(bool with_reset) {
    stop_ = true;
    carrier_.join();
    sending_ = false;  // there is nothing more to be carried
    if (with_reset) {
        peer_.reset();
    } else {
        peer_.truncate();
    }
}

void tls_carrier::finish() {
    (void)eventually([&] { return !sending_.load(); });
}

}  // namespace reprise::tests
