#include "proxy/admin/admin_server.hpp"
#include "tests/support/waiting.hpp"
#include "tests/unit/net/memory_ends.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace reprise;
using namespace reprise::proxy;
using namespace reprise::proxy::admin;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

config::admin_options any_port() {
    config::admin_options options;
    options.address = config::endpoint{"127.0.0.1", 0};
    return options;
}

// The server with hooks that a test can steer.
struct running_server {
    explicit running_server(config::admin_options options = any_port(), admin_limits limits = {})
        : server{{.ready = [this] { return ready.load(); },
                  .stats =
                      [this] {
                          stats_inputs inputs;
                          inputs.version = "9.9";
                          inputs.ready = ready;
                          return inputs;
                      },
                  .history = [] { return std::string{"{}"}; },
                  .reload =
                      [this] {
                          ++reloads;
                          return reload_outcome{.mistakes = mistakes, .remarks = {"threads waits"}};
                      },
                  .tick = [this] { ++ticks; }},
                 limits} {
        const auto bound = server.start(options);
        REQUIRE(bound.has_value());
        REQUIRE(bound->port != 0);
        port = bound->port;
        host = "127.0.0.1:" + std::to_string(port);
    }

    std::atomic<readiness> ready{readiness::ready};
    std::atomic<int> reloads{0}, ticks{0};
    std::vector<std::string> mistakes;
    std::uint16_t port = 0;
    std::string host;
    admin_server server;
};

// One with a page that waits for something, /never, and one whose handler hangs, /hangs.
struct slow_server {
    explicit slow_server(const config::admin_options& options,
                         admin_limits limits = {},
                         std::chrono::milliseconds patience = 1h)
        : most{patience},
          server{{.ready = [] { return readiness::ready; },
                  .stats = [] { return stats_inputs{}; },
                  .reload = {},
                  .tick = {}},
                 limits} {
        server.add_route({boost::beast::http::verb::get, "/never", false, "", [this](const auto&) {
                              auto wait = std::make_shared<admin_wait>();
                              wait->begin = [this](std::function<void()> call) {
                                  const std::lock_guard lock{guard};
                                  calls.push_back(std::move(call));
                                  begun.notify_all();
                              };
                              wait->most = most;
                              wait->otherwise = {.status = 504, .body = "it did not"};
                              return admin_response{.body = "it happened", .wait = wait};
                          }});
        server.add_route({boost::beast::http::verb::get, "/hangs", false, "", [this](const auto&) {
                              std::unique_lock lock{guard};
                              ++hanging;
                              begun.notify_all();
                              begun.wait(lock, [this] { return free; });
                              return admin_response{.body = "at last"};
                          }});
        server.add_route({.method = boost::beast::http::verb::get,
                          .path = "/takes_long",
                          .needs_token = false,
                          .about = "",
                          .handler =
                              [this](const auto&) {
                                  std::unique_lock lock{guard};
                                  ++hanging;
                                  begun.notify_all();
                                  begun.wait(lock, [this] { return free; });
                                  return admin_response{.body = "it took long"};
                              },
                          .most = 1h});
        const auto bound = server.start(options);
        REQUIRE(bound.has_value());
        port = bound->port;
        host = "127.0.0.1:" + std::to_string(port);
    }
    ~slow_server() {
        let_go();
        server.stop();
    }
    void until_begun(std::size_t count) {
        std::unique_lock lock{guard};
        REQUIRE(begun.wait_for(lock, 20s, [&] { return calls.size() + hanging >= count; }));
    }
    void happen() {
        const std::lock_guard lock{guard};
        for (const auto& call : calls) {
            call();
            ++happened;
        }
    }
    void let_go() {
        const std::lock_guard lock{guard};
        free = true;
        begun.notify_all();
    }

    std::mutex guard;
    std::condition_variable begun;
    std::vector<std::function<void()>> calls;
    std::size_t hanging = 0, happened = 0;
    bool free = false;
    std::atomic<std::chrono::milliseconds> most;
    std::uint16_t port = 0;
    std::string host;
    admin_server server;
};

