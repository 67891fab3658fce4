#include "proxy/net/hosts.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/net/addresses.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <sys/resource.h>

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace std::chrono_literals;

namespace {

/// While it lives this process can open nothing.
class no_descriptor_left {
public:
    no_descriptor_left() {
        REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
        const ::rlimit none{0, before_.rlim_max};
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    }
    ~no_descriptor_left() { ::setrlimit(RLIMIT_NOFILE, &before_); }
    no_descriptor_left(const no_descriptor_left&) = delete;
    no_descriptor_left& operator=(const no_descriptor_left&) = delete;

private:
    ::rlimit before_{};
};

}  // namespace

TEST_SUITE_BEGIN("net/hosts");

TEST_CASE("a name has so many addresses and no more, of however many lines") {
    std::string text;
    for (unsigned i = 0; i < 2 * most_addresses_of_name; ++i) {
        text += "10.0." + std::to_string(i / 256) + '.' + std::to_string(i % 256) + " many\n";
    }
    const auto table = parse_hosts(text);
    REQUIRE(table.contains("many"));
    CHECK(table.at("many").size() == most_addresses_of_name);
}

TEST_CASE("each name of a line has its address, both families in order") {
    const auto table = parse_hosts("127.0.0.1 localhost\n"
                                   "::1\tlocalhost ip6-localhost # comment\n"
                                   "192.0.2.1 A.Test. alias\r\n"
                                   "192.0.2.1 a.test");
    CHECK(table.at("localhost") == std::vector{ip("127.0.0.1"), ip("::1")});
    CHECK(table.at("ip6-localhost") == std::vector{ip("::1")});
    CHECK(table.at("a.test") == std::vector{ip("192.0.2.1")});
    CHECK(table.at("alias") == std::vector{ip("192.0.2.1")});
    CHECK(table.size() == 4);
}

TEST_CASE("lines that make no sense are passed over") {
    const auto table = parse_hosts("\n\n  \n# all comment\nnot-an-address name\n192.0.2.1\n"
                                   "192.0.2.300 name\n#192.0.2.1 name\n");
    CHECK(table.empty());
    CHECK(parse_hosts("").empty());
}

TEST_CASE("a changed file is seen after a few seconds, a missing one is empty") {
    const reprise::tests::temp_dir directory;
    const auto path = directory.write("hosts", "192.0.2.1 a.test\n");
    hosts_file hosts{path};
    const auto start = steady_now();
    REQUIRE(hosts.find("a.test", start) != nullptr);
    CHECK(hosts.find("b.test", start) == nullptr);
    directory.write("hosts", "192.0.2.1 a.test\n192.0.2.22 b.test\n");
    CHECK(hosts.find("b.test", start + 1s) == nullptr);
    REQUIRE(hosts.find("b.test", start + 6s) != nullptr);
    CHECK(hosts.find("b.test", start + 6s)->front() == ip("192.0.2.22"));
    std::filesystem::remove(path);
    CHECK(hosts.find("b.test", start + 12s) == nullptr);
    CHECK(hosts_file{""}.find("a.test", start) == nullptr);
    CHECK(hosts_file{"/nonexistent/hosts"}.find("a.test", start) == nullptr);
}

TEST_CASE(
    "a file that can't be opened for want of a descriptor stays as it was, and is read later") {
    const reprise::tests::temp_dir directory;
    const auto path = directory.write("hosts", "192.0.2.1 a.test\n");
    hosts_file hosts{path};
    hosts_file later{path};
    const auto start = steady_now();
    REQUIRE(hosts.find("a.test", start) != nullptr);
    directory.write("hosts", "192.0.2.22 a.test b.test\n");
    {
        const no_descriptor_left now;
        const auto* const kept = hosts.find("a.test", start + 6s);
        REQUIRE(kept != nullptr);
        CHECK(kept->front() == ip("192.0.2.1"));
        CHECK(later.find("a.test", start) == nullptr);
    }
    CHECK(hosts.find("b.test", start + 7s) == nullptr);  // not looked at again yet
    for (auto* const each : {&hosts, &later}) {
        const auto* const found = each->find("b.test", start + 12s);
        REQUIRE(found != nullptr);
        CHECK(found->front() == ip("192.0.2.22"));
        CHECK(each->find("a.test", start + 12s)->size() == 1);
    }
}

TEST_CASE("a directory in the file's place is an empty file, until a file is there") {
    const reprise::tests::temp_dir directory;
    const auto path = directory.write("hosts", "192.0.2.1 a.test\n");
    hosts_file hosts{path};
    const auto start = steady_now();
    REQUIRE(hosts.find("a.test", start) != nullptr);
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    CHECK(hosts.find("a.test", start + 6s) == nullptr);
    std::filesystem::remove(path);
    directory.write("hosts", "192.0.2.2 a.test\n");
    REQUIRE(hosts.find("a.test", start + 12s) != nullptr);
    CHECK(hosts.find("a.test", start + 12s)->front() == ip("192.0.2.2"));
}

TEST_SUITE_END();
