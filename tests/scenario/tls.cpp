// A listener that speaks TLS to its clients: everything as on a plain one, and every end of a
// connection told apart as there.

#include "tests/scenario/world.hpp"
#include "tests/support/tls_client.hpp"

#include <algorithm>
#include <csignal>
#include <memory>
#include <vector>

TEST_SUITE("scenario/tls") {

    using namespace reprise::tests;

    namespace {

    const test_authority& authority() {
        static const test_authority one;
        return one;
    }

    /// A proxy with two listeners, the first with TLS, the second without.
    struct tls_world {
        temp_dir files;
        fake_origin origin;
        acceptor server;  ///< a plain TCP server, for tunnels
        std::unique_ptr<proxy_process> proxy;

        explicit tls_world(json settings = storing_settings()) {
            renew("IP:127.0.0.1");
            proxy = std::make_unique<proxy_process>(with_tls(settings));
        }
        void renew(const std::string& names) const {
            const auto made = authority().issue(names);
            files.write("certificate.pem", made.certificate);
            files.write("key.pem", made.key);
        }
        [[nodiscard]] json tls() const {
            return {{"certificate", files.file("certificate.pem")}, {"key", files.file("key.pem")}};
        }
        json& with_tls(json& settings) const {
            settings["listeners"] = json::array(
                {json{{"address", "127.0.0.1:0"}, {"tls", tls()}}, {{"address", "127.0.0.1:0"}}});
            settings["access"]["connect_ports"] = json::array({server.port()});
            return settings;
        }
        [[nodiscard]] std::unique_ptr<tls_client> connect(tls_peer::wishes wanted = {}) const {
            wanted.trusted = authority().certificate();
            return std::make_unique<tls_client>(proxy->port(), wanted);
        }
        [[nodiscard]] std::string request(std::string_view path,
                                          std::string_view fields = "") const {
            return absolute_request("GET", origin.url(path), fields);
        }
    };

    }  // namespace

    TEST_CASE("a miss, and then a hit, on one connection; the log names the client") {
        tls_world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        const auto one = w.connect();
        const auto first = one->ask(w.request("/a"));
        CHECK(first.status == 200);
        CHECK(first.body == "hello");
        CHECK(cache_status_of(first).stored);
        const auto second = one->ask(w.request("/a"));
        CHECK(second.body == "hello");
        CHECK(is_hit(second));
        CHECK(w.origin.count("/a") == 1);
        CHECK(w.proxy->logged("/a")["client"].get<std::string>().starts_with("127.0.0.1:"));
        // The other listener has the same store and no TLS.
        client plain{w.proxy->port(1)};
        CHECK(is_hit(plain.ask(w.request("/a"))));
    }

    TEST_CASE("two requests sent at once are answered in order") {
        tls_world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "first"));
        w.origin.on("/b", ok("Cache-Control: max-age=60\r\n", "second"));
        const auto one = w.connect();
        one->http().send(w.request("/a") + w.request("/b"));
        CHECK(one->http().read().body == "first");
        CHECK(one->http().read().body == "second");
    }

    TEST_CASE("large bodies arrive whole, both ways, fetched and from the store") {
        tls_world w;
        const auto body = patterned(9 * mib);
        w.origin.on("/large", ok("Cache-Control: max-age=60\r\n", body));
        w.origin.on("/up", [](origin_request& request, origin_connection& connection) {
            connection.send(ok("", std::to_string(request.body.size())));
        });
        const auto one = w.connect();
        CHECK(one->ask(w.request("/large")).body == body);
        CHECK(hit_body(one->ask(w.request("/large"))) == body);
        const auto up = one->ask(absolute_request("POST", w.origin.url("/up"), "", body));
        CHECK(up.body == std::to_string(body.size()));
    }

    TEST_CASE("the end of the last answer is told with a close_notify") {
        tls_world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        const auto one = w.connect();
        CHECK(one->ask(w.request("/a", "Connection: close\r\n")).complete());
        CHECK(one->end() == tls_end::closed);
    }

    TEST_CASE("a body that only the end delimits is whole with a close_notify, cut without") {
        tls_world w;
        auto& half = w.origin.make_gate();
        w.origin.on("/whole", [](origin_request&, origin_connection& connection) {
            connection.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n\r\nall of it");
            connection.close();
        });
        w.origin.on("/cut", [&](origin_request&, origin_connection& connection) {
            connection.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n\r\nhalf");
            half.wait();
            connection.reset();
        });
        const auto as_http10 = [&](std::string_view path) {
            return "GET " + w.origin.url(path) + " HTTP/1.0\r\nHost: " + w.origin.authority() +
                   "\r\n\r\n";
        };
        const auto one = w.connect();
        CHECK(one->ask(as_http10("/whole")).body == "all of it");
        CHECK(one->end() == tls_end::closed);

        const auto two = w.connect();
        two->http().send(as_http10("/cut"));
        auto answer = two->http().read_head();
        two->http().read_body(answer, 4);
        CHECK(answer.body == "half");
        half.open();
        CHECK(two->end() == tls_end::truncated);
    }

    TEST_CASE("CONNECT goes through, with its half-closed ends") {
        tls_world w;
        const auto authority_of = "127.0.0.1:" + std::to_string(w.server.port());
        const auto one = w.connect();
        one->http().send("CONNECT " + authority_of + " HTTP/1.1\r\nHost: " + authority_of +
                         "\r\n\r\n");
        auto far = w.server.accept(patience);
        REQUIRE(far.is_open());
        REQUIRE(one->http().read_head("CONNECT").status == 200);
        one->http().send("ping");
        CHECK(far.read_at_least(4) == "ping");
        one->http().connection().finish_sending();
        std::string rest;
        CHECK(far.read_some(rest) == read_end::closed);
        far.send("still here");
        far.close();
        CHECK(one->http().read_raw(10) == "still here");
        CHECK(one->end() == tls_end::closed);
    }

    TEST_CASE("a client that leaves in the middle ends what was fetched for it alone") {
        for (const bool reset : {false, true}) {
            CAPTURE(reset);
            tls_world w;
            auto& hold = w.origin.make_gate();
            w.origin.on("/slow", [&](origin_request&, origin_connection& connection) {
                connection.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n"
                                "Content-Length: 1000000\r\n\r\nbegun");
                CHECK(connection.is_closed_by_proxy());
                hold.open();
            });
            w.origin.on("/silent", [&](origin_request&, origin_connection& connection) {
                CHECK(connection.is_closed_by_proxy());
            });
            {
                const auto one = w.connect();
                one->http().send(w.request("/slow"));
                CHECK(one->http().read_head().status == 200);
                one->leave(reset);
                CHECK(hold.wait());
            }
            const auto two = w.connect();
            two->http().send(w.request("/silent"));
            REQUIRE(eventually([&] { return w.origin.count("/silent") == 1; }));
            two->leave(reset);
            CHECK(eventually([&] { return w.origin.open_connections() == 0; }));
        }
    }

    TEST_CASE("what is no TLS is closed, and the listener goes on") {
        tls_world w;
        w.origin.on("/a", ok("", "hello"));
        client plain{w.proxy->port()};
        plain.send("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n");
        const auto end = plain.read_to_end();
        CHECK(end.end != read_end::timed_out);
        CHECK(end.bytes.find("HTTP/") == std::string::npos);
        CHECK(w.connect()->ask(w.request("/a")).body == "hello");
    }

    TEST_CASE("a handshake that never ends is given up at timeouts.client_head") {
        auto settings = storing_settings();
        settings["timeouts"]["client_head"] = "200ms";
        const tls_world w{settings};
        client silent{w.proxy->port()};
        CHECK(silent.is_closed_by_proxy());
    }

    TEST_CASE("handshakes under way count for limits.connections_per_client") {
        auto settings = storing_settings();
        settings["limits"]["connections_per_client"] = 2;
        const tls_world w{settings};
        // Two threads accept: which of the three comes last is theirs to say.
        std::vector<client> silent;
        for (int i = 0; i < 3; ++i) {
            silent.emplace_back(w.proxy->port());
        }
        const auto closed = [&] {
            return std::count_if(silent.begin(), silent.end(), [](client& one) {
                std::string none;
                const std::chrono::milliseconds at_once{1};
                return one.connection().read_some(none, at_once) != read_end::timed_out;
            });
        };
        CHECK(eventually([&] { return closed() == 1; }));
        CHECK(never_within_a_moment([&] { return closed() > 1; }));
    }

    TEST_CASE("SIGHUP brings a renewed certificate, and connections that are open stay") {
        tls_world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        const auto before = w.connect();
        CHECK(before->ask(w.request("/a")).status == 200);
        w.renew("IP:127.0.0.1");
        CHECK(w.connect()->certificate_serial() == before->certificate_serial());
        w.proxy->signal(SIGHUP);
        CHECK(eventually(
            [&] { return w.connect()->certificate_serial() != before->certificate_serial(); }));
        CHECK(is_hit(before->ask(w.request("/a"))));
    }

    TEST_CASE("SIGHUP with a key of another certificate changes nothing and says why") {
        tls_world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        const auto before = w.connect();
        w.files.write("key.pem", authority().issue("IP:127.0.0.1").key);
        w.proxy->signal(SIGHUP);
        CHECK(eventually([&] {
            return w.proxy->errors().find("settings not changed: listeners[0].tls.key: ") !=
                   std::string::npos;
        }));
        CHECK(eventually([&] {
            return w.proxy->errors().find("is not the key of listeners[0].tls.certificate") !=
                   std::string::npos;
        }));
        CHECK(w.connect()->certificate_serial() == before->certificate_serial());
    }

    TEST_CASE("a reload may take TLS from a listener and give it to another") {
        tls_world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        auto settings = storing_settings();
        w.with_tls(settings);
        settings["listeners"][1]["tls"] = settings["listeners"][0]["tls"];
        settings["listeners"][0].erase("tls");
        w.proxy->reload(settings);
        client plain{w.proxy->port(0)};
        CHECK(plain.ask(w.request("/a")).status == 200);
        tls_client encrypted{w.proxy->port(1), {.trusted = authority().certificate()}};
        CHECK(encrypted.ask(w.request("/a")).status == 200);
    }

    TEST_CASE("a certificate that cannot be read keeps the program from starting, by name") {
        const temp_dir at;
        auto settings = storing_settings();
        const auto absent = at.file("absent.pem");
        settings["listeners"][0]["tls"] = {{"certificate", absent}, {"key", absent}};
        const auto file = at.write("settings.json", settings.dump());
        for (const auto& arguments :
             {std::vector<std::string>{"--config", file},
              std::vector<std::string>{"--config", file, "--check-config"}}) {
            const auto run = run_reprise(arguments);
            CHECK(run.exit_status == 1);
            CHECK(run.errors.find("listeners[0].tls.certificate: cannot read " + absent +
                                  ": No such file or directory") != std::string::npos);
        }
    }

    TEST_CASE("SIGTERM lets an answer under way arrive whole") {
        auto settings = storing_settings();
        settings["timeouts"]["drain"] = "10s";
        tls_world w{settings};
        const auto body = patterned(6 * mib);
        auto& hold = w.origin.hold("/a", ok("", body));
        const auto one = w.connect();
        one->http().send(w.request("/a"));
        REQUIRE(eventually([&] { return w.origin.count("/a") == 1; }));
        w.proxy->signal(SIGTERM);
        hold.open();
        const auto answer = one->http().read();
        CHECK(answer.complete());
        CHECK(answer.body == body);
        CHECK(one->end() == tls_end::closed);
        CHECK(w.proxy->wait() == 0);
    }

    namespace {

    /// The second listener and the first are in front of one origin, the first with TLS.
    struct two_doors : tls_world {
        two_doors() : tls_world{} {
            auto settings = storing_settings();
            settings["forwarding"]["client_address"] = "both";
            settings["listeners"] = json::array();
            for (const bool secure : {true, false}) {
                json door{{"address", "127.0.0.1:0"},
                          {"mode", "accelerator"},
                          {"upstream", "http://" + origin.authority()}};
                if (secure) {
                    door["tls"] = tls();
                }
                settings["listeners"].push_back(std::move(door));
            }
            token = files.file("token");
            files.write("token", "secret-secret-secret\n");
            settings["admin"]["token_file"] = token;
            proxy = std::make_unique<proxy_process>(settings);
            as_started = settings;
        }
        [[nodiscard]] response secure(std::string_view path, std::string_view fields = "") const {
            return connect()->ask(asked("GET", path, fields));
        }
        [[nodiscard]] response plain(std::string_view path, std::string_view fields = "") const {
            client one{proxy->port(1)};
            return one.ask(asked("GET", path, fields));
        }
        /// POST /purge with this query.
        [[nodiscard]] response purge(std::string_view query) const {
            client admin{proxy->admin_port()};
            return admin.ask("POST /purge?" + std::string{query} +
                             " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(proxy->admin_port()) +
                             "\r\nAuthorization: Bearer secret-secret-secret\r\n"
                             "Content-Length: 0\r\n\r\n");
        }
        [[nodiscard]] static std::string asked(std::string_view method,
                                               std::string_view path,
                                               std::string_view fields = "") {
            std::string out{method};
            return out.append(" ")
                .append(path)
                .append(" HTTP/1.1\r\n")
                .append(!fields.starts_with("Host:") ? "Host: shop.example\r\n" : "")
                .append(fields)
                .append("\r\n");
        }
        std::string token;
        json as_started;
    };

    }  // namespace

    TEST_CASE("an accelerator says by which scheme its client came, and nobody else does") {
        two_doors w;
        w.origin.on("/a", ok("Cache-Control: no-store\r\n", "hello"));
        const std::string claims =
            "X-Forwarded-Proto: gopher\r\nx_forwarded_proto: gopher\r\nX-Forwarded-Host: evil\r\n"
            "X-Forwarded-Port: 1\r\nFront-End-Https: on\r\nX-Forwarded-For: 192.0.2.7\r\n"
            "X-Forwarded-Prefix: /evil\r\nX-Original-URL: /evil\r\n"
            "CloudFront-Forwarded-Proto: gopher\r\n"
            "Forwarded: for=192.0.2.7;proto=gopher;host=evil;by=\"_x;y\", proto=gopher\r\n";
        CHECK(w.secure("/a", claims).body == "hello");
        CHECK(w.plain("/a", claims).body == "hello");
        const auto got = w.origin.requests("/a");
        REQUIRE(got.size() == 2);
        for (const bool secure : {true, false}) {
            const auto& one = got[secure ? 0 : 1];
            const std::string scheme = secure ? "https" : "http";
            CHECK(one.get("Host") == "shop.example");
            CHECK(one.fields.all("X-Forwarded-Proto") == scheme);
            CHECK(one.fields.all("X-Forwarded-For") == "192.0.2.7, 127.0.0.1");
            CHECK(one.fields.all("Forwarded") ==
                  "for=192.0.2.7;by=\"_x;y\", for=127.0.0.1;proto=" + scheme);
            CHECK(one.head.raw.find("gopher") == std::string::npos);
            CHECK(one.head.raw.find("evil") == std::string::npos);
            CHECK_FALSE(one.has("X-Forwarded-Port"));
            CHECK_FALSE(one.has("Front-End-Https"));
        }
    }

    TEST_CASE("what an accelerator answers over TLS is not what it answers without") {
        // As a site does that sends everybody to https.
        two_doors w;
        w.origin.on("/a", [](origin_request& request, origin_connection& connection) {
            if (request.get("X-Forwarded-Proto") == "https") {
                connection.send(ok("Cache-Control: max-age=60\r\n", "secret"));
            } else {
                connection.send(answer("301 Moved Permanently",
                                       "Cache-Control: max-age=60\r\n"
                                       "Location: https://shop.example/a\r\n",
                                       ""));
            }
        });
        CHECK(w.plain("/a").status == 301);
        CHECK(w.secure("/a").body == "secret");
        CHECK(is_hit(w.plain("/a")));
        CHECK(w.plain("/a", "X-Forwarded-Proto: https\r\n").status == 301);
        CHECK(hit_body(w.secure("/a", "X-Forwarded-Proto: http\r\n")) == "secret");
        // One authority, however it is written.
        CHECK(is_hit(w.secure("/a", "Host: shop.example:443\r\n")));
        CHECK(is_hit(w.secure("https://SHOP.example/a")));
        CHECK(is_hit(w.plain("/a", "Host: shop.example:80\r\n")));
        CHECK_FALSE(is_hit(w.secure("/a", "Host: shop.example:80\r\n")));
        CHECK(w.origin.requests("/a").back().get("Host") == "shop.example:80");
        CHECK(w.plain("https://shop.example/a").status == 501);
        const auto explained = json::parse(
            w.proxy->admin("/explain?url=https://shop.example/a&listener=0").body);
        CHECK(explained["key"]["text"] == "https://shop.example/a http://" + w.origin.authority());
        CHECK(explained["stored"].size() == 1);
    }

    TEST_CASE("a connection goes on as it was made, though its listener is given TLS or loses it") {
        two_doors w;
        w.origin.on("/a", [](origin_request& request, origin_connection& connection) {
            connection.send(ok("Cache-Control: max-age=60\r\n", request.get("X-Forwarded-Proto")));
        });
        const auto encrypted = w.connect();
        client plain{w.proxy->port(1)};
        const auto ask = w.asked("GET", "/a");
        CHECK(encrypted->ask(ask).body == "https");
        CHECK(plain.ask(ask).body == "http");
        auto settings = w.as_started;
        settings["listeners"][1]["tls"] = settings["listeners"][0]["tls"];
        settings["listeners"][0].erase("tls");
        w.proxy->reload(settings);
        CHECK(hit_body(encrypted->ask(ask)) == "https");
        CHECK(hit_body(plain.ask(ask)) == "http");
        // A purge finds both, whichever the listeners have now.
        CHECK(w.purge("url=http://shop.example/a").status == 200);
        CHECK_FALSE(is_hit(encrypted->ask(ask)));
        CHECK_FALSE(is_hit(plain.ask(ask)));
    }

    TEST_CASE("a purge finds what was stored over TLS, by https alone and by http too") {
        two_doors w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        const auto store = [&] {
            (void)w.secure("/a");
            (void)w.plain("/a");
        };
        store();
        CHECK(w.purge("url=https://shop.example/a").status == 200);
        CHECK(is_hit(w.plain("/a")));
        CHECK_FALSE(is_hit(w.secure("/a")));
        store();
        CHECK(w.purge("url=http://shop.example/a").status == 200);
        CHECK_FALSE(is_hit(w.plain("/a")));
        CHECK_FALSE(is_hit(w.secure("/a")));
    }

    TEST_CASE("so do a purge by prefix and one by tag, and neither goes any further") {
        two_doors w;
        w.origin.on("/dir/a", ok("Cache-Control: max-age=60\r\nSurrogate-Key: k\r\n", "hello"));
        w.origin.on("/dirt", ok("Cache-Control: max-age=60\r\n", "hello"));
        for (const bool only_https : {true, false}) {
            const auto site = std::string{only_https ? "https" : "http"} + "://shop.example";
            for (const auto& query : {"prefix=" + site + "/dir/", "tag=k&origin=" + site}) {
                CAPTURE(query);
                for (const std::string path : {"/dir/a", "/dirt"}) {
                    (void)w.secure(path);
                    (void)w.plain(path);
                }
                CHECK(w.purge(query).status == 200);
                CHECK(is_hit(w.plain("/dir/a")) == only_https);
                CHECK_FALSE(is_hit(w.secure("/dir/a")));
                CHECK(is_hit(w.plain("/dirt")));
                CHECK(is_hit(w.secure("/dirt")));
            }
        }
    }

    TEST_CASE("a PURGE by prefix at one accelerator leaves what another has of the same URLs") {
        two_doors w;
        fake_origin other;
        for (auto* one : {&w.origin, &other}) {
            one->on("/dir/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        }
        auto settings = w.as_started;
        settings["access"]["purge_clients"] = json::array({"127.0.0.1"});
        settings["listeners"][1]["tls"] = w.tls();
        settings["listeners"][1]["upstream"] = "http://" + other.authority();
        w.proxy = std::make_unique<proxy_process>(settings);
        const auto ask = [&](std::size_t door, const std::string& request) {
            tls_client to{w.proxy->port(door), {.trusted = authority().certificate()}};
            return to.ask(request);
        };
        const auto page = two_doors::asked("GET", "/dir/a");
        for (const std::size_t door : {0, 1}) {
            CHECK(ask(door, page).body == "hello");
            REQUIRE(is_hit(ask(door, page)));
        }
        CHECK(ask(0, two_doors::asked("PURGE", "/dir/", "Purge: prefix\r\n")).status == 200);
        CHECK_FALSE(is_hit(ask(0, page)));
        CHECK(is_hit(ask(1, page)));
        CHECK(other.count("/dir/a") == 1);
    }

    TEST_CASE("a Location with https is the same origin's where the request came over TLS") {
        two_doors w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        w.origin.on("/change", [](origin_request& request, origin_connection& connection) {
            connection.send(
                answer("201 Created", "Location: " + request.get("X-Where") + "/a\r\n", ""));
        });
        const auto change = [&](const std::string& where) {
            const auto made = w.connect()->ask(two_doors::asked(
                "POST", "/change", "X-Where: " + where + "\r\nContent-Length: 0\r\n"));
            CHECK(made.status == 201);
        };
        (void)w.secure("/a");
        for (const char* other : {"http://shop.example", "https://other.example"}) {
            change(other);
            CHECK(is_hit(w.secure("/a")));
        }
        for (const char* same :
             {"https://shop.example", "https://shop.example:443", "//shop.example", ""}) {
            CAPTURE(same);
            change(same);
            CHECK_FALSE(is_hit(w.secure("/a")));
        }
    }

}  // TEST_SUITE
