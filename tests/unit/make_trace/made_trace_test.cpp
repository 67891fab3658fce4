#include "tools/make_trace/made_trace.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

using namespace reprise::tools;

namespace {

using trace = std::vector<made_request>;

trace made(trace_kind kind, std::uint64_t seed, std::uint64_t requests = 60'000) {
    trace out;
    make_trace(kind, seed, requests, [&](const made_request& one) { out.push_back(one); });
    return out;
}

std::map<std::uint64_t, std::vector<made_request>> by_key(const trace& all) {
    std::map<std::uint64_t, std::vector<made_request>> out;
    for (const auto& one : all) {
        out[one.key].push_back(one);
    }
    return out;
}

}  // namespace

TEST_SUITE("make_trace/made_trace") {
    TEST_CASE("a seed is a trace, in the order of time, with one size a key") {
        for (const auto* const name : {"soon", "huge", "drift", "scan", "origins"}) {
            CAPTURE(name);
            const auto kind = trace_kind_named(name).value();
            const auto one = made(kind, 7);
            CHECK(one.size() == 60'000);
            CHECK(one == made(kind, 7));
            CHECK(one != made(kind, 8));
            CHECK(std::is_sorted(one.begin(), one.end(), [](const auto& a, const auto& b) {
                return a.second < b.second;
            }));
            std::uint64_t keys = 0;
            for (const auto& each : one) {
                CHECK(each.key <= keys + 1);  // numbered as they appear
                keys = std::max(keys, each.key);
                CHECK(each.bytes > 0);
            }
            for (const auto& [key, requests] : by_key(one)) {
                CHECK(std::all_of(requests.begin(), requests.end(), [&](const auto& each) {
                    return each.bytes == requests.front().bytes;
                }));
            }
        }
        CHECK_FALSE(trace_kind_named("cold"));
    }

    TEST_CASE(
        "origins: a third answers in about 5 ms, a third in 50, a third in 500, each key in one") {
        std::map<long, std::uint64_t> keys;  // by tenfold of the time
        for (const auto& [key, requests] : by_key(made(trace_kind::origins, 1))) {
            double logarithms = 0;
            for (const auto& each : requests) {
                REQUIRE(each.wait != 0);
                logarithms += std::log10(static_cast<double>(each.wait) / 5e3);
            }
            ++keys[std::lround(logarithms / static_cast<double>(requests.size()))];
        }
        const auto all = std::accumulate(
            keys.begin(), keys.end(), std::uint64_t{0}, [](std::uint64_t sum, const auto& one) {
                return sum + one.second;
            });
        for (const long tenfold : {0, 1, 2}) {
            CHECK(100 * keys[tenfold] > 32 * all);
        }
        CHECK(made(trace_kind::scan, 1).front().wait == 0);
    }

    TEST_CASE("soon: what is asked for again is so within seconds") {
        std::uint64_t again = 0, late = 0;
        for (const auto& [key, requests] : by_key(made(trace_kind::soon, 1))) {
            for (std::size_t i = 1; i < requests.size(); ++i) {
                ++again;
                late += requests[i].second - requests[i - 1].second > 30 ? 1 : 0;
            }
        }
        CHECK(again > 20'000);
        CHECK(late * 1'000 < again);
    }

    TEST_CASE("huge: a few objects have a large part of the bytes") {
        double all = 0, huge = 0;
        std::map<std::uint64_t, bool> which;
        for (const auto& one : made(trace_kind::huge, 1, 300'000)) {
            all += static_cast<double>(one.bytes);
            if (one.bytes >= 100'000'000) {
                huge += static_cast<double>(one.bytes);
                which[one.key] = true;
            }
        }
        CHECK(which.size() >= 3);
        CHECK(which.size() <= 6);
        CHECK(huge / all > 0.2);
        CHECK(huge / all < 0.6);
    }

    TEST_CASE("drift: what is popular at the end was not there at the beginning") {
        const auto all = made(trace_kind::drift, 1, 300'000);
        const auto most_of = [&](std::size_t from) {
            std::map<std::uint64_t, unsigned> count;
            for (std::size_t i = from; i < from + 20'000; ++i) {
                ++count[all[i].key];
            }
            std::vector<std::pair<unsigned, std::uint64_t>> ranked;
            for (const auto& [key, many] : count) {
                ranked.emplace_back(many, key);
            }
            std::sort(ranked.rbegin(), ranked.rend());
            ranked.resize(20);
            return ranked;
        };
        const auto first = most_of(0), last = most_of(280'000);
        const auto stayed = std::count_if(last.begin(), last.end(), [&](const auto& one) {
            return std::any_of(first.begin(), first.end(), [&](const auto& other) {
                return one.second == other.second;
            });
        });
        CHECK(stayed < 5);
    }

    TEST_CASE("scan: runs of objects, each once a scan") {
        const auto all = made(trace_kind::scan, 1, 60'000);
        std::map<std::uint64_t, unsigned> of_scan;
        for (std::size_t i = 40'000; i < 60'000; ++i) {
            ++of_scan[all[i].key];
        }
        CHECK(of_scan.size() == 20'000);
    }
}
