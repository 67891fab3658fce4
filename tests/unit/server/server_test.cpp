#include "proxy/admin/admin_client.hpp"
#include "proxy/base/sanitized.hpp"
#include "proxy/net/address.hpp"
#include "proxy/server/server.hpp"
#include "tests/support/caught_stderr.hpp"
#include "tests/support/proxy_headers.hpp"
#include "tests/support/waiting.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <cerrno>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits>
#include <optional>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/stat.h>
#include <utility>
#include <variant>

namespace {

// So many threads may still begin; a sanitizer's own are not counted.
std::atomic<unsigned> threads_left{std::numeric_limits<unsigned>::max()};

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// This program's own, in front of the system's.
extern "C" int pthread_create(pthread_t* thread,
                              const pthread_attr_t* how,
                              void* (*work)(void*),
                              void* with) {
    if (threads_left == 0) {
        return EAGAIN;
    }
    --threads_left;
    static const auto real = reinterpret_cast<decltype(&::pthread_create)>(
        ::dlsym(RTLD_NEXT, "pthread_create"));
    return real(thread, how, work, with);
}
#endif

namespace {

// A file system that does not answer, for this one name, until the test lets it.
constexpr const char* hanging_file = "/dev/null/reprise hangs here";
std::atomic<bool> hangs{false}, has_hung{false};
reprise::tests::gate answers;

}  // namespace

// This program's own, in front of the system's.
extern "C" int stat(const char* path, struct stat* into) noexcept {
    if (hangs && std::string_view{path} == hanging_file) {
        has_hung = true;
        (void)answers.wait(2 * reprise::tests::patience);
        hangs = false;
    }
    return ::fstatat(AT_FDCWD, path, into, 0);
}

namespace reprise::proxy::server::test::of_server {
namespace {

config::options small(unsigned threads) {
    config::options out;
    out.listeners.resize(1);
    out.listeners.front().address = {"127.0.0.1", 0};
    out.admin.address.reset();
    out.threads = threads;
    out.memory.size = 16u << 20;
    out.log.access = "off";
    out.log.level = config::log_level::off;
    return out;
}

bool can_connect(std::uint16_t port) {
    asio::io_context io;
    asio::ip::tcp::socket to{io};
    error_code error;
    to.connect({asio::ip::address_v4::loopback(), port}, error);
    return !error;
}

admin::admin_told ask(const server& of, const std::string& path) {
    return std::get<admin::admin_told>(
        admin::ask({{}, *of.admin(), {}}, boost::beast::http::verb::get, path));
}

}  // namespace

TEST_SUITE_BEGIN("server/server");

TEST_CASE("a server that was started listens, and one that ends does not") {
    std::uint16_t port = 0;
    {
        server one{small(2), "test", [] { return admin::reload_outcome{}; }};
        one.start();
        REQUIRE(one.listening().size() == 1);
        port = one.listening().front().port;
        CHECK(can_connect(port));
        CHECK(one.stop());
    }
    CHECK(!can_connect(port));
}

TEST_CASE(
    "a drain waits for a connection whose front is yet to say whose it is, and answers there") {
    auto options = small(1);
    options.listeners.front().proxy_protocol = true;
    config::network front;
    front.address = net::canonical(asio::ip::address_v4::loopback());
    options.access.trusted_fronts = {front};
    options.admin.address = config::endpoint{"127.0.0.1", 0};
    server one{options, "test", [] { return admin::reload_outcome{}; }};
    one.start();
    asio::io_context io;
    asio::ip::tcp::socket client{io};
    client.connect({asio::ip::address_v4::loopback(), one.listening().front().port});
    REQUIRE(tests::eventually([&] {
        return ask(one, "/metrics").body.find("\nreprise_client_connections_accepted_total 1\n") !=
               std::string::npos;
    }));
    bool has_asked = false;
    const auto asks = [&] {
        if (!std::exchange(has_asked, true)) {
            error_code gone;
            const auto all = tests::proxy_header(0x20, 0, "") +
                             "OPTIONS * HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
            asio::write(client, asio::buffer(all), gone);
        }
        return false;
    };
    CHECK(one.stop(asks));
    std::string answer;
    error_code end;
    asio::read(client, asio::dynamic_buffer(answer), end);
    CHECK(answer.starts_with("HTTP/1.1 200 "));
    CHECK(end == asio::error::eof);
}

TEST_CASE(
    "an upgrade is not begun without descriptors for all that the next program would listen on") {
    const tests::caught_stderr log;
    server one{small(2), "test", [] { return admin::reload_outcome{}; }};
    one.start();
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit none{2, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    one.hand_over({"/nonexistent/reprise"}, [](pid_t) {});
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(log.text().find("no file descriptors left for copies") != std::string::npos);
    CHECK(one.stop());
}

TEST_CASE("a worker that hangs in the system is not waited for, and what it uses lives on") {
    auto options = small(1);
    options.dns.hosts_file = hanging_file;
    options.timeouts.drain = std::chrono::milliseconds{0};
    // For good: that thread has it.
    static auto* const one = new server{options, "test", [] { return admin::reload_outcome{}; }};
    one->start();
    hangs = true;
    asio::io_context io;
    asio::ip::tcp::socket client{io};
    client.connect({asio::ip::address_v4::loopback(), one->listening().front().port});
    const std::string asks = "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n";
    asio::write(client, asio::buffer(asks));
    REQUIRE(tests::eventually([] { return has_hung.load(); }));
    CHECK_FALSE(one->stop());
    CHECK(hangs);
    answers.open();
    CHECK(tests::eventually([] { return !hangs; }));
}

TEST_CASE("where the admin's address is taken nobody has connected to a listener in vain") {
    asio::io_context io;
    const asio::ip::tcp::acceptor taken{io, {asio::ip::address_v4::loopback(), 0}};
    auto options = small(2);
    options.admin.address = config::endpoint{"127.0.0.1", taken.local_endpoint().port()};
    server one{options, "test", [] { return admin::reload_outcome{}; }};
    CHECK_THROWS_AS(one.start(), std::runtime_error);
    REQUIRE(one.listening().size() == 1);
    CHECK_FALSE(can_connect(one.listening().front().port));
}

TEST_CASE("a server that gets no thread says so, whichever it is, and ends those that have begun") {
    if (heap_is_watched) {
        return;  // the sanitizer begins threads itself
    }
    bool started = false;
    for (unsigned threads = 0; !started; ++threads) {
        CAPTURE(threads);
        REQUIRE(threads < 20);
        std::uint16_t port = 0;
        {
            server one{small(3), "test", [] { return admin::reload_outcome{}; }};
            threads_left = threads;
            try {
                one.start();
                started = true;
            } catch (const std::runtime_error&) {
                CHECK(threads < 5);
            }
            threads_left = std::numeric_limits<unsigned>::max();
            for (const auto& at : one.listening()) {
                port = at.port;
            }
        }
        CHECK((port == 0 || !can_connect(port)));
    }
}

TEST_CASE("a server whose admin listener answers, and whose workers have not begun, is starting") {
    if (heap_is_watched) {
        return;  // as above
    }
    auto options = small(1);
    options.admin.address = config::endpoint{"127.0.0.1", 0};
    std::optional<admin::admin_told> told;
    // With as few threads as the admin listener wants there is none left for the worker.
    for (unsigned threads = 0; !told; ++threads) {
        REQUIRE(threads < 20);
        server one{options, "test", [] { return admin::reload_outcome{}; }};
        threads_left = threads;
        CHECK_THROWS_AS(one.start(), std::runtime_error);
        threads_left = std::numeric_limits<unsigned>::max();
        if (one.admin()) {
            told = ask(one, "/readyz");
        }
    }
    CHECK(told->status == 503);
    CHECK(told->body == "starting\n");
}

TEST_SUITE_END();

}  // namespace reprise::proxy::server::test::of_server
