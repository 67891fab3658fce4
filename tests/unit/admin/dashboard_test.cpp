#include "proxy/admin/dashboard.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace reprise::proxy;
using namespace reprise::proxy::admin;

namespace {

bool has_text(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

}  // namespace

TEST_SUITE("admin/dashboard") {

    TEST_CASE("the page with what it is made of is no more than 300 KB") {
        auto size = dashboard_page(nullptr).size();
        for (const auto& asset : dashboard_assets()) {
            CHECK_FALSE(asset.text.empty());
            size += asset.text.size();
        }
        CHECK(size < 300'000);
        MESSAGE("bytes: ", size);
    }

    TEST_CASE("Chart.js has the notice that its licence wants in front of it") {
        const auto charts = embedded::charts();
        CHECK(has_text(charts.substr(0, 2000), "Permission is hereby granted, free of charge"));
        CHECK(has_text(charts.substr(0, 2000), "Chart.js Contributors"));
        CHECK(has_text(charts, "Chart.js v"));
    }

    TEST_CASE("nothing of ours makes markup of text, or names another host") {
        for (const auto text : {embedded::script(), embedded::style(), embedded::page_template()}) {
            for (const auto* never : {"innerHTML",
                                      "outerHTML",
                                      "insertAdjacentHTML",
                                      "document.write",
                                      "eval(",
                                      "http:",
                                      "https:",
                                      "src=\"//",
                                      "@import",
                                      "url("}) {
                CAPTURE(never);
                CHECK_FALSE(has_text(text, never));
            }
        }
        // What the policy would refuse: scripts and styles in the page itself.
        const auto page = embedded::page_template();
        for (const auto* never :
             {"<style", " style=", " onclick", " onload", "<script>", "<base", "<form"}) {
            CAPTURE(never);
            CHECK_FALSE(has_text(page, never));
        }
    }

    TEST_CASE("the page has the figures of the moment in it, for whoever has no script") {
        stats_inputs inputs;
        inputs.version = "1.2<3";
        inputs.counts.requests[static_cast<std::size_t>(outcome::hit)] = 30;
        inputs.counts.requests[static_cast<std::size_t>(outcome::miss)] = 10;
        inputs.since_start = {.requests = 40, .hits = 30};
        const auto page = dashboard_page(&inputs);
        CHECK(has_text(page, "<body data-state=\"well\">"));
        CHECK(has_text(page, "<h1 id=\"headline\">All is well.</h1>"));
        CHECK(has_text(page, "<dd class=\"value\">75 %</dd>"));
        const auto plain = page.substr(page.find("<noscript>"));
        CHECK(has_text(plain, "<th scope=\"row\">Hit ratio</th><td>75 %</td>"));
        CHECK(has_text(page, "1.2&lt;3"));
        CHECK_FALSE(has_text(page, "{{"));
    }

    TEST_CASE("hosts by the hits that admission cost are in the page, the most first") {
        stats_inputs inputs;
        CHECK_FALSE(has_text(dashboard_page(&inputs), "Hosts with most of these"));
        inputs.costly = {{"a.test", 1'200}, {"<b>", 3}};
        const auto page = dashboard_page(&inputs);
        CHECK(
            has_text(page, "Hosts with most of these</th><td>a.test (1,200), &lt;b&gt; (3)</td>"));
    }

    TEST_CASE("hosts by the bytes of their answers are in the page, the most first") {
        stats_inputs inputs;
        CHECK_FALSE(has_text(dashboard_page(&inputs), "Hosts by bytes to clients</th>"));
        inputs.by_bytes = {{"a.test", 3 << 20, 1 << 20}, {"<b>", 2'048, 0}};
        CHECK(has_text(dashboard_page(&inputs),
                       "Hosts by bytes to clients</th><td>a.test (3.0 MiB, 1.0 MiB of it from the "
                       "store), &lt;b&gt; (2.0 KiB, 0 bytes of it from the store)</td>"));
    }

    TEST_CASE("what is noted, and is no trouble, is in the page") {
        stats_inputs inputs;
        inputs.within_a_minute = {.unresolved = 1};
        inputs.failing = {{"<typo>", 1}};
        const auto page = dashboard_page(&inputs);
        CHECK(has_text(page, "data-state=\"well\""));
        CHECK(has_text(page, "<ul id=\"notes\"><li>1 request failed at the origin"));
        CHECK(has_text(page, "&lt;typo&gt; (1)"));
    }

    TEST_CASE("names that others choose are escaped") {
        stats_inputs inputs;
        auto& one = inputs.peers.emplace().siblings.emplace_back();
        one.digest.name = "<script>alert(1)</script>";
        one.digest.digest.state = peer::follow_state::outdated;
        const auto page = dashboard_page(&inputs);
        CHECK(has_text(page, "data-state=\"unwell\""));
        CHECK(has_text(page, "&lt;script&gt;alert(1)"));
        CHECK_FALSE(has_text(page, "<script>alert"));
    }

    TEST_CASE("without figures it says that they take long") {
        const auto page = dashboard_page(nullptr);
        CHECK(has_text(page, "data-state=\"unknown\""));
        CHECK(has_text(page, "take long"));
        CHECK_FALSE(has_text(page, "{{"));
    }

}  // TEST_SUITE
