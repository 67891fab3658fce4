// What siblings tell each other, and whom: digests and what was seen, under a secret or without.

#include "tests/scenario/liar.hpp"
#include "tests/support/old_signature.hpp"

#include <ctime>
#include <fstream>

TEST_SUITE("scenario/sibling_exchange") {

    using namespace reprise::tests;

    namespace {

    std::string secret_in(const temp_dir& directory, char filler) {
        const auto path = directory.file(std::string{"secret-"} + filler);
        std::ofstream{path} << std::string(64, filler);
        return path;
    }

    const std::vector<std::string> signing_fields{
        "Reprise-Node", "Reprise-To", "Signature-Input", "Signature"};

    /// A request that was overheard, once more, with so many of the fields that sign it.
    std::string replay(const origin_request& asked,
                       const std::string& host,
                       const std::string& more = "",
                       const std::vector<std::string>& names = signing_fields) {
        auto wire = "GET " + asked.target + " HTTP/1.1\r\nHost: " + host + "\r\n" + more;
        for (const auto& name : names) {
            wire += name + ": " + asked.get(name) + "\r\n";
        }
        return wire + "\r\n";
    }

    /// A request as a node that knows nothing of RFC 9421 sends it, to one whose end is `to`.
    std::string ask_as_before(const std::string& host, const std::string& to, char filler) {
        const std::string target = "/.well-known/reprise/digest";
        return "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n" +
               old_signature_line(
                   {.target = target, .host = host, .to = to, .time = std::time(nullptr)},
                   std::string(64, filler)) +
               "\r\n";
    }

    }  // namespace

    TEST_CASE("digests go to peers of the settings alone") {
        auto settings = node_settings();
        settings["access"]["clients"] = json::array({"127.0.0.0/8"});
        fleet f{2, settings};
        const auto path = "GET /.well-known/reprise/digest HTTP/1.1\r\nHost: x\r\n\r\n";
        REQUIRE(f.holds(1, "n0", 0));
        client peer{f[0].port()};
        const auto got = peer.ask(path);
        CHECK(got.status == 200);
        CHECK(got.get("Cache-Control") == "private, no-cache, no-transform");
        CHECK(got.has("ETag"));
        CHECK(peer.ask("GET /.well-known/reprise/digest HTTP/1.1\r\nHost: x\r\nIf-None-Match: " +
                       got.get("ETag") + "\r\n\r\n")
                  .status == 304);
        client stranger{f[0].port(), "127.0.0.9"};
        CHECK(stranger.ask(path).status == 403);
        CHECK(stranger.ask("GET /.well-known/reprise/seen HTTP/1.1\r\nHost: x\r\n\r\n").status ==
              403);
        CHECK(stranger.ask("GET /else HTTP/1.1\r\nHost: x\r\n\r\n").status == 400);
    }

    TEST_CASE("with a secret, digests go to who signs, and another secret's are not used") {
        const temp_dir directory;
        auto settings = node_settings();
        settings["digest"]["secret_file"] = secret_in(directory, 'a');
        fleet f{2, settings};
        auto other = settings;
        other["digest"]["secret_file"] = secret_in(directory, 'b');
        f.add(other);
        f.meet();
        f.serve_everything();
        CHECK(f[0].get(f.origin.url("/a")).status == 200);
        CHECK(f.holds(1, "n0", 1));
        client unsigned_one{f[0].port()};
        CHECK(unsigned_one.ask("GET /.well-known/reprise/digest HTTP/1.1\r\nHost: x\r\n\r\n")
                  .status == 403);
        CHECK(eventually([&] { return f.text(2, "/siblings/trouble/n0") == "refused"; }));
        CHECK(
            f[2].admin("/metrics")
                .body.find("reprise_sibling_in_trouble{sibling=\"n0\",trouble=\"refused\"} 1\n") !=
            std::string::npos);
        CHECK(f[2].get(f.origin.url("/a")).status == 200);
        CHECK(f.asked(2, "n0", "true-hit") == 0);
        for (std::size_t i = 0; i < 3; ++i) {
            const auto all = f[i].errors() + f[i].output() + f[i].stats().dump();
            CHECK(all.find(std::string(8, 'a')) == std::string::npos);
        }
    }

    TEST_CASE("what one node was asked with a signature is refused by another") {
        const temp_dir directory;
        auto settings = node_settings();
        settings["digest"]["secret_file"] = secret_in(directory, 'a');
        fleet f{2, settings};
        fake_origin listed;  // a peer's address, without the secret
        listed.otherwise(sends(answer("404 Not Found", "", "")));
        f.tell(1, json::array({peer_at("n0", f[0].port()), peer_at("listed", listed.port())}));
        REQUIRE(eventually([&] { return listed.count("/.well-known/reprise/digest") > 0; }));
        const auto asked = listed.requests("/.well-known/reprise/digest").front();
        CHECK(asked.get("Reprise-Node").starts_with("reprise-"));
        CHECK(asked.get("Reprise-To") == listed.authority());
        CHECK(asked.get("Signature-Input").ends_with(";tag=\"reprise-peer\""));
        CHECK_FALSE(asked.has("Reprise-Signature"));
        CHECK_FALSE(asked.has("Via"));
        const auto there = "127.0.0.1:" + std::to_string(f[0].port());
        for (const auto& host : {asked.get("Host"), there}) {
            CAPTURE(host);
            client thief{f[0].port()};
            CHECK(thief.ask(replay(asked, host)).status == 403);
        }
        // Nor does it help to say that it is meant for this one.
        auto moved = replay(asked, asked.get("Host"));
        const std::string name = "Reprise-To: ";
        moved.replace(moved.find(name) + name.size(), listed.authority().size(), there);
        client thief{f[0].port()};
        CHECK(thief.ask(moved).status == 403);
    }

    TEST_CASE("who signs by the old field alone is answered, once, and asked by RFC 9421") {
        const temp_dir directory;
        auto settings = node_settings();
        settings["digest"]["secret_file"] = secret_in(directory, 'a');
        fleet f{1, settings};
        fake_origin older;  // it knows the old field alone, and so refuses what it is asked
        older.otherwise(sends(answer("403 Forbidden", "", "")));
        f.tell(0, json::array({peer_at("older", older.port())}));
        REQUIRE(eventually([&] { return older.count("/.well-known/reprise/digest") > 0; }));
        REQUIRE(eventually([&] { return figure(f[0].stats(), "/digest/published") > 0; }));
        const auto there = "127.0.0.1:" + std::to_string(f[0].port());
        const auto ask = [&](const std::string& wire) { return client{f[0].port()}.ask(wire); };
        CHECK(ask(ask_as_before(there, older.authority(), 'a')).status == 403);
        CHECK(ask(ask_as_before(there, there, 'b')).status == 403);
        const auto as_before = ask_as_before(there, there, 'a');
        const auto got = ask(as_before);
        CHECK(got.status == 200);
        CHECK(got.has("ETag"));
        CHECK(ask(as_before).status == 403);
        // No refusal brings the old field back.
        REQUIRE(eventually([&] { return older.requests("/.well-known/reprise/digest").size() > 1; },
                           3 * patience));
        for (const auto& asked : older.requests("/.well-known/reprise/digest")) {
            CHECK(asked.has("Signature"));
            CHECK_FALSE(asked.has("Reprise-Signature"));
        }
    }

    TEST_CASE("a signed request is good once, whole, and by way of nobody") {
        // What was overheard before it came: by a listener at an address that the node is known by.
        const temp_dir directory;
        auto settings = node_settings();
        settings["digest"]["secret_file"] = secret_in(directory, 'a');
        fleet f{0};
        f.add(settings);
        settings["forwarding"] = {{"pseudonym", "localhost"}};
        f.add(settings);
        f.tell(1, json::array({peer_at("n0", f[0].port())}));
        fake_origin overheard;
        overheard.otherwise(sends(answer("404 Not Found", "", "")));
        auto known = peer_at("n1", overheard.port());
        known["url"] = "http://localhost:" + std::to_string(overheard.port());
        f.tell(0, json::array({known}));
        const auto taken = [&](std::size_t i) {
            REQUIRE(eventually(
                [&] { return overheard.requests("/.well-known/reprise/digest").size() > i; },
                3 * patience));
            return overheard.requests("/.well-known/reprise/digest").at(i);
        };
        const auto ask = [&](const std::string& wire) {
            client one{f[1].port()};
            return one.ask(wire).status;
        };
        const auto first = taken(0);
        const auto host = first.get("Host");
        REQUIRE(eventually([&] { return figure(f[1].stats(), "/digest/published") > 0; }));
        // Behind a Via it was sent by way of the signer, whoever it was that signed.
        CHECK(ask(replay(first, host, "Via: 1.1 x\r\n")) == 403);
        CHECK(ask(replay(first, host)) == 403);  // that was its one time
        const auto second = taken(1);
        // With any of its fields gone it is not signed at all: there is no weaker signature to fall back to.
        for (const auto& dropped : signing_fields) {
            CAPTURE(dropped);
            auto others = signing_fields;
            std::erase(others, dropped);
            CHECK(ask(replay(second, host, "", others)) == 403);
        }
        CHECK(ask(replay(second, host, "", {"Reprise-Node", "Reprise-To"})) == 403);
        CHECK(ask(replay(second, host, "X-Forwarded-For: 10.0.0.1\r\n")) == 200);
        CHECK(ask(replay(second, host)) == 403);
        const auto said = "the signature of " + first.get("Reprise-Node") + " is replayed";
        CHECK(eventually([&] { return f[1].errors().find(said) != std::string::npos; }));
    }

    TEST_CASE("what a node's client asks of a peer is not told as to the node") {
        fleet f{2};
        f.serve_everything();
        CHECK(f[0].get(f.origin.url("/a")).status == 200);
        CHECK(f.holds(1, "n0", 1));  // the node itself is told
        const auto there = "127.0.0.1:" + std::to_string(f[0].port());
        for (const std::string path : {"/.well-known/reprise/digest",
                                       "/.well-known/reprise/seen",
                                       "/squid-internal-periodic/store_digest"}) {
            CAPTURE(path);
            const auto got = f[1].get("http://" + there + path);
            CHECK(got.status >= 400);
            CHECK_FALSE(got.has("ETag"));
            CHECK(got.get("Content-Type") != "application/octet-stream");
        }
        CHECK(f[1].get("http://" + there + "/.well-known/reprise/digest").status == 403);
    }

    TEST_CASE("no way through a listener leads to a peer's digest, with a secret and without") {
        const temp_dir directory;
        for (const bool signing : {false, true}) {
            CAPTURE(signing);
            auto settings = node_settings();
            if (signing) {
                settings["digest"]["secret_file"] = secret_in(directory, 'a');
            }
            fleet f{0};
            f.add(settings);
            const auto there = "127.0.0.1:" + std::to_string(f[0].port());
            settings["listeners"].push_back({{"address", "127.0.0.1:0"},
                                             {"mode", "accelerator"},
                                             {"upstream", "http://" + there}});
            f.add(settings);
            f.meet();
            REQUIRE(f.holds(1, "n0", 0));
            for (const std::string path :
                 {"/.well-known/reprise/digest", "/.well-known/reprise/seen"}) {
                CAPTURE(path);
                const auto is_kept_from = [](const response& got) {
                    return got.status == 403 && !got.has("ETag") &&
                           got.get("Content-Type") != "application/octet-stream";
                };
                // By a forward listener, of the peer or of the node itself; by an accelerator's; as
                // an upgrade; and under the name of the very node.
                CHECK(is_kept_from(f[1].get("http://" + there + path)));
                CHECK(is_kept_from(f[0].get("http://" + there + path)));
                CHECK(is_kept_from(
                    f[1].get("http://localhost:" + std::to_string(f[0].port()) + path)));
                client one{f[1].port(1)};
                CHECK(is_kept_from(
                    one.ask("GET " + path + " HTTP/1.1\r\nHost: " + there + "\r\n\r\n")));
                CHECK(is_kept_from(f[1].get("http://" + there + path,
                                            "Connection: Upgrade\r\nUpgrade: websocket\r\n"
                                            "Sec-WebSocket-Version: 13\r\n"
                                            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")));
                CHECK(is_kept_from(f[1].get("http://" + there + path, "Connection: Via\r\n")));
            }
        }
    }

    TEST_CASE("no tunnel leads to a peer, nor to a listener of one's own") {
        // There a client would be taken for the node: told digests, allowed to purge.
        fleet f{0};
        f.add(node_settings());
        f.add(node_settings());
        auto& [node, settings] = f.nodes.at(1);
        fake_origin other;
        settings["access"]["connect_ports"] = {
            f[0].port(), node.port(), node.admin_port(), other.port()};
        settings["peers"] = json::array({peer_at("n0", f[0].port())});
        // Its end is not waited for: with the ports comes who is a peer there.
        node.rewrite_settings(settings);
        node.signal(SIGHUP);
        const auto connects = [&, &through = node](const std::string& authority) {
            auto one = through.connect("CONNECT " + authority + " HTTP/1.1\r\nHost: x\r\n\r\n");
            return one.read("CONNECT").status;
        };
        REQUIRE(eventually(
            [&] { return connects("127.0.0.1:" + std::to_string(other.port())) == 200; }));
        for (const auto port : {f[0].port(), node.port(), node.admin_port()}) {
            CAPTURE(port);
            CHECK(connects("127.0.0.1:" + std::to_string(port)) == 403);
            CHECK(connects("localhost:" + std::to_string(port)) == 403);
        }
    }

    TEST_CASE("a digest that is none is refused by name, and the next good one is taken") {
        fleet f{2};
        f.serve_everything();
        struct deed {
            const char* trouble;
            origin_handler instead;
        };
        const std::vector<deed> deeds{
            {"malformed", sends(ok("ETag: \"1-1\"\r\n", std::string(5'000, 'x')))},
            {"too_large", sends("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nRPDG")},
            {"no_digest", sends(answer("404 Not Found", "", ""))},
            {"unreachable", [](auto&, auto& connection) { connection.reset(); }},
        };
        CHECK(f[0].get(f.origin.url("/a")).status == 200);
        for (const auto& one : deeds) {
            CAPTURE(std::string{one.trouble});
            std::atomic<bool> is_good{false};
            fake_origin as;
            as.on("/.well-known/reprise/digest",
                  [&](origin_request& request, origin_connection& connection) {
                      if (!is_good) {
                          one.instead(request, connection);
                          return;
                      }
                      client to{f[0].port()};
                      const auto got = to.ask("GET /.well-known/reprise/digest HTTP/1.1\r\n"
                                              "Host: x\r\n\r\n");
                      connection.send(ok("ETag: " + got.get("ETag") + "\r\n", got.body));
                  });
            // By a name of its own: one that has failed often is asked again after a long while.
            const auto name = std::string{"odd-"} + one.trouble;
            f.tell(1, json::array({peer_at(name, as.port())}));
            CHECK(
                eventually([&] { return f.text(1, "/siblings/trouble/" + name) == one.trouble; }));
            is_good = true;
            CHECK(f.holds(1, name, 1));
        }
        CHECK(f[1].get(f.origin.url("/a")).status == 200);
    }

    TEST_CASE("a second sight anywhere in the fleet admits") {
        const temp_dir directory;
        auto settings = node_settings();
        settings["digest"]["secret_file"] = secret_in(directory, 'a');
        settings["admission"] = "second-hit";
        fleet f{3, settings};
        f.serve_everything();
        CHECK(f[0].get(f.origin.url("/a")).status == 200);
        // What n0 saw reaches the others with the next exchange.
        const auto path = f.shared_sight(0, 1);
        REQUIRE(!path.empty());
        const auto told = f.origin.url("/told");
        CHECK(f[0].get(told).status == 200);
        CHECK(eventually([&] {
            const auto said = json::parse(f[1].admin("/explain?url=" + told).body).at("admission");
            return said.at("admits") == true && said.at("seen_before") == 0 &&
                   said.value("seen_by_siblings", false);
        }));
        CHECK(cache_status_of(f[1].get(told)).stored);
        CHECK(is_hit(f[1].get(f.origin.url(path))));
        CHECK(f.origin.count(path) == 2);
        REQUIRE(eventually([&] { return f.claims(2, f.origin.url(path)); }));
        CHECK(f[2].get(f.origin.url(path)).status == 200);
        CHECK(f.origin.count(path) == 2);
        // Any node knows of these two, by figures that are signed for like digests.
        CHECK(eventually([&] { return figure(f[2].stats(), "/fleet/sights_told") >= 2; }));
    }

    TEST_CASE("who answers in our name is not asked, and named in the log") {
        auto settings = node_settings();
        settings["forwarding"]["pseudonym"] = "all-the-same";
        fleet f{2, settings};
        CHECK(eventually([&] { return f.text(0, "/siblings/state/n1") == "itself"; }));
        CHECK(eventually([&] {
            const auto said = f[0].errors();
            return said.find("peers: n1 answers as all-the-same") != said.npos &&
                   said.find("forwarding.pseudonym") != said.npos;
        }));
    }

    TEST_CASE("a digest is whole again after a restart with a store on disk") {
        const temp_dir directory;
        auto settings = node_settings();
        settings["disk"] = disk_of_all_admitted(directory.file("store"), "64MiB");
        fleet f{0};
        f.add(settings);
        f.add(node_settings());
        f.meet();
        f.serve_everything();
        constexpr int objects = 200;
        for (int i = 0; i < objects; ++i) {
            CHECK(f[0].get(f.origin.url("/" + std::to_string(i))).status == 200);
        }
        REQUIRE(eventually([&] { return figure(f[0].stats(), "/disk/objects") >= objects; }));
        const auto epoch = [&f] {
            const auto generation = f.text(1, "/siblings/held_generation/n0");
            return generation.substr(0, generation.find('-'));
        };
        const auto before_the_end = epoch();
        const auto port = f[0].port();
        CHECK(f[0].stop() == 0);
        settings["listeners"][0]["address"] = "127.0.0.1:" + std::to_string(port);
        settings["peers"] = json::array({peer_at("n1", f[1].port())});
        const proxy_process again{settings};
        REQUIRE(eventually([&] { return figure(again.stats(), "/digest/listed") == objects; }));
        // The digest of the one that ended would do as well, until it is replaced: for that moment the sibling is not asked.
        REQUIRE(eventually([&] { return epoch() != before_the_end; }));
        REQUIRE(f.holds(1, "n0", objects));
        REQUIRE(eventually([&] {
            const auto page = f[1].admin("/explain?url=" + f.origin.url("/0"));
            return page.status == 200 &&
                   json::parse(page.body).at("siblings").at("claims") == json::array({"n0"});
        }));
        const auto before = f.origin.requests().size();
        int served = 0;
        for (int i = 0; i < objects; ++i) {
            served += f[1].get(f.origin.url("/" + std::to_string(i))).status == 200 ? 1 : 0;
        }
        CHECK(served == objects);
        CHECK(f.origin.requests().size() - before <= objects / 100);
        CHECK(again.ask("PURGE", f.origin.url("/5")).status == 200);
        CHECK(eventually([&] { return figure(again.stats(), "/digest/listed") == objects - 1; }));
    }
}
