#include "tests/support/temp_dir.hpp"
#include "tests/unit/serve/exchanges.hpp"

#include <fstream>
#include <iterator>

namespace reprise::proxy::serve::test::of_ledger {

using cache::packed_wait;

TEST_SUITE_BEGIN("serve/ledger");

TEST_CASE("a request is counted once, however often it is closed") {
    bench on;
    stated one{on};
    one.x.book.how = outcome::hit;
    one.x.book.status = 200;
    one.x.book.close({});
    one.x.book.how = outcome::miss;
    one.x.book.close({});
    CHECK(on.counted(outcome::hit) == 1);
    CHECK(on.counted(outcome::miss) == 0);
    CHECK(on.at.w.counts.responses_by_class[2].read() == 1);
}

TEST_CASE("a hit spares what the fetch took of what was sent, and no other outcome does") {
    const packed_wait took{std::chrono::milliseconds{70}};
    auto made = cache::test::response({.content = "hello"});
    made->wait = took;
    const cache::stored_ptr stored = made;
    const auto spared_by = [](outcome how, const cache::stored_response* sent) {
        bench on;
        stated one{on};
        one.x.book.how = how;
        one.x.book.status = 200;
        ledger::request asked;
        asked.sent = sent;
        one.x.book.close(asked);
        return on.at.w.counts.wait_spared.read();
    };
    const auto whole = static_cast<std::uint64_t>(took.microseconds().count());
    CHECK(spared_by(outcome::hit, stored.get()) == whole);
    CHECK(spared_by(outcome::stale, stored.get()) == whole);
    CHECK(spared_by(outcome::revalidated, stored.get()) == 0);
    CHECK(spared_by(outcome::client_gone, stored.get()) == 0);
    CHECK(spared_by(outcome::miss, nullptr) == 0);
    CHECK(spared_by(outcome::hit, nullptr) == 0);
}

TEST_CASE("a body's bytes are counted when they have gone, not when they are composed") {
    bench on;
    on.store(of_five, "hello");
    auto& counts = on.at.w.counts;
    SUBCASE("all of them, and the head is none of them") {
        asking one{on, get()};
        one.close();
        CHECK(counts.body_bytes_to_clients.read() == 5);
        CHECK(counts.body_bytes_from_store.read() == 5);
        CHECK(counts.bytes_to_clients.read() == on.sink.sent.size());
    }
    SUBCASE("a client who leaves in the middle has had what he has had") {
        { asking one{on, get()}; }
        const auto whole = on.sink.sent.size();
        on.sink.takes(whole - 3);
        asking one{on, get()};
        CHECK(!one.how);
        on.sink.leaves();
        on.settle();
        CHECK(one.how == ended::gone);
        one.close();
        CHECK(counts.body_bytes_to_clients.read() == 5 + 2);
        CHECK(counts.bytes_to_clients.read() == whole + whole - 3);
        CHECK(on.counted(outcome::client_gone) == 1);
    }
    SUBCASE("a client who takes nothing has had nothing") {
        on.sink.fails_after = 0;
        asking one{on, get()};
        CHECK(one.begun == ended::gone);
        one.close();
        CHECK(counts.body_bytes_to_clients.read() == 0);
        CHECK(counts.bytes_to_clients.read() == 0);
    }
}

TEST_CASE("the parts of one reply's body are counted together, in what sense they came") {
    bench on;
    stated one{on};
    auto& x = one.x;
    auto& counts = on.at.w.counts;
    const auto send = [&](body_source from) {
        x.out.begin();
        x.out.add("head");
        x.out.note_body(from, 5);
        x.out.add("hello");
        x.out.note_body(from, 2);
        x.out.add("!!");
        std::optional<ended> how;
        on.start(x.out.send(), how);
        CHECK(x.out.end() == ended::keep);
    };
    send(body_source::store);
    CHECK(counts.body_bytes_from_store.read() == 7);
    send(body_source::shared);
    CHECK(counts.body_bytes_from_collapsing.read() == 7);
    send(body_source::fetch);
    CHECK(counts.body_bytes_to_clients.read() == 21);
    CHECK(counts.body_bytes_from_store.read() == 7);
    CHECK(counts.body_bytes_from_collapsing.read() == 7);
}

TEST_CASE("what was composed and replaced before it went out is counted for nothing") {
    bench on;
    stated one{on};
    one.x.out.begin();
    one.x.out.note_body(body_source::store, 5);
    one.x.out.add("hello");
    one.x.out.begin();
    one.x.out.add("a head alone");
    CHECK(one.x.out.send_now() == ended::keep);
    one.x.book.close({});
    CHECK(on.at.w.counts.body_bytes_to_clients.read() == 0);
}

TEST_CASE("the bytes of a head count as taken though they still stand in the input") {
    bench on;
    stated one{on};
    one.x.book.close({.head = one.x.asked.head, .unconsumed = one.x.unconsumed()});
    CHECK(on.at.w.counts.bytes_from_clients.read() == get().size());
}

TEST_CASE("the bytes of an answer are its host's, and those of a page of ours are nobody's") {
    bench on;
    on.store(of_five, "hello");
    {
        asking one{on, get()};
        one.close();
    }
    const auto whole = on.sink.sent.size();
    {
        stated one{on};
        one.x.out.begin();
        one.x.out.add("a page of ours");
        CHECK(one.x.out.send_now() == ended::keep);
        one.x.book.how = outcome::refused;
        one.x.book.close({.head = one.x.asked.head});
        one.x.consume_head();
    }
    const auto told = on.at.common.by_bytes.figures();
    REQUIRE(told.size() == 1);
    CHECK(told[0].host == "a.example");
    CHECK(told[0].bytes == whole);
    CHECK(told[0].from_store == whole);
}

TEST_CASE("a log line says what a request was, and no first byte where only interim answers went") {
    const reprise::tests::temp_dir directory;
    const auto path = directory.path() / "access.log";
    reprise::config::log_options log;
    log.access = path.string();
    bench on;
    REQUIRE(!on.at.common.access.retarget(log));
    for (const bool answered : {false, true}) {
        stated one{on, get("User-Agent: somebody\r\n")};
        auto& book = one.x.book;
        book.how = outcome::miss;
        book.status = answered ? 200 : 0;
        book.reason = "why";
        book.note_first_byte();
        book.forget_first_byte();
        if (answered) {
            book.note_first_byte();
        }
        book.close({.head = one.x.asked.head});
        one.x.consume_head();
    }
    on.at.common.access.stop();
    std::ifstream in{path};
    std::string first, second, more;
    std::getline(in, first);
    std::getline(in, second);
    CHECK(!std::getline(in, more));
    CHECK(first.find("127.0.0.1:4711") != std::string::npos);
    CHECK(first.find("http://a.example/x") != std::string::npos);
    CHECK(first.find("somebody") != std::string::npos);
    CHECK(first.find("why") != std::string::npos);
    CHECK(first.find("first_byte") == std::string::npos);
    CHECK(second.find("first_byte") != std::string::npos);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_ledger
