// peering.homes: each URL belongs to one node, which fetches it and has it on disk.

#include "tests/scenario/fleet.hpp"
#include "tests/support/temp_dir.hpp"

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

TEST_SUITE("scenario/homes") {

    using namespace reprise::tests;
    using namespace std::chrono_literals;

    namespace {

    json home_settings() {
        auto settings = node_settings();
        settings["peering"]["homes"] = true;
        settings["peering"]["budget"] = "20s";  // machines may be busy
        return settings;
    }

    std::string name_of(std::size_t i) {
        return "node-" + std::to_string(i);
    }

    /// Every thread of it: one that runs yet could still say that it is at work.
    bool has_stopped(pid_t process) {
        const std::filesystem::path tasks{"/proc/" + std::to_string(process) + "/task"};
        for (const auto& task : std::filesystem::directory_iterator{tasks}) {
            std::ifstream in{task.path() / "stat"};
            std::string line;
            std::getline(in, line);
            const auto name_ends = line.rfind(')');
            if (name_ends == std::string::npos || line.substr(name_ends + 1, 2) != " T") {
                return false;
            }
        }
        return true;
    }

    /// Nodes of which each knows that all others live. `each` says more of every sibling.
    struct homes : fleet {
        explicit homes(std::size_t count,
                       const json& settings = home_settings(),
                       const temp_dir* disks = nullptr,
                       const json& each = json::object())
            : fleet{0} {
            for (std::size_t i = 0; i < count; ++i) {
                auto own = settings;
                own["forwarding"]["pseudonym"] = name_of(i);
                if (disks != nullptr) {
                    own["disk"] = disk_of_all_admitted(disks->file(name_of(i)), "64MiB");
                }
                add(own);
            }
            meet(each);
            for (std::size_t i = 0; i < count; ++i) {
                REQUIRE(shares_with(i, count - 1));
            }
            // Each thread has a book of who lives, and may come to it behind the page: not behind a reload.
            meet(each);
        }

        /// Node `i` comes to share URLs with so many others.
        [[nodiscard]] bool shares_with(std::size_t i, std::size_t others) {
            const json::json_pointer place{"/homes/siblings"};
            return eventually([&] {
                const auto stats = nodes.at(i).first.stats();
                return stats.contains(place) && stats.at(place).size() == others;
            });
        }
        /// Whose it is, as node `i` says; empty: its own.
        [[nodiscard]] std::string home(std::size_t i, const std::string& path) {
            const auto page = nodes.at(i).first.admin("/explain?url=" + origin.url(path));
            const auto said = json::parse(page.body).at("siblings").at("home");
            return said.is_null() ? std::string{} : said.get<std::string>();
        }
        /// A path that nobody was asked for yet, and that belongs to `node`, as node `i` says.
        [[nodiscard]] std::string path_of(std::size_t node, std::size_t i) {
            for (;;) {
                auto path = "/" + std::to_string(next_++);
                if (home(i, path) == (node == i ? std::string{} : name_of(node))) {
                    return path;
                }
            }
        }
        [[nodiscard]] std::int64_t asked(std::size_t i) {
            return figure(nodes.at(i).first.stats(), "/homes/asked");
        }
        [[nodiscard]] std::int64_t failed(std::size_t i) {
            return figure(nodes.at(i).first.stats(), "/homes/failed");
        }

    private:
        unsigned next_ = 0;
    };

    }  // namespace

    TEST_CASE("what all ask for at the same moment is fetched once, and lies on one disk") {
        constexpr std::size_t nodes = 4;
        constexpr int objects = 24;
        const temp_dir disks;
        homes f{nodes, home_settings(), &disks};
        f.origin.otherwise([](origin_request& request, origin_connection& connection) {
            // Longer than all of them take to ask.
            if (connection.pause(std::chrono::milliseconds{500})) {
                connection.send(ok("Cache-Control: max-age=600\r\n", "body of " + request.target));
            }
        });
        std::vector<std::thread> clients;
        std::atomic<int> right{0};
        for (std::size_t i = 0; i < nodes; ++i) {
            for (int object = 0; object < objects; ++object) {
                clients.emplace_back([&f, &right, i, object] {
                    const auto path = "/" + std::to_string(object);
                    const auto got = f[i].get(f.origin.url(path));
                    right += got.status == 200 && got.body == "body of " + path ? 1 : 0;
                });
            }
        }
        for (auto& one : clients) {
            one.join();
        }
        CHECK(right == nodes * objects);
        for (int object = 0; object < objects; ++object) {
            CHECK(f.origin.count("/" + std::to_string(object)) == 1);
        }
        const auto on_disks = [&f] {
            std::int64_t all = 0;
            for (std::size_t i = 0; i < nodes; ++i) {
                all += figure(f[i].stats(), "/disk/objects");
            }
            return all;
        };
        CHECK(eventually([&] { return on_disks() == objects; }));
        // Memory has copies, which were not asked for again.
        CHECK(f[0].get(f.origin.url("/3")).body == "body of /3");
        CHECK(f.origin.count("/3") == 1);
        CHECK(on_disks() == objects);
    }

    TEST_CASE("all nodes say the same of whose a URL is") {
        homes f{3};
        for (int i = 0; i < 60; ++i) {
            const auto path = "/" + std::to_string(i);
            const auto said = f.home(0, path);
            const auto home = said.empty() ? name_of(0) : said;
            for (std::size_t node = 1; node < 3; ++node) {
                const auto other = f.home(node, path);
                CHECK((other.empty() ? name_of(node) : other) == home);
            }
        }
    }

    TEST_CASE("a node that is reached in two ways is one home, and the log names two of one name") {
        homes f{3};
        auto ways = json::array();
        for (const std::string host : {"127.0.0.1", "localhost"}) {
            ways.push_back(peer_at(host, f[1].port()));
            ways.back()["url"] = "http://" + host + ":" + std::to_string(f[1].port());
        }
        f.tell(0, ways);
        for (const std::string host : {"127.0.0.1", "localhost"}) {
            REQUIRE(eventually([&] {
                return f[0].stats()["siblings"]["state"].value(host, std::string{}) == "current";
            }));
        }
        const auto is_home = [&](std::size_t node) {
            for (int i = 0; i < 60; ++i) {
                if (f.home(0, "/" + std::to_string(i)) == name_of(node)) {
                    return true;
                }
            }
            return false;
        };
        CHECK(f.shares_with(0, 1));
        CHECK(eventually([&] { return is_home(1); }));
        CHECK(f[0].errors().find("several siblings answer as") == std::string::npos);

        auto settings = home_settings();
        settings["forwarding"]["pseudonym"] = name_of(1);
        const auto& another = f.add(settings);
        f.tell(0,
               json::array({peer_at("n1", f[1].port()),
                            peer_at("n2", f[2].port()),
                            peer_at("n3", another.port())}));
        CHECK(eventually(
            [&] {
                return f[0].errors().find("peers: several siblings answer as node-1: ") !=
                       std::string::npos;
            },
            3 * patience));
        CHECK(f.shares_with(0, 1));
        CHECK_FALSE(is_home(1));
        CHECK(is_home(2));
    }

    TEST_CASE("a home that is gone is passed by, and its URLs go to those that live") {
        homes f{3};
        f.serve_everything();
        const auto first = f.path_of(1, 0);
        std::vector<std::string> its;
        for (int i = 0; i < 8; ++i) {
            its.push_back(f.path_of(1, 0));
        }
        f[1].kill();
        CHECK(f[0].get(f.origin.url(first)).body == "body of " + first);
        CHECK(f.origin.count(first) == 1);
        // Its digest's connection has broken too: where that was seen first it was not even asked.
        const auto failed = f.failed(0);
        CHECK(failed <= 1);
        CHECK((failed == 0 ||
               f[0].says("node-1: a home that is passed by from now on: connect_refused")));
        REQUIRE(f.shares_with(0, 1));  // its digest is not to be had either
        const auto peers = f.nodes.at(0).second["peers"];
        f.tell(0, peers);  // as they are: all threads have come to know by its end
        for (const auto& path : its) {
            CHECK(f.home(0, path) != name_of(1));
            CHECK(f[0].get(f.origin.url(path)).body == "body of " + path);
        }
        CHECK(f.failed(0) == failed);
    }

    TEST_CASE("a home that does not stir is waited for as long as peering.budget says") {
        auto settings = home_settings();
        settings["peering"]["budget"] = "2s";
        homes f{2, settings};
        f.serve_everything();
        const auto path = f.path_of(1, 0);
        f[1].signal(SIGSTOP);
        REQUIRE(eventually([&] { return has_stopped(f[1].pid()); }));
        const auto got = f[0].get(f.origin.url(path));
        const auto failed = f.failed(0);
        f[1].signal(SIGCONT);
        CHECK(got.body == "body of " + path);
        CHECK(failed == 1);
    }

    TEST_CASE(
        "a home at work is waited for as an origin is, and its client hears nothing of that") {
        auto settings = home_settings();
        settings["peering"]["budget"] = "3s";
        homes f{2, settings};
        const auto path = f.path_of(1, 0);
        f.origin.on(path, [](origin_request&, origin_connection& connection) {
            if (connection.pause(std::chrono::milliseconds{4500})) {
                connection.send(ok("Cache-Control: max-age=600\r\n", "late"));
            }
        });
        auto client = f[0].connect("GET " + f.origin.url(path) + " HTTP/1.1\r\nHost: x\r\n\r\n");
        const auto got = client.read();
        CHECK(got.status == 200);
        CHECK(got.body == "late");
        CHECK(got.interim.empty());
        CHECK(f.failed(0) == 0);
        CHECK(f.origin.count(path) == 1);
    }

    TEST_CASE("what is handed on is handed on once, whatever the nodes believe") {
        homes f{3};
        f.serve_everything();
        const auto path = f.path_of(2, 0);
        const auto before = f.asked(0);
        // Node 1 believed that it is node 0's.
        auto client = f[0].connect("GET " + f.origin.url(path) +
                                   " HTTP/1.1\r\nHost: x\r\nConnection: Reprise-Home\r\n"
                                   "Reprise-Home: node-0\r\n\r\n");
        const auto got = client.read();
        CHECK(got.body == "body of " + path);
        REQUIRE(got.interim.size() == 1);
        CHECK(got.interim[0].status == 102);
        CHECK(f.asked(0) == before);
        const auto seen = f.origin.requests(path).front();
        CHECK_FALSE(seen.has("Reprise-Home"));
    }

    TEST_CASE("a home that refuses, or can't reach the origin, is no obstacle") {
        auto settings = home_settings();
        homes f{2, settings};
        f.serve_everything();
        const auto path = f.path_of(1, 0);
        auto strict = f.nodes.at(1).second;
        strict["access"]["deny_destinations"] = {"127.0.0.1"};
        f.nodes.at(1).second = strict;
        f.tell(1, strict["peers"]);
        REQUIRE(eventually([&] { return f[1].get(f.origin.url("/denied")).status == 403; }));
        CHECK(f[0].get(f.origin.url(path)).body == "body of " + path);
        CHECK(f.origin.count(path) == 1);
        CHECK(f.failed(0) == 1);
    }

    TEST_CASE("a head that is too much with the home's own lines is no fault of the home") {
        constexpr int most = 40;
        auto settings = home_settings();
        settings["limits"]["fields"] = most;
        homes f{2, settings};
        f.serve_everything();
        const auto path = f.path_of(1, 0), other = f.path_of(1, 0);
        std::string fields = "Cache-Control: max-age=600\r\n";
        for (int i = 3; i < most; ++i) {  // with Date and Content-Length
            fields += "X-" + std::to_string(i) + ": 1\r\n";
        }
        f.origin.on(path, ok(fields, "long"));
        CHECK(f[1].get(f.origin.url(path)).body == "long");
        CHECK(f[0].get(f.origin.url(path)).body == "long");
        CHECK(f.origin.count(path) == 2);
        CHECK(f.failed(0) == 1);
        const auto asked = f.asked(0);
        CHECK(f[0].get(f.origin.url(other)).body == "body of " + other);
        CHECK(f.asked(0) == asked + 1);
        CHECK(f.failed(0) == 1);
        CHECK(f[0].errors().find("passed by from now on") == std::string::npos);
    }

    TEST_CASE("a home whose own way out is shut says nothing of the origin") {
        homes f{2};
        f.serve_everything("Cache-Control: no-store\r\n");
        fake_origin gate;
        gate.otherwise([](origin_request&, origin_connection& connection) {
            connection.send(answer("407 Proxy Authentication Required", "", "who?"));
        });
        const auto path = f.path_of(1, 0), other = f.path_of(1, 0);
        auto& settings = f.nodes.at(1).second;
        settings["peering"]["never_direct"] = true;
        auto peers = settings["peers"];
        peers.push_back(parent_at("gate", gate.port()));
        f.tell(1, peers);
        REQUIRE(eventually([&] { return f[1].get(f.origin.url(other)).status == 502; }));
        CHECK(f[0].get(f.origin.url(path)).body == "body of " + path);
        CHECK(f.origin.count(path) == 1);
        CHECK(f.failed(0) == 1);
    }

    TEST_CASE("what a client has done through a node is not undone by the home that knows nothing "
              "of it") {
        for (const std::string deed : {"POST", "PURGE", "soft"}) {
            CAPTURE(deed);
            auto settings = home_settings();
            settings["access"]["purge_clients"] = {"127.0.0.1"};
            homes f{2, settings};
            const auto path = f.path_of(1, 0);
            const std::string fields = "Cache-Control: max-age=600\r\nETag: ";
            f.origin.on(path, ok(fields + "\"1\"\r\n", "old"));
            for (int i = 0; i < 2; ++i) {
                CHECK(f[0].get(f.origin.url(path)).body == "old");
            }
            f.origin.on(path, ok(fields + "\"2\"\r\n", "new"));
            const auto ask = [&](const std::string& method, const std::string& more) {
                auto one = f[0].connect(absolute_request(method, f.origin.url(path), more));
                return one.read(method).status;
            };
            CHECK(ask(deed == "POST" ? "POST" : "PURGE",
                      deed == "POST"   ? "Content-Length: 0\r\n"
                      : deed == "soft" ? "Purge: soft\r\n"
                                       : "") == 200);
            CHECK(f[0].get(f.origin.url(path)).body == "new");
            CHECK(f[0].get(f.origin.url(path)).body == "new");
            CHECK(f.failed(0) == 0);  // it is not to blame
        }
    }

    TEST_CASE("what the home fetches just now is not outdated, however long that takes") {
        homes f{2};
        const auto path = f.path_of(1, 0);
        f.origin.on(path, [](origin_request& request, origin_connection& connection) {
            // Longer than a second, by which its age shows.
            if (request.method == "POST" || connection.pause(std::chrono::milliseconds{2500})) {
                connection.send(ok("Cache-Control: max-age=600\r\n", "new"));
            }
        });
        auto posting = f[0].connect(
            absolute_request("POST", f.origin.url(path), "Content-Length: 0\r\n"));
        CHECK(posting.read("POST").status == 200);
        CHECK(f[0].get(f.origin.url(path)).body == "new");
        CHECK(f.origin.count(path) == 2);
        CHECK(f.failed(0) == 0);
    }

    TEST_CASE("what the home has from another cache may be outdated though it asked for it now") {
        homes f{2};
        const auto path = f.path_of(1, 0);
        // Of whoever stands between, and is older than what the client does.
        f.origin.on(path, ok("Cache-Control: max-age=600\r\nAge: 300\r\n", "of then"));
        auto posting = f[0].connect(
            absolute_request("POST", f.origin.url(path), "Content-Length: 0\r\n"));
        CHECK(posting.read("POST").status == 200);
        CHECK(f[0].get(f.origin.url(path)).status == 200);
        CHECK(f.origin.count(path) == 3);  // by the home, and by this node itself
        CHECK(f.failed(0) == 0);
    }

    TEST_CASE("an origin that says nothing is no fault of the home that asks it") {
        auto settings = home_settings();
        settings["timeouts"]["origin_head"] = "1s";
        homes f{2, settings};
        const auto path = f.path_of(1, 0);
        f.origin.on(path, [](origin_request&, origin_connection& connection) {
            (void)connection.is_closed_by_proxy(patience);
        });
        CHECK(f[0].get(f.origin.url(path)).status == 504);
        CHECK(f.failed(0) == 0);
        CHECK(f.origin.count(path) == 1);
    }

    TEST_CASE("what a node has stands in for an origin that its home can't reach") {
        homes f{2};
        const auto path = f.path_of(1, 0), other = f.path_of(1, 0);
        const auto url = f.origin.url(path);
        f.origin.on(path, ok("Age: 100\r\nCache-Control: max-age=60\r\nETag: \"1\"\r\n", "kept"));
        CHECK(f[0].get(url).body == "kept");
        CHECK(f[1].ask("PURGE", url).status == 200);
        CHECK(f.asked(0) == 1);
        f.origin.stop();
        const auto got = f[0].get(url);
        CHECK(got.status == 200);
        CHECK(got.body == "kept");
        CHECK(got.fields.all("Cache-Status").find("detail=origin-failed") != std::string::npos);
        CHECK(f.asked(0) == 2);
        // Without a copy it is what the home says, in this node's words.
        const auto none = f[0].get(f.origin.url(other));
        CHECK(none.status == 502);
        CHECK(none.get("Proxy-Status").starts_with("node-0; error=connection_refused"));
        CHECK(none.body.find("node-1 says so") != std::string::npos);
        CHECK(f.failed(0) == 0);
    }

    TEST_CASE("what the home has had for longer does not take the place of what came since") {
        homes f{2};
        const auto path = f.path_of(1, 0);
        const auto url = f.origin.url(path);
        const auto version =
            [](std::chrono::seconds from_now, const std::string& fields, const std::string& body) {
                return "HTTP/1.1 200 OK\r\nDate: " + http_date(from_now) + "\r\n" + fields +
                       "Content-Length: 2\r\n\r\n" + body;
            };
        f.origin.on(path,
                    version(std::chrono::seconds{-100},
                            "Cache-Control: max-age=3600\r\nETag: \"1\"\r\n",
                            "v1"));
        CHECK(f[1].get(url).body == "v1");
        // Stale as it comes.
        f.origin.on(path,
                    version(std::chrono::seconds{0},
                            "Age: 100\r\nCache-Control: max-age=60\r\nETag: \"2\"\r\n",
                            "v2"));
        const auto own = f[0].get(url, "Cookie: a=b\r\n");
        CHECK(own.body == "v2");
        REQUIRE(own.get("Cache-Status").ends_with("; stored"));
        CHECK(f.asked(0) == 0);
        CHECK(f[0].get(url).body == "v2");
        CHECK(f.asked(0) == 1);
        CHECK(f.origin.count(path) == 3);
        CHECK(f.failed(0) == 0);  // it is not to blame
        CHECK(f[1].get(url).body == "v1");
        CHECK(f.origin.count(path) == 3);
    }

    TEST_CASE("a node knows that what the home fetches is shared with nobody") {
        homes f{2};
        const auto path = f.path_of(1, 0);
        f.origin.on(path, ok("Cache-Control: no-store\r\n", "one's own"));
        CHECK(eventually([&] {
            CHECK(f[0].get(f.origin.url(path)).body == "one's own");
            const auto page = f[0].admin("/explain?url=" + f.origin.url(path));
            const auto storing = json::parse(page.body).at("storing");
            return storing.is_object() && storing.at("from") == "last-answer" &&
                   storing.at("reason") == "no-store";
        }));
    }

    TEST_CASE("a home that dies while it waits for the origin is passed by") {
        homes f{2};
        const auto path = f.path_of(1, 0);
        std::atomic<bool> killed{false};
        f.origin.on(path, [&killed](origin_request& request, origin_connection& connection) {
            while (!killed && connection.pause(std::chrono::milliseconds{20})) {
            }
            connection.send(ok("Cache-Control: max-age=600\r\n", "body of " + request.target));
        });
        auto client = f[0].connect("GET " + f.origin.url(path) + " HTTP/1.1\r\nHost: x\r\n\r\n");
        REQUIRE(eventually([&] { return f.origin.count(path) == 1; }));
        f[1].kill();
        killed = true;
        const auto got = client.read();
        CHECK(got.body == "body of " + path);
        CHECK(f.failed(0) == 1);
    }

    TEST_CASE("a home that stops after its word, or in the middle of a body, is not waited for") {
        const std::string body(300'000, 'b');
        const auto whole = ok("Cache-Control: max-age=600\r\nETag: \"1\"\r\n", body);
        for (const bool in_body : {false, true}) {
            CAPTURE(in_body);
            homes f{2, home_settings(), nullptr, json{{"timeout", "2s"}}};
            const auto path = f.path_of(1, 0);
            std::atomic<bool> stopped{false};
            f.origin.on(path, [&](origin_request&, origin_connection& connection) {
                if (!stopped) {
                    if (in_body) {
                        connection.send(std::string_view{whole}.substr(0, whole.size() / 2));
                    }
                    while (!stopped && connection.pause(std::chrono::milliseconds{20})) {
                    }
                    return connection.close();
                }
                connection.send(whole);
            });
            auto client = f[0].connect(absolute_request("GET", f.origin.url(path)));
            REQUIRE(eventually([&] { return f.origin.count(path) == 1; }));
            response got;
            if (in_body) {
                got = client.read_head();
                client.read_body(got, 50'000);
            } else {
                // Its word is out before it asks the origin.
                REQUIRE(f.failed(0) == 0);
            }
            f[1].signal(SIGSTOP);
            REQUIRE(eventually([&] { return has_stopped(f[1].pid()); }));
            stopped = true;
            if (in_body) {
                client.read_body(got, body.size());
            } else {
                got = client.read();
            }
            CHECK(got.status == 200);
            CHECK((got.body == body));
            CHECK(f.failed(0) == 1);
            f[1].signal(SIGCONT);
        }
    }

    TEST_CASE("a home that breaks off in the middle of a body is replaced behind it") {
        homes f{2};
        const auto path = f.path_of(1, 0);
        const std::string body(300'000, 'b');
        std::atomic<bool> killed{false};
        f.origin.on(path, [&](origin_request& request, origin_connection& connection) {
            const auto answer = ok("Cache-Control: max-age=600\r\nETag: \"1\"\r\n", body);
            if (killed || request.connection > 0) {
                connection.send(answer);
                return;
            }
            connection.send(std::string_view{answer}.substr(0, answer.size() / 2));
            while (connection.goes_on() && !connection.has_ended() &&
                   connection.pause(std::chrono::milliseconds{50})) {
            }
        });
        auto client = f[0].connect("GET " + f.origin.url(path) + " HTTP/1.1\r\nHost: x\r\n\r\n");
        auto got = client.read_head();
        client.read_body(got, 50'000);
        REQUIRE(got.body.size() < body.size());
        killed = true;
        f[1].kill();
        client.read_body(got, body.size());
        CHECK(got.status == 200);
        CHECK(got.body == body);
        CHECK(f.failed(0) == 1);
    }

    TEST_CASE("what drips from a home is given up when nobody waits for it any more") {
        auto settings = home_settings();
        settings["timeouts"]["origin_body"] = "2500ms";
        homes f{2, settings};
        const auto path = f.path_of(1, 0);
        std::atomic<int> drips{0};
        std::promise<bool> was_closed;
        f.origin.on(path, [&](origin_request&, origin_connection& connection) {
            connection.send(
                raw_head("200 OK", "Cache-Control: max-age=60\r\nContent-Length: 4000\r\n") + "p");
            // All the while a client waits, and a while longer: for this node, and then for its home.
            for (int i = 0; i < 400; ++i) {
                connection.send("p");
                ++drips;
                if (connection.is_closed_by_proxy(50ms)) {
                    was_closed.set_value(true);
                    return;
                }
            }
            was_closed.set_value(false);
        });
        {
            auto one = f[0].connect(absolute_request("GET", f.origin.url(path)));
            REQUIRE(eventually([&] { return drips > 60; }));  // more than origin_body
            CHECK_FALSE(one.is_closed_by_proxy(0ms));
        }
        auto closed = was_closed.get_future();
        REQUIRE(closed.wait_for(60s) == std::future_status::ready);
        CHECK(closed.get());
        // Who is given up for that is not to blame, and nobody is asked in its place.
        CHECK(f.failed(0) == 0);
        CHECK(f.origin.count(path) == 1);
    }

    TEST_CASE("what is one client's own goes to no home") {
        homes f{2};
        f.serve_everything();
        const auto path = f.path_of(1, 0);
        CHECK(f[0].get(f.origin.url(path), "Cookie: a=b\r\n").status == 200);
        CHECK(f[0].get(f.origin.url(path), "Authorization: Basic eDp5\r\n").status == 200);
        CHECK(f[0].ask("POST", f.origin.url(path), "Content-Length: 0\r\n").status == 200);
        CHECK(f.asked(0) == 0);
    }

    TEST_CASE("the fleet's figures have what is handed on once, and whose store had it") {
        homes f{2};
        f.serve_everything();
        const auto own = f.path_of(0, 0), other = f.path_of(1, 0);
        std::size_t bytes = 0;
        // Fetched at n0 for itself and by n1 for n0; then each had it, n0 of the other's in memory.
        for (const auto node : {0u, 1u}) {
            for (const auto& path : {own, other}) {
                const auto got = f[node].get(f.origin.url(path));
                CHECK(got.status == 200);
                bytes += got.body.size();
            }
        }
        CHECK(f.origin.count(own) + f.origin.count(other) == 2);
        INFO(f[0].stats().dump(), '\n', f[1].stats().dump());  // failed once, and nothing told why
        CHECK(eventually([&] {
            const auto stats = f[0].stats();
            return figure(stats, "/fleet/requests") == 4 && figure(stats, "/fleet/hits") == 1 &&
                   figure(stats, "/fleet/sibling_hits") == 1 &&
                   figure(stats, "/fleet/body_bytes") == static_cast<std::int64_t>(bytes) &&
                   stats.at("fleet").at("byte_hit_ratio") == 0.5;
        }));
        CHECK(f[0].stats().at("fleet").at("hit_ratio") == 0.5);
    }

    TEST_CASE("homes without siblings, or without a name of one's own, are refused") {
        auto settings = node_settings();
        settings["peering"]["homes"] = true;
        CHECK_THROWS_WITH_AS((proxy_process{settings}),
                             doctest::Contains("peering.homes: shares URLs with nobody"),
                             std::runtime_error);
        settings["peers"] = json::array({peer_at("a", 1)});
        CHECK_THROWS_WITH_AS((proxy_process{settings}),
                             doctest::Contains("peering.homes: wants forwarding.pseudonym"),
                             std::runtime_error);
    }
}
