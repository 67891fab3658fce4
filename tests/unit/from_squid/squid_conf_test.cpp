#include "tools/from_squid/squid_conf.hpp"

#include <doctest/doctest.h>

#include <map>

namespace reprise::from_squid {

namespace {

squid_conf read_all(std::map<std::string, std::string> files, conf_limits limits = {}) {
    const file_source source{
        [&](const std::string& path) -> std::optional<std::string> {
            const auto found = files.find(path);
            return found == files.end() ? std::nullopt : std::optional{found->second};
        },
        [&](const std::string& pattern) {
            std::vector<std::string> out;
            for (const auto& [path, text] : files) {
                if (path == pattern || (pattern.ends_with('*') &&
                                        path.starts_with(pattern.substr(0, pattern.size() - 1)))) {
                    out.push_back(path);
                }
            }
            return out;
        }};
    return read_squid_conf("main", source, limits);
}

std::vector<std::string> names(const squid_conf& conf) {
    std::vector<std::string> out;
    for (const auto& each : conf.statements) {
        out.push_back(each.name());
    }
    return out;
}

}  // namespace

TEST_SUITE("from_squid/squid_conf") {
    TEST_CASE("comments, blank lines and continued lines leave statements with their places") {
        const auto conf = read_all({{"main",
                                     "# a comment\n\n  http_port 3128 \\\n   accel # the rest\r\n"
                                     "acl x src 10.0.0.0/8\n\tvia on"}});
        REQUIRE(conf.statements.size() == 3);
        CHECK(conf.statements[0].words ==
              std::vector<word>{{"http_port", false}, {"3128", false}, {"accel", false}});
        CHECK(to_string(conf.statements[0].where) == "main:3");
        CHECK(to_string(conf.statements[1].where) == "main:5");
        CHECK(conf.statements[2].words[1].text == "on");
        CHECK(conf.problems.empty());
    }

    TEST_CASE("a comment is not continued, and what follows it is a line of its own") {
        const auto conf = read_all({{"main",
                                     "# acl old src 10.9.0.0/16 \\\nhttp_access deny bad\n"
                                     "  # another \\\r\nvia on\n"}});
        CHECK(names(conf) == std::vector<std::string>{"http_access", "via"});
        CHECK(to_string(conf.statements[0].where) == "main:2");
        CHECK(conf.problems.empty());
    }

    TEST_CASE("a comment within a continued line ends nothing and is none of it") {
        const auto conf = read_all(
            {{"main",
              "acl bad src 10.0.0.1 \\\n  # why \\\n# and since when\n 10.0.0.2\nvia on\n"}});
        REQUIRE(conf.statements.size() == 2);
        CHECK(conf.statements[0].words.size() == 5);
        CHECK(conf.statements[0].words.back().text == "10.0.0.2");
        CHECK(to_string(conf.statements[0].where) == "main:1");
        CHECK(to_string(conf.statements[1].where) == "main:5");
    }

    TEST_CASE("a blank line within a continued line ends nothing") {
        const auto conf = read_all({{"main", "acl bad src 10.0.0.1 \\\n\n \t\r\n10.0.0.2\n"}});
        REQUIRE(conf.statements.size() == 1);
        CHECK(conf.statements[0].words.back().text == "10.0.0.2");
    }

    TEST_CASE("a word that is cut goes on with the first of the next line, without its indent") {
        const auto conf = read_all({{"main", "acl x src 10.\\\n   0.0.1\n"}});
        REQUIRE(conf.statements.size() == 1);
        CHECK(conf.statements[0].words.back().text == "10.0.0.1");
    }

    TEST_CASE("a line that is continued where its file ends is left out, and told") {
        const auto conf = read_all({{"main", "via on\nhttp_access allow all \\\n# no more\n"}});
        CHECK(names(conf) == std::vector<std::string>{"via"});
        REQUIRE(conf.problems.size() == 1);
        CHECK(conf.problems[0].where.line == 2);
        CHECK_FALSE(conf.problems[0].hides);
    }

    TEST_CASE("quoted words are told apart, and parameters() is one") {
        CHECK(words_of(R"(acl x dstdomain "/a b" parameters("/c\"d") "open)") ==
              std::vector<word>{{"acl", false},
                                {"x", false},
                                {"dstdomain", false},
                                {"/a b", true},
                                {"/c\"d", true},
                                {"open", true}});
        CHECK(words_of("a b#c #d").size() == 2);
    }

