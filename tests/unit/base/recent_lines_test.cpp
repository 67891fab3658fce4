#include "proxy/base/log.hpp"
#include "proxy/base/recent_lines.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace reprise;
using namespace reprise::proxy;
using config::log_level;

namespace {

constexpr wall_time noon{std::chrono::hours{12}};

}  // namespace

TEST_SUITE("base/recent_lines") {

    TEST_CASE("warnings and errors are kept with their times, and nothing less") {
        recent_lines lines;
        CHECK(lines.all().empty());
        lines.note(noon, log_level::info, "hello");
        lines.note(noon, log_level::warn, "one");
        lines.note(noon + std::chrono::seconds{1}, log_level::error, "two");
        const auto all = lines.all();
        REQUIRE(all.size() == 2);
        CHECK(all[0].text == "one");
        CHECK(all[0].level == log_level::warn);
        CHECK(all[1].text == "two");
        CHECK(all[1].at == noon + std::chrono::seconds{1});
        CHECK(lines.counted().warnings == 1);
        CHECK(lines.counted().errors == 1);
    }

    TEST_CASE("the oldest makes room, and the counts go on") {
        recent_lines lines;
        for (int i = 0; i < 47; ++i) {
            lines.note(noon, log_level::warn, std::to_string(i));
        }
        const auto all = lines.all();
        REQUIRE(all.size() == recent_lines::kept);
        CHECK(all.front().text == "27");
        CHECK(all.back().text == "46");
        CHECK(lines.counted().warnings == 47);
    }

    TEST_CASE("a long line is cut, and no character of it in the middle") {
        recent_lines lines;
        std::string text(recent_lines::longest - 1, 'a');
        lines.note(noon, log_level::error, text + "\xC3\xA4");
        lines.note(noon, log_level::error, text + "bc");
        const auto all = lines.all();
        CHECK(all[0].text == text);
        CHECK(all[1].text == text + "b");
    }

    TEST_CASE("what the diagnostic log is given is among them, printable as it is there") {
        const auto before = log::recent().counted().warnings;
        log::warn("strange \x1b[31m", 7);
        CHECK(log::recent().counted().warnings == before + 1);
        CHECK(log::recent().all().back().text == "strange \\x1b[31m7");
    }

}  // TEST_SUITE