// One with a page, /fails, behind whose failure there is no memory for the page that would say so.
struct poor_server {
    poor_server() {
        server.add_route(
            {boost::beast::http::verb::get, "/fails", false, "", [](const auto&) -> admin_response {
                 static std::optional<net::memory_ends> lack;
                 const std::runtime_error broken{"no page of that name"};
                 lack.emplace(0u, 2u);  // for the log's line, and for the page
                 throw broken;
             }});
        const auto bound = server.start(any_port());
        REQUIRE(bound.has_value());
        port = bound->port;
        host = "127.0.0.1:" + std::to_string(port);
    }

    std::uint16_t port = 0;
    std::string host;
    admin_server server{{.ready = [] { return readiness::ready; },
                         .stats = [] { return stats_inputs{}; },
                         .reload = {},
                         .tick = {}},
                        {.request = 300ms}};
};

// A blocking client whose every read ends within ten seconds.
struct client {
    explicit client(std::uint16_t port) : socket{io} {
        socket.connect({asio::ip::address_v4::loopback(), port});
        const timeval patience{.tv_sec = 10, .tv_usec = 0};
        ::setsockopt(socket.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    }
    void send(std::string_view text) { asio::write(socket, asio::buffer(text)); }

    // Raw reads: Asio's blocking read would wait for readiness again after the time-out.
    std::string read_some() {
        char bytes[16384];
        const auto got = ::recv(socket.native_handle(), bytes, sizeof bytes, 0);
        return got > 0 ? std::string(bytes, static_cast<std::size_t>(got)) : std::string{};
    }
    std::string read_to_end() {
        std::string all;
        for (auto some = read_some(); !some.empty(); some = read_some()) {
            all += some;
        }
        return all;
    }
    std::string read_until(std::string_view end) {
        std::string all;
        while (all.find(end) == std::string::npos) {
            const auto some = read_some();
            if (some.empty()) {
                break;
            }
            all += some;
        }
        return all;
    }

    asio::io_context io;
    asio::ip::tcp::socket socket;
};

template <class Server>
std::string ask_by(client& asking,
                   const Server& running,
                   std::string_view line,
                   std::string_view fields = "") {
    asking.send(std::string{line} + " HTTP/1.1\r\nHost: " + running.host +
                "\r\nConnection: close\r\n" + std::string{fields} + "\r\n");
    return asking.read_to_end();
}

template <class Server>
std::string ask(const Server& running, std::string_view line, std::string_view fields = "") {
    client asking{running.port};
    return ask_by(asking, running, line, fields);
}

// A client that has had an answer: what it asks next is waited for, however short the time of a request is. One that is
// held up for that time before its first is sent away, and comes again.
template <class Server>
std::unique_ptr<client> known_to(const Server& running) {
    std::unique_ptr<client> one;
    REQUIRE(tests::eventually([&] {
        one = std::make_unique<client>(running.port);
        one->send("GET /healthz HTTP/1.1\r\nHost: " + running.host + "\r\n\r\n");
        return one->read_until("ok\n").ends_with("ok\n");
    }));
    return one;
}

bool has_status(const std::string& response, int status) {
    return response.starts_with("HTTP/1.1 " + std::to_string(status) + " ");
}

std::string body_of(const std::string& response) {
    const auto at = response.find("\r\n\r\n");
    return at == std::string::npos ? "" : response.substr(at + 4);
}

}  // namespace

