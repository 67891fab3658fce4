#pragma once
// One client connection: read a head, exchange, again; in the order in which requests come.

#include "proxy/net/accepted.hpp"
#include "proxy/net/forwarded_for.hpp"
#include "proxy/net/read_wait.hpp"
#include "proxy/serve/exchange_space.hpp"
#include "proxy/serve/http1_connection.hpp"
#include "proxy/serve/lent.hpp"
#include "proxy/serve/open_connection.hpp"
#include "proxy/serve/sequel.hpp"
#include "proxy/thread/client_connection.hpp"
#include "proxy/thread/worker.hpp"

#include <exception>
#include <memory>

namespace reprise::proxy::serve {

/// Lives on its worker's thread, listed in worker::connections, until the connection has ended;
/// then it destroys itself. Between two requests it is all that a plain connection has: it waits in
/// memory of its own, no coroutine does. One runs while an answer has to wait for something, and at
/// the connection's end. Its memory is there for the next connection (recycled.hpp).
class session final : public thread::client_connection,
                      private net::read_wait::waiter,
                      private sequel::owner {
public:
    /// Begins one. The connection's errors are its own; what can't be begun is closed.
    /// @param client  whose it is; `by_header`: by the word of a front at its other end (a PROXY header)
    /// @param open    with the client's place, if it has one already
    /// @throws std::bad_alloc
    static void begin(thread::worker& w,
                      net::byte_stream stream,
                      std::size_t listener,
                      const tcp::endpoint& client,
                      open_connection open,
                      bool by_header = false);

    void end_if_idle() override;
    void abort() override { connection_.abort(); }
    void look_at_client() override { connection_.look_at_client(); }

private:
    session(thread::worker& w,
            net::byte_stream stream,
            std::size_t listener,
            const tcp::endpoint& client,
            open_connection open,
            bool by_header);
    ~session() = default;
    static void* operator new(std::size_t size);
    static void operator delete(void* memory) noexcept;

    enum class head_state : std::uint8_t { whole, need_more, refused, end };
    [[nodiscard]] head_state look_for_head();
    [[nodiscard]] exchange_space& space();
    void put_space_away();
    [[nodiscard]] lent lend() {
        return {w_, client_, connection_, space().memory, connection_.stream, becomes_};
    }

    // What comes next: bytes of the client, what it has pipelined when others have had their turn, an
    // answer that waits, what its request has made of the connection, or the connection's end, which
    // may have to wait until the last answer has arrived.
    enum class next : std::uint8_t { bytes, turn, answer, sequel, linger, end };
    [[nodiscard]] next take_place();
    void name_client(const net::forwarded_client& who);
    void name_connected();
    void name_forwarded();
    void judge_client();
    [[nodiscard]] bool is_believed();
    void drop_unread();
    [[nodiscard]] next take_bytes(error_code over);
    [[nodiscard]] next take_requests();
    [[nodiscard]] next after(ended how);
    template <class Step>
    void go_on(Step step);
    void answer_later();
    void answered(const std::exception_ptr& broken, ended how);
    void wait_for_bytes();
    void finish(next how);
    void on_readable(error_code over) override;
    void on_loop_gone() noexcept override { delete this; }
    void begin_sequel();
    void on_over(const std::exception_ptr& broken, ended how) override;
    void on_next(std::unique_ptr<sequel> other) override;
    [[nodiscard]] std::shared_ptr<void> keep_open() override;

    [[nodiscard]] awaitable<void> end(bool lingers);
    [[nodiscard]] awaitable<ended> end_sending();
    [[nodiscard]] awaitable<void> linger();

    thread::worker& w_;
    open_connection open_;
    std::shared_ptr<open_connection> open_for_others_;  // what open_ was, once others hold it too
    http1_connection connection_;
    client_identity client_;
    net::forwarded_client
        connected_;             // whom the connection is of: client_ is another behind a front
    exchange_space_ptr space_;  // null while nothing is asked
    std::unique_ptr<sequel> becomes_;  // behind its last request
    std::uint64_t judged_by_ = 0;      // settings::number
    net::read_wait for_bytes_;
    std::size_t resume_ = 0;
    bool first_ = true;
    bool idle_ = true;
    bool head_begun_ = false;
    bool same_turn_ = true;  // the client was read in this turn of the loop
    bool awaits_turn_ = false;
    const bool by_header_;  // a front has said whom the connection is of
    bool believed_ = true;  // and who said so is trusted still, by the settings that judged it
};

/// Begins a session on `w`'s thread for a connection just accepted.
void serve_client(thread::worker& w, net::accepted client, std::size_t listener);

}  // namespace reprise::proxy::serve
