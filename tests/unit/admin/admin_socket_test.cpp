#include "proxy/admin/admin_socket.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

using namespace reprise;
using namespace reprise::proxy::admin;
using reprise::tests::temp_dir;
namespace errc = boost::system::errc;

namespace {

constexpr auto owner = config::socket_users::owner;

mode_t mode_of(const std::string& path) {
    struct stat facts {};
    return ::lstat(path.c_str(), &facts) == 0 ? facts.st_mode & 0777 : 0;
}

/// What a program leaves that was killed: a file that nobody listens on.
void leave_stale(const std::string& path) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size());
    REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    ::close(fd);
}

}  // namespace

TEST_SUITE("admin/admin_socket") {
    TEST_CASE("\"auto\" is in the first directory that systemd gives, and nowhere without one") {
        config::admin_options options;
        CHECK(socket_path(options, "/run/a:/run/b") == "/run/a/admin.sock");
        CHECK(socket_path(options, "").empty());
        options.socket = "/x/y";
        CHECK(socket_path(options, "/run/a") == "/x/y");
        options.socket = "off";
        CHECK(socket_path(options, "/run/a").empty());
    }

    TEST_CASE("the file is its owner's, or the group's too, and goes with the socket") {
        const temp_dir at;
        const auto path = at.file("sock");
        {
            const auto made = admin_socket::listen(path, owner);
            REQUIRE(made.has_value());
            CHECK(mode_of(path) == 0600);
        }
        CHECK_FALSE(std::filesystem::exists(path));
        const auto made = admin_socket::listen(path, config::socket_users::group);
        REQUIRE(made.has_value());
        CHECK(mode_of(path) == 0660);
    }

    TEST_CASE("a socket that somebody listens on is left to him") {
        const temp_dir at;
        const auto path = at.file("sock");
        const auto first = admin_socket::listen(path, owner);
        REQUIRE(first.has_value());
        CHECK(why_not_bind(path) == errc::address_in_use);
        CHECK(admin_socket::listen(path, owner).error() == errc::address_in_use);
        CHECK(std::filesystem::exists(path));
    }

    TEST_CASE("a socket of a program that has ended is replaced") {
        const temp_dir at;
        const auto path = at.file("sock");
        leave_stale(path);
        CHECK_FALSE(why_not_bind(path));
        CHECK(std::filesystem::exists(path));  // to look changes nothing
        CHECK(admin_socket::listen(path, owner).has_value());
    }

    TEST_CASE("what is no socket is left alone, and what has no place is said") {
        const temp_dir at;
        const auto path = at.write("file", "precious");
        CHECK(admin_socket::listen(path, owner).error() == errc::file_exists);
        CHECK(std::filesystem::file_size(path) == 8);
        CHECK(why_not_bind(at.file("absent/sock")) == errc::no_such_file_or_directory);
        CHECK(why_not_bind("/" + std::string(200, 'x')) == errc::filename_too_long);
    }

    TEST_CASE("the file of a successor stays when its predecessor goes") {
        const temp_dir at;
        const auto path = at.file("sock");
        {
            const auto first = admin_socket::listen(path, owner);
            REQUIRE(first.has_value());
            std::filesystem::remove(path);
            leave_stale(path);
        }
        CHECK(std::filesystem::exists(path));
    }
}
