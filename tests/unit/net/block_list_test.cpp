#include "proxy/net/block_list.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace reprise::proxy::net;
using reprise::tests::temp_dir;

namespace {

block_list_ptr list_of(const std::vector<std::string>& lines) {
    block_list::maker maker;
    std::vector<host_key> names;
    for (const auto& line : lines) {
        REQUIRE(read_block_line(line, names) == "");
        for (const auto& name : names) {
            REQUIRE(maker.add(name));
        }
    }
    return std::move(maker).make();
}

std::size_t names_in(const std::string& line) {
    std::vector<host_key> names;
    REQUIRE(read_block_line(line, names) == "");
    return names.size();
}

std::string mistake_in(const std::string& line) {
    std::vector<host_key> names;
    auto why = read_block_line(line, names);
    CHECK(names.empty());
    return why;
}

block_list::reading read_files(std::vector<std::string> paths) {
    reprise::config::access_options access;
    access.block_lists = std::move(paths);
    return block_list::read(access);
}

}  // namespace

TEST_SUITE_BEGIN("net/block_list");

TEST_CASE("a domain means itself and all below it, however it is written and asked for") {
    for (const auto* line : {"ads.example",
                             "ADS.Example.",
                             "*.ads.example",
                             ".ads.example",
                             "  ads.example\t# why\r",
                             "0.0.0.0 ads.example",
                             "::\tother.example ads.example # why"}) {
        CAPTURE(line);
        const auto list = list_of({line});
        for (const auto* host : {"ads.example", "ads.example.", "aDs.example", "a.b.ads.example"}) {
            CHECK(list->holds(host));
        }
        for (const auto* host :
             {"example", "ds.example", "bads.example", "ads.example.org", "", "."}) {
            CHECK_FALSE(list->holds(host));
        }
    }
}

TEST_CASE("an address means itself, however it is spelt, and no name below it") {
    const auto list = list_of({"192.0.2.1", "2001:DB8::1"});
    for (const auto* host : {"192.0.2.1",
                             "0xc0.0.2.1",
                             "3221225985",
                             "[2001:db8:0::1]",
                             "192.0.2.1.",
                             "[::ffff:192.0.2.1]",
                             "[::192.0.2.1]",
                             "[64:ff9b::192.0.2.1]",
                             "[2002:c000:201::]"}) {
        CAPTURE(host);
        CHECK(list->holds(host));
    }
    for (const auto* host :
         {"192.0.2.2", "a.192.0.2.1", "[2001:db8::2]", "2.1", "[64:ff9b::192.0.2.2]"}) {
        CAPTURE(host);
        CHECK_FALSE(list->holds(host));
    }
    CHECK_FALSE(list_of({"ads.example"})->holds("192.0.2.1"));
}

TEST_CASE("what names nobody else is passed over") {
    for (const auto* line : {"",
                             " \t\r",
                             "# ads.example",
                             "127.0.0.1 localhost localhost.localdomain",
                             "::1 ip6-localhost ip6-loopback",
                             "fe80::1%lo0 localhost",
                             "255.255.255.255 broadcasthost",
                             "0.0.0.0 0.0.0.0"}) {
        CAPTURE(line);
        CHECK(names_in(line) == 0);
    }
    CHECK(names_in("0.0.0.0 a.example b.example") == 2);
}

TEST_CASE("what is no domain is said, with what would be right") {
    const auto says = [](const std::string& line, std::string_view what) {
        CAPTURE(line);
        CHECK(mistake_in(line).find(what) != std::string::npos);
    };
    says("||ads.example^", "write the domain alone");
    says("http://ads.example/", "write the domain alone");
    says("a b", "the first is no address");
    says("0.0.0.0 a.example b_$", "write the domain alone");
    says("a..b", "two dots");
    says("*.", "1 to 253");
    says("*", "a leading \"*.\"");
    says("a.*.b", "a leading \"*.\"");
    says("b\xc3\xbc"
         "cher.example",
         "xn--");
    says("ads.example:80", "in no name");
    says(std::string(64, 'a') + ".example", "63");
    says(std::string(254, 'a'), "253");
    says(std::string(5000, 'a'), "longer than 4096");
}

