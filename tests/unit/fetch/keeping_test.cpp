#include "proxy/fetch/keeping.hpp"
#include "tests/unit/cache/responses.hpp"
#include "tests/unit/fetch/orders.hpp"

#include <optional>
#include <string>

using namespace reprise::proxy;
using namespace reprise::proxy::fetch;
using cache::test::bytes_of;
using fetch::test::order_for;

namespace {

reprise::config::options with_memory(std::uint64_t max_object) {
    reprise::config::options out;
    out.memory.size = 64u << 20;
    out.memory.max_object = max_object;
    return out;
}

/// A worker whom nobody runs, and what it shares with nobody.
struct node {
    explicit node(const reprise::config::options& options = with_memory(1u << 20))
        : settings{thread::make_settings(options)},
          common{settings->options, 1, wall_now()},
          w{0, common, settings} {}

    thread::settings_ptr settings;
    thread::common_state common;
    thread::worker w;
};

/// One response on its way into a node's store.
struct arrival {
    arrival(node& in,
            const std::string& line = "GET http://a.example/x",
            const std::string& fields = "")
        : at{in},
          order{order_for(line, fields, in.settings)},
          kept{in.w, *order, *order->into} {
        order->key = reprise::filter::hash_of(order->url, in.common.admission.secret());
        order->admission = cache::choice_for(in.settings->options.admission, {}, order->url);
        order->listed = true;
        bool head_known = false;
        reader = cache::fetch::join(order->into, {}, head_known);
        kept.begin();
    }

    /// The head, and what readers are told of it.
    const cache::fetched_head& head(const std::string& status_and_fields, bool here = true) {
        text = "HTTP/1.1 " + status_and_fields + "\r\n";
        REQUIRE(http::parse_response_head(text, came.head, {}).state == http::head_state::done);
        came.framing = *http::response_framing(came.head, order->request->head.method);
        came.requested = came.came = wall_now();
        came.resident_requested = came.resident_came = resident_now();
        const auto made = head_for_readers(came, *order, "me");
        kept.judge(*made, came, here);
        kept.is_known_to(made, order->into->producer_head(made));
        published = made;
        return *made;
    }
    void body(const std::string& bytes) {
        order->into->producer_append(bytes);
        kept.keep_up();
    }
    void end(bool trusted = true) {
        kept.finish(trusted);
        order->into->producer_finish("");
    }
    /// What a GET finds then; none: nothing.
    [[nodiscard]] std::optional<std::string> found() const {
        const auto got = at.common.store.find(order->key, order->url, order->request->head.fields);
        if (got.what != cache::lookup::present) {
            return std::nullopt;
        }
        return got.response->content ? bytes_of(*got.response->content) : "(parts)";
    }

    node& at;
    std::shared_ptr<fetch_order> order;
    keeping kept;
    std::string text;
    received came;
    cache::head_ptr published;
    std::unique_ptr<cache::fetch_reader> reader;
};

const std::string ok = "200 OK\r\nCache-Control: max-age=60\r\n";
const std::string of_five = ok + "Content-Length: 5\r\n";

void see(node& at, const std::string& head = of_five) {
    arrival first{at};
    first.head(head);
    first.body("hello");
    first.end();
}

}  // namespace

TEST_SUITE_BEGIN("fetch/keeping");

TEST_CASE("a first sight is not stored, and its readers are told why; the second is") {
    auto options = with_memory(1u << 20);
    options.admission.probation = false;
    node at{options};
    arrival first{at};
    const auto& told = first.head(of_five);
    CHECK(!told.stored);
    CHECK(told.detail == "first-request");
    first.body("hello");
    first.end();
    CHECK(!first.found());

    arrival second{at};
    CHECK(second.head(of_five).stored);
    second.body("hello");
    CHECK(!second.found());
    second.end();
    CHECK(second.found() == "hello");
}

TEST_CASE("a fetch that fails was no sight") {
    auto options = with_memory(1u << 20);
    options.admission.probation = false;
    node at{options};
    {
        arrival failed{at};
        failed.head(of_five);
        failed.body("he");
        failed.order->into->producer_fail(failure{failure_code::response_cut_short, ""});
    }
    arrival next{at};
    CHECK(!next.head(of_five).stored);
}

TEST_CASE("two who wait for one response are two sights") {
    auto options = with_memory(1u << 20);
    options.admission.probation = false;
    node at{options};
    arrival one{at};
    bool head_known = false;
    const auto other = cache::fetch::join(one.order->into, {}, head_known);
    CHECK(one.head(of_five).stored);
    one.body("hello");
    one.end();
    CHECK(one.found() == "hello");
}

