#include "proxy/peer/credentials.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace reprise::proxy::peer::test::of_credentials {
namespace {

std::string why_not(const std::vector<config::peer_options>& peers) {
    try {
        (void)load_all_credentials(peers);
    } catch (const std::runtime_error& wrong) {
        return wrong.what();
    }
    return {};
}

}  // namespace

TEST_SUITE("peer/credentials") {
    TEST_CASE("user and password are what RFC 7617 makes of them") {
        // Its own examples.
        CHECK(read_credentials("Aladdin:open sesame").value ==
              "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        CHECK(read_credentials("test:123\xc2\xa3\n").value == "Basic dGVzdDoxMjPCow==");
        CHECK(read_credentials("a:\r\n").value == "Basic YTo=");
        CHECK(read_credentials("a:b:c").value == "Basic YTpiOmM=");
    }

    TEST_CASE("what is no line of user:password is refused, and not repeated") {
        for (const auto& content : {std::string{},
                                    std::string{"\n"},
                                    std::string{"secret"},
                                    std::string{"a:b\nc:d\n"},
                                    std::string{"a:b\n\n"},
                                    std::string{"a:b\r"},
                                    std::string{"a:\0b", 4},
                                    std::string{"a:\x7f"},
                                    "a:" + std::string(1023, 'x')}) {
            const auto read = read_credentials(content);
            CAPTURE(content.size());
            CHECK(read.value.empty());
            CHECK(std::string{read.wrong} != "");
            CHECK(std::string{read.wrong}.find("secret") == std::string::npos);
        }
        const auto longest = read_credentials("a:" + std::string(1022, 'x'));
        CHECK(std::string{longest.wrong} == "");
        CHECK(longest.value.size() == 6 + 1368);
    }

    TEST_CASE("files are read by parent, and one that can't be is named") {
        const tests::temp_dir at;
        std::vector<config::peer_options> peers(3);
        peers[0].name = "none";
        peers[1].name = "one";
        peers[1].credentials_file = at.write("one", "u:p\n");
        peers[2].name = "two";
        peers[2].credentials_file = at.write("two", "v:q");
        const auto all = load_all_credentials(peers);
        CHECK(all.size() == 2);
        CHECK(all.at("one") == "Basic dTpw");
        CHECK(all.at("two") == "Basic djpx");

        peers[2].credentials_file = at.file("missing");
        CHECK(why_not(peers) == "peers[2].credentials_file: " + at.file("missing") +
                                    " cannot be read: No such file or directory");
        peers[2].credentials_file = at.path();
        CHECK(why_not(peers).find("regular file") != std::string::npos);
        peers[2].credentials_file = at.write("bad", "hidden");
        CHECK(why_not(peers).ends_with("does not hold user:password"));
    }
}

}  // namespace reprise::proxy::peer::test::of_credentials
