// https as a scheme like http: fetched over TLS, checked, stored, asked for by name.

#include "tests/scenario/world.hpp"
#include "tests/support/tls_client.hpp"
#include "tests/support/waiting.hpp"

#include <memory>
#include <openssl/ssl.h>
#include <thread>

TEST_SUITE("scenario/https") {

    using namespace reprise::tests;

    namespace {

    const test_authority& authority() {
        static const test_authority one;
        return one;
    }

    /// An https origin, and a proxy that trusts its authority.
    struct https_world {
        temp_dir files;
        fake_origin origin;
        std::unique_ptr<proxy_process> proxy;

        explicit https_world(json settings = storing_settings(),
                             const made_certificate& made = authority().issue("IP:127.0.0.1"),
                             const tls_peer::server_wishes& tls = {})
            : origin{{.identity = made, .tls = tls}} {
            settings["origins"]["ca_file"] = files.write("authority.pem",
                                                         authority().certificate());
            proxy = std::make_unique<proxy_process>(settings);
        }
        [[nodiscard]] std::string url(std::string_view path) const {
            return "https://" + origin.authority() + std::string{path};
        }
        [[nodiscard]] std::string prefixed(std::string_view path) const {
            return "http://HTTPS///" + origin.authority() + std::string{path};
        }
        [[nodiscard]] response get(std::string_view path, std::string_view fields = "") const {
            return proxy->get(url(path), fields);
        }
    };

    json with_prefix() {
        auto settings = storing_settings();
        settings["access"]["https_prefix"] = json::array({"127.0.0.1"});
        return settings;
    }

    }  // namespace

    TEST_CASE("an https URL is fetched over TLS, stored, and hit; its key is not http's") {
        https_world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK(w.get("/a").body == "hello");
        const auto again = w.get("/a");
        CHECK(is_hit(again));
        CHECK(again.body == "hello");
        CHECK(w.origin.count("/a") == 1);
        const auto asked = w.origin.requests("/a").at(0);
        CHECK(asked.target == "/a");
        CHECK(asked.fields.has("Host"));
        CHECK(w.proxy->logged("/a")["url"].get<std::string>() == w.url("/a"));
        // http on the same port: the origin, which speaks TLS alone, closes.
        CHECK(w.proxy->get("http://" + w.origin.authority() + "/a").status == 502);
    }

    // Its key is that of what is asked for inside an opened tunnel.
    TEST_CASE("what answers a Cookie is stored with a stated lifetime and leave to share") {
        https_world w;
        w.origin.on("/max-age", ok("Cache-Control: max-age=60\r\n", "hello"));
        w.origin.on("/public", ok("Cache-Control: public, max-age=60\r\n", "hello"));
        const auto stored = [&](const std::string& path, const std::string& fields) {
            (void)w.get(path, fields);
            return is_hit(w.get(path, fields));
        };
        CHECK_FALSE(stored("/max-age", "Cookie: a=b\r\n"));
        CHECK(stored("/public", "Cookie: a=b\r\n"));
        CHECK(stored("/max-age", ""));
    }

    TEST_CASE("connections to one origin are kept") {
        https_world w;
        w.origin.on("/a", ok("", "hello"));
        w.origin.on("/close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx");
        auto one = w.proxy->connect();  // on one thread
        for (const std::string path : {"/a", "/a?2", "/close"}) {
            CHECK(one.ask(absolute_request("GET", w.url(path))).status == 200);
            CHECK(w.origin.connections() == 1);
        }
        CHECK(one.ask(absolute_request("GET", w.url("/a?3"))).status == 200);
        CHECK(w.origin.connections() == 2);
    }

    TEST_CASE("whatever is wrong with a certificate is a 502 that says it, and the next good one "
              "serves") {
        const auto shown = [](const made_certificate& made) {
            https_world w{storing_settings(), made};
            w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
            const auto got = w.get("/a");
            CHECK(got.status == 502);
            CHECK(w.get("/a").status == 502);
            CHECK(w.origin.asked() == 0);
            w.origin.identify_as(authority().issue("IP:127.0.0.1"));
            CHECK(w.get("/a").body == "hello");
            CHECK(is_hit(w.get("/a")));
            return got.body;
        };
        using std::chrono::hours;
        CHECK(shown(authority().issue("DNS:other.test")).find("mismatch") != std::string::npos);
        CHECK(shown(authority().issue("IP:127.0.0.1", {-hours{48}, -hours{24}})).find("expired") !=
              std::string::npos);
        CHECK(shown(authority().issue("IP:127.0.0.1", {hours{24}, hours{48}}))
                  .find("not yet valid") != std::string::npos);
        CHECK(shown(self_signed("IP:127.0.0.1")).find("self-signed") != std::string::npos);
        const test_authority unknown;
        CHECK(shown(unknown.issue("IP:127.0.0.1")).find("unable to get local issuer") !=
              std::string::npos);
    }

    TEST_CASE("a stale copy stands in for a refused connection, not for a bad certificate") {
        auto settings = storing_settings();
        settings["freshness"]["stale_on_error"] = "1h";
        https_world w{settings};
        const std::string head = "Cache-Control: max-age=60\r\nAge: 100\r\nConnection: close\r\n";
        w.origin.on("/a", ok(head, "hello"));
        CHECK(w.get("/a").body == "hello");
        w.origin.identify_as(self_signed("IP:127.0.0.1"));
        w.origin.on("/a", ok(head, "forged"));
        const auto got = w.get("/a");
        CHECK(got.status == 502);
        CHECK(got.body.find("self-signed") != std::string::npos);
        CHECK(w.origin.count("/a") == 1);
        w.origin.stop();
        CHECK(w.get("/a").body == "hello");
    }

    TEST_CASE("where certificates are asked for, a kept connection that died is one as anywhere") {
        using asking = tls_peer::server_wishes::asking;
        for (const int newest : {TLS1_2_VERSION, TLS1_3_VERSION}) {
            CAPTURE(newest);
            auto settings = storing_settings();
            settings["threads"] = 1;
            settings["freshness"]["stale_on_error"] = "1h";
            https_world w{settings,
                          authority().issue("IP:127.0.0.1"),
                          {.newest = newest, .client = asking::asks}};
            const origin_handler once = [](origin_request& request, origin_connection& connection) {
                if (request.number > 0) {
                    connection.close();
                    return;
                }
                connection.send(ok("Cache-Control: max-age=60\r\nAge: 100\r\n", "hello"));
            };
            w.origin.on("/a", once);
            for (int i = 0; i < 3; ++i) {
                CHECK(w.get("/a").body == "hello");
            }
            CHECK(w.origin.count("/a") == 5);  // of which two had no answer
            w.origin.stop();
            const auto stale = w.get("/a");
            CHECK(stale.body == "hello");
            CHECK(cache_status_of(stale).detail == "origin-failed");
        }
    }

    TEST_CASE("a body without length is whole with a close_notify alone") {
        https_world w;
        auto& has_half = w.origin.make_gate();
        w.origin.on("/cut", [&has_half](origin_request&, origin_connection& connection) {
            connection.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\nhalf");
            has_half.wait();
            connection.truncate();
        });
        w.origin.on("/whole", [](origin_request&, origin_connection& connection) {
            connection.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\nall");
            connection.close();
        });
        auto one = w.proxy->connect(absolute_request("GET", w.url("/cut")));
        auto cut = one.read_head();
        one.read_body(cut, 4);
        CHECK(cut.body == "half");
        has_half.open();
        one.read_body(cut, 5);
        CHECK(cut.end == ending::cut_short);
        CHECK(w.get("/whole").body == "all");
        CHECK(w.get("/whole").complete());
        CHECK_FALSE(is_hit(w.get("/cut")));
    }

    TEST_CASE("what is no TLS is a 502 in time") {
        acceptor silent;
        auto settings = basic_settings();
        settings["timeouts"]["origin_connect"] = "300ms";
        const proxy_process proxy{settings};
        const auto to = "https://127.0.0.1:" + std::to_string(silent.port()) + "/";
        CHECK(proxy.get(to).status == 504);
        proxy.reload(basic_settings());
        acceptor plain;
        std::thread server{[&] {
            auto one = plain.accept(patience);
            one.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            static_cast<void>(one.read_at_least(1 << 20));
        }};
        const auto got = proxy.get("https://127.0.0.1:" + std::to_string(plain.port()) + "/");
        server.join();
        CHECK(got.status == 502);
        CHECK(got.get("Proxy-Status").find("tls_protocol_error") != std::string::npos);
    }

    TEST_CASE("a revoked certificate is not taken, and the next good one serves") {
        const auto revoked = authority().issue("IP:127.0.0.1");
        https_world w{storing_settings(), revoked};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\nConnection: close\r\n", "hello"));
        CHECK(w.get("/a?1").status == 200);
        auto settings = storing_settings();
        settings["origins"]["ca_file"] = w.files.file("authority.pem");
        settings["origins"]["crl_file"] = w.files.write("list.pem", "no list");
        w.proxy->reload(settings);
        CHECK(eventually([&] {
            return w.proxy->errors().find("origins.crl_file: no PEM revocation list in ") !=
                   std::string::npos;
        }));
        CHECK(w.get("/a?2").status == 200);  // the settings are the old ones
        settings["origins"]["crl_file"] = w.files.write("revoked.pem",
                                                        authority().revoke(revoked.certificate));
        w.proxy->reload(settings);
        const auto got = w.get("/a?3");
        CHECK(got.status == 502);
        CHECK(got.body.find("revoked") != std::string::npos);
        w.origin.identify_as(authority().issue("IP:127.0.0.1"));
        CHECK(w.get("/a?3").body == "hello");
        CHECK(is_hit(w.get("/a?3")));
    }

    TEST_CASE("http://HTTPS///host is https for those that are listed, and so are its redirects") {
        https_world w{with_prefix()};
        const auto at = w.origin.authority();
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        const auto moved = [&](const std::string& to) {
            return "HTTP/1.1 302 Found\r\nCache-Control: max-age=60\r\nlocation: " + to +
                   "\r\nContent-Length: 0\r\n\r\n";
        };
        w.origin.on("/near", moved("/a"));
        w.origin.on("/far", moved("https://" + at + "/a#top"));
        w.origin.on("/away", moved("https://elsewhere.example/a"));
        w.origin.on("/plain", moved("http://" + at + "/a"));
        CHECK(w.proxy->get(w.prefixed("/a")).body == "hello");
        CHECK(is_hit(w.get("/a")));  // one object by both names
        CHECK(is_hit(w.proxy->get("http://https/" + at + "/a")));
        for (int time = 0; time < 2; ++time) {  // fetched, and from the store
            const auto to = [&](std::string_view path) {
                const auto got = w.proxy->get(w.prefixed(path));
                CHECK(got.status == 302);
                return std::string{got.get("Location")};
            };
            CHECK(to("/near") == w.prefixed("/a"));
            CHECK(to("/far") == w.prefixed("/a#top"));
            CHECK(to("/away") == "https://elsewhere.example/a");
            CHECK(to("/plain") == "http://" + at + "/a");
        }
        CHECK(w.get("/near").get("Location") == "/a");
        CHECK(w.proxy->get("http://HTTPS///elsewhere.example/").status == 403);
        CHECK(w.proxy->get("http://HTTPS////" + at + "/a").status == 400);
    }

    TEST_CASE("purge and explain know https") {
        auto settings = storing_settings();
        settings["access"]["purge_clients"] = json::array({"127.0.0.0/8"});
        https_world w{settings};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK(w.get("/a").status == 200);
        CHECK(is_hit(w.get("/a")));
        const auto explained = [&] {
            const auto told = w.proxy->admin("/explain?url=" + w.url("/a"));
            CHECK(told.status == 200);
            return json::parse(told.body);
        };
        const auto stored = explained();
        CHECK(stored["key"]["text"] == w.url("/a"));
        CHECK(stored["stored"].size() == 1);
        CHECK(stored["verdict"]["ruling"] == "hit");
        CHECK(stored["siblings"]["claims"].empty());
        CHECK(stored["opened"]["would"] == false);
        CHECK(
            json::parse(
                w.proxy->admin("/explain?url=http://" + w.origin.authority() + "/a").body)["stored"]
                .empty());
        CHECK(w.proxy->ask("PURGE", w.url("/a")).status == 200);
        CHECK(explained()["stored"].empty());
        CHECK_FALSE(is_hit(w.get("/a")));
    }

    TEST_CASE("an unsafe method over https makes its URL and its Location invalid, http's not") {
        https_world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        w.origin.on("/b", ok("Cache-Control: max-age=60\r\n", "hello"));
        w.origin.on("/post",
                    "HTTP/1.1 201 Created\r\nLocation: " + w.url("/b") +
                        "\r\nContent-Length: 0\r\n\r\n");
        for (const std::string path : {"/a", "/b"}) {
            CHECK(w.get(path).status == 200);
            CHECK(is_hit(w.get(path)));
        }
        CHECK(w.proxy->ask("POST", w.url("/post"), "Content-Length: 0\r\n").status == 201);
        CHECK(is_hit(w.get("/a")));
        CHECK_FALSE(is_hit(w.get("/b")));
    }

    TEST_CASE("what https brought outlives a restart on disk, and rules know its URLs") {
        const temp_dir files;
        auto settings = storing_settings();
        settings["disk"] = disk_of_all_admitted(files.file("store"), "64MiB");
        settings["admission"] = {{"policy", "always"},
                                 {"rules", {{{"url", "https://*/never/*"}, {"policy", "never"}}}}};
        fake_origin origin{{.identity = authority().issue("IP:127.0.0.1")}};
        origin.on("/a", ok("Cache-Control: max-age=600\r\n", "hello"));
        origin.on("/never/a", ok("Cache-Control: max-age=600\r\n", "hello"));
        settings["origins"]["ca_file"] = files.write("authority.pem", authority().certificate());
        const auto url = [&](const std::string& path) {
            return "https://" + origin.authority() + path;
        };
        {
            proxy_process proxy{settings};
            CHECK(proxy.get(url("/a")).status == 200);
            CHECK(proxy.get(url("/never/a")).status == 200);
            CHECK_FALSE(is_hit(proxy.get(url("/never/a"))));
            CHECK(eventually([&] { return proxy.stats()["disk"]["objects"] == 1; }));
        }
        const proxy_process proxy{settings};
        REQUIRE(eventually([&] { return proxy.stats()["disk"]["state"] == "ready"; }));
        CHECK(is_hit(proxy.get(url("/a"))));
        CHECK(origin.count("/a") == 1);
    }

    TEST_CASE("an accelerator may stand in front of an https upstream") {
        temp_dir files;
        origin_options options;
        options.identity = authority().issue("IP:127.0.0.1");
        fake_origin upstream{options};
        upstream.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        auto settings = storing_settings();
        settings["origins"]["ca_file"] = files.write("authority.pem", authority().certificate());
        settings["listeners"] = json::array(
            {json{{"address", "127.0.0.1:0"},
                  {"mode", "accelerator"},
                  {"upstream", "https://" + upstream.authority()}}});
        const proxy_process proxy{settings};
        client one{proxy.port()};
        const std::string request = "GET /a HTTP/1.1\r\nHost: site.example\r\n\r\n";
        CHECK(one.ask(request).body == "hello");
        CHECK(is_hit(one.ask(request)));
        CHECK(upstream.requests("/a").at(0).fields.get("Host") == "site.example");
    }

    TEST_CASE(
        "an upstream's bad certificate is a 502 for the accelerator's clients, nothing stale") {
        temp_dir files;
        fake_origin upstream{{.identity = authority().issue("IP:127.0.0.1")}};
        const std::string head = "Cache-Control: max-age=60\r\nAge: 100\r\nConnection: close\r\n";
        upstream.on("/a", ok(head, "hello"));
        auto settings = storing_settings();
        settings["freshness"]["stale_on_error"] = "1h";
        settings["origins"]["ca_file"] = files.write("authority.pem", authority().certificate());
        settings["listeners"] = json::array(
            {json{{"address", "127.0.0.1:0"},
                  {"mode", "accelerator"},
                  {"upstream", "https://" + upstream.authority()}}});
        const proxy_process proxy{settings};
        const auto get = [&] {
            client one{proxy.port()};
            return one.ask("GET /a HTTP/1.1\r\nHost: site.example\r\n\r\n");
        };
        CHECK(get().body == "hello");
        upstream.identify_as(authority().issue("DNS:site.example"));  // the client's name for it
        const auto refused = get();
        CHECK(refused.status == 502);
        CHECK(refused.get("Proxy-Status").find("tls_certificate_error") != std::string::npos);
        CHECK(refused.body.find("mismatch") == std::string::npos);  // that is for the log
        CHECK(eventually([&] { return proxy.output().find("mismatch") != std::string::npos; }));
        upstream.identify_as(authority().issue("IP:127.0.0.1"));
        CHECK(get().body == "hello");
        CHECK(upstream.count("/a") == 2);
    }

    TEST_CASE("over a listener with TLS an https URL is asked for like any other, from anywhere") {
        https_world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        const auto own = authority().issue("IP:127.0.0.1");
        auto settings = storing_settings();
        settings["origins"]["ca_file"] = w.files.file("authority.pem");
        settings["listeners"] = json::array(
            {json{{"address", "127.0.0.1:0"},
                  {"tls",
                   {{"certificate", w.files.write("own.pem", own.certificate)},
                    {"key", w.files.write("own.key", own.key)}}}}});
        const proxy_process proxy{settings};
        tls_client one{proxy.port(), {.trusted = authority().certificate()}};
        const auto request = absolute_request("GET", w.url("/a"));
        const auto first = one.ask(request);
        CHECK(first.body == "hello");
        CHECK(cache_status_of(first).stored);
        CHECK(is_hit(one.ask(request)));
        CHECK(w.origin.count("/a") == 1);
    }

}  // TEST_SUITE
