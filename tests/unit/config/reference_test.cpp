#include "config/reference.hpp"
#include "config/settings.hpp"
#include "tests/unit/config/loading.hpp"

#include <sstream>

using namespace reprise::config;

TEST_SUITE("config/reference") {
    TEST_CASE("the committed REFERENCE.md is what the table says") {
        // To renew it: config_reference > config/REFERENCE.md
        CHECK(text_of("config/REFERENCE.md") == reference_markdown());
    }

    TEST_CASE("both pages have every setting and its prose") {
        const auto markdown = reference_markdown();
        const auto text = reference_text();
        for (const auto& shown : all_settings()) {
            CAPTURE(shown.path);
            const bool top = shown.path.find('.') == std::string::npos;
            CHECK(markdown.find(top ? "\n## " + shown.path + '\n' : "| `" + shown.path + "` |") !=
                  std::string::npos);
            CHECK(text.find('\n' + shown.path + '\n') != std::string::npos);
        }
    }

    TEST_CASE("the plain page is ASCII in lines of at most 80 columns") {
        std::istringstream lines{reference_text()};
        for (std::string line; std::getline(lines, line);) {
            CAPTURE(line);
            CHECK(line.size() <= 80);
            for (const char c : line) {
                CHECK(c >= 0x20);
                CHECK(c < 0x7f);
            }
        }
    }
}
