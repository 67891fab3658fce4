#include "config/load.hpp"
#include "proxy/admin/stats.hpp"
#include "tools/replay/live.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <sstream>
#include <stdexcept>

namespace reprise::replay::test::of_live {

namespace {

using proxy::cache::what_if_row;
using json = nlohmann::json;

// What a proxy of 1 GiB and 3 GiB would answer /stats with.
std::string stats_with(std::vector<what_if_row> rows) {
    proxy::admin::stats_inputs inputs;
    inputs.version = "1.2";
    inputs.memory.capacity = 1ull << 30;
    inputs.disk.emplace().capacity = 3ull << 30;
    inputs.what_if.span = std::chrono::minutes{30};
    inputs.what_if.requests = 50'000;
    inputs.what_if.sample = 1.0 / 16;
    inputs.what_if.text = "admission costs little";
    inputs.what_if.rows = std::move(rows);
    return proxy::admin::stats_json(inputs).dump();
}

std::vector<what_if_row> usual_rows() {
    using enum what_if_row::group;
    const auto row = [](what_if_row::group of, const char* name, double hits, double bytes) {
        return what_if_row{.of = of, .name = name, .hit_ratio = hits, .byte_hit_ratio = bytes};
    };
    std::vector<what_if_row> rows{row(admission, "always", 0.40, 0.30),
                                  row(admission, "second-hit", 0.45, 0.28),
                                  row(admission, "second-hit with probation 10%", 0.48, 0.27),
                                  row(admission, "nth-hit 3", 0.30, 0.20),
                                  row(size, "x1/4", 0.40, 0.20),
                                  row(size, "x1/2", 0.43, 0.25),
                                  row(size, "x2", 0.455, 0.35),
                                  row(size, "x4", 0.456, 0.40),
                                  row(policy, "lru", 0.40, 0.295),
                                  row(policy, "gdsf", 0.455, 0.20)};
    rows[1].in_force = true;
    rows[1].written_bytes = 1u << 30;
    return rows;
}

std::string why_not(std::string_view stats) {
    try {
        (void)read_live(stats);
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return {};
}

}  // namespace

TEST_SUITE_BEGIN("replay/live");

TEST_CASE("what a proxy tells of its ghosts is read as it is") {
    const auto told = read_live(stats_with(usual_rows()));
    CHECK(told.version == "1.2");
    CHECK(told.span == 1'800);
    CHECK(told.requests == 50'000);
    CHECK(told.memory == 1ull << 30);
    CHECK(told.disk == 3ull << 30);
    REQUIRE(told.rows.size() == 10);
    const auto found = answer_of(told, objective::requests);
    REQUIRE(found.in_force != nullptr);
    CHECK(found.in_force->name == "second-hit");
    CHECK(found.in_force->room == 4ull << 30);
    CHECK(found.in_force->written_bytes == 1u << 30);
}

TEST_CASE("the best of each kind is recommended where it is better by a point") {
    const auto told = read_live(stats_with(usual_rows()));
    const auto found = answer_of(told, objective::requests);
    REQUIRE(found.admission != nullptr);
    CHECK(found.admission->name == "second-hit with probation 10%");
    CHECK(found.policy == nullptr);  // half a point
    const auto settings = json::parse(found.settings);
    CHECK(settings["admission"]["policy"] == "second-hit");
    CHECK(settings["admission"]["probation"] == "10%");
    CHECK_FALSE(settings.contains("memory"));

    const auto for_bytes = answer_of(told, objective::bytes);
    REQUIRE(for_bytes.admission != nullptr);
    CHECK(for_bytes.admission->name == "always");
    REQUIRE(for_bytes.policy != nullptr);
    CHECK(for_bytes.policy->name == "lru");
    CHECK(json::parse(for_bytes.settings)["memory"]["policy"] == "lru");
}

TEST_CASE("seconds are answered by the waiting that is spared") {
    auto rows = usual_rows();
    for (auto& row : rows) {
        row.wait_hit_ratio = 0.10;
    }
    rows[0].hit_ratio = 0.9;
    rows[0].wait_hit_ratio = 0.01;
    rows[9].wait_hit_ratio = 0.95;
    const auto told = read_live(stats_with(rows));
    const auto found = answer_of(told, objective::seconds);
    CHECK(found.admission == nullptr);
    REQUIRE(found.policy != nullptr);
    CHECK(found.policy->name == "gdsf");
    CHECK(json::parse(found.settings)["caching"]["objective"] == "seconds");
}

TEST_CASE("what a stranger answers neither commands a terminal nor keeps the tool") {
    auto stats = json::parse(stats_with(usual_rows()));
    stats["version"] = "\x1b]0;pwn\x07" + std::string(100'000, 'v');
    stats["what_if"]["advice"] = "\x1b[2J";
    const auto told = read_live(stats.dump());
    std::ostringstream out;
    print_live(out, told, objective::requests);
    CHECK(out.str().find('\x1b') == std::string::npos);
    CHECK(out.str().find('\x07') == std::string::npos);
    CHECK(out.str().size() < 10'000);
    for (int i = 0; i < 100; ++i) {
        stats["what_if"]["hit_ratio"]["row " + std::to_string(i)] = 0.5;
    }
    CHECK(why_not(stats.dump()).find("more rows than there are ghosts") != std::string::npos);
    stats = json::parse(stats_with(usual_rows()));
    stats["what_if"]["requests"] = 1e300;
    CHECK(why_not(stats.dump()).find("\"what_if.requests\" is no number") != std::string::npos);
}

TEST_CASE("of what is as good the one is recommended that writes less") {
    auto rows = usual_rows();
    rows[0].hit_ratio = 0.481;
    rows[0].written_bytes = 9u << 20;
    rows[2].written_bytes = 1u << 20;
    const auto told = read_live(stats_with(rows));
    CHECK(answer_of(told, objective::requests).admission->name == "second-hit with probation 10%");
}

TEST_CASE("what is recommended are settings that the program takes") {
    auto rows = usual_rows();
    rows[3].hit_ratio = 0.9;
    rows[9].hit_ratio = 0.9;
    const auto told = read_live(stats_with(rows));
    const auto found = answer_of(told, objective::requests);
    const auto read = config::read(found.settings);
    CHECK(read.mistakes.empty());
    CHECK(read.wanted.admission.choice.policy == config::admission_policy::nth_hit);
    CHECK(read.wanted.admission.choice.hits == 3);
    CHECK(read.wanted.memory.policy == config::eviction_kind::gdsf);
}

TEST_CASE("from which room on more does not pay") {
    auto rows = usual_rows();
    CHECK(answer_of(read_live(stats_with(rows)), objective::requests).enough == 4ull << 30);
    CHECK(answer_of(read_live(stats_with(rows)), objective::bytes).enough == 0);  // more still pays
    for (auto& row : rows) {
        row.hit_ratio = 0.45;
    }
    CHECK(answer_of(read_live(stats_with(rows)), objective::requests).enough == 1ull << 30);
}

TEST_CASE("before the first request there is no answer, and it says so") {
    const auto told = read_live(stats_with({}));
    CHECK(told.rows.empty());
    const auto found = answer_of(told, objective::requests);
    CHECK(found.in_force == nullptr);
    CHECK(found.settings.empty());
    std::ostringstream out, page, as_json;
    print_live(out, told, objective::requests);
    CHECK(out.str().find("too little") != std::string::npos);
    print_live_page(page, told, objective::requests);
    CHECK(page.str().find("too little") != std::string::npos);
    print_live_json(as_json, told, objective::requests);
    CHECK(json::parse(as_json.str())["rows"].empty());
}

TEST_CASE("an answer names what is in force, what is better, and the settings") {
    const auto told = read_live(stats_with(usual_rows()));
    std::ostringstream out, page, as_json;
    print_live(out, told, objective::requests);
    for (const auto* words : {"Reprise 1.2, its last 30 minutes",
                              "second-hit with probation 10%",
                              "in force",
                              "better for requests",
                              "more room stops paying",
                              "\"probation\": \"10%\""}) {
        CAPTURE(words);
        CHECK(out.str().find(words) != std::string::npos);
    }
    print_live_page(page, told, objective::requests);
    CHECK(page.str().find("<svg") != std::string::npos);
    CHECK(page.str().find("<script") == std::string::npos);
    print_live_json(as_json, told, objective::requests);
    CHECK(json::parse(as_json.str())["settings"]["admission"]["probation"] == "10%");
}

TEST_CASE("what is no /stats of ours is refused by what is missing") {
    CHECK(why_not("<html>").find("no JSON object") != std::string::npos);
    CHECK(why_not("[]").find("no JSON object") != std::string::npos);
    CHECK(why_not("{}").find("\"version\" is not there") != std::string::npos);
    auto stats = json::parse(stats_with(usual_rows()));
    const auto broken = [&](auto change) {
        auto other = stats;
        change(other);
        return why_not(other.dump());
    };
    CHECK(broken([](json& it) {
              it["what_if"]["span_seconds"] = "long";
          }).find("\"what_if.span_seconds\" is no number") != std::string::npos);
    CHECK(broken([](json& it) { it["store"] = 5; }).find("\"store.capacity_bytes\" is not there") !=
          std::string::npos);
    CHECK(broken([](json& it) {
              it["what_if"]["hit_ratio"]["always"] = 2.5;
          }).find("no ratio for \"always\"") != std::string::npos);
    CHECK(broken([](json& it) {
              it["what_if"]["byte_hit_ratio"].erase("always");
          }).find("no ratio for \"always\"") != std::string::npos);
    CHECK(broken([](json& it) {
              it["what_if"]["written_bytes"]["always"] = -1;
          }).find("no number for \"always\"") != std::string::npos);
}

TEST_CASE("names that this program does not know are shown, and not recommended as settings") {
    auto rows = usual_rows();
    rows.push_back(
        {.of = what_if_row::group::admission, .name = "nth-hit 9999999999", .hit_ratio = 0.99});
    rows.push_back({.of = what_if_row::group::policy, .name = "newest", .hit_ratio = 0.99});
    const auto told = read_live(stats_with(rows));
    const auto found = answer_of(told, objective::requests);
    REQUIRE(found.policy != nullptr);
    CHECK(found.policy->name == "newest");
    CHECK(found.settings.empty());
    for (const auto* name : {"nth-hit 9999", "second-hit with probation ....%", "nth-hit 0"}) {
        rows.back() = {.of = what_if_row::group::admission, .name = name, .hit_ratio = 0.999};
        rows[rows.size() - 2].hit_ratio = 0;
        CAPTURE(name);
        const auto other = read_live(stats_with(rows));
        CHECK(answer_of(other, objective::requests).admission->name == name);
        CHECK(answer_of(other, objective::requests).settings.empty());
    }
}

TEST_SUITE_END();

}  // namespace reprise::replay::test::of_live