TEST_CASE(
    "what may not be stored is not, says so, and is remembered where others would wait for it") {
    node at;
    see(at);
    arrival one{at};
    const auto& told = one.head("200 OK\r\nCache-Control: no-store\r\nContent-Length: 5\r\n");
    CHECK(told.verdict == http::storability::no_store);
    CHECK(told.detail == "no-store");
    CHECK(!one.kept.storable());
    one.body("hello");
    one.end();
    CHECK(at.common.uncacheable.has(one.order->key, steady_now()));
    arrival next{at};
    next.head(of_five);
    CHECK(!at.common.uncacheable.has(next.order->key, steady_now()));
}

TEST_CASE("what a parent is to keep for itself, and what an order rules out, is not stored") {
    node at;
    see(at);
    arrival elsewhere{at};
    CHECK(elsewhere.head(of_five, false).detail == "proxy-only");
    arrival unwanted{at};
    unwanted.order->may_store = false;
    CHECK(!unwanted.head(of_five).stored);
    unwanted.body("hello");
    unwanted.end();
    CHECK(!unwanted.found());
}

TEST_CASE("what replaces a stored response asks admission nothing") {
    node at;
    arrival one{at};
    one.order->replaces = true;
    CHECK(one.head(of_five).stored);
    one.body("hello");
    one.end();
    CHECK(one.found() == "hello");
}

TEST_CASE("of unknown length nothing is claimed, and it is stored if it proves small enough") {
    node at{with_memory(64u << 10)};
    see(at);
    arrival small{at};
    CHECK(!small.head(ok + "Transfer-Encoding: chunked\r\n").stored);
    small.body("hello");
    small.end();
    CHECK(small.found() == "hello");

    arrival large{at, "GET http://a.example/large"};
    large.order->replaces = true;
    large.head(ok + "Transfer-Encoding: chunked\r\n");
    for (int i = 0; i < 8; ++i) {
        large.body(std::string(16u << 10, 'x'));
    }
    large.end();
    CHECK(!large.found());
}

TEST_CASE("what memory does not take is said to be too large, where there is no disk") {
    node at{with_memory(4)};
    arrival one{at};
    one.order->replaces = true;
    CHECK(one.head(of_five).detail == "too-large");
    one.body("hello");
    one.end();
    CHECK(!one.found());
}

TEST_CASE("what was invalidated since anybody was asked stays out") {
    node at;
    arrival one{at};
    one.order->replaces = true;
    one.head(of_five);
    (void)at.common.store.invalidate(one.order->key, one.order->url, wall_now());
    one.body("hello");
    one.end();
    CHECK(!one.found());
}

TEST_CASE("a body that cannot be trusted to be the answer's is not stored") {
    node at;
    arrival one{at};
    one.order->replaces = true;
    one.head(of_five);
    one.body("hello");
    one.end(false);
    CHECK(!one.found());
}

TEST_CASE("a part that was asked for is kept as a part, beside what is held of the same") {
    node at;
    const std::string part = "206 Partial Content\r\nCache-Control: max-age=60\r\nETag: \"1\"\r\n";
    for (const auto& [range, bytes] : {std::pair{"0-4", "hello"}, std::pair{"5-9", "world"}}) {
        arrival one{at, "GET http://a.example/x", "Range: bytes=" + std::string{range} + "\r\n"};
        one.order->own_range = true;
        one.order->replaces = true;
        one.head(part + "Content-Range: bytes " + range + "/10\r\nContent-Length: 5\r\n");
        one.body(bytes);
        one.end();
    }
    arrival whole{at};
    CHECK(whole.found() == "helloworld");
}

TEST_CASE("an error with a lifetime does not take the place of what may stand in for it") {
    node at;
    see(at);
    arrival good{at};
    good.order->replaces = true;
    good.head("200 OK\r\nCache-Control: max-age=60, stale-if-error=600\r\nContent-Length: 5\r\n");
    good.body("hello");
    good.end();
    arrival bad{at};
    bad.order->replaces = true;
    CHECK(bad.head("503 No\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n").detail ==
          "error");
    bad.body("sorry");
    bad.end();
    CHECK(bad.found() == "hello");
}

TEST_CASE("what a validation shows to be gone is not kept on") {
    node at;
    see(at);
    arrival good{at};
    good.order->replaces = true;
    good.head(of_five);
    good.body("hello");
    good.end();
    arrival gone{at};
    gone.order->what = wanted::validating{
        at.common.store.find(gone.order->key, gone.order->url, {}).response};
    gone.order->replaces = true;
    gone.head("404 Not Found\r\nCache-Control: no-store\r\nContent-Length: 5\r\n");
    CHECK(!gone.found());
}

TEST_SUITE_END();
