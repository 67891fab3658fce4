// NTLM and Negotiate log a connection in, and not a request: what has come on such a connection, and comes
// on it next, is its own client's.

#include "tests/scenario/opened_world.hpp"
#include "tests/scenario/world.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <string>

TEST_SUITE("scenario/connection_logins") {

    using namespace reprise::tests;

    namespace {

    json one_thread() {
        auto settings = storing_settings();
        settings["threads"] = 1;
        return settings;
    }

    /// An origin says who its connection was logged in by.
    struct logged_in_by_connection {
        explicit logged_in_by_connection(fake_origin& origin) {
            origin.otherwise([this](origin_request& request, origin_connection& to) {
                const std::lock_guard lock{guard};
                auto& user = users[request.connection];
                const auto said = request.get("Authorization");
                if (said.starts_with("NTLM ") || said.starts_with("negotiate ")) {
                    user = said.substr(said.find(' ') + 1);
                }
                // What is said to nobody in particular is not stored, so that the next is asked again.
                to.send(user.empty() ? ok("Cache-Control: no-store\r\n", "nobody")
                                     : ok("Cache-Control: public, max-age=60\r\n", user));
            });
        }

    private:
        std::mutex guard;
        std::map<unsigned, std::string> users;
    };

    struct logging_in : world {
        explicit logging_in(const json& settings = one_thread()) : world{settings} {}
        logged_in_by_connection users{origin};
    };

    }  // namespace

    TEST_CASE("a connection that a client has logged in answers that client, and nobody else") {
        logging_in w;
        for (const std::string scheme : {"NTLM", "negotiate"}) {
            CAPTURE(scheme);
            const auto login = "Authorization: " + scheme + " ann\r\n";
            auto ann = w.proxy.connect();
            CHECK(ann.ask(w.request("/" + scheme, login)).body == "ann");
            // What she asks next is answered as hers, though it does not say so; none of it is stored.
            for (int i = 0; i < 2; ++i) {
                const auto hers = ann.ask(w.request("/" + scheme));
                CHECK(hers.body == "ann");
                CHECK_FALSE(cache_status_of(hers).stored);
            }
            auto bob = w.proxy.connect();
            CHECK(bob.ask(w.request("/" + scheme)).body == "nobody");
            CHECK(bob.ask(w.request("/" + scheme, "Authorization: " + scheme + " bob\r\n")).body ==
                  "bob");
            CHECK(ann.ask(w.request("/" + scheme, "Cache-Control: no-cache\r\n")).body == "ann");
        }
        // They end with their clients'.
        CHECK(eventually([&] {
            const auto stats = w.proxy.stats();
            return stats.at("origins").at("open") == 1;
        }));
    }

    TEST_CASE("who is asked to log a connection in hears whether it is kept apart") {
        const auto told = [](const json& settings, const std::string& challenges) {
            world w{settings};
            w.origin.on("/a", answer("401 Unauthorized", challenges, "who?"));
            return w.get("/a");
        };
        const std::string ntlm = "WWW-Authenticate: Basic realm=\"a, b\", NTLM\r\n";
        const auto got = told(one_thread(), ntlm);
        CHECK(got.get("Proxy-Support") == "Session-Based-Authentication");
        CHECK(got.get("Connection").find("Proxy-Support") != std::string::npos);
        CHECK(told(one_thread(), "WWW-Authenticate: Negotiate\r\n").has("Proxy-Support"));
        CHECK_FALSE(
            told(one_thread(), "WWW-Authenticate: Basic realm=NTLM\r\n").has("Proxy-Support"));
        for (const std::string kind : {"trusted_fronts", "fronts"}) {
            CAPTURE(kind);
            auto settings = one_thread();
            settings["access"][kind] = {"127.0.0.1"};
            CHECK_FALSE(told(settings, ntlm).has("Proxy-Support"));
        }
    }

    TEST_CASE("another origin is asked as by anybody") {
        logging_in w, other;
        auto ann = w.proxy.connect();
        CHECK(ann.ask(w.request("/a", "Authorization: NTLM ann\r\n")).body == "ann");
        CHECK(ann.ask(absolute_request("GET", other.origin.url("/b"))).body == "nobody");
        auto bob = w.proxy.connect();
        CHECK(bob.ask(absolute_request("GET", other.origin.url("/b"))).body == "nobody");
        CHECK(other.origin.connections() == 1);
    }

    TEST_CASE("where a connection is many clients', a login is good for one request") {
        for (const std::string kind : {"trusted_fronts", "fronts"}) {
            CAPTURE(kind);
            auto settings = one_thread();
            settings["access"][kind] = {"127.0.0.1"};
            logging_in w{settings};
            auto front = w.proxy.connect();
            CHECK(front.ask(w.request("/a", "Authorization: NTLM ann\r\n")).body == "ann");
            CHECK(front.ask(w.request("/a")).body == "nobody");
            CHECK(w.proxy.stats().at("origins").at("open") == 1);
        }
    }

    TEST_CASE("an opened tunnel is one client's, also where a front passes it on") {
        for (const std::string kind : {"trusted_fronts", "fronts"}) {
            CAPTURE(kind);
            auto settings = one_thread();
            settings["access"][kind] = {"127.0.0.1"};
            opened_world w{json::object(), settings};
            logged_in_by_connection users{w.origin};
            const auto ann = w.enter("a.test");
            CHECK(ann->ask(w.get("a.test", "/a", "Authorization: NTLM ann\r\n")).body == "ann");
            CHECK(ann->ask(w.get("a.test", "/a")).body == "ann");
            CHECK(w.enter("a.test")->ask(w.get("a.test", "/a")).body == "nobody");
        }
    }

    TEST_CASE("what can't be sent twice goes on the connection that is logged in as well") {
        logging_in w;
        auto ann = w.proxy.connect();
        CHECK(ann.ask(w.request("/a", "Authorization: NTLM ann\r\n")).body == "ann");
        const auto post = absolute_request("POST", w.origin.url("/a"), "Content-Length: 2\r\n") +
                          "hi";
        CHECK(ann.ask(post).body == "ann");
        CHECK(ann.ask(post).body == "ann");
    }

    TEST_CASE("what an origin says to one client of what is stored changes nothing of that") {
        world w{one_thread()};
        std::atomic<int> asked{0};
        w.origin.on("/a", [&](origin_request&, origin_connection& to) {
            to.send(asked++ == 0
                        ? ok("Cache-Control: public, max-age=0\r\nETag: \"1\"\r\n", "hello")
                        : raw_head("304 Not Modified", "ETag: \"1\"\r\nX-User: ann\r\n"));
        });
        CHECK(w.get("/a").body == "hello");
        CHECK(w.get("/a", "Authorization: NTLM ann\r\n").body == "hello");
        const auto stored = w.get("/a", "Cache-Control: only-if-cached, max-stale\r\n");
        CHECK(stored.body == "hello");
        CHECK_FALSE(stored.has("X-User"));
    }

    TEST_CASE("a parent's connection leads to the origin's that it makes for it") {
        logging_in w;  // in the place of a parent that keeps connections apart by its clients'
        auto settings = one_thread();
        settings["peers"] = {{{"name", "p"}, {"kind", "parent"}, {"url", w.origin.url("")}}};
        settings["peering"]["never_direct"] = true;
        const proxy_process proxy{settings};
        client ann{proxy.port(), "127.0.0.2"};
        const auto ask = [&](client& by, const std::string& fields = "") {
            return by.ask(absolute_request("GET", "http://192.0.2.1/a", fields)).body;
        };
        CHECK(ask(ann, "Authorization: NTLM ann\r\n") == "ann");
        client bob{proxy.port(), "127.0.0.2"};
        CHECK(ask(bob) == "nobody");
        CHECK(ask(ann) == "ann");
    }

}  // TEST_SUITE
