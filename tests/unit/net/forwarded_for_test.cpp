#include "proxy/net/forwarded_for.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace reprise::proxy::net;

namespace {

address_bytes at(std::string_view address) {
    return canonical(*parse_numeric_host(address));
}

const std::vector<reprise::config::network> fronts{{at("10.0.0.0"), 104}, {at("2001:db8::"), 48}};

// The lines of a message, in their order.
std::string client_of(const std::vector<std::string>& lines,
                      std::string_view connected = "10.0.0.1") {
    forwarded_path path{fronts, {at(connected), 1}};
    for (auto line = lines.rbegin(); line != lines.rend() && path.follow(*line); ++line) {
    }
    return endpoint_text(to_address(path.client().at), path.client().port);
}

}  // namespace

TEST_SUITE_BEGIN("net/forwarded_for");

TEST_CASE("a member is an address, perhaps with a port, and nothing else") {
    const auto read = [](std::string_view member) {
        const auto said = read_forwarded_client(member);
        return said ? endpoint_text(to_address(said->at), said->port) : std::string{"none"};
    };
    CHECK(read("192.0.2.1") == "192.0.2.1:0");
    CHECK(read(" 192.0.2.1:80\t") == "192.0.2.1:80");
    CHECK(read("2001:db8::1") == "[2001:db8::1]:0");
    CHECK(read("[2001:db8::1]") == "[2001:db8::1]:0");
    CHECK(read("[2001:db8::1]:8080") == "[2001:db8::1]:8080");
    CHECK(read("::ffff:192.0.2.1") == "192.0.2.1:0");
    for (const std::string_view bad : {"",
                                       "unknown",
                                       "_hidden",
                                       "localhost",
                                       "192.0.2.1:",
                                       "192.0.2.1:http",
                                       "192.0.2.1:65536",
                                       "192.0.2.1 x",
                                       "192.0.2",
                                       "0x7f000001",
                                       "[192.0.2.1]",
                                       "[2001:db8::1",
                                       "2001:db8::1]",
                                       "[2001:db8::1]80",
                                       "fe80::1%eth0",
                                       "\"[2001:db8::1]\"",
                                       "for=192.0.2.1"}) {
        CAPTURE(bad);
        CHECK(read(bad) == "none");
    }
}

TEST_CASE("the client is the last address that is no front's") {
    CHECK(client_of({}) == "10.0.0.1:1");
    CHECK(client_of({"198.51.100.7"}) == "198.51.100.7:0");
    CHECK(client_of({"203.0.113.9, 198.51.100.7, 10.0.0.2"}) == "198.51.100.7:0");
    CHECK(client_of({"203.0.113.9", "198.51.100.7,, ,2001:db8::5", " "}) == "198.51.100.7:0");
    CHECK(client_of({"10.0.0.3,10.0.0.2:9"}) == "10.0.0.3:0");  // all of them fronts: the first
}

TEST_CASE("it is the last that was read where the next can't be") {
    CHECK(client_of({"198.51.100.7, unknown"}) == "10.0.0.1:1");
    CHECK(client_of({"198.51.100.7, unknown, 10.0.0.2"}) == "10.0.0.2:0");
    CHECK(client_of({"198.51.100.7", "garbage"}) == "10.0.0.1:1");
    std::string long_way = "198.51.100.7";
    for (unsigned i = 0; i < forwarded_path::most_forwards; ++i) {
        long_way += ",10.0.0.2";
    }
    CHECK(client_of({long_way}) == "10.0.0.2:0");
}

TEST_CASE("nobody becomes this machine, or an address that is no host's") {
    for (const std::string bad :
         {"127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "224.0.0.1", "ff02::1"}) {
        CAPTURE(bad);
        CHECK(client_of({"198.51.100.7," + bad}) == "10.0.0.1:1");
    }
    const std::vector<reprise::config::network> local{{at("127.0.0.0"), 104}};
    forwarded_path path{local, {at("127.0.0.1"), 7}};
    CHECK(path.follow("127.0.0.2"));  // a front behind a front, stepped over
    CHECK(path.client().port == 7);
    CHECK_FALSE(path.follow("198.51.100.7"));
    CHECK(path.client().at == at("198.51.100.7"));
}

TEST_SUITE_END();
