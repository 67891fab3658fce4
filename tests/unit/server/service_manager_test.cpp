#include "proxy/server/service_manager.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace reprise::proxy::server::test::of_service_manager {

TEST_SUITE("server/service_manager") {

    namespace {

    /// In a service manager's place.
    struct listener {
        tests::temp_dir place;
        std::string path = place.file("notify");
        descriptor there{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};

        listener() {
            sockaddr_un at{};
            at.sun_family = AF_UNIX;
            REQUIRE(path.size() < sizeof at.sun_path);
            path.copy(at.sun_path, path.size());
            REQUIRE(::bind(there.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
        }

        /// Of a program that was started with NOTIFY_SOCKET naming this.
        [[nodiscard]] service_manager manager() const {
            ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
            service_manager made;
            ::unsetenv("NOTIFY_SOCKET");
            return made;
        }
        /// The next datagram, whole; empty: there is none.
        [[nodiscard]] std::string heard() const {
            std::array<char, 200> text{};
            const auto got = ::recv(there.get(), text.data(), text.size(), MSG_DONTWAIT);
            return {text.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
        }
    };

    }  // namespace

    TEST_CASE("it is told though clients have taken every descriptor since") {
        const listener there;
        const auto manager = there.manager();

        rlimit before{};
        REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
        const rlimit none{0, before.rlim_max};
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
        const bool told = manager.tell("MAINPID=1");
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
        CHECK(told);
        CHECK(there.heard() == "MAINPID=1");
    }

    TEST_CASE("that it stops, and how long that may take, is one message in microseconds") {
        const listener there;
        const auto manager = there.manager();
        CHECK(manager.tell_stopping(std::chrono::milliseconds{70'500}));
        CHECK(there.heard() == "STOPPING=1\nEXTEND_TIMEOUT_USEC=70500000");
        CHECK(manager.tell_stopping(std::chrono::hours{24}));  // as long as timeouts.drain may be
        CHECK(there.heard() == "STOPPING=1\nEXTEND_TIMEOUT_USEC=86400000000");
        CHECK(there.heard().empty());
        CHECK(manager.tell_stopping(std::chrono::milliseconds{9'223'372'036'854'775}));
        CHECK(there.heard() == "STOPPING=1\nEXTEND_TIMEOUT_USEC=9223372036854775000");
    }

    TEST_CASE("where there is none nothing is missed; where it has gone that is known") {
        CHECK(service_manager{}.tell("READY=1"));
        CHECK(service_manager{}.tell_stopping(std::chrono::seconds{1}));
        const tests::temp_dir place;
        ::setenv("NOTIFY_SOCKET", place.file("absent").c_str(), 1);
        const service_manager manager;
        ::unsetenv("NOTIFY_SOCKET");
        CHECK_FALSE(manager.tell("READY=1"));
    }

}  // TEST_SUITE

}  // namespace reprise::proxy::server::test::of_service_manager