TEST_CASE("many names are found, and no others; each costs 8.25 bytes at most") {
    std::vector<std::string> lines;
    for (unsigned i = 0; i < 200'000; ++i) {
        lines.push_back("n" + std::to_string(i * 2) + ".example");
    }
    lines.push_back(lines.front());
    lines.push_back("zip");
    const auto list = list_of(lines);
    CHECK(list->size() == 200'001);
    CHECK(list->bytes() <= 200'001 * 33 / 4 + 64);
    unsigned found = 0, wrong = 0;
    for (unsigned i = 0; i < 400'000; ++i) {
        const bool holds = list->holds("www.n" + std::to_string(i) + ".example");
        found += i % 2 == 0 && holds ? 1 : 0;
        wrong += i % 2 == 1 && holds ? 1 : 0;
    }
    CHECK(found == 200'000);
    CHECK(wrong == 0);
    CHECK(list->holds("a.zip"));
    for (const std::size_t size : {0u, 1u, 31u, 32u, 33u}) {
        CHECK(list_of({lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(size)})
                  ->holds(lines[0]) == (size > 0));
    }
}

TEST_CASE("names of all lengths are looked for, and only of those that there are") {
    std::string deep = "a";
    while (deep.size() + 2 <= host_key::most) {
        deep += ".a";
    }
    CHECK(list_of({deep})->holds(deep));
    CHECK(list_of({"a.a.a"})->holds(deep));
    CHECK_FALSE(list_of({"b"})->holds(deep));
    CHECK_FALSE(list_of({"a"})->holds(deep + ".a"));  // longer than a name can be
}

TEST_CASE("files are read in turn; each mistake is named with setting, file and line, in bounds") {
    const temp_dir at;
    CHECK(read_files({}).list == nullptr);
    const auto one = at.write("one",
                              "\xef\xbb\xbf"
                              "a.example\r\n\r\nb.example");
    const auto two = at.write("two", "c.example\nno domain\nd.example\n*\n");
    const auto good = read_files({one, at.write("empty", "")});
    CHECK(good.mistakes.empty());
    REQUIRE(good.list);
    CHECK(good.list->size() == 2);
    CHECK(good.list->holds("a.example"));
    CHECK(good.list->holds("b.example"));

    const auto bad = read_files({one, two, at.file("absent"), at.path().string()});
    CHECK(bad.list == nullptr);
    REQUIRE(bad.mistakes.size() == 4);
    CHECK(bad.mistakes[0].starts_with("access.block_lists[1]: " + two + ":2: has more than one"));
    CHECK(bad.mistakes[1].starts_with("access.block_lists[1]: " + two + ":4: has a \"*\""));
    CHECK(bad.mistakes[2].starts_with("access.block_lists[2]: " + at.file("absent") + ": cannot"));
    CHECK(bad.mistakes[3].starts_with("access.block_lists[3]: " + at.path().string() + ": is no"));

    std::string many;
    for (int i = 0; i < 100; ++i) {
        many += "*\n";
    }
    CHECK(read_files({at.write("many", many)}).mistakes.size() == most_block_mistakes);
    const auto endless = read_files({at.write("endless", std::string(1u << 20, 'a'))});
    REQUIRE(endless.mistakes.size() == 1);
    CHECK(endless.mistakes[0].find("endless:1: is longer than") != std::string::npos);
}

TEST_CASE("lines that lie across what is read at once are read whole") {
    const temp_dir at;
    std::string text;
    unsigned lines = 0;
    while (text.size() < (600u << 10)) {
        text += "0.0.0.0 host-" + std::to_string(lines++) + ".example\n";
    }
    const auto read = read_files({at.write("long", text)});
    CHECK(read.mistakes.empty());
    REQUIRE(read.list);
    CHECK(read.list->size() == lines);
    for (unsigned i = 0; i < lines; ++i) {
        REQUIRE(read.list->holds("host-" + std::to_string(i) + ".example"));
    }
}

TEST_SUITE_END();
