#include "config/nearest.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>

using namespace reprise::config;

TEST_SUITE("config/nearest") {
    constexpr std::array<std::string_view, 4> known{"access", "admin", "admission", "log"};

    TEST_CASE("a slip is told from another name") {
        CHECK(nearest("acces", known) == "access");
        CHECK(nearest("Access", known) == "access");
        CHECK(nearest("admni", known) == "admin");
        CHECK(nearest("admissions", known) == "admission");
        CHECK(nearest("lgo", known) == "log");
        CHECK(nearest("colour", known).empty());
        CHECK(nearest("", known).empty());
        CHECK(nearest(std::string(65, 'a'), known).empty());
        CHECK(nearest("access", {}).empty());
    }
}
