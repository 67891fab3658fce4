// Clients that have to say who they are: access.users_file and access.tokens_file.

#include "tests/scenario/opened_world.hpp"
#include "tests/scenario/ways_out.hpp"
#include "tests/scenario/world.hpp"

#include <algorithm>
#include <crypt.h>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

TEST_SUITE("scenario/users") {

    using namespace reprise::tests;

    namespace {

    std::string hashed(const std::string& password) {
        crypt_data work{};
        const char* const made = ::crypt_r(password.c_str(), "$6$rounds=1000$saltsalt$", &work);
        REQUIRE(made != nullptr);
        return made;
    }

    // "ann:secret", "ann:wrong", "ann:wrong1" and so on in Base64 (RFC 7617).
    std::string basic(const std::string& text) {
        constexpr std::string_view digits =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        std::string out;
        for (std::size_t i = 0; i < text.size(); i += 3) {
            std::uint32_t bits = 0;
            for (std::size_t k = 0; k < 3; ++k) {
                bits = bits << 8 |
                       (i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0u);
            }
            for (std::size_t k = 0; k < 4; ++k) {
                out += i + k <= text.size() ? digits[bits >> (18 - 6 * k) & 63] : '=';
            }
        }
        return "Proxy-Authorization: Basic " + out + "\r\n";
    }

    struct with_users {
        temp_dir place;
        json settings;
        world w;

        with_users()
            : settings([&] {
                  auto made = storing_settings();
                  made["access"]["users_file"] = place.write("users",
                                                             "ann:" + hashed("secret") + "\n");
                  made["access"]["tokens_file"] = place.write("tokens", "robot:0123456789abcdef\n");
                  return made;
              }()),
              w{settings} {
            w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        }
    };

    }  // namespace

    TEST_CASE(
        "who says nothing, or what is not so, gets 407 with a realm, and no origin hears of it") {
        with_users u;
        const auto asked = u.w.get("/a");
        CHECK(asked.status == 407);
        CHECK(asked.fields.all("Proxy-Authenticate") ==
              "Basic realm=\"reprise\", charset=\"UTF-8\", Bearer realm=\"reprise\"");
        CHECK(u.w.get("/a", basic("ann:wrong")).status == 407);
        CHECK(u.w.get("/a", basic("bob:secret")).status == 407);
        CHECK(u.w.get("/a", "Proxy-Authorization: Bearer 0123456789abcdeg\r\n").status == 407);
        CHECK(u.w.get("/a", "Proxy-Authorization: Digest x\r\n").status == 407);
        CHECK(u.w.origin.count("/a") == 0);
    }

    TEST_CASE(
        "who is known is served; his name is in the log, and what he proved it with nowhere") {
        with_users u;
        CHECK(u.w.get("/a", basic("ann:secret")).status == 200);
        CHECK(u.w.get("/a", basic("ann:secret")).status == 200);  // known by now, and a hit
        CHECK(u.w.get("/a?token=1", "Proxy-Authorization: bearer 0123456789abcdef\r\n").status ==
              200);
        for (const auto& request : u.w.origin.requests()) {
            CHECK_FALSE(request.has("Proxy-Authorization"));
        }
        CHECK(u.w.proxy.logged("/a?token").at("user") == "robot");
        std::vector<json> lines;
        REQUIRE(eventually([&] {
            lines = u.w.proxy.access_log();
            return lines.size() >= 3;
        }));
        REQUIRE(lines.size() == 3);
        std::vector<std::string> of_ann;  // lines of two threads, in no order
        for (const auto& line : lines) {
            if (line.at("user") == "ann") {
                of_ann.push_back(line.at("outcome"));
            }
        }
        CHECK(of_ann.size() == 2);
        CHECK(std::count(of_ann.begin(), of_ann.end(), "hit") == 1);
        for (const auto& all : {u.w.proxy.output(), u.w.proxy.errors()}) {
            CHECK(all.find("secret") == std::string::npos);
            CHECK(all.find("0123456789abcdef") == std::string::npos);
            CHECK(all.find(basic("ann:secret").substr(27, 12)) == std::string::npos);
        }
    }

    TEST_CASE("CONNECT is asked as well, and so is PURGE") {
        with_users u;
        auto to = u.w.proxy.connect();
        CHECK(to.ask("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n").status ==
              407);
        auto known = u.w.proxy.connect();
        CHECK(known
                  .ask("CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n" +
                       basic("ann:secret") + "\r\n")
                  .status == 403);  // the port, then

        auto open = u.settings;
        open["access"]["connect_ports"] = json::array({u.w.origin.port()});
        u.w.proxy.reload(open);
        const auto there = "127.0.0.1:" + std::to_string(u.w.origin.port());
        {
            auto through = u.w.proxy.connect();
            CHECK(through
                      .ask("CONNECT " + there + " HTTP/1.1\r\nHost: " + there + "\r\n" +
                           basic("ann:secret") + "\r\n")
                      .status == 200);
        }
        CHECK(u.w.proxy.logged(there).at("user") == "ann");  // a tunnel's line, too
        CHECK(u.w.ask("PURGE", "/a").status == 407);
    }

    TEST_CASE("a connection goes on behind a 407, and wrong ones are made to wait") {
        with_users u;
        auto to = u.w.proxy.connect();
        CHECK(to.ask(u.w.request("/a")).status == 407);
        CHECK(to.ask(u.w.request("/a", basic("ann:secret"))).status == 200);
        unsigned waits = 0;
        for (int i = 0; i < 10; ++i) {
            const auto got = to.ask(u.w.request("/a", basic("ann:wrong" + std::to_string(i))));
            CHECK((got.status == 407 || got.status == 429));
            waits += got.status == 429 && got.get("Retry-After") == "1" ? 1 : 0;
        }
        CHECK(waits > 0);
        CHECK(to.ask(u.w.request("/a", basic("ann:secret"))).status == 200);  // he is known
    }

    TEST_CASE("a reload takes other users, and a file with mistakes leaves those that were there") {
        with_users u;
        CHECK(u.w.get("/a", basic("ann:secret")).status == 200);
        u.place.write("users", "ann:" + hashed("secret") + "\nbob:plain text\n");
        u.w.proxy.reload(u.settings);
        CHECK(u.w.proxy.says("users:2: is plain text"));
        CHECK(u.w.get("/a", basic("ann:secret")).status == 200);
        u.place.write("users", "ann:" + hashed("another") + "\n");
        u.w.proxy.reload(u.settings);
        CHECK(u.w.get("/a", basic("ann:secret")).status == 407);
        CHECK(u.w.get("/a", basic("ann:another")).status == 200);
        auto open = u.settings;
        open["access"].erase("users_file");
        open["access"].erase("tokens_file");
        u.w.proxy.reload(open);
        CHECK(u.w.get("/a").status == 200);
    }

    TEST_CASE("who is listed no more is refused inside the tunnel that was opened for him") {
        const temp_dir place;
        const auto ann = "ann:" + hashed("secret") + "\n";
        const auto bob = "bob:" + hashed("secret") + "\n";
        auto settings = storing_settings();
        settings["access"]["users_file"] = place.write("users", ann + bob);
        opened_world w{json::object(), settings};
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        const auto enter = [&](const std::string& who) {
            return w.in_time([&] {
                auto to = w.proxy->connect(connect_to(w.at("a.test"), basic(who)));
                REQUIRE(to.read_head("CONNECT").status == 200);
                return std::make_unique<tls_client>(stream{to.connection().release()},
                                                    w.wishes("a.test"));
            });
        };
        const auto of_ann = enter("ann:secret");
        const auto of_bob = enter("bob:secret");
        CHECK(of_ann->ask(w.get("a.test", "/a")).body == "hello");
        CHECK(is_hit(of_ann->ask(w.get("a.test", "/a"))));
        place.write("users", bob);
        w.proxy->reload(w.settings);
        const auto refused = of_ann->ask(w.get("a.test", "/a"));
        CHECK(refused.status == 407);
        CHECK(lower(refused.get("Connection")) == "close");  // her next CONNECT is asked who she is
        CHECK(of_ann->end() == tls_end::closed);
        CHECK(is_hit(of_bob->ask(w.get("a.test", "/a"))));
        CHECK(w.figure("opened") == 2);
    }

    TEST_CASE(
        "a tunnel that was opened with a password or token that was changed is refused, too") {
        const temp_dir place;
        const auto write_users = [&](const std::string& of_ann) {
            return place.write("users",
                               "ann:" + hashed(of_ann) + "\nbob:" + hashed("secret") + "\n");
        };
        auto settings = storing_settings();
        settings["access"]["users_file"] = write_users("stolen");
        settings["access"]["tokens_file"] = place.write("tokens", "robot:0123456789abcdef\n");
        opened_world w{json::object(), settings};
        w.origin.on("/a", ok(std::string{cacheable}, "hello"));
        const std::string token = "Proxy-Authorization: Bearer 0123456789abcdef\r\n";
        const auto connect = [&](const std::string& who) {
            auto to = w.proxy->connect(connect_to(w.at("a.test"), who));
            return std::pair{to.read_head("CONNECT").status, std::move(to)};
        };
        const auto enter = [&](const std::string& who) {
            return w.in_time([&] {
                auto [status, to] = connect(who);
                REQUIRE(status == 200);
                return std::make_unique<tls_client>(stream{to.connection().release()},
                                                    w.wishes("a.test"));
            });
        };
        const auto of_ann = enter(basic("ann:stolen"));
        const auto of_bob = enter(basic("bob:secret"));
        const auto of_robot = enter(token);
        for (const auto* one : {&of_ann, &of_bob, &of_robot}) {
            CHECK((*one)->ask(w.get("a.test", "/a")).body == "hello");
        }
        write_users("hers alone");  // by the same names all of them are listed still
        w.proxy->reload(w.settings);
        CHECK(connect(basic("ann:stolen")).first == 407);
        CHECK(of_ann->ask(w.get("a.test", "/a")).status == 407);
        CHECK(of_ann->end() == tls_end::closed);
        CHECK(is_hit(of_bob->ask(w.get("a.test", "/a"))));
        CHECK(is_hit(of_robot->ask(w.get("a.test", "/a"))));
        place.write("tokens", "robot:fedcba9876543210\n");
        w.proxy->reload(w.settings);
        CHECK(connect(token).first == 407);
        CHECK(of_robot->ask(w.get("a.test", "/a")).status == 407);
        CHECK(of_robot->end() == tls_end::closed);
        CHECK(is_hit(of_bob->ask(w.get("a.test", "/a"))));
    }

    TEST_CASE("a start with a bad line ends with its number") {
        const temp_dir place;
        const auto users = place.write("users", "ann:" + hashed("x") + "\nbob:$apr1$a$b\n");
        const auto file = place.write(
            "settings",
            json{{"access", {{"users_file", users}}},
                 {"listeners", json::array({{{"address", "127.0.0.1:0"}}})},
                 {"admin", {{"address", "off"}}}}
                .dump());
        const auto checked = run_reprise({"check", file});
        CHECK(checked.exit_status == 1);
        CHECK(checked.errors.find("access.users_file: " + users + ":2: is an MD5 hash") !=
              std::string::npos);
        CHECK(run_reprise({"--config", file}).exit_status == 1);
    }

    TEST_CASE("/proxy.pac is given before anybody says who he is, and names the listener") {
        with_users u;
        const auto at = "127.0.0.1:" + std::to_string(u.w.proxy.port());
        auto to = u.w.proxy.connect();
        const auto got = to.ask("GET /proxy.pac HTTP/1.1\r\nHost: " + at + "\r\n\r\n");
        CHECK(got.status == 200);
        CHECK(got.get("Content-Type") == "application/x-ns-proxy-autoconfig");
        CHECK(got.body.find("\"PROXY " + at + "; DIRECT\"") != std::string::npos);
        auto other = u.w.proxy.connect();
        CHECK(other.ask("GET /other HTTP/1.1\r\nHost: " + at + "\r\n\r\n").status == 400);
    }

    TEST_CASE("an accelerator's clients are asked nothing: to them it is the origin") {
        with_users u;
        auto settings = u.settings;
        settings["listeners"].push_back({{"address", "127.0.0.1:0"},
                                         {"mode", "accelerator"},
                                         {"upstream", u.w.origin.url("")}});
        const proxy_process front{settings};
        client to{front.port(1)};
        CHECK(to.ask("GET /a HTTP/1.1\r\nHost: x\r\n\r\n").status == 200);
        CHECK(front.get(u.w.origin.url("/a")).status == 407);
    }
}