    TEST_CASE("conditionals decide what is in force") {
        const auto conf = read_all(
            {{"main",
              "if true\na\nif ${process_number} = 2\nb\nelse\nc\nendif\nelse\n"
              "d\nendif\nif 0\ne\nendif\nif maybe\nf\nendif\ng\n"}});
        CHECK(names(conf) == std::vector<std::string>{"a", "c", "g"});
        REQUIRE(conf.problems.size() == 1);
        CHECK(conf.problems[0].where.line == 14);
    }

    TEST_CASE("else and endif stand for themselves, whatever follows them") {
        const auto conf = read_all(
            {{"main", "if false\na\nelse # of the other node\nb\nendif\t# that\nendifs\nc\n"}});
        CHECK(names(conf) == std::vector<std::string>{"b", "endifs", "c"});
        CHECK(conf.problems.empty());
    }

    TEST_CASE("of conditionals within each other the innermost decides, as it does for Squid") {
        const auto conf = read_all(
            {{"main", "if false\na\nif true\nb\nelse\nc\nendif\nd\nendif\ne\n"}});
        CHECK(names(conf) == std::vector<std::string>{"b", "e"});
    }

    TEST_CASE("a conditional is what it says, however deep it is") {
        constexpr int deep = 100'000;
        std::string text;
        for (int i = 0; i < deep; ++i) {
            text += "if true\n";
        }
        text += "a\nif false\nb\nelse\nc\nendif\nd\n";
        for (int i = 0; i < deep; ++i) {
            text += "endif\n";
        }
        const auto conf = read_all({{"main", text + "e\n"}});
        CHECK(names(conf) == std::vector<std::string>{"a", "c", "d", "e"});
        CHECK(conf.problems.empty());
    }

    TEST_CASE("an if without its end, and an end without its if, are told") {
        const auto open = read_all({{"main", "if true\na\n"}});
        REQUIRE(open.problems.size() == 1);
        CHECK(open.problems[0].hides);
        CHECK(read_all({{"main", "endif\nelse\na\n"}}).problems.size() == 2);
    }

    TEST_CASE("macros of Squid's are replaced, others stay") {
        const auto conf = read_all({{"main", "x /a/${process_number}/${service_name}/${other}"}});
        CHECK(conf.statements[0].words[1].text == "/a/1/squid/${other}");
    }

    TEST_CASE("included files stand in the place of the include, patterns in order") {
        const auto conf = read_all(
            {{"main", "a\ninclude d/* gone\nz\n"}, {"d/1", "b\n"}, {"d/2", "include d/1\nc\n"}});
        CHECK(names(conf) == std::vector<std::string>{"a", "b", "b", "c", "z"});
        CHECK(to_string(conf.statements[1].where) == "1:1");
        REQUIRE(conf.problems.size() == 1);
        CHECK(conf.problems[0].what.find("gone") != std::string::npos);
    }

    TEST_CASE("files that include each other, and too much text, end in a problem") {
        const auto round = read_all({{"main", "a\ninclude main\n"}});
        CHECK(round.statements.size() == 17);
        CHECK(round.problems.size() == 1);
        const auto large = read_all({{"main", "include d\nb\n"}, {"d", std::string(100, 'x')}},
                                    {.bytes = 50});
        CHECK(names(large) == std::vector<std::string>{"b"});
        CHECK(large.problems.size() == 1);
        const auto many = read_all({{"main", "include d d d\nb\n"}, {"d", "a\n"}}, {.files = 3});
        CHECK(names(many) == std::vector<std::string>{"a", "a", "b"});
        REQUIRE(many.problems.size() == 1);
        CHECK(many.problems[0].hides);
        CHECK(read_all({}).problems.size() == 1);
    }

    TEST_CASE("a list's file is its lines without comments") {
        CHECK(values_of("# x\n .a.example \r\n\nb.example # y\nc#d\n") ==
              std::vector<std::string>{".a.example", "b.example", "c#d"});
    }
}

}  // namespace reprise::from_squid
