#pragma once
// Our end of a connection as a byte_stream, plain or with TLS, the far side as straight code, and what may stand between.

#include "proxy/net/byte_stream.hpp"
#include "tests/unit/net/tls_bench.hpp"

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <linux/sockios.h>
#include <optional>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <thread>
#include <utility>

namespace reprise::proxy::net {

using tests::tls_end;
using tests::tls_peer;

inline awaitable<byte_stream> shaken(tcp_socket& socket,
                                     tls_identity_ptr identity,
                                     deadlines& timer) {
    auto made = co_await accept_tls(
        std::move(socket), std::move(identity), timer, steady_now() + test_patience);
    if (!made) {
        throw std::runtime_error{made.error().detail};
    }
    co_return std::move(*made);
}

inline tls_identity_ptr known_identity() {
    static const auto made = identity_for(known_authority().issue("DNS:a.test"));
    return made;
}

/// What stands between the two sides: the far side's ciphertext comes out of `taken`, and what the
/// test wants of it goes on.
class wire {
public:
    explicit wire(int on) : on_{on} {
        int ends[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
        far_ = ends[0];
        taken_ = ends[1];
        pump_ = std::thread{[this] { pump(); }};
    }
    ~wire() {
        stop();
        ::close(taken_);
        ::close(on_);
    }
    wire(const wire&) = delete;
    wire& operator=(const wire&) = delete;

    [[nodiscard]] int far() const { return far_; }
    void stop() {
        stopping_ = true;
        if (pump_.joinable()) {
            pump_.join();
        }
    }
    [[nodiscard]] std::string take() const {
        std::string all(1 << 20, '\0');
        const auto got = ::recv(taken_, all.data(), all.size(), MSG_DONTWAIT);
        all.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
        return all;
    }
    void pass(std::string_view bytes) const {
        REQUIRE(::send(on_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(bytes.size()));
    }
    void cut() const { ::shutdown(on_, SHUT_WR); }

private:
    void pump() const {
        while (!stopping_) {
            pollfd both[] = {{taken_, POLLIN, 0}, {on_, POLLIN, 0}};
            ::poll(both, 2, 2);
            for (const int i : {0, 1}) {
                char block[4096];
                const auto got = ::recv(both[i].fd, block, sizeof block, MSG_DONTWAIT);
                if (got > 0) {
                    static_cast<void>(
                        ::send(both[1 - i].fd, block, static_cast<std::size_t>(got), MSG_NOSIGNAL));
                }
            }
        }
    }
    int on_;
    int far_ = -1;
    int taken_ = -1;
    std::atomic<bool> stopping_{false};
    std::thread pump_;
};

/// Our end of a connection, and the far side as straight code, with TLS or without.
struct stream_bench : tls_bench {
    explicit stream_bench(bool tls, int newest = 0, bool through_wire = false) {
        const int far = far_socket();
        if (!tls) {
            plain_far = far;
            ::fcntl(far, F_SETFL, ::fcntl(far, F_GETFL) & ~O_NONBLOCK);
            stream.emplace(std::move(pair.ours));
            return;
        }
        if (through_wire) {
            between.emplace(far);
        }
        peer.emplace(tls_peer::client(through_wire ? between->far() : far,
                                      {.trusted = known_authority().certificate(),
                                       .host = "a.test",
                                       .alpn = "\x08http/1.1",
                                       .newest = newest}));
        bool shook = false;
        on_thread([&] { shook = peer->shake_hands(); });
        stream.emplace(finish(shaken(pair.ours, known_identity(), timer)));
        other.join();
        REQUIRE(shook);
        if (between) {
            between->stop();
        }
    }
    ~stream_bench() {
        if (plain_far >= 0) {
            ::close(plain_far);
        }
    }

    bool say(std::string_view text) {
        return peer ? peer->send(text)
                    : ::send(plain_far, text.data(), text.size(), MSG_NOSIGNAL) ==
                          static_cast<ssize_t>(text.size());
    }
    std::string hear(std::size_t bytes) {
        std::string heard;
        on_thread([&] {
            if (peer) {
                heard = peer->read(bytes);
                return;
            }
            heard.resize(bytes);
            std::size_t got = 0;
            while (got < bytes) {
                const auto count = ::recv(plain_far, heard.data() + got, bytes - got, 0);
                if (count <= 0) {
                    break;
                }
                got += static_cast<std::size_t>(count);
            }
            heard.resize(got);
        });
        join_running();
        return heard;
    }
    void far_ends() {
        if (peer) {
            peer->finish_sending();
        } else {
            ::shutdown(plain_far, SHUT_WR);
        }
    }
    void far_resets() {
        if (peer) {
            peer->reset();
        } else {
            const linger at_once{1, 0};
            ::setsockopt(plain_far, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
            ::close(std::exchange(plain_far, -1));
        }
    }
    /// How our side ended, to the far one.
    tls_end far_end() {
        tls_end end{};
        on_thread([&] {
            if (peer) {
                end = peer->read_to_end().end;
                return;
            }
            char block[4096];
            ssize_t got = 0;
            while ((got = ::recv(plain_far, block, sizeof block, 0)) > 0) {
            }
            end = got == 0 ? tls_end::closed : tls_end::truncated;
        });
        join_running();
        return end;
    }

    static awaitable<void> read_all(byte_stream& from,
                                    read_result& all,
                                    bool& over,
                                    std::size_t most) {
        std::string block(most, '\0');
        for (;;) {
            const auto [error, count] = co_await from.async_read_some(asio::buffer(block),
                                                                      use_tuple);
            all.bytes.append(block, 0, count);
            if (error) {
                all.end = error;
                over = true;
                co_return;
            }
        }
    }
    read_result read_until_end(std::size_t most = 4096) {
        read_result all;
        bool over = false;
        start(read_all(*stream, all, over, most));
        run_until([&] { return over; });
        CHECK(over);
        return all;
    }
    static awaitable<void> read_bytes(byte_stream& from, std::string& into, bool& over) {
        std::size_t got = 0;
        while (got < into.size()) {
            const auto room = asio::buffer(into.data() + got, into.size() - got);
            const auto [error, count] = co_await from.async_read_some(room, use_tuple);
            got += count;
            if (error) {
                break;
            }
        }
        into.resize(got);
        over = true;
    }
    std::string read(std::size_t bytes) {
        std::string all(bytes, '\0');
        bool over = false;
        start(read_bytes(*stream, all, over));
        run_until([&] { return over; });
        CHECK(over);
        return all;
    }
    static awaitable<void> write_all_of(byte_stream& to, std::string_view text, bool& over) {
        while (!text.empty()) {
            const auto [error, count] = co_await to.async_write_some(asio::buffer(text), use_tuple);
            text.remove_prefix(count);
            if (error) {
                break;
            }
        }
        over = true;
    }
    /// Ciphertext that is held here, not by the kernel. Looked at anew where something was acknowledged meanwhile.
    std::uint64_t held() {
        const auto queued = [this] {
            int bytes = 0;
            REQUIRE(::ioctl(stream->native_handle(), SIOCOUTQ, &bytes) == 0);
            return static_cast<std::uint64_t>(bytes);
        };
        for (;;) {
            const auto before = queued();
            const auto all = stream->not_acknowledged();
            if (queued() == before) {
                return all - before;
            }
        }
    }

    std::optional<wire> between;
    std::optional<tls_peer> peer;
    int plain_far = -1;
    std::optional<byte_stream> stream;
};

}  // namespace reprise::proxy::net
