#include "proxy/server/service_manager.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace reprise::proxy::server::test::of_service_manager {

TEST_SUITE("server/service_manager") {

    TEST_CASE("it is told though clients have taken every descriptor since") {
        const tests::temp_dir place;
        const auto path = place.file("notify");
        const descriptor there{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
        sockaddr_un at{};
        at.sun_family = AF_UNIX;
        REQUIRE(path.size() < sizeof at.sun_path);
        path.copy(at.sun_path, path.size());
        REQUIRE(::bind(there.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
        ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
        const service_manager manager;
        ::unsetenv("NOTIFY_SOCKET");

        rlimit before{};
        REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
        const rlimit none{0, before.rlim_max};
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
        const bool told = manager.tell("MAINPID=1");
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
        CHECK(told);
        std::array<char, 64> text{};
        const auto got = ::recv(there.get(), text.data(), text.size(), MSG_DONTWAIT);
        REQUIRE(got > 0);
        CHECK(std::string(text.data(), static_cast<std::size_t>(got)) == "MAINPID=1");
    }

    TEST_CASE("where there is none nothing is missed; where it has gone that is known") {
        CHECK(service_manager{}.tell("READY=1"));
        const tests::temp_dir place;
        ::setenv("NOTIFY_SOCKET", place.file("absent").c_str(), 1);
        const service_manager manager;
        ::unsetenv("NOTIFY_SOCKET");
        CHECK_FALSE(manager.tell("READY=1"));
    }

}  // TEST_SUITE

}  // namespace reprise::proxy::server::test::of_service_manager
