#include "proxy/admin/summary.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>

using namespace reprise;
using namespace reprise::proxy;
using namespace reprise::proxy::admin;

namespace {

std::uint64_t& requests_of(stats_inputs& inputs, outcome how) {
    return inputs.counts.requests[static_cast<std::size_t>(how)];
}

stats_inputs a_busy_day() {
    stats_inputs inputs;
    inputs.at = wall_time{std::chrono::sys_days{std::chrono::year{2026} / 11 / 24}} +
                std::chrono::hours{22};
    inputs.uptime = std::chrono::hours{3};
    requests_of(inputs, outcome::hit) = 9'000;
    requests_of(inputs, outcome::miss) = 3'000;
    requests_of(inputs, outcome::collapsed) = 345;
    requests_of(inputs, outcome::tunnel) = 1'000;
    inputs.since_start = {
        .requests = 12'345, .hits = 9'000, .body_bytes = 1000, .body_bytes_from_store = 480};
    inputs.counts.body_bytes_from_store = std::uint64_t{4} << 30;
    inputs.counts.body_bytes_from_collapsing = 1 << 20;
    inputs.counts.admission_by_policy[0] = {
        .admitted = 5, .refused = 2'000, .bytes_refused = 1 << 20};
    inputs.counts.admission_hits_lost = 12;
    inputs.process = {.cpu_seconds = 2.469, .resident_bytes = std::uint64_t{210} << 20};
    return inputs;
}

// The only thing that is not well; empty: all is, or more than one isn't.
std::string only_trouble(const stats_inputs& inputs) {
    const auto found = make_summary(inputs).not_well;
    return found.size() == 1 ? found.front() : std::string{};
}

bool says(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_SUITE("admin/summary") {

    TEST_CASE("numbers are as people write them") {
        CHECK(grouped(0) == "0");
        CHECK(grouped(999) == "999");
        CHECK(grouped(1'000) == "1,000");
        CHECK(grouped(1'234'567) == "1,234,567");
        CHECK(bytes_in_words(1) == "1 byte");
        CHECK(bytes_in_words(1'023) == "1,023 bytes");
        CHECK(bytes_in_words(1'536) == "1.5 KiB");
        CHECK(bytes_in_words((std::uint64_t{1} << 20) - 1) == "1.0 MiB");
        CHECK(bytes_in_words(std::uint64_t{42} << 30) == "42 GiB");
        CHECK(bytes_in_words(~std::uint64_t{0}) == "16 EiB");
        CHECK(time_in_words(std::chrono::seconds{1}) == "1 second");
        CHECK(time_in_words(std::chrono::seconds{119}) == "119 seconds");
        CHECK(time_in_words(std::chrono::minutes{90}) == "90 minutes");
        CHECK(time_in_words(std::chrono::hours{47}) == "47 hours");
        CHECK(time_in_words(std::chrono::hours{50}) == "2 days");
        CHECK(percent(0.0) == "0 %");
        CHECK(percent(0.004) == "0.4 %");
        CHECK(percent(0.61) == "61 %");
        CHECK(percent(std::nullopt) == "none yet");
        CHECK(part_in_words(std::uint64_t{12} << 30, std::uint64_t{50} << 30) == "12 of 50 GiB");
        CHECK(part_in_words(std::uint64_t{900} << 20, std::uint64_t{1} << 30) ==
              "900 MiB of 1.0 GiB");
        CHECK(part_in_words(0, 5) == "0 of 5 bytes");
        CHECK(short_time_in_words(0) == "0 ms");
        CHECK(short_time_in_words(0.0421) == "42 ms");
        CHECK(short_time_in_words(-0.0421) == "-42 ms");
        CHECK(short_time_in_words(0.9999) == "1.0 s");
        CHECK(short_time_in_words(61.3) == "61 s");
        CHECK(utc(wall_time{}) == "1970-01-01T00:00:00Z");
    }

    TEST_CASE("the summary says since when, what is spared and what it costs") {
        const auto of = make_summary(a_busy_day());
        CHECK(of.headline == "All is well.");
        CHECK(utc(of.since) == "2026-11-24T19:00:00Z");
        CHECK(of.requests == 12'345);
        CHECK(of.text ==
              "In 3 hours it answered 12,345 requests, 73 % of them from what is stored here. "
              "Origins were spared 9,345 requests and 4.0 GiB, of that by shared fetches 345 (1.0 "
              "MiB). Admission kept 2,000 objects (1.0 MiB) out of the store; 12 requests went to "
              "their origins that would have been hits without admission.");
        CHECK(of.cpu_seconds_per_1000_requests == doctest::Approx(0.2));
        CHECK(of.figures[0].value == "73 %");
        CHECK(of.figures[0].more == "of 12,345 requests since the start; 48 % of the bytes");
        CHECK(of.figures[1].value == "4.0 GiB");
        CHECK(of.figures[2].value == "2,000");
        CHECK(of.figures[3].value == "12 hits");
        CHECK(
            says(of.figures[3].more, "that admission cost since the start; now 210 MiB of memory"));
        CHECK(says(of.figures[3].more, "200 ms of CPU per 1,000 requests since the start"));
    }

    TEST_CASE("what was stored after all is not called kept out") {
        auto inputs = a_busy_day();  // 2,000 objects of 1 MiB in all were refused
        inputs.memory.promoted = 300;
        inputs.memory.promoted_bytes = 1u << 18;
        inputs.unadmitted = {.objects = 200, .bytes = 1u << 18};
        auto of = make_summary(inputs);
        CHECK(of.writes_spared == 1'500);
        CHECK(of.written_bytes_spared == 1u << 19);
        inputs.memory.promoted = 5'000;  // what an earlier program refused, say
        inputs.memory.promoted_bytes = 5u << 20;
        of = make_summary(inputs);
        CHECK(of.writes_spared == 0);
        CHECK(of.written_bytes_spared == 0);
        CHECK(of.figures[2].more == "nothing since the start");
    }

    TEST_CASE("every large figure says what time it is of") {
        for (const auto& inputs : {a_busy_day(), stats_inputs{}}) {
            for (const auto& one : make_summary(inputs).figures) {
                CAPTURE(one.label);
                CHECK(says(one.more, "since the start"));
            }
        }
    }

    TEST_CASE("the last day is called a day when it is one, and else what it is") {
        auto inputs = a_busy_day();
        inputs.day_covers = std::chrono::hours{3};
        CHECK(make_summary(inputs).day == "in the last 3 hours, since the start");
        inputs.over_upgrade = true;
        CHECK(make_summary(inputs).day == "in the last 3 hours, since the start before an upgrade");
        inputs.day_covers = std::chrono::hours{24} + std::chrono::seconds{7};
        CHECK(make_summary(inputs).day == "in the last day");
        inputs.within_a_day = {.requests = 100,
                               .hits = 50,
                               .by_siblings = 7,
                               .bytes_by_siblings = 70,
                               .by_sharing = 3,
                               .bytes_by_sharing = 30,
                               .body_bytes_from_store = 500};
        const auto day = summary_json(inputs)["last_day"];
        CHECK(day["requests"] == 100);
        CHECK(day["hits"] == 50);
        CHECK(day["requests_spared"] == 60);
        CHECK(day["bytes_spared"] == 600);
        CHECK(day["requests_by_siblings"] == 7);
    }

    TEST_CASE("before the first request it says so, and no figure pretends") {
        stats_inputs inputs;
        inputs.uptime = std::chrono::seconds{4};
        const auto of = make_summary(inputs);
        CHECK(says(of.text, "4 seconds"));
        CHECK(says(of.text, "nothing"));
        for (std::size_t i = 0; i < 3; ++i) {
            CHECK(of.figures[i].kind == "nothing");
        }
        CHECK_FALSE(of.cpu_seconds_per_1000_requests.has_value());
    }

    TEST_CASE("what siblings gave is spared the origins too, and told apart") {
        auto inputs = a_busy_day();
        inputs.counts.body_bytes_from_siblings = 3 << 20;
        requests_of(inputs, outcome::sibling) = 17;
        const auto of = make_summary(inputs);
        CHECK(of.requests_spared == 9'000 + 17 + 345);
        CHECK(of.bytes_spared == (std::uint64_t{4} << 30) + (4 << 20));
        CHECK(of.store_bytes == std::uint64_t{4} << 30);
        CHECK(of.sibling_hits == 17);
        CHECK(of.sibling_bytes == 3 << 20);
        CHECK(says(of.text, "of that by siblings 17 (3.0 MiB), by shared fetches 345 (1.0 MiB)."));
        CHECK(says(of.figures[1].more, "of that by siblings 17 (3.0 MiB)"));
        const auto spared = summary_json(inputs)["spared"];
        CHECK(spared["requests"] == 9'362);
        CHECK(spared["requests_by_store"] == 9'000);
        CHECK(spared["bytes_by_siblings"] == 3 << 20);
        CHECK(of.not_well.empty());
    }

    TEST_CASE("what hits spared clients is told in words, once it is a second") {
        auto inputs = a_busy_day();
        CHECK_FALSE(says(make_summary(inputs).text, "of waiting"));
        inputs.counts.wait_spared = 999'999;
        CHECK_FALSE(says(make_summary(inputs).text, "of waiting"));
        inputs.counts.wait_spared = 7'260'500'000;
        CHECK(says(make_summary(inputs).text, "Clients were spared 2 hours of waiting."));
        CHECK(summary_json(inputs)["spared"]["seconds"] == 7260.5);
    }

    TEST_CASE("a few requests that failed are noted, with their host; many are not well") {
        auto inputs = a_busy_day();
        inputs.failing = {{"typo.test", 2}};
        inputs.within_a_minute = {.requests = 40, .unresolved = 2};
        auto of = make_summary(inputs);
        CHECK(of.headline == "All is well.");
        REQUIRE(of.notes.size() == 1);
        CHECK(
            of.notes[0] ==
            "2 requests failed at the origin in the last minute, of 42: 2 for want of an address. "
            "Of these: typo.test (2).");
        CHECK(summary_json(inputs)["notes"].size() == 1);
        inputs.within_a_minute = {.requests = 0, .unresolved = 4};  // all of them, but few
        CHECK(make_summary(inputs).not_well.empty());
        inputs.within_a_minute = {.requests = 1'000, .unresolved = 20};  // of very many
        CHECK(make_summary(inputs).not_well.empty());
        inputs.within_a_minute = {.requests = 95, .unresolved = 5};
        of = make_summary(inputs);
        CHECK(of.not_well.size() == 1);
        CHECK(of.notes.empty());
    }

    TEST_CASE("a disk without room for what the store is yet to take is not well") {
        constexpr auto gib = std::uint64_t{1} << 30;
        auto inputs = a_busy_day();
        auto& disk = inputs.disk.emplace();
        disk.state = cache::disk::tier_state::ready;
        disk.bytes = 12 * gib;
        disk.capacity = 50 * gib;
        inputs.room = disk_room{
            .path = "/srv", .size = 50 * gib, .held = 20 * gib, .free = 30 * gib};
        CHECK(make_summary(inputs).not_well.empty());
        inputs.room->free = 8 * gib;
        CHECK(
            only_trouble(inputs) ==
            "The disk has less room than the store is yet to take: 8.0 GiB are left at /srv, where "
            "it may grow by 30 GiB more, to disk.size 50 GiB.");
        CHECK(make_summary(inputs).headline == "One thing is not well.");
        inputs.room->held = 51 * gib;
        CHECK(make_summary(inputs).not_well.empty());
        const auto told = summary_json(inputs)["disk"];
        CHECK(told["bytes"] == 12 * gib);
        CHECK(told["path"] == "/srv");
        CHECK(told["free_bytes"] == 8 * gib);
        CHECK(summary_json(a_busy_day())["disk"].is_null());
    }

    TEST_CASE("each thing that is not well is a sentence that names it") {
        auto inputs = a_busy_day();
        REQUIRE(make_summary(inputs).not_well.empty());
        SUBCASE("origins that failed just now, by how") {
            inputs.within_a_minute = {.unreached = 7, .ill_answered = 1};
            inputs.failing = {{"a.test", 5}, {"b.test", 1}, {"c.test", 1}, {"d.test", 1}};
            CHECK(
                only_trouble(inputs) ==
                "8 requests failed at the origin in the last minute, of 8: 7 for want of a "
                "connection, 1 by a bad, broken or late answer. Of these: a.test (5), b.test (1), "
                "c.test (1) and others.");
        }
        SUBCASE("a sibling whose digest can't be had") {
            auto& one = inputs.peers.emplace().siblings.emplace_back();
            one.digest.name = "north";
            CHECK(make_summary(inputs).not_well.empty());  // not asked yet
            one.digest.digest.trouble = peer::follow_trouble::unreachable;
            CHECK(says(only_trouble(inputs), "Sibling north is lost"));
            one.digest.digest.state = peer::follow_state::failing;
            CHECK(says(only_trouble(inputs), "the one before is used meanwhile"));
            one.digest.digest.state = peer::follow_state::outdated;
            CHECK(says(only_trouble(inputs), "no object is asked of it"));
            one.digest.digest.state = peer::follow_state::current;
            CHECK(make_summary(inputs).not_well.empty());
        }
        SUBCASE("a parent that is down") {
            inputs.peers.emplace().parents.push_back({.name = "gate", .url = "", .down = true});
            CHECK(only_trouble(inputs) == "Parent gate does not answer.");
            auto& gate = inputs.peers->parents.front();
            gate.trouble = failure_code::parent_refused;
            CHECK(says(only_trouble(inputs), "peers[].credentials_file"));
            gate.trouble = failure_code::parent_certificate;
            CHECK(says(only_trouble(inputs), "certificate"));
        }
        SUBCASE("a disk that is off, or not written to") {
            auto& disk = inputs.disk.emplace();
            CHECK(make_summary(inputs).not_well.empty());  // loading
            disk.state = cache::disk::tier_state::off;
            disk.trouble = "no such device";
            CHECK(only_trouble(inputs) == "The store on disk is off: no such device.");
            disk.state = cache::disk::tier_state::reading;
            CHECK(says(only_trouble(inputs), "takes nothing new"));
        }
        SUBCASE("a CA that expires") {
            inputs.leaves.ca_validity = 40.0 * 86'400;
            CHECK(make_summary(inputs).not_well.empty());
            inputs.leaves.ca_validity = 3.5 * 86'400;
            CHECK(says(only_trouble(inputs), "expires in 3 days"));
            inputs.leaves.ca_validity = -1;
            CHECK(says(only_trouble(inputs), "has expired"));
        }
        SUBCASE("logs that can't be written as fast") {
            inputs.within_a_minute.lines_dropped = 1;
            CHECK(says(only_trouble(inputs), "1 line was dropped"));
            CHECK(says(only_trouble(inputs), "too slow"));
        }
        SUBCASE("an access log that refuses what it is given") {
            inputs.within_a_minute.lines_dropped = 2;
            inputs.lines_refused = "No space left on device";
            CHECK(only_trouble(inputs) ==
                  "2 lines were dropped by the logs in the last minute: log.access can't be "
                  "written: No space left on device.");
        }
        SUBCASE("a drain") {
            inputs.ready = readiness::draining;
            CHECK(says(only_trouble(inputs), "stopping"));
        }
    }

    TEST_CASE("several are counted in the headline") {
        auto inputs = a_busy_day();
        inputs.within_a_minute.unresolved = 6;
        CHECK(make_summary(inputs).headline == "One thing is not well.");
        inputs.ready = readiness::draining;
        CHECK(make_summary(inputs).headline == "2 things are not well.");
    }

    TEST_CASE("/stats begins with the summary") {
        auto inputs = a_busy_day();
        inputs.within_a_minute.unreached = 6;
        const auto stats = stats_json(inputs);
        CHECK(stats.begin().key() == "summary");
        const auto& summary = stats["summary"];
        CHECK(summary.begin().key() == "well");
        CHECK(summary["well"] == false);
        CHECK(summary["not_well"].size() == 1);
        CHECK(summary["since"] == "2026-11-24T19:00:00Z");
        CHECK(summary["spared"]["bytes_by_store"] == std::uint64_t{4} << 30);
        CHECK(summary["writes_spared"]["of"] == "memory");
        CHECK(summary["costs"]["hits_lost"] == 12);
        CHECK(summary["figures"].size() == 4);
    }

}  // TEST_SUITE
