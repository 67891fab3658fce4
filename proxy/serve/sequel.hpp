#pragma once
// What a connection becomes behind a request that needs its exchange no more, and goes on: a tunnel,
// or the wait for the hello of one that may be opened. It holds what that takes, and no coroutine
// while it waits: thousands may wait here for long.

#include "proxy/base/clock.hpp"
#include "proxy/base/ended.hpp"
#include "proxy/fetch/request.hpp"
#include "proxy/http/target.hpp"
#include "proxy/serve/ledger.hpp"
#include "proxy/serve/lent.hpp"
#include "proxy/thread/settings.hpp"

#include <exception>
#include <memory>
#include <string>

namespace reprise::proxy::serve {

/// A request that has been answered and is not over. Its destruction closes the ledger, so what
/// holds it decides how long it lasts.
struct parted_request {
    struct known {
        std::shared_ptr<const fetch::request_copy> copy;
        http::target target{};  ///< views into `copy`
        std::string url{};      ///< as ledger::request has it
        filter::key_hash key{};
        std::shared_ptr<inside_counts> inside{};
    };
    parted_request(const lent& by, thread::settings_ptr now, known what, ledger&& of) noexcept;
    ~parted_request();
    parted_request(const parted_request&) = delete;
    parted_request& operator=(const parted_request&) = delete;

    thread::worker& w;
    client_identity& client;
    net::client_stream& stream;
    const thread::settings_ptr settings;
    const known asked;
    ledger book;

    /// What the client has said behind the request. The input holds nothing then.
    [[nodiscard]] std::string take_input();
};
using parted_request_ptr = std::unique_ptr<parted_request>;

class sequel {
public:
    /// Told once, from the loop, never within begin(); the sequel may be destroyed then.
    class owner {
    public:
        /// `keep`: the connection's next request may come.
        virtual void on_over(const std::exception_ptr& broken, ended how) = 0;
        /// Another takes its place, and is to begin.
        virtual void on_next(std::unique_ptr<sequel> next) = 0;
        /// The loop has gone: nobody will tell more.
        virtual void on_loop_gone() noexcept = 0;
        /// The connection counts as open, and has its place among its client's, for as long as somebody holds this: for
        /// what of it outlasts its session. Given at any time until on_over.
        /// @throws std::bad_alloc
        [[nodiscard]] virtual std::shared_ptr<void> keep_open() = 0;

    protected:
        ~owner() = default;
    };

    virtual ~sequel() = default;
    sequel(const sequel&) = delete;
    sequel& operator=(const sequel&) = delete;
    /// @param to  outlives it
    virtual void begin(owner& to) = 0;

protected:
    sequel() = default;
};

}  // namespace reprise::proxy::serve
