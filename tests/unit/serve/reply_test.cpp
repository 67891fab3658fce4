#include "tests/support/temp_dir.hpp"
#include "tests/unit/serve/exchanges.hpp"

#include <fstream>

namespace reprise::proxy::serve::test::of_reply {

namespace {

const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";

// One reply that is composed, and of which a client takes as much as he is told to.
struct composing : bench {
    composing() {
        state.x.out.begin();
        state.x.out.add(head);
        state.x.out.add("hello");
    }
    std::optional<ended> send() {
        std::optional<ended> how;
        start(state.x.out.send(), how);
        return how;
    }

    stated state{*this};
    reply& out = state.x.out;
    ledger& book = state.x.book;
};

}  // namespace

TEST_SUITE_BEGIN("serve/reply");

TEST_CASE("what is composed goes out in order, and the connection may go on behind it") {
    composing one;
    CHECK(one.out.send_now() == ended::keep);
    CHECK(one.sink.sent == head + "hello");
    CHECK(!one.out.has_pieces());
    CHECK(one.sink.wholes == 1);
    CHECK(!one.out.under_way());
}

TEST_CASE(
    "a reply that begins in place of one of which nothing is out leaves the connection alone") {
    composing one;
    one.out.begin();
    one.out.add("other");
    CHECK(one.out.send_now() == ended::keep);
    CHECK(one.sink.sent == "other");
}

TEST_CASE("a reply that begins while another is under way breaks it off: no client has two heads") {
    composing one;
    one.sink.takes(head.size() + 2);
    CHECK(!one.out.send_now());
    one.out.begin();
    one.out.add(head);
    one.sink.takes(1000);
    CHECK(one.out.send_now() == ended::gone);
    CHECK(one.sink.sent == head + "he");
    CHECK(one.sink.broken_off);
    CHECK(!one.out.keeps);
    CHECK(one.sink.wholes == 0);
}

TEST_CASE("a client who takes little is waited for, and gets every byte once") {
    composing one;
    one.sink.takes(3);
    CHECK(!one.out.send_now());
    std::optional<ended> how;
    one.start(one.out.send(), how);
    CHECK(!how);
    one.sink.at_once = 4;
    one.sink.takes(1000);
    one.settle();
    CHECK(how == ended::keep);
    CHECK(one.sink.sent == head + "hello");
    CHECK(one.out.under_way());  // until somebody says that it is whole
    CHECK(one.out.end() == ended::keep);
    CHECK(!one.out.under_way());
}

TEST_CASE("a client who fails in the middle is gone, and his reply never whole") {
    composing one;
    one.sink.fails_after = 10;
    SUBCASE("at once") {
        CHECK(one.out.send_now() == ended::gone);
    }
    SUBCASE("while it waits") {
        CHECK(one.send() == ended::gone);
        CHECK(one.out.end() == ended::gone);
    }
    CHECK(one.book.how == outcome::client_gone);
    CHECK(!one.out.keeps);
    CHECK(one.sink.wholes == 0);
}

TEST_CASE("the end of a reply says whether the connection goes on") {
    composing one;
    SUBCASE("it does") {
        CHECK(one.send() == ended::keep);
        CHECK(one.out.end() == ended::keep);
    }
    SUBCASE("it was to be the last") {
        one.out.keeps = false;
        CHECK(one.send() == ended::keep);
        CHECK(one.out.end() == ended::close);
    }
    SUBCASE("its client was told no length") {
        one.out.ends_by_closing();
        CHECK(one.send() == ended::keep);
        CHECK(one.out.end() == ended::close);
        CHECK(one.sink.ends_with_connection);
    }
    CHECK(one.sink.wholes == 1);
}

TEST_CASE("whoever is left before the first byte was not broken off; in the middle he was") {
    composing one;
    one.book.reason = "why";
    SUBCASE("before") {
        CHECK(one.out.leave() == ended::gone);
        CHECK(!one.sink.broken_off);
    }
    SUBCASE("in the middle") {
        one.sink.takes(3);
        CHECK(!one.out.send_now());
        CHECK(one.out.leave() == ended::gone);
        CHECK(one.sink.broken_off);
        CHECK(!one.out.has_pieces());
    }
    CHECK(one.book.how == outcome::client_gone);
    CHECK(one.book.reason == "why");
    CHECK(!one.out.keeps);
}

TEST_CASE("what is broken off is dropped, cannot pass for whole, and its ledger says why") {
    composing one;
    one.sink.takes(3);
    CHECK(!one.out.send_now());
    CHECK(one.out.break_off(outcome::cut_short, "disk") == ended::gone);
    CHECK(one.sink.broken_off);
    CHECK(!one.out.has_pieces());
    CHECK(one.out.under_way());
    CHECK(one.book.how == outcome::cut_short);
    CHECK(one.book.reason == "disk");
    CHECK(one.out.end() == ended::gone);
}

TEST_CASE("a client is told of the connection what its version does not say by itself") {
    const auto told = [](bool keeps, unsigned version) {
        composing one;
        one.out.keeps = keeps;
        one.out.version = static_cast<std::uint8_t>(version);
        std::string text;
        one.out.append_connection(text);
        return text;
    };
    CHECK(told(true, 11).empty());
    CHECK(told(true, 10) == "Connection: keep-alive\r\n");
    CHECK(told(false, 11) == "Connection: close\r\n");
    CHECK(told(false, 10) == "Connection: close\r\n");
}

TEST_CASE("a first byte is noted where one has gone out, and nowhere else") {
    struct one {
        std::uint64_t takes, fails_after;
        bool waits, goes_out;
    };
    constexpr auto any = kept_sink::any;
    for (const auto& [takes, fails_after, waits, goes_out] : {one{0, any, false, false},
                                                              one{any, 0, false, false},
                                                              one{any, 0, true, false},
                                                              one{3, any, false, true},
                                                              one{any, 3, true, true},
                                                              one{any, any, false, true},
                                                              one{any, any, true, true}}) {
        CAPTURE(takes);
        CAPTURE(fails_after);
        CAPTURE(waits);
        const reprise::tests::temp_dir directory;
        const auto path = directory.path() / "access.log";
        reprise::config::log_options log;
        log.access = path.string();
        composing made;
        REQUIRE(!made.at.common.access.retarget(log));
        if (takes != any) {
            made.sink.takes(takes);
        }
        made.sink.fails_after = fails_after;
        made.book.how = outcome::miss;
        if (waits) {
            (void)made.send();
        } else {
            (void)made.out.send_now();
        }
        made.book.close({.head = made.state.x.asked.head});
        made.at.common.access.stop();
        std::ifstream in{path};
        std::string line;
        REQUIRE(std::getline(in, line));
        CHECK((line.find("first_byte") != std::string::npos) == goes_out);
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_reply
