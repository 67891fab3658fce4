// Pages lead to pages: every link between files of ours, and every anchor in one, leads somewhere.

#include <doctest/doctest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

TEST_SUITE("pages") {

    namespace {

    namespace fs = std::filesystem;

    const fs::path root = REPRISE_SOURCE_DIR;

    /// A heading's anchor, as GitHub makes it: lower case, blanks as hyphens, and of punctuation only hyphens and
    /// underlines.
    std::string anchor_of(const std::string& heading) {
        std::string out;
        for (const unsigned char c : heading) {
            if (std::isalnum(c) != 0 || c == '-' || c == '_' || c >= 0x80) {
                out.push_back(static_cast<char>(std::tolower(c)));
            } else if (c == ' ') {
                out.push_back('-');
            }
        }
        return out;
    }

    struct link {
        fs::path from;
        int line = 0;
        std::string to;
    };

    struct pages {
        std::vector<link> links;
        std::map<fs::path, std::set<std::string>> anchors;
    };

    /// What stands in fenced blocks is somebody's input, and no link.
    void read(const fs::path& file, pages& into) {
        static const std::regex linked{R"(\]\(([^)\s]+)\))"};
        std::ifstream in{file};
        bool fenced = false;
        int number = 0;
        auto& anchors = into.anchors[file];
        for (std::string line; std::getline(in, line);) {
            ++number;
            if (line.rfind("```", 0) == 0) {
                fenced = !fenced;
            }
            if (fenced) {
                continue;
            }
            if (const auto text = line.find_first_not_of('#');
                text != 0 && text != std::string::npos && line[text] == ' ') {
                anchors.insert(anchor_of(line.substr(text + 1)));
            }
            for (std::sregex_iterator one{line.begin(), line.end(), linked}, end; one != end;
                 ++one) {
                into.links.push_back({file, number, (*one)[1]});
            }
        }
    }

    pages all_pages() {
        pages out;
        read(root / "README.md", out);
        for (const auto* folder : {"config", "filter", "proxy", "tests", "tools"}) {
            for (const auto& entry : fs::recursive_directory_iterator{root / folder}) {
                if (entry.is_regular_file() && entry.path().extension() == ".md") {
                    read(entry.path(), out);
                }
            }
        }
        return out;
    }

    /// All tests' sources, each blank as one, and literals that stand side by side as one.
    std::string all_tests() {
        std::string out;
        for (const auto& entry : fs::recursive_directory_iterator{root / "tests"}) {
            if (entry.path().extension() == ".cpp") {
                std::ifstream in{entry.path()};
                for (std::string word; in >> word;) {
                    out.append(word).append(" ");
                }
            }
        }
        static const std::regex seam{R"(" ")"};
        return std::regex_replace(out, seam, "");
    }

    }  // namespace

    TEST_CASE("every link leads to a file, and to a heading in it") {
        const auto found = all_pages();
        CHECK(found.links.size() > 50);
        for (const auto& [from, line, to] : found.links) {
            if (to.find("://") != std::string::npos) {
                continue;
            }
            CAPTURE(from.string());
            CAPTURE(line);
            CAPTURE(to);
            const auto hash = to.find('#');
            const auto path = to.substr(0, hash);
            const auto there = path.empty() ? from : (from.parent_path() / path).lexically_normal();
            CHECK(fs::exists(there));
            if (const auto page = found.anchors.find(there);
                hash != std::string::npos && page != found.anchors.end()) {
                CHECK(page->second.count(to.substr(hash + 1)) == 1);
            }
        }
    }

    // proxy/peer/TRUST.md says of each thing what shows it: `"the beginning of a name, …"`.
    TEST_CASE("a test that a page of ours calls upon by its name is there") {
        const auto tests = all_tests();
        std::ifstream in{root / "proxy/peer/TRUST.md"};
        std::string page;
        for (std::string word; in >> word;) {
            page.append(word).append(" ");
        }
        static const std::regex called{R"re([`:] ?"([^"]+)"`)re"};
        std::size_t names = 0;
        for (std::sregex_iterator one{page.begin(), page.end(), called}, end; one != end; ++one) {
            std::string name = (*one)[1];
            name = name.substr(0, name.find(" …"));
            CAPTURE(name);
            const bool is_there = tests.find("TEST_CASE(\"" + name) != std::string::npos ||
                                  tests.find("TEST_CASE( \"" + name) != std::string::npos;
            CHECK(is_there);
            ++names;
        }
        CHECK(names > 20);
    }

    TEST_CASE("every guide is in the table of README") {
        const auto found = all_pages();
        std::set<fs::path> named;
        for (const auto& one : found.links) {
            if (one.from == root / "README.md") {
                named.insert((root / one.to.substr(0, one.to.find('#'))).lexically_normal());
            }
        }
        for (const auto& entry : fs::directory_iterator{root / "config/guides"}) {
            CAPTURE(entry.path().string());
            CHECK(named.count(entry.path()) == 1);
        }
    }
}
