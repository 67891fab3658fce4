#pragma once
// One client at a node, whose requests are answered without a socket: what it sends stands in its
// input, what it is sent is kept, and what is ordered of origins is the test's to answer.

#include "proxy/net/client_stream.hpp"
#include "proxy/serve/exchange.hpp"
#include "tests/unit/fetch/arrivals.hpp"
#include "tests/unit/serve/kept_sink.hpp"
#include "tests/unit/serve/taken_orders.hpp"

#include <boost/asio/co_spawn.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::proxy::serve::test {

using fetch::test::arrival;
using fetch::test::fresh;
using fetch::test::of_five;
namespace wanted = fetch::wanted;

inline const std::string url = "http://a.example/x";

/// The head of a request.
inline std::string head_of(const std::string& line, const std::string& fields = "") {
    return line + " HTTP/1.1\r\nHost: a.example\r\n" + fields + "\r\n";
}
inline std::string get(const std::string& fields = "") {
    return head_of("GET " + url, fields);
}

/// One reply, as its client reads it.
struct heard {
    explicit heard(std::string_view bytes) : text{bytes} {
        http::response_head head;
        REQUIRE(http::parse_response_head(text, head, {}).state == http::head_state::done);
        status = head.status;
        for (const auto& line : head.fields) {
            fields.emplace_back(line.name, line.value);
        }
        body = text.substr(head.bytes);
    }
    /// Its value; empty: there is none. Twice: that is wrong.
    [[nodiscard]] std::string operator[](std::string_view name) const {
        std::string out;
        for (const auto& [one, value] : fields) {
            if (http::iequals(one, name)) {
                CHECK(out.empty());
                out = value;
            }
        }
        return out;
    }

    std::string text;
    unsigned status = 0;
    std::vector<std::pair<std::string, std::string>> fields;
    std::string body;
};

struct bench {
    explicit bench(const config::options& options = fetch::test::with_memory(1u << 20))
        : at{options} {
        who.address = "127.0.0.1";
        who.at = net::canonical(asio::ip::make_address(who.address));
        who.port = 4711;
        sink.input = &stream;
    }

    fetch::test::node at;
    taken_orders orders;
    client_identity who;
    scratch memory;
    kept_sink sink{at.w.timer};
    net::client_stream stream{net::byte_stream{tcp_socket{at.w.io}}, at.w.timer};
    std::unique_ptr<sequel> becomes;

    /// These bytes come from the client.
    void comes(std::string_view bytes) {
        const auto room = stream.input().prepare(bytes.size());
        std::copy(bytes.begin(), bytes.end(), room.begin());
        stream.note_read(bytes.size());
    }
    /// The head in front of the input is read, for an exchange.
    lent lend() {
        const auto read = http::parse_request_head(stream.input().data(), memory.head, {});
        REQUIRE(read.state == http::head_state::done);
        return {at.w, who, sink, memory, stream, becomes};
    }
    /// @pre nothing stands in front of it
    lent lend(std::string_view request) {
        REQUIRE(stream.input().empty());
        comes(request);
        return lend();
    }

    /// Whatever can go on without time passing goes on.
    void settle() {
        constexpr unsigned most = 100'000;
        unsigned steps = 0;
        at.w.io.restart();
        while (steps < most && at.w.io.poll_one() > 0) {
            ++steps;
        }
        REQUIRE(steps < most);
    }
    template <class T>
    void start(awaitable<T> work, std::optional<T>& result) {
        asio::co_spawn(at.w.io, std::move(work), [&result](std::exception_ptr thrown, T came) {
            if (thrown) {
                std::rethrow_exception(thrown);
            }
            result.emplace(std::move(came));
        });
        settle();
    }

    /// A response is stored, as if it had been asked for with these fields.
    void store(const std::string& head,
               const std::string& body,
               const std::string& request_fields = "",
               const std::string& target = url) {
        arrival one{at, "GET " + target, request_fields};
        one.order->replaces = true;
        one.order->own_range = request_fields.find("Range: ") != std::string::npos;
        one.head(head);
        one.body(body);
        one.end();
    }
    /// What was ordered first is answered.
    arrival origin() { return arrival{at, orders.next()}; }

    /// Of `url`.
    [[nodiscard]] filter::key_hash key() const {
        return filter::hash_of(url, at.common.admission.secret());
    }
    [[nodiscard]] heard said() const { return heard{sink.sent}; }
    [[nodiscard]] std::uint64_t counted(outcome how) const {
        return at.w.counts.requests[static_cast<std::size_t>(how)].read();
    }
};

/// A request that is being answered, and what its connection becomes.
class asking final : sequel::owner {
public:
    /// The next head in the client's input is answered, as far as it can be at once.
    explicit asking(bench& on) : asking{on, on.lend(), steady_now()} {}
    /// @pre nothing stands in front of it
    asking(bench& on, const std::string& request, steady_time arrived = steady_now())
        : asking{on, on.lend(request), arrived} {}
    ~asking() {
        if (!how) {
            on_.sink.leaves();  // nobody is left waiting
            on_.settle();
        }
    }
    asking(const asking&) = delete;
    asking& operator=(const asking&) = delete;

    std::optional<ended> begun;  ///< what begin() said
    std::optional<ended> how;    ///< what it came to; none: it waits

    /// It is over: counted and logged.
    void close() {
        one_.reset();
        on_.becomes.reset();
    }

private:
    asking(bench& on, const lent& by, steady_time arrived)
        : on_{on},
          one_{std::make_unique<exchange>(by, arrived)} {
        begun = one_->begin();
        how = begun;
        if (!begun) {
            asio::co_spawn(on_.at.w.io, one_->run(), [this](std::exception_ptr thrown, ended came) {
                if (thrown) {
                    std::rethrow_exception(thrown);
                }
                if (!on_.becomes) {
                    how = came;
                    return;
                }
                one_.reset();  // as a session does
                on_.becomes->begin(*this);
            });
            on_.settle();
        }
    }
    void on_over(const std::exception_ptr& broken, ended came) override {
        if (broken) {
            std::rethrow_exception(broken);
        }
        how = came;
    }
    void on_next(std::unique_ptr<sequel> next) override {
        on_.becomes = std::move(next);
        on_.becomes->begin(*this);
    }
    void on_loop_gone() noexcept override {}
    std::shared_ptr<void> keep_open() override { return nullptr; }

    bench& on_;
    std::unique_ptr<exchange> one_;
};

/// A request that is read and answered by nothing, for what answers one part of it.
struct stated {
    explicit stated(bench& on, const std::string& request = get())
        : x{on.lend(request), steady_now()} {
        x.read_request();
        x.out.keeps = x.asked.persistent && x.asked.framed && !x.asked.last;
    }

    exchange_state x;
};

}  // namespace reprise::proxy::serve::test
