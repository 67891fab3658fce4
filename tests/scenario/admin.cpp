// The admin listener: figures that move, and a door that no web page gets through.

#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <sys/resource.h>

TEST_SUITE("scenario/admin") {

    using namespace reprise::tests;

    namespace {

    response ask_admin(const proxy_process& proxy,
                       const std::string& line,
                       const std::string& host,
                       const std::string& fields = "") {
        client one{proxy.admin_port()};
        return one.ask(line + " HTTP/1.1\r\nHost: " + host + "\r\n" + fields + "\r\n");
    }

    /// 0: as many as it may have.
    void limit_descriptors(const proxy_process& proxy, rlim_t most) {
        rlimit limit{};
        REQUIRE(::prlimit(proxy.pid(), RLIMIT_NOFILE, nullptr, &limit) == 0);
        limit.rlim_cur = most == 0 ? limit.rlim_max : most;
        REQUIRE(::prlimit(proxy.pid(), RLIMIT_NOFILE, &limit, nullptr) == 0);
    }

    std::string own_host(const proxy_process& proxy) {
        return "127.0.0.1:" + std::to_string(proxy.admin_port());
    }

    }  // namespace

    TEST_CASE("no page of the admin listener is had through a proxy") {
        const proxy_process proxy{basic_settings()};  // loopback is allowed as a destination
        const auto there = "http://127.0.0.1:" + std::to_string(proxy.admin_port());
        for (const std::string page : {"/stats",
                                       "/metrics",
                                       "/explain?url=http://a/",
                                       "/",
                                       "/healthz",
                                       "/history",
                                       "/log",
                                       "/chart.js"}) {
            CAPTURE(page);
            CHECK(proxy.admin(page).status == 200);
            const auto got = proxy.get(there + page);
            CHECK(got.status == 403);
            CHECK(got.body.find("proxy") != std::string::npos);
        }
    }

    TEST_CASE("/healthz and /readyz say that it serves") {
        const proxy_process proxy;
        CHECK(proxy.admin("/healthz").status == 200);
        CHECK(proxy.admin("/readyz").status == 200);
        CHECK(proxy.admin("/").status == 200);
        CHECK(proxy.admin("/no/such/page").status == 404);
    }

    // UBSan asks through a pipe whether memory may be read: without a descriptor for that it takes
    // what it looks at for no object. So the two stories without descriptors are the plain build's.
    TEST_CASE(
        "who would need a descriptor for the origin when there is none is told to come again" *
        doctest::skip(sanitized)) {
        world w{basic_settings()};
        fake_origin another;
        for (auto* one : {&w.origin, &another}) {
            one->on("/a", ok("", "x"));
        }
        auto one = w.proxy.connect();
        CHECK(one.ask(w.request("/a")).status == 200);
        limit_descriptors(w.proxy, 1);  // those that are open stay
        const auto got = one.ask(absolute_request("GET", another.url("/a")));
        CHECK(got.status == 503);
        CHECK(got.get("Retry-After") == "1");
        limit_descriptors(w.proxy, 0);
        CHECK(one.ask(absolute_request("GET", another.url("/a"))).status == 200);
    }

    TEST_CASE("out of descriptors the admin listener answers, and clients wait for theirs" *
              doctest::skip(sanitized)) {
        world w{basic_settings()};
        w.origin.on("/a", ok("", "x"));
        CHECK(w.get("/a").status == 200);
        std::size_t open = 0;
        const auto fds = "/proc/" + std::to_string(w.proxy.pid()) + "/fd";
        for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator{fds}) {
            ++open;
        }
        limit_descriptors(w.proxy, open);
        std::vector<client> waiting;
        for (int i = 0; i < 8; ++i) {
            waiting.push_back(w.proxy.connect(absolute_request("GET", w.origin.url("/a"))));
        }
        REQUIRE(eventually(
            [&] { return w.proxy.errors().find("accepting connections:") != std::string::npos; }));
        for (int i = 0; i < 5; ++i) {
            CHECK(w.proxy.admin("/healthz").status == 200);
            CHECK(w.proxy.admin("/stats").status == 200);
        }
        limit_descriptors(w.proxy, 0);
        // What closed meanwhile let one in, perhaps, for whom there was then no way to the origin.
        std::size_t served = 0;
        for (auto& one : waiting) {
            const auto got = one.read();
            CHECK((got.status == 200 || got.status == 503));
            served += got.status == 200 ? 1 : 0;
        }
        CHECK(served >= 4);
        const auto said = w.proxy.errors();
        const auto first = said.find("accepting connections:");
        CHECK(said.find("accepting connections:", first + 1) == std::string::npos);
    }

    TEST_CASE("/stats counts what happened") {
        world w{basic_settings()};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", std::string(1000, 'x')));
        CHECK(figure(w.proxy.stats(), figure_name::hits) == 0);
        CHECK(w.get("/a").status == 200);
        CHECK(w.get("/a").status == 200);
        CHECK(is_hit(w.get("/a")));
        CHECK(is_hit(w.get("/a")));
        // Each is counted by its own thread, when its last byte has gone.
        CHECK(eventually([&] {
            const auto now = w.proxy.stats();
            return figure(now, figure_name::hits) == 2 && figure(now, figure_name::misses) == 2;
        }));
        const auto stats = w.proxy.stats();
        CHECK(figure(stats, figure_name::store_objects) == 1);
        CHECK(figure(stats, figure_name::store_bytes) >= 1000);
        CHECK(figure(stats, figure_name::admission_refused) == 1);
        CHECK(figure(stats, figure_name::ledger_objects) == 1);
        CHECK(figure(stats, figure_name::ledger_bytes) >= 1000);
        for (const std::string place : {"/hit_ratio",
                                        "/byte_hit_ratio",
                                        "/admission/hits_lost",
                                        "/admission/filter/fill",
                                        "/admission/filter/false_positive_rate",
                                        "/admission/by_policy",
                                        "/clients/open",
                                        "/origins/open",
                                        "/latency/first_byte",
                                        "/store/evicted"}) {
            CAPTURE(place);
            CHECK(stats.contains(json::json_pointer{place}));
        }
    }

    TEST_CASE("bytes of bodies are counted when they are sent, not when they are composed") {
        auto settings = storing_settings();
        settings["memory"] = {{"size", "512MiB"}, {"max_object", "64MiB"}};
        const auto size = static_cast<std::int64_t>(48 * mib);
        const auto body = patterned(48 * mib);
        world w{settings};
        w.origin.on("/kept", ok("Cache-Control: max-age=600\r\n", body));
        w.origin.on("/fetched", ok("Cache-Control: no-store\r\n", body));
        CHECK(w.get("/kept").body.size() == body.size());
        const auto sent = [&] { return figure(w.proxy.stats(), "/bodies/sent_bytes"); };
        REQUIRE(eventually([&] { return sent() == size; }));
        // Neither takes more of what follows than the kernel's buffers do.
        for (const std::string path : {"/kept", "/fetched"}) {
            CAPTURE(path);
            const auto gone = figure(w.proxy.stats(), "/requests/client_gone");
            auto one = w.proxy.connect();
            one.connection().shrink_receive_buffer(4096);
            one.send(w.request(path));
            auto answer = one.read_head();
            one.read_body(answer, 100'000);
            one.connection().reset();
            REQUIRE(eventually(
                [&] { return figure(w.proxy.stats(), "/requests/client_gone") > gone; }));
            const auto stats = w.proxy.stats();
            const auto from_store = figure(stats, "/bodies/from_store_bytes");
            CHECK(from_store >= (path == "/kept" ? 100'000 : 0));
            CHECK(from_store < size);
        }
        CHECK(sent() >= size + 200'000);
        CHECK(sent() < 2 * size);
        // What is sent in all is counted when a request is over.
        CHECK(eventually([&] { return sent() < figure(w.proxy.stats(), "/clients/sent_bytes"); }));
        CHECK(is_hit(w.get("/kept")));
        // Counted when its last piece has gone, which its reader may have by then.
        CHECK(eventually(
            [&] { return figure(w.proxy.stats(), "/bodies/from_store_bytes") >= size; }));
    }

    TEST_CASE("a HEAD, an error and a refusal are counted as what they are") {
        world w{basic_settings()};
        w.origin.on("/reset",
                    [](origin_request&, origin_connection& connection) { connection.reset(); });
        w.origin.on("/private", ok("Cache-Control: private\r\n", "x"));
        CHECK(w.get("/reset").status == 502);
        CHECK(w.get("/private").status == 200);
        CHECK(w.proxy.get("http://127.0.0.1:22/").status == 403);
        auto one = w.proxy.connect();
        CHECK(one.ask("GET nonsense HTTP/1.1\r\nHost: x\r\n\r\n").status == 400);
        CHECK(eventually([&] {
            const auto stats = w.proxy.stats();
            return figure(stats, "/requests/error") == 1 && figure(stats, "/requests/pass") == 1 &&
                   figure(stats, "/requests/refused") == 1 &&
                   figure(stats, "/requests/client_error") == 1;
        }));
    }

    TEST_CASE("what the store evicts stays within its budget") {
        auto settings = storing_settings();
        settings["memory"] = {{"size", "8MiB"}, {"max_object", "1MiB"}};
        const auto body = patterned(400 * kib);
        world w{settings};
        w.origin.otherwise(sends(ok("Cache-Control: max-age=60\r\n", body)));
        for (int i = 0; i < 60; ++i) {
            CHECK(w.get("/" + std::to_string(i)).complete());
        }
        const auto stats = w.proxy.stats();
        CHECK(figure(stats, figure_name::store_bytes) <= 8 * static_cast<std::int64_t>(mib));
        CHECK(figure(stats, figure_name::store_objects) >= 4);
        CHECK(figure(stats, figure_name::store_objects) <= 20);
        CHECK(figure(stats, "/store/evicted") >= 40);
    }

    TEST_CASE("/metrics has HELP and TYPE for every metric, and each series once") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK(w.get("/a").status == 200);
        const auto answer = w.proxy.admin("/metrics");
        CHECK(answer.status == 200);
        CHECK(answer.get("Content-Type").find("text/plain") == 0);
        std::set<std::string> helped;
        std::set<std::string> typed;
        std::set<std::string> seen;
        std::istringstream in{answer.body};
        std::size_t samples = 0;
        for (std::string line; std::getline(in, line);) {
            CAPTURE(line);
            std::istringstream words{line};
            std::string first;
            std::string second;
            std::string third;
            words >> first >> second >> third;
            if (first == "#" && second == "HELP") {
                CHECK(helped.insert(third).second);
            } else if (first == "#" && second == "TYPE") {
                CHECK(typed.insert(third).second);
            } else if (first != "#" && !line.empty()) {
                ++samples;
                auto name = line.substr(0, line.find_first_of("{ "));
                CHECK(seen.insert(line.substr(0, line.rfind(' '))).second);
                for (const std::string suffix : {"_bucket", "_sum", "_count"}) {
                    if (name.size() > suffix.size() &&
                        name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0 &&
                        typed.count(name) == 0) {
                        name.resize(name.size() - suffix.size());
                    }
                }
                CHECK(typed.count(name) == 1);
                CHECK(helped.count(name) == 1);
                CHECK((name.rfind("reprise_", 0) == 0 || name.rfind("process_", 0) == 0));
            }
        }
        CHECK(samples > 20);
        CHECK(samples < 1000);
    }

    TEST_CASE("URLs and clients are no labels: the number of series does not grow with traffic") {
        world w{basic_settings()};
        w.origin.otherwise(sends(ok("Cache-Control: max-age=60\r\n", "hello")));
        const auto lines = [&] {
            const auto body = w.proxy.admin("/metrics").body;
            return std::count(body.begin(), body.end(), '\n');
        };
        // Some series begin with the first traffic, the ghosts' among them.
        int first = 0;
        const auto begun = [&] {
            return w.proxy.admin("/metrics").body.find("reprise_what_if_hit_ratio{") !=
                   std::string::npos;
        };
        do {
            for (int i = 0; i < 50; ++i) {
                CHECK(w.get("/first/" + std::to_string(first++)).status == 200);
            }
        } while (!begun() && first < 2000);
        const auto before = lines();
        for (int i = 0; i < 50; ++i) {
            CHECK(w.get("/" + std::to_string(i)).status == 200);
        }
        CHECK(lines() == before);
    }

    TEST_CASE("the dashboard is a page whose every part is there, and that names nobody else") {
        const proxy_process proxy;
        const auto page = proxy.admin("/");
        CHECK(page.status == 200);
        CHECK(page.get("Content-Type") == "text/html; charset=utf-8");
        const auto policy = page.get("Content-Security-Policy");
        CHECK(policy.find("default-src 'none'") == 0);
        CHECK(policy.find("unsafe") == std::string::npos);
        // Whatever an attribute of the page leads to, and what the script asks for.
        const auto script = proxy.admin("/dashboard.js").body;
        const std::regex leads{R"re((?:href|src)="([^"]*)"|(?:ask|json)\('([^']*)'\))re"};
        std::set<std::string> parts;
        for (const auto& text : {page.body, script}) {
            for (std::sregex_iterator at{text.begin(), text.end(), leads}, end; at != end; ++at) {
                parts.insert((*at)[1].matched ? (*at)[1].str() : (*at)[2].str());
            }
        }
        for (const auto* part : {"/dashboard.js",
                                 "/dashboard.css",
                                 "/chart.js",
                                 "/icon.svg",
                                 "/stats",
                                 "/history",
                                 "/log"}) {
            CAPTURE(part);
            CHECK(parts.count(part) == 1);
        }
        std::size_t bytes = page.body.size();
        for (const auto& part : parts) {
            CAPTURE(part);
            if (part.starts_with("#")) {
                CHECK(page.body.find("id=\"" + part.substr(1) + "\"") != std::string::npos);
                continue;
            }
            REQUIRE(part.starts_with("/"));
            CHECK_FALSE(part.starts_with("//"));
            const auto got = proxy.admin(part);
            CHECK(got.status == 200);
            bytes += part.ends_with(".js") || part.ends_with(".css") || part.ends_with(".svg")
                         ? got.body.size()
                         : 0;
        }
        CHECK(bytes < 300'000);
    }

    TEST_CASE("/pages says which pages want the token, and which want it but on loopback") {
        const proxy_process proxy;
        const std::regex item{
            R"re(<li>(?:<a href="([^"]*)">.*</a>|([^:]*)): .*?( \(wants [^)]*\))?</li>)re"};
        std::istringstream page{proxy.admin("/pages").body};
        std::map<std::string, std::set<std::string>> by_wish;
        for (std::string line; std::getline(page, line);) {
            std::smatch found;
            if (std::regex_match(line, found, item)) {
                by_wish[found[3].str()].insert(found[1].matched ? found[1].str() : found[2].str());
            }
        }
        using pages = std::set<std::string>;
        CHECK((by_wish[" (wants the token)"] == pages{"POST /purge", "POST /reload"}));
        CHECK((by_wish[" (wants the token, but on loopback)"] ==
               pages{"/digest", "/explain", "/live", "/log"}));
        CHECK(by_wish[""].count("/stats") == 1);
        CHECK(by_wish.size() == 3);
    }

    TEST_CASE("the summary and the history follow what happens, and the page has it in words") {
        world w{basic_settings()};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", std::string(1000, 'x')));
        w.origin.on("/reset",
                    [](origin_request&, origin_connection& connection) { connection.reset(); });
        CHECK(w.proxy.stats()["summary"]["well"] == true);
        for (int i = 0; i < 4; ++i) {
            CHECK(w.get("/a").status == 200);
        }
        REQUIRE(eventually([&] {
            const auto now = w.proxy.stats();
            return figure(now, "/summary/spared/requests") == 2 &&
                   figure(now, "/summary/requests") == 4;
        }));
        const auto summary = w.proxy.stats()["summary"];
        CHECK(summary["hit_ratio"] == 0.5);
        CHECK(summary["spared"]["bytes"] == 2000);
        CHECK(summary["writes_spared"]["objects"] == 1);
        const auto sum_of = [&](const char* count) {
            const auto history = json::parse(w.proxy.admin("/history").body);
            std::int64_t sum = 0;
            for (const auto& one : history["hour"][count]) {
                sum += one.get<std::int64_t>();
            }
            return sum;
        };
        CHECK(sum_of("requests") == 4);
        CHECK(sum_of("hits") == 2);
        CHECK(sum_of("kept_out") == 1);
        CHECK(w.proxy.admin("/").body.find("<dd class=\"value\">50 %</dd>") != std::string::npos);
        // Once is noted; often is not well.
        CHECK(w.get("/reset").status == 502);
        const auto notes = w.proxy.stats()["summary"]["notes"];
        REQUIRE(notes.size() == 1);
        CHECK(notes[0].get<std::string>().find("1 request failed at the origin") == 0);
        CHECK(notes[0].get<std::string>().find("Of these: 127.0.0.1 (1).") != std::string::npos);
        CHECK(w.proxy.stats()["summary"]["well"] == true);
        for (int i = 0; i < 4; ++i) {
            CHECK(w.get("/reset").status == 502);
        }
        CHECK(eventually([&] { return w.proxy.stats()["summary"]["well"] == false; }));
        CHECK(w.proxy.admin("/").body.find("5 requests failed at the origin") != std::string::npos);
    }

    TEST_CASE("hits that admission lost are told by host") {
        auto settings = basic_settings();
        settings["admission"] = {{"policy", "nth-hit"}, {"hits", 3}};
        world w{settings};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        w.origin.on("/b", ok("Cache-Control: max-age=60\r\n", "hello"));
        for (int i = 0; i < 4; ++i) {
            CHECK(w.get("/a").status == 200);
        }
        CHECK(w.get("/b").status == 200);
        const auto stats = w.proxy.stats();
        const auto lost = figure(stats, "/admission/hits_lost");
        CHECK(lost > 0);
        CHECK(stats.at("admission").at("hits_lost_by_host") == json{{"127.0.0.1", lost}});
    }

    TEST_CASE("a Host that is not its own is 421") {
        const proxy_process proxy;
        const auto port = std::to_string(proxy.admin_port());
        for (const std::string& host : {std::string{"evil.example"},
                                        "evil.example:" + port,
                                        "localhost.evil.example:" + port}) {
            CAPTURE(host);
            CHECK(ask_admin(proxy, "GET /stats", host).status == 421);
        }
        CHECK(ask_admin(proxy, "GET /stats", own_host(proxy)).status == 200);
        CHECK(ask_admin(proxy, "GET /stats", "localhost:" + port).status == 200);
    }

    TEST_CASE("a request from another site is 403") {
        const proxy_process proxy;
        const auto host = own_host(proxy);
        CHECK(ask_admin(proxy, "GET /stats", host, "Origin: http://evil.example\r\n").status ==
              403);
        CHECK(ask_admin(proxy, "GET /stats", host, "Origin: null\r\n").status == 403);
        CHECK(ask_admin(proxy, "GET /stats", host, "Origin: http://" + host + "\r\n").status ==
              200);
    }

    TEST_CASE("what changes something wants POST and the token") {
        const temp_dir directory;
        auto settings = basic_settings();
        settings["admin"]["token_file"] = directory.write("token", "open-sesame-and-more\n");
        const proxy_process proxy{settings};
        proxy.rewrite_settings(settings);
        const auto host = own_host(proxy);
        const std::string right = "Authorization: Bearer open-sesame-and-more\r\n";
        const std::string empty = "Content-Length: 0\r\n";
        CHECK(ask_admin(proxy, "GET /reload", host, right).status == 405);
        CHECK(ask_admin(proxy, "POST /reload", host, empty).status == 401);
        CHECK(ask_admin(proxy, "POST /reload", host, empty + "Authorization: Bearer wrong\r\n")
                  .status == 401);
        CHECK(
            ask_admin(proxy, "POST /reload", host, empty + "Authorization: Bearer open-sesame\r\n")
                .status == 401);
        CHECK(ask_admin(proxy, "POST /reload", host, empty + right).status / 100 == 2);
        CHECK(ask_admin(
                  proxy, "POST /reload", host, empty + right + "Origin: http://evil.example\r\n")
                  .status == 403);
        CHECK(ask_admin(proxy, "POST /reload", "evil.example", empty + right).status == 421);
    }

    TEST_CASE("without a token file nothing can be changed") {
        const proxy_process proxy;
        const auto answer = ask_admin(proxy,
                                      "POST /reload",
                                      own_host(proxy),
                                      "Content-Length: 0\r\nAuthorization: Bearer \r\n");
        CHECK((answer.status == 401 || answer.status == 403));
    }

    TEST_CASE("the admin listener is no proxy, and the proxy is no admin listener") {
        world w{basic_settings()};
        w.origin.on("/stats", ok("", "the origin's"));
        client one{w.proxy.admin_port()};
        const auto answer = one.ask(w.request("/stats"));
        CHECK(answer.status >= 400);
        CHECK(w.origin.requests().empty());
        CHECK(w.get("/stats").body == "the origin's");
    }

    TEST_CASE("what looks like framing trouble is refused here as well") {
        const proxy_process proxy;
        const auto host = "Host: " + own_host(proxy) + "\r\n";
        const std::string length = "Content-Length: 5\r\n";
        const std::string chunked = "Transfer-Encoding: chunked\r\n";
        for (const auto& framed : {length + chunked, chunked + length}) {
            CAPTURE(framed);
            client one{proxy.admin_port()};
            one.send("GET /healthz HTTP/1.1\r\n" + host + framed +
                     "\r\n0\r\n\r\nGET /readyz HTTP/1.1\r\n" + host + "\r\n");
            CHECK(one.read().status == 400);
            CHECK(one.is_closed_by_proxy());  // and what stood behind it was no request
        }
    }

}  // TEST_SUITE
