#include "proxy/server/handed_over.hpp"

#include <doctest/doctest.h>

using namespace reprise::proxy::server;
using reprise::config::options;

TEST_SUITE("server/handed_over") {
    TEST_CASE("what lies in the directory and is read again is named") {
        options of;
        of.listeners.emplace_back().tls = {"/run/c/cert", "/etc/key"};
        of.admin.token_file = "/run/c/token";
        of.access.users_file = "/run/c/private_users";
        of.access.tokens_file = "/run/credentials/tokens";
        of.access.block_lists = {"/etc/a", "/run/c/b"};
        of.digest.secret_file = "/run/c/secret";  // waits for a restart, and is named for that
        of.peers.emplace_back().credentials_file = "/run/c/parent";
        of.intercept.emplace().ca_key = "/run/c/ca.key";
        const auto last = std::to_string(of.listeners.size() - 1);
        CHECK(read_again_below(of, "/run/c") ==
              std::vector<std::string>{"listeners[" + last + "].tls.certificate",
                                       "admin.token_file",
                                       "access.users_file",
                                       "access.block_lists[1]",
                                       "peers[0].credentials_file",
                                       "intercept.ca_key"});
        CHECK(read_again_below(of, "").empty());
        CHECK(read_again_below(options{}, "/run/c").empty());
    }
}
