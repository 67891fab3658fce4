#include "config/options.hpp"
#include "config/units.hpp"
#include "tools/replay/sweep.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

using namespace reprise::replay;
using reprise::config::gib;
using reprise::config::mib;

namespace {

sweep_words one_of_each() {
    sweep_words out;
    out.policies = {"lru"};
    out.admissions = {"second-hit"};
    return out;
}

std::string mistake_in(const sweep_words& asked) {
    try {
        (void)setups_of(asked);
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_SUITE_BEGIN("replay/sweep");

TEST_CASE("every memory is tried with every disk, each in bytes") {
    auto asked = one_of_each();
    asked.memory = {"1GiB", "512 MiB"};
    asked.disks = {"50 GB", "4GiB", "1TiB"};
    const auto setups = setups_of(asked);
    REQUIRE(setups.size() == 6);
    CHECK(setups[0].size.bytes == gib + 50'000'000'000);
    REQUIRE(setups[0].disk);
    CHECK(setups[0].disk->memory_bytes == gib);
    CHECK(setups[4].size.bytes == 512 * mib + 4 * gib);
}

TEST_CASE("memory without a disk is one tier; a disk without a memory stands below the default") {
    auto asked = one_of_each();
    asked.memory = {"1GiB"};
    REQUIRE(setups_of(asked).size() == 1);
    CHECK(setups_of(asked)[0].size.bytes == gib);
    CHECK_FALSE(setups_of(asked)[0].disk);
    asked.memory.clear();
    asked.disks = {"4GiB"};
    const auto memory = reprise::config::options{}.memory.size;
    CHECK(setups_of(asked)[0].size.bytes == memory + 4 * gib);
    CHECK(setups_of(asked)[0].disk->memory_bytes == memory);
}

TEST_CASE("with a size memory is a share of it") {
    auto asked = one_of_each();
    asked.sizes = {"10%", "1GiB"};
    asked.memory = {"20%"};
    const auto setups = setups_of(asked);
    REQUIRE(setups.size() == 2);
    CHECK(setups[0].size.of_unique == 0.1);
    CHECK(setups[1].disk->memory == 0.2);
    CHECK(setups[1].disk->memory_bytes == 0);
}

TEST_CASE("what is said twice, or contradicts itself, is named") {
    auto asked = one_of_each();
    asked.sizes = {"1GiB"};
    asked.memory = {"1GiB"};
    CHECK(mistake_in(asked).starts_with("--size says what --memory and --disk are together"));
    asked.memory = {"20%"};
    asked.disks = {"1GiB"};
    CHECK(mistake_in(asked).starts_with("--size says"));
    asked.sizes.clear();
    CHECK(mistake_in(asked).starts_with("--memory: \"20%\" is to be bytes"));
    asked.memory = {"much"};
    CHECK(mistake_in(asked) == "--memory: \"much\" is not one of its values (--help)");
    asked = one_of_each();
    asked.write = "never";
    asked.disks = {"1GiB"};
    CHECK(mistake_in(asked).starts_with("--write:"));
    asked.write = "admission";
    asked.wanted = "seconds";
    CHECK(setups_of(asked).front().wanted == objective::seconds);
    asked.wanted = "money";
    CHECK(mistake_in(asked).starts_with("--objective:"));
}

TEST_CASE("setups that come to the same are tried once") {
    auto asked = one_of_each();
    asked.admissions = {"always", "second-hit", "nth-hit:2"};
    asked.probations = {"0%", "10%"};
    // Without a disk probation means nothing where everything is admitted.
    CHECK(setups_of(asked).size() == 2 * 3);
}

TEST_SUITE_END();
