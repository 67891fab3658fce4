#pragma once
// A node whose loop nobody runs, and responses on their way into its store, fed by hand.

#include "proxy/fetch/keeping.hpp"
#include "proxy/thread/worker.hpp"
#include "tests/unit/cache/responses.hpp"
#include "tests/unit/fetch/orders.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace reprise::proxy::fetch::test {

inline config::options with_memory(std::uint64_t max_object) {
    config::options out;
    out.memory.size = 64u << 20;
    out.memory.max_object = max_object;
    return out;
}

/// The head of what is fresh for a minute, and the same of a body of five bytes.
inline const std::string fresh = "200 OK\r\nCache-Control: max-age=60\r\n";
inline const std::string of_five = fresh + "Content-Length: 5\r\n";

/// A worker whom nobody runs, and what it shares with nobody.
struct node {
    explicit node(const config::options& options = with_memory(1u << 20))
        : settings{thread::make_settings(options)},
          common{settings->options, 1, wall_now()},
          w{0, common, settings} {}

    thread::settings_ptr settings;
    thread::common_state common;
    thread::worker w;
};

/// One response on its way to whoever reads the fetch, and into a node's store.
struct arrival {
    /// Of a fetch that nobody but this reads.
    arrival(node& in,
            const std::string& line = "GET http://a.example/x",
            const std::string& fields = "")
        : arrival{in, order_for(line, fields, in.settings)} {
        order->key = filter::hash_of(order->url, in.common.admission.secret());
        order->admission = cache::choice_for(in.settings->options.admission, {}, order->url);
        order->listed = true;
        bool head_known = false;
        reader = cache::fetch::join(order->into, {}, head_known);
        kept.begin();
    }
    /// Of what somebody has ordered, and reads.
    arrival(node& in, std::shared_ptr<fetch_order> ordered)
        : at{in},
          order{std::move(ordered)},
          expected{in.w, *order},
          kept{in.w, *order, *order->into, expected} {
        kept.begin();
    }

    /// Its request goes out.
    void asks() { order->into->producer_asks(as_sent(*order, asked_at.value_or(steady_now()))); }
    /// The head, and what readers are told of it.
    const cache::fetched_head& head(const std::string& status_and_fields,
                                    word_of whom = word_of::origin,
                                    std::optional<http::seconds> at_most = std::nullopt) {
        text = "HTTP/1.1 " + status_and_fields + "\r\n";
        REQUIRE(http::parse_response_head(text, came.head, {}).state == http::head_state::done);
        came.framing = *http::response_framing(came.head, order->request->head.method);
        came.requested = came.came = wall_now();
        came.sent = asked_at.value_or(steady_now());
        came.resident_requested = came.resident_came = resident_now();
        came.by = whom;
        came.at_most = at_most;
        const auto made = head_for_readers(came, *order, "me");
        kept.judge(*made, came);
        kept.is_known_to(made, order->into->producer_head(made));
        published = made;
        return *made;
    }
    /// The rest comes from elsewhere, behind this head.
    void goes_on(const std::string& status_and_fields) {
        text = "HTTP/1.1 " + status_and_fields + "\r\n";
        REQUIRE(http::parse_response_head(text, came.head, {}).state == http::head_state::done);
        kept.goes_on(came);
    }
    void body(const std::string& bytes) {
        order->into->producer_append(bytes);
        kept.keep_up();
    }
    void end(bool trusted = true, const std::string& trailers = "") {
        kept.finish(trusted, took);
        order->into->producer_finish(trailers);
    }
    void fail(failure_code why, const std::string& detail = "") {
        order->into->producer_fail(failure{why, detail});
    }
    /// What a GET finds then; none: nothing.
    [[nodiscard]] std::optional<std::string> found() const {
        const auto got = at.common.store.find(order->key, order->url, order->request->head.fields);
        if (got.what != cache::lookup::present) {
            return std::nullopt;
        }
        return got.response->content() ? cache::test::bytes_of(*got.response->content())
                                       : "(parts)";
    }

    node& at;
    std::shared_ptr<fetch_order> order;
    expectation expected;
    keeping kept;
    cache::packed_wait took{};  ///< that its fetch takes
    std::string text;
    received came;
    std::optional<steady_time> asked_at;  ///< none: as its head comes
    cache::head_ptr published;
    std::unique_ptr<cache::fetch_reader> reader;
};

/// One response that comes whole.
inline void see(node& at, const std::string& head = of_five, bool replaces = false) {
    arrival first{at};
    first.order->replaces = replaces;
    first.head(head);
    first.body("hello");
    first.end();
}

}  // namespace reprise::proxy::fetch::test
