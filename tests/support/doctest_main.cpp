#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "tests/support/complaint.hpp"

#include <doctest/doctest.h>

namespace {

[[maybe_unused]] const bool is_a_test = [] {
    reprise::tests::complain = [](const std::string& what) { FAIL_CHECK(what); };
    return true;
}();

}  // namespace
