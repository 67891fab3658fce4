#include "proxy/http/connection_login.hpp"
#include "tests/unit/http/field_lines.hpp"

#include <doctest/doctest.h>

namespace reprise::proxy::http {

TEST_SUITE("http/connection_login") {

    TEST_CASE("NTLM and Negotiate log a connection in, in whatever case; others a request") {
        for (const std::string_view line : {"Authorization: NTLM TlRMTVNTUAAB",
                                            "authorization: negotiate YII=",
                                            "Authorization: Kerberos x",
                                            "Authorization: NTLM",
                                            "Authorization: ntlm\tx"}) {
            CAPTURE(line);
            CHECK(logs_connection_in(lines({"Host: a", line})));
        }
        for (const std::string_view line : {"Authorization: Basic NTLM",
                                            "Authorization: Bearer negotiate",
                                            "Authorization: NTLMv2 x",
                                            "Authorization:",
                                            "Proxy-Authorization: NTLM x"}) {
            CAPTURE(line);
            CHECK_FALSE(logs_connection_in(lines({"Host: a", line})));
        }
    }

    TEST_CASE("a challenge for a connection's login is found among others") {
        for (const std::string_view line : {"WWW-Authenticate: NTLM",
                                            "www-authenticate: Negotiate",
                                            "WWW-Authenticate: Basic realm=\"a, b\", ntlm",
                                            "WWW-Authenticate: ,, kerberos"}) {
            CAPTURE(line);
            CHECK(asks_for_connection_login(lines({"Server: a", line})));
        }
        for (const std::string_view line : {"WWW-Authenticate: Basic realm=NTLM",
                                            "WWW-Authenticate: Basic realm=\"a, ntlm=b\"",
                                            "WWW-Authenticate:",
                                            "WWW-Authenticate: ,",
                                            "Proxy-Authenticate: NTLM"}) {
            CAPTURE(line);
            CHECK_FALSE(asks_for_connection_login(lines({"Server: a", line})));
        }
        CHECK(asks_for_connection_login(
            lines({"WWW-Authenticate: Basic realm=a", "WWW-Authenticate: NTLM"})));
    }
}

}  // namespace reprise::proxy::http
