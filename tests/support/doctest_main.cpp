#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "tests/support/complaint.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

namespace {

[[maybe_unused]] const bool is_a_test = [] {
    // Reading the system's authorities takes most of the time in which a unit makes a worker; who needs some names them.
    ::setenv("SSL_CERT_FILE", "/dev/null", 1);
    reprise::tests::complain = [](const std::string& what) { FAIL_CHECK(what); };
    return true;
}();

}  // namespace