TEST_SUITE("admin/admin_server") {

    TEST_CASE("healthz, stats, metrics and the list of them are served") {
        const running_server running;
        const auto health = ask(running, "GET /healthz");
        CHECK(has_status(health, 200));
        CHECK(body_of(health) == "ok\n");
        const auto stats = ask(running, "GET /stats");
        CHECK(stats.find("Content-Type: application/json\r\n") != std::string::npos);
        CHECK(body_of(stats).find("\"version\": \"9.9\"") != std::string::npos);
        const auto metrics = ask(running, "GET /metrics");
        CHECK(metrics.find("Content-Type: text/plain; version=0.0.4") != std::string::npos);
        CHECK(body_of(metrics).find("reprise_build_info{version=\"9.9\"} 1\n") !=
              std::string::npos);
        CHECK(body_of(ask(running, "GET /")).find("href=\"/metrics\"") != std::string::npos);
        CHECK(body_of(ask(running, "GET /pages")).find("href=\"/metrics\"") != std::string::npos);
        CHECK(body_of(ask(running, "GET /history")) == "{}\n");
        CHECK(body_of(ask(running, "GET /log")).find("\"lines\"") != std::string::npos);
    }

    TEST_CASE("the dashboard and what it is made of have their types, and a policy that lets "
              "nothing else in") {
        const running_server running;
        const std::pair<std::string, std::string> files[]{
            {"/", "text/html; charset=utf-8"},
            {"/dashboard.js", "text/javascript; charset=utf-8"},
            {"/dashboard.css", "text/css; charset=utf-8"},
            {"/chart.js", "text/javascript; charset=utf-8"},
            {"/icon.svg", "image/svg+xml"}};
        for (const auto& [path, type] : files) {
            CAPTURE(path);
            const auto answer = ask(running, "GET " + path);
            CHECK(has_status(answer, 200));
            for (const std::string& field :
                 {"Content-Type: " + type,
                  std::string{"X-Content-Type-Options: nosniff"},
                  std::string{"Referrer-Policy: no-referrer"},
                  std::string{"Cross-Origin-Resource-Policy: same-origin"},
                  std::string{"Cache-Control: no-store"}}) {
                CAPTURE(field);
                CHECK(answer.find(field + "\r\n") != std::string::npos);
            }
            const auto begin = answer.find("Content-Security-Policy: ");
            REQUIRE(begin != std::string::npos);
            const auto policy = answer.substr(begin, answer.find("\r\n", begin) - begin);
            for (const std::string part : {"default-src 'none'",
                                           "script-src 'self'",
                                           "style-src 'self'",
                                           "connect-src 'self'",
                                           "frame-ancestors 'none'",
                                           "base-uri 'none'",
                                           "form-action 'none'"}) {
                CAPTURE(part);
                CHECK(policy.find(part) != std::string::npos);
            }
            CHECK(policy.find("unsafe") == std::string::npos);
            CHECK(policy.find('*') == std::string::npos);
            CHECK(has_status(ask(running, "GET " + path, "Sec-Fetch-Site: cross-site\r\n"), 403));
        }
        CHECK(body_of(ask(running, "GET /pages")).find("dashboard.js") == std::string::npos);
    }

    TEST_CASE("what asks for a tunnel or another protocol is the connection's last request") {
        const running_server running;
        for (const std::string first : {"CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: ",
                                        "GET /healthz HTTP/1.1\r\nConnection: upgrade\r\n"
                                        "Upgrade: websocket\r\nHost: "}) {
            CAPTURE(first);
            client asking{running.port};
            asking.send(first + running.host +
                        "\r\n\r\nGET /metrics HTTP/1.1\r\nHost: " + running.host + "\r\n\r\n");
            const auto all = asking.read_to_end();
            CHECK(all.find("Connection: close\r\n") != std::string::npos);
            CHECK(all.find("reprise_build_info") == std::string::npos);
        }
    }

    TEST_CASE("readyz says 503 and why while it starts or drains") {
        running_server running;
        CHECK(has_status(ask(running, "GET /readyz"), 200));
        for (const auto now : {readiness::starting, readiness::draining}) {
            running.ready = now;
            const auto response = ask(running, "GET /readyz");
            CHECK(has_status(response, 503));
            CHECK(body_of(response) == std::string{to_string(now)} + "\n");
        }
    }

    TEST_CASE("HEAD has the length and no body") {
        const running_server running;
        const auto response = ask(running, "HEAD /healthz");
        CHECK(has_status(response, 200));
        CHECK(response.find("Content-Length: 3\r\n") != std::string::npos);
        CHECK(body_of(response).empty());
    }

    TEST_CASE("a connection serves one request after another, also sent at once") {
        const running_server running;
        client asking{running.port};
        const auto request = "GET /healthz HTTP/1.1\r\nHost: " + running.host + "\r\n\r\n";
        asking.send(request + request);
        auto got = asking.read_until("ok\n");
        if (got.find("ok\n", got.find("ok\n") + 3) == std::string::npos) {
            got += asking.read_until("ok\n");
        }
        asking.send(request);
        CHECK(asking.read_until("ok\n").starts_with("HTTP/1.1 200"));
    }

    TEST_CASE("foreign names and sites are refused on the wire") {
        const running_server running;
        client asking{running.port};
        asking.send("GET /stats HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
        CHECK(has_status(asking.read_to_end(), 421));
        CHECK(has_status(ask(running, "GET /stats", "Origin: http://evil.example\r\n"), 403));
    }

    TEST_CASE("reload wants the token, calls the hook, and shows its mistakes") {
        char path[] = "/tmp/reprise-token-XXXXXX";
        ::close(::mkstemp(path));
        std::ofstream{path} << "t0ken\n";
        running_server running;
        constexpr auto right = "Authorization: Bearer t0ken\r\n";
        CHECK(has_status(ask(running, "POST /reload", right), 403));  // no token is set yet

        auto options = any_port();
        options.token_file = path;
        running.server.reconfigure(options, admin_gate{options});
        CHECK(has_status(ask(running, "POST /reload"), 401));
        CHECK(has_status(ask(running, "GET /reload", right), 405));
        CHECK(running.reloads == 0);
        const auto taken = ask(running, "POST /reload", right);
        CHECK(has_status(taken, 200));
        CHECK(body_of(taken) == "reloaded\nthreads waits\n");
        CHECK(running.reloads == 1);
        running.mistakes = {"threads: -1: must be at least 0"};
        const auto refused = ask(running, "POST /reload", right);
        CHECK(has_status(refused, 422));
        CHECK(body_of(refused).find("threads: -1") != std::string::npos);
        std::filesystem::remove(path);
    }

    TEST_CASE("what is no HTTP, too long or too large gets its status and a closed connection") {
        const running_server running;
        const auto answer_to = [&](const std::string& bytes) {
            client asking{running.port};
            asking.send(bytes);
            return asking.read_to_end();
        };
        CHECK(has_status(answer_to("no http at all\r\n\r\n"), 400));
        CHECK(has_status(answer_to("GET /" + std::string(40'000, 'a') + " HTTP/1.1\r\n\r\n"), 431));
        CHECK(
            has_status(answer_to("POST /reload HTTP/1.1\r\nHost: " + running.host +
                                 "\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'b')),
                       413));
        CHECK(has_status(ask(running, "GET /healthz"), 200));
    }

    TEST_CASE("slow requests are cut off in time") {
        const running_server running{any_port(), {.request = 200ms, .idle = 300ms}};
        client slow{running.port}, idle{running.port};
        slow.send("GET /healthz HT");
        const auto before = std::chrono::steady_clock::now();
        CHECK(slow.read_to_end().empty());
        CHECK(idle.read_to_end().empty());
        CHECK(std::chrono::steady_clock::now() - before < 8s);
    }

    TEST_CASE("connections that say nothing, or half of it, make room for those that ask") {
        for (const bool per_client : {false, true}) {
            CAPTURE(per_client);
            auto options = any_port();
            options.connections_per_client = per_client ? 3 : 1000;
            const running_server running{options, {.connections = 4}};
            std::vector<std::unique_ptr<client>> silent;
            for (int i = 0; i < 60; ++i) {
                silent.push_back(std::make_unique<client>(running.port));
                if (i % 2 == 0) {
                    silent.back()->send("GET /healthz HT");
                }
            }
            CHECK(has_status(ask(running, "GET /healthz"), 200));
            CHECK(silent.front()->read_to_end().empty());
            CHECK(has_status(ask(running, "GET /stats"), 200));
        }
    }

    TEST_CASE("connections that wait for us are not sent away; who comes too much is told so") {
        slow_server running{any_port(), {.connections = 3}};
        std::vector<std::unique_ptr<client>> waiting;
        for (int i = 0; i < 3; ++i) {
            waiting.push_back(std::make_unique<client>(running.port));
            waiting.back()->send("GET /never HTTP/1.1\r\nHost: " + running.host + "\r\n\r\n");
            running.until_begun(i + 1);
        }
        client fourth{running.port};
        CHECK(has_status(fourth.read_to_end(), 503));
        running.happen();
        for (auto& one : waiting) {
            CHECK(has_status(one->read_until("it happened"), 200));
        }
        CHECK(has_status(ask(running, "GET /healthz"), 200));
    }

    TEST_CASE("an answer that waits for something keeps nobody else waiting") {
        slow_server running{any_port()};
        std::vector<std::unique_ptr<client>> waiting;
        for (int i = 0; i < 4; ++i) {
            waiting.push_back(std::make_unique<client>(running.port));
            waiting.back()->send("GET /never HTTP/1.1\r\nHost: " + running.host + "\r\n\r\n");
        }
        running.until_begun(4);
        CHECK(has_status(ask(running, "GET /healthz"), 200));
        CHECK(has_status(ask(running, "GET /stats"), 200));
        CHECK(running.happened == 0);
        running.happen();
        for (auto& one : waiting) {
            CHECK(has_status(one->read_until("it happened"), 200));
        }
    }

    TEST_CASE("what does not happen in time, or too often at once, is answered otherwise") {
        slow_server running{any_port(), {.waits = 1}, 50ms};
        CHECK(body_of(ask(running, "GET /never")) == "it did not");
        running.most = 1h;
        client first{running.port};
        first.send("GET /never HTTP/1.1\r\nHost: " + running.host + "\r\n\r\n");
        running.until_begun(2);
        CHECK(body_of(ask(running, "GET /never")) == "it did not");
        running.happen();
        CHECK(has_status(first.read_until("it happened"), 200));
    }

    TEST_CASE("a handler that hangs holds up no health check, and who waits for it is told") {
        slow_server running{any_port(), {.calls = 3, .request = 300ms}};
        const auto answer_to = [&](std::string_view line) {
            return ask_by(*known_to(running), running, line);
        };
        const auto hanging = known_to(running);
        hanging->send("GET /hangs HTTP/1.1\r\nHost: " + running.host + "\r\n\r\n");
        running.until_begun(1);
        CHECK(has_status(answer_to("GET /healthz"), 200));
        CHECK(has_status(answer_to("GET /readyz"), 200));
        const auto first = answer_to("GET /");
        CHECK(has_status(first, 200));
        CHECK(body_of(first).find("take long") != std::string::npos);
        CHECK(has_status(hanging->read_until("yet\n"), 504));
        CHECK(has_status(answer_to("GET /stats"), 504));
        CHECK(has_status(answer_to("GET /stats"), 503));  // as many wait as may
        CHECK(has_status(answer_to("GET /"), 200));
        running.let_go();
        CHECK(tests::eventually([&] { return has_status(ask(running, "GET /stats"), 200); }));
    }

    TEST_CASE("a page that may take longer than others is waited for") {
        slow_server running{any_port(), {.request = 50ms}};
        const auto asking = known_to(running);
        asking->send("GET /takes_long HTTP/1.1\r\nHost: " + running.host + "\r\n\r\n");
        running.until_begun(1);
        // Whoever waits behind it is told in time.
        CHECK(has_status(ask_by(*known_to(running), running, "GET /stats"), 504));
        running.let_go();
        CHECK(has_status(asking->read_until("it took long"), 200));
    }

    TEST_CASE(
        "a handler that fails, and no memory to say so, ends one answer and not the program") {
        const poor_server running;
        const auto asking = known_to(running);
        CHECK(has_status(ask_by(*asking, running, "GET /fails"), 504));
        CHECK(tests::eventually([&] { return has_status(ask(running, "GET /stats"), 200); }));
    }

    TEST_CASE("what is waited for may happen after the server's end") {
        slow_server running{any_port()};
        client one{running.port};
        one.send("GET /never HTTP/1.1\r\nHost: " + running.host + "\r\n\r\n");
        running.until_begun(1);
        running.server.stop();
        running.happen();
        CHECK(one.read_to_end().empty());
    }

    TEST_CASE("it ticks") {
        const running_server running;
        CHECK(tests::eventually([&] { return running.ticks > 0; }));
    }

    TEST_CASE("stop ends connections that are open and is quick") {
        running_server running;
        client idle{running.port};
        idle.send("GET /healthz HTTP/1.1\r\nHost: " + running.host + "\r\n\r\n");
        CHECK(idle.read_until("ok\n").starts_with("HTTP/1.1 200"));
        running.server.stop();
        running.server.stop();
        CHECK(idle.read_to_end().empty());
        boost::system::error_code refused;
        asio::io_context io;
        asio::ip::tcp::socket late{io};
        late.connect({asio::ip::address_v4::loopback(), running.port}, refused);
        CHECK(refused);
    }

    TEST_CASE("an address that is taken, or is none, is an error") {
        const running_server running;
        auto options = any_port();
        options.address->port = running.port;
        admin_server second{{}};
        CHECK(second.start(options).has_error());
        options.address->host = "localhost";
        admin_server third{{}};
        CHECK(third.start(options).has_error());
    }

}  // TEST_SUITE
