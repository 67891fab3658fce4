// What is on its way is as good as stored to a sibling that asks with only-if-cached: it joins the
// fetch that brings it. Unless nobody may know that yet, or the fetch is a sibling's own. And it is
// told to siblings as what is stored is, for as long as it holds.

#include "tests/scenario/liar.hpp"
#include "tests/support/temp_dir.hpp"

#include <atomic>
#include <functional>

TEST_SUITE("scenario/under_way") {

    using namespace reprise::tests;

    namespace {

    const std::string only_if_cached = "Cache-Control: only-if-cached\r\n";
    const std::string waits = "Connection: Reprise-Waits\r\nReprise-Waits: ?1\r\n";
    const std::string body = patterned(100'000);

    /// One node, to which 127.0.0.1 is a sibling, and an origin that brings half of /a, and the rest
    /// when the gate opens.
    struct half_way {
        fleet f{0};
        gate* rest = nullptr;

        explicit half_way(const std::string& fields = "Cache-Control: max-age=600\r\n",
                          json settings = node_settings()) {
            settings["access"]["clients"] = json::array({"127.0.0.0/8"});
            f.add(settings);
            rest = &f.origin.make_gate();
            f.origin.on("/a", [this, fields](origin_request&, origin_connection& connection) {
                connection.send(
                    raw_head("200 OK",
                             fields + "Content-Length: " + std::to_string(body.size()) + "\r\n") +
                    body.substr(0, body.size() / 2));
                if (rest->wait()) {
                    connection.send(body.substr(body.size() / 2));
                } else {
                    connection.close();
                }
            });
        }

        /// Somebody who has its head.
        client first(const std::string& fields = "") {
            client one{f[0].port()};
            one.send(absolute_request("GET", f.origin.url("/a"), fields));
            return one;
        }
        int asked_as(const std::string& from, const std::string& fields = "") {
            client other{f[0].port(), from};
            return other.ask(absolute_request("GET", f.origin.url("/a"), only_if_cached + fields))
                .status;
        }
    };

    /// Two nodes, of which the second follows the first by news, and an origin that brings half of a
    /// body, and goes on when the gate opens.
    struct told {
        fleet f{0};
        gate& rest = f.origin.make_gate();
        const std::string url = f.origin.url("/a");

        explicit told(const json& settings = seldom_settings(),
                      const std::string& timeout = "30s") {  // it may wait for the test's gate
            f.add(settings);
            f.add(seldom_settings());
            auto& [node, its] = f.nodes.at(1);
            auto known = seldom_peer("n0", f[0].port());
            known["timeout"] = timeout;
            its["peers"] = json::array({known});
            node.reload(its);
            REQUIRE(f.is_by_news(1, "n0"));
        }

        [[nodiscard]] auto in_two(const std::string& all,
                                  std::function<void(origin_connection&)> then) {
            return [this, &all, then = std::move(then)](origin_request&, origin_connection& to) {
                to.send(raw_head("200 OK",
                                 "Cache-Control: max-age=600\r\nContent-Length: " +
                                     std::to_string(all.size()) + "\r\n") +
                        all.substr(0, all.size() / 2));
                (void)rest.wait(6 * patience);  // it is opened at the test's end, if not before
                then(to);
            };
        }
        client first() {
            client one{f[0].port()};
            one.send(absolute_request("GET", url));
            return one;
        }
        /// The first tells of what it will probably store; the second waits for that as long as the test's
        /// gate is shut, behind which the origin sends this.
        void expect_behind_gate(const std::string& answer, bool then_closes = false) {
            f.learn(0, 1);
            auto& [node, its] = f.nodes.at(1);
            its["peering"]["budget"] = "30s";
            node.reload(its);
            REQUIRE(f.is_by_news(1, "n0"));
            f.origin.on("/a", [this, answer, then_closes](origin_request&, origin_connection& to) {
                (void)rest.wait();
                to.send(answer);
                if (then_closes) {
                    to.close();
                }
            });
        }
        /// Neither node lists it any more.
        [[nodiscard]] bool is_gone() {
            return eventually(
                [&] { return figure(f[0].stats(), "/digest/objects") == 0 && !f.claims(1, url); });
        }
    };

    }  // namespace

    TEST_CASE("a sibling joins a fetch whose head says that it is being stored") {
        half_way at;
        auto one = at.first();
        auto got = one.read_head();
        CHECK(got.status == 200);
        client sibling{at.f[0].port()};
        sibling.send(absolute_request("GET", at.f.origin.url("/a"), only_if_cached));
        auto lent = sibling.read_head();
        CHECK(lent.status == 200);
        CHECK(lent.get("Age") == "0");  // by which it is an answer of a store
        CHECK(cache_status_of(lent).collapsed);
        at.rest->open();
        one.read_body(got, body.size());
        sibling.read_body(lent, body.size());
        CHECK(got.body == body);
        CHECK(lent.body == body);
        CHECK(at.f.origin.count("/a") == 1);
        CHECK(is_hit(at.f[0].get(at.f.origin.url("/a"))));
    }

    TEST_CASE("of a fetch that fails a sibling sees no whole answer") {
        half_way at;
        at.f.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            connection.send(raw_head("200 OK",
                                     "Cache-Control: max-age=600\r\nContent-Length: " +
                                         std::to_string(body.size()) + "\r\n") +
                            body.substr(0, body.size() / 2));
            (void)at.rest->wait();
            connection.close();
        });
        auto one = at.first();
        CHECK(one.read_head().status == 200);
        client sibling{at.f[0].port()};
        sibling.send(absolute_request("GET", at.f.origin.url("/a"), only_if_cached));
        CHECK(sibling.read_head().status == 200);
        at.rest->open();
        CHECK(sibling.read_to_end().bytes.size() < body.size());
        CHECK(at.asked_as("127.0.0.1") == 504);
    }

    TEST_CASE("nobody but a sibling joins by only-if-cached, and he not for another variant") {
        half_way at{"Cache-Control: max-age=600\r\nVary: X\r\n"};
        auto one = at.first("X: 1\r\n");
        CHECK(one.read_head().status == 200);
        CHECK(at.asked_as("127.0.0.9", "X: 1\r\n") == 504);
        CHECK(at.asked_as("127.0.0.1", "X: 2\r\n") == 504);
        client sibling{at.f[0].port()};
        sibling.send(absolute_request("GET", at.f.origin.url("/a"), only_if_cached + "X: 1\r\n"));
        CHECK(sibling.read_head().status == 200);
        at.rest->open();
        CHECK(at.f.origin.count("/a") == 1);
    }

    TEST_CASE("what is not being stored, or is not there yet, is not joined") {
        for (const std::string fields : {"Cache-Control: no-store\r\n",
                                         "Cache-Control: private, max-age=600\r\n",
                                         "Cache-Control: max-age=0\r\nETag: \"1\"\r\n"}) {
            CAPTURE(fields);
            half_way at{fields};
            auto one = at.first();
            CHECK(one.read_head().status == 200);
            CHECK(at.asked_as("127.0.0.1") == 504);
            at.rest->open();
        }
        {
            auto settings = node_settings();
            settings["admission"] = {{"policy", "never"}};
            half_way at{"Cache-Control: max-age=600\r\n", settings};
            auto one = at.first();
            CHECK(one.read_head().status == 200);
            CHECK(at.asked_as("127.0.0.1") == 504);
            at.rest->open();
        }
        half_way at;
        auto& head = at.f.origin.make_gate();
        at.f.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            (void)head.wait();
            connection.send(ok("Cache-Control: max-age=600\r\n", body));
        });
        auto one = at.first();
        REQUIRE(eventually([&] { return at.f.origin.count("/a") == 1; }));
        CHECK(at.asked_as("127.0.0.1") == 504);  // at once: the head has not come
        head.open();
        CHECK(one.read().body == body);
    }

    TEST_CASE("two nodes that are asked for one object while it comes make one fetch") {
        half_way at;
        auto& f = at.f;
        auto untold = node_settings();
        untold["peering"]["news"] = "0s";
        f.add(untold);
        const auto url = f.origin.url("/a");
        at.rest->open();
        CHECK(f[0].get(url).status == 200);
        REQUIRE(eventually([&] {
            return f[0].admin("/digest").body.find("keys, as its owner says: 1\n") !=
                   std::string::npos;
        }));
        auto known = peer_at("n0", f[0].port());
        known["refresh"] = "1h";  // and without news what the other knows stays as it is
        known["timeout"] = "1m";  // if it is not told the first time it is told nothing for an hour
        f.tell(1, json::array({known}));
        REQUIRE(f.holds(1, "n0", 1));
        CHECK(f[0].ask("PURGE", url).status == 200);
        // It is fetched anew, slowly, and the other still believes that it is there.
        auto& second = f.origin.make_gate();
        at.rest = &second;
        auto one = at.first();
        auto got = one.read_head();
        CHECK(got.status == 200);
        client other{f[1].port()};
        other.send(absolute_request("GET", url));
        auto lent = other.read_head();
        CHECK(lent.status == 200);
        second.open();
        one.read_body(got, body.size());
        other.read_body(lent, body.size());
        CHECK(got.body == body);
        CHECK(lent.body == body);
        CHECK(f.origin.count("/a") == 2);  // the one that was purged, and this
        CHECK(f.asked(1, "n0", "true-hit") == 1);
        CHECK(is_hit(f[1].get(url)));
    }

    TEST_CASE("a sibling is told of a fetch by news, and has its one stream") {
        for (const bool to_disk : {false, true}) {
            CAPTURE(to_disk);
            const temp_dir files;
            auto settings = seldom_settings();
            if (to_disk) {
                settings["memory"]["max_object"] = "64KiB";
                settings["disk"] = disk_of_all_admitted(files.file("store"), "64MiB");
            }
            told at{settings};
            auto& f = at.f;
            f.origin.on("/a", at.in_two(body, [](origin_connection& to) {
                to.send(body.substr(body.size() / 2));
            }));
            auto one = at.first();
            auto got = one.read_head();
            CHECK(got.status == 200);
            REQUIRE(eventually([&] { return f.claims(1, at.url); }));
            // It is told first, and counted then.
            CHECK(eventually([&] { return figure(f[0].stats(), "/digest/under_way") == 1; }));
            CHECK(figure(f[0].stats(), "/digest/objects") == 1);
            client other{f[1].port()};
            other.send(absolute_request("GET", at.url));
            auto lent = other.read_head();
            CHECK(lent.status == 200);
            other.read_body(lent, body.size() / 2);  // while the origin withholds the rest
            CHECK(lent.body == body.substr(0, body.size() / 2));
            at.rest.open();
            one.read_body(got, body.size());
            other.read_body(lent, body.size());
            CHECK(got.body == body);
            CHECK(lent.body == body);
            CHECK(f.origin.count("/a") == 1);
            CHECK(f.asked(1, "n0", "true-hit") == 1);
            // It is held now, as anything.
            CHECK(eventually([&] {
                return figure(f[0].stats(), "/digest/under_way") == 0 &&
                       figure(f[0].stats(), "/digest/listed") == 1;
            }));
            // By news, where it was gone for as long as the disk took.
            CHECK(eventually([&] { return f.claims(1, at.url) && f.told(1, "n0") == 1; }));
        }
    }

    TEST_CASE(
        "where what was fetched lately was stored, a sibling is told before the head is there") {
        told at;
        auto& f = at.f;
        at.expect_behind_gate(ok("Cache-Control: max-age=600\r\n", body));
        auto one = at.first();
        REQUIRE(eventually([&] { return f.claims(1, at.url); }));
        CHECK(eventually([&] { return f.origin.count("/a") == 1; }));  // told as it is asked
        CHECK(eventually([&] { return figure(f[0].stats(), "/digest/under_way") == 1; }));
        const auto joined = [&] { return figure(f[0].stats(), "/collapsing/joined"); };
        const auto before = joined();
        client other{f[1].port()};
        other.send(absolute_request("GET", at.url));
        CHECK(eventually([&] { return joined() == before + 1; }));
        at.rest.open();
        CHECK(other.read().body == body);
        CHECK(one.read().body == body);
        CHECK(f.origin.count("/a") == 1);
        CHECK(eventually([&] { return figure(f[0].stats(), "/digest/under_way") == 0; }));
        CHECK(f.claims(1, at.url));
    }

    TEST_CASE("what was expected and is not stored, or fails, is told to be gone, and fetched") {
        const std::string private_head = raw_head(
            "200 OK", "Cache-Control: private, max-age=600\r\nContent-Length: 4\r\n");
        for (const std::string& answer : {private_head + "mine", std::string{}}) {
            CAPTURE(answer.size());
            told at;
            auto& f = at.f;
            at.expect_behind_gate(answer, true);
            auto one = at.first();
            REQUIRE(eventually([&] { return f.claims(1, at.url); }));
            const auto joined = figure(f[0].stats(), "/collapsing/joined");
            // Who may take a 102 for an answer is not asked to wait behind one.
            client other{f[0].port()};
            CHECK(other.ask(absolute_request("GET", at.url, only_if_cached)).status == 504);
            CHECK(figure(f[0].stats(), "/collapsing/joined") == joined);
            client sibling{f[0].port()};
            sibling.send(absolute_request("GET", at.url, only_if_cached + waits));
            REQUIRE(eventually(
                [&] { return figure(f[0].stats(), "/collapsing/joined") == joined + 1; }));
            at.rest.open();
            CHECK(one.read().status == (answer.empty() ? 502 : 200));
            const auto said = sibling.read();
            CHECK(said.status >= 500);
            REQUIRE(said.interim.size() == 1);
            CHECK(said.interim[0].status == 102);  // it waited, as whom it asked did
            REQUIRE(at.is_gone());
            // And the next of its like is not told of before its head.
            auto& next = f.origin.make_gate();
            f.origin.on("/a", [&](origin_request&, origin_connection& to) {
                (void)next.wait();
                to.send(ok("Cache-Control: max-age=600\r\n", body));
            });
            const auto before = f.origin.count("/a");
            auto again = at.first();
            REQUIRE(eventually([&] { return f.origin.count("/a") > before; }));
            CHECK(figure(f[0].stats(), "/digest/under_way") == 0);
            next.open();
            CHECK(again.read().body == body);
        }
    }

    TEST_CASE("a sibling whose origin is late for a head costs the budget, and is not blamed") {
        told at;
        auto& f = at.f;
        auto& [node, its] = f.nodes.at(1);
        its["peering"]["budget"] = "4s";
        node.reload(its);
        f.learn(0, 1);
        std::atomic<unsigned> asked{0};
        f.origin.on("/a", [&](origin_request&, origin_connection& to) {
            if (asked++ == 0) {
                (void)at.rest.wait();
            }
            to.send(ok("Cache-Control: max-age=600\r\n", body));
        });
        auto one = at.first();
        REQUIRE(eventually([&] { return f.claims(1, at.url); }));
        CHECK(f[1].get(at.url).body == body);  // its own
        CHECK(f.origin.count("/a") == 2);
        at.rest.open();
        CHECK(one.read().body == body);
        CHECK(f.asked(1, "n0", "late") == 0);
    }

    TEST_CASE("a sibling whose origin pauses is waited for, as long as it lives") {
        for (const bool stops : {false, true}) {
            CAPTURE(stops);
            told at{seldom_settings(), "3s"};
            auto& f = at.f;
            std::atomic<bool> all_at_once{false};
            f.origin.on("/a", [&](origin_request& request, origin_connection& to) {
                if (all_at_once) {
                    to.send(ok("Cache-Control: max-age=600\r\n", body));
                    return;
                }
                at.in_two(body, [](origin_connection& on) {
                    on.send(body.substr(body.size() / 2));
                })(request, to);
            });
            auto one = at.first();
            auto got = one.read_head();
            CHECK(got.status == 200);
            REQUIRE(eventually([&] { return f.claims(1, at.url); }));
            client other{f[1].port()};
            other.send(absolute_request("GET", at.url));
            auto lent = other.read_head();
            other.read_body(lent, body.size() / 2);
            all_at_once = true;
            if (stops) {
                f[0].signal(SIGSTOP);
                other.read_body(lent, body.size(), 3 * patience);
                CHECK(f.origin.count("/a") == 2);
                f[0].signal(SIGCONT);
                at.rest.open();
            } else {
                // Longer than it would be waited for if it were at fault: silence, and a question.
                CHECK_FALSE(eventually([&] { return f.origin.count("/a") > 1; },
                                       std::chrono::milliseconds{7000}));
                at.rest.open();
                other.read_body(lent, body.size());
                CHECK(f.origin.count("/a") == 1);
            }
            CHECK(lent.body == body);
            one.read_body(got, body.size());
            CHECK(got.body == body);
        }
    }

    TEST_CASE("what an origin breaks off is told to be gone, and fetched by whoever wants it") {
        told at;
        auto& f = at.f;
        f.origin.on("/a", at.in_two(body, [](origin_connection& to) { to.close(); }));
        auto one = at.first();
        CHECK(one.read_head().status == 200);
        REQUIRE(eventually([&] { return f.claims(1, at.url); }));
        at.rest.open();
        CHECK(one.read_to_end().bytes.size() < body.size());
        REQUIRE(at.is_gone());
        f.origin.on("/a", ok("Cache-Control: max-age=600\r\n", body));
        CHECK(f[1].get(at.url).body == body);
        CHECK(f.origin.count("/a") == 2);
        CHECK(f.asked(1, "n0", "false-hit") == 0);
    }

    TEST_CASE("what is purged on its way, or left by all its clients, is told to be gone at once") {
        const auto large = patterned(4'000'000);
        for (const bool purged : {true, false}) {
            CAPTURE(purged);
            told at;
            auto& f = at.f;
            f.origin.on("/a", at.in_two(large, [&](origin_connection& to) {
                to.send(large.substr(large.size() / 2));
            }));
            auto one = at.first();
            auto got = one.read_head();
            CHECK(got.status == 200);
            REQUIRE(eventually([&] { return f.claims(1, at.url); }));
            if (purged) {
                CHECK(f[0].ask("PURGE", at.url).status == 404);  // nothing is stored yet
            } else {
                one = client{f[0].port()};
            }
            REQUIRE(at.is_gone());
            at.rest.open();
            if (purged) {
                one.read_body(got, large.size());
                CHECK(got.body == large);
                CHECK(at.is_gone());
            }
        }
    }

    TEST_CASE("what proves too long to be stored is told to be gone while it comes") {
        auto settings = seldom_settings();
        settings["memory"]["max_object"] = "64KiB";
        told at{settings};
        auto& f = at.f;
        auto& end = f.origin.make_gate();
        f.origin.on("/a", [&](origin_request&, origin_connection& to) {
            to.send(
                raw_head("200 OK", "Cache-Control: max-age=600\r\nTransfer-Encoding: chunked\r\n") +
                chunk(body.substr(0, 1000)));
            (void)at.rest.wait();
            to.send(chunk(body.substr(1000)));
            (void)end.wait();
            to.send(chunk(""));
        });
        auto one = at.first();
        auto got = one.read_head();
        CHECK(got.status == 200);
        REQUIRE(eventually([&] { return f.claims(1, at.url); }));
        at.rest.open();
        one.read_body(got, body.size());
        REQUIRE(at.is_gone());
        end.open();
        one.read_body(got, body.size() + 1);
        CHECK(got.body == body);
    }

    TEST_CASE("a fetch that a sibling feeds is joined by none") {
        // Else two nodes that believe each other to have it could wait for each other.
        fleet f{2};
        f.origin.on("/a", ok("Cache-Control: max-age=600\r\n", body));
        gate* rest = nullptr;
        liar as{f, 0, [&](origin_request&, origin_connection& connection) {
                    connection.send(raw_head("200 OK",
                                             "Age: 1\r\nCache-Control: max-age=600\r\n"
                                             "Content-Length: " +
                                                 std::to_string(body.size()) + "\r\n") +
                                    body.substr(0, 1000));
                    (void)rest->wait();
                    connection.send(body.substr(1000));
                }};
        rest = &as.as.make_gate();
        store_and_meet_liar(f, as, "1m");  // it is silent in the middle of its body
        client one{f[1].port()};
        one.send(absolute_request("GET", f.origin.url("/a")));
        auto got = one.read_head();
        CHECK(got.status == 200);
        client sibling{f[1].port()};
        CHECK(sibling.ask(absolute_request("GET", f.origin.url("/a"), only_if_cached)).status ==
              504);
        rest->open();
        one.read_body(got, body.size());
        CHECK(got.body == body);
        CHECK(f.origin.count("/a") == 1);
    }
}
