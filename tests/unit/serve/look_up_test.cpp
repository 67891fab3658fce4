#include "proxy/serve/look_up.hpp"
#include "tests/unit/serve/exchanges.hpp"

namespace reprise::proxy::serve::test::of_look_up {

namespace {

// What memory has for one request.
struct looking : stated {
    explicit looking(bench& on, const std::string& fields = "")
        : stated{on, get(fields)},
          found{look_up_in_memory(x, resident_now())} {}
    ~looking() { x.consume_head(); }
    template <class Kind>
    [[nodiscard]] bool gets() const {
        return std::holds_alternative<Kind>(found);
    }
    answer found;
};

}  // namespace

TEST_SUITE_BEGIN("serve/look_up");

TEST_CASE("nothing is stored: it is fetched, and said to be a miss of the URL") {
    bench on;
    const looking one{on};
    CHECK(one.gets<answers::fetched>());
    CHECK(one.x.verdict.forward == http::forward_reason::uri_miss);
    CHECK(one.x.stored.what == cache::lookup::absent);
}

TEST_CASE("what is stored and fresh is the answer") {
    bench on;
    on.store(of_five, "hello");
    const looking one{on};
    CHECK(one.gets<answers::stored>());
    CHECK(one.x.verdict.what == cache::ruling::hit);
    CHECK(one.x.stored.response->size() == 5);
}

TEST_CASE("what is stale is validated, and not without the origin where the client wants that") {
    bench on;
    on.store(of_five + "ETag: \"1\"\r\nAge: 100\r\n", "hello");
    {
        const looking one{on};
        CHECK(one.gets<answers::fetched>());
        CHECK(one.x.verdict.what == cache::ruling::validate);
        CHECK(one.x.verdict.forward == http::forward_reason::stale);
    }
    const looking other{on, "Cache-Control: only-if-cached\r\n"};
    REQUIRE(other.gets<answers::refused>());
    CHECK(std::get<answers::refused>(other.found).why.code == failure_code::only_if_cached_miss);
}

TEST_CASE("another variant is no answer") {
    bench on;
    on.store(of_five + "Vary: Accept-Language\r\n", "hello", "Accept-Language: de\r\n");
    CHECK(looking{on, "Accept-Language: de\r\n"}.gets<answers::stored>());
    const looking one{on, "Accept-Language: fr\r\n"};
    CHECK(one.gets<answers::fetched>());
    CHECK(one.x.verdict.forward == http::forward_reason::vary_miss);
}

TEST_CASE("parts with a gap are completed; with none of what is wanted they are fetched") {
    bench on;
    on.store("206 Partial Content\r\nCache-Control: max-age=60\r\nETag: \"1\"\r\n"
             "Content-Range: bytes 0-4/10\r\nContent-Length: 5\r\n",
             "hello",
             "Range: bytes=0-4\r\n");
    CHECK(looking{on}.gets<answers::partial>());
    CHECK(looking{on, "Range: bytes=1-2\r\n"}.gets<answers::stored>());
    CHECK(looking{on, "Range: bytes=3-6\r\n"}.gets<answers::partial>());
    CHECK(looking{on, "Range: bytes=6-7\r\n"}.gets<answers::fetched>());
    CHECK(looking{on, "If-Modified-Since: Mon, 01 Jan 2024 00:00:00 GMT\r\n"}
              .gets<answers::partial>());
}

TEST_CASE("what waits on probation is admitted when it is asked for again, and counted as that") {
    auto options = fetch::test::with_memory(1u << 20);
    options.admission.probation = 0.5;
    bench on{options};
    {
        arrival first{on.at};
        first.head(of_five);
        first.body("hello");
        first.end();
    }
    const auto& counts = on.at.w.counts.admission_by_policy[static_cast<std::size_t>(
        reprise::config::admission_policy::second_hit)];
    CHECK(counts.admitted.read() == 0);
    for (int i = 0; i < 2; ++i) {
        const looking one{on};
        CHECK(one.gets<answers::stored>());
        CHECK(one.x.stored.just_admitted == (i == 0));
        CHECK(counts.admitted.read() == 1);
    }
}

TEST_CASE("without the store a request is judged as if nothing were there") {
    bench on;
    on.store(of_five, "hello");
    looking one{on};
    CHECK(std::holds_alternative<answers::fetched>(judge_without_store(one.x)));
    CHECK(one.x.stored.response == nullptr);
}

TEST_CASE("what may be asked is judged when the origin would be, not when it is stored") {
    bench on;
    const std::string blocked = "http://127.0.0.1:8080/x";
    on.store(of_five, "hello", "", blocked);
    const auto ask = [&] {
        stated one{on, serve::test::head_of("GET " + blocked)};
        auto found = look_up_in_memory(one.x, resident_now());
        one.x.consume_head();
        return found;
    };
    CHECK(std::holds_alternative<answers::stored>(ask()));
    (void)on.at.common.store.invalidate(
        reprise::filter::hash_of(blocked, on.at.common.admission.secret()), blocked);
    const auto found = ask();
    REQUIRE(std::holds_alternative<answers::refused>(found));
    CHECK(std::get<answers::refused>(found).why.code == failure_code::destination_refused);
}

TEST_CASE("without a disk none is asked") {
    bench on;
    looking one{on};
    CHECK(disk_look_up::begin(one.x) == nullptr);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_look_up
