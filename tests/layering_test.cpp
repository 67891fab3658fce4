// The folder tree is the architecture, and this keeps it true: reads every #include of ours and
// fails on an arrow that points backwards. It keeps the tests' own names in order too.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

TEST_SUITE("layering") {

    namespace {

    namespace fs = std::filesystem;

    const fs::path root = REPRISE_SOURCE_DIR;

    struct inclusion {
        std::string from, to;  ///< relative to the root
        int line = 0;
    };

    bool is_source(const fs::path& path) {
        return path.extension() == ".hpp" || path.extension() == ".cpp";
    }

    /// Every source file in these folders.
    std::vector<fs::path> sources(std::initializer_list<const char*> folders) {
        std::vector<fs::path> out;
        for (const auto* folder : folders) {
            if (!fs::exists(root / folder)) {
                continue;
            }
            for (const auto& entry : fs::recursive_directory_iterator{root / folder}) {
                if (entry.is_regular_file() && is_source(entry.path())) {
                    out.push_back(entry.path());
                }
            }
        }
        std::sort(out.begin(), out.end());
        return out;
    }

    /// The #include lines in quotes, which are ours, or those in angle brackets.
    std::vector<inclusion> inclusions(const fs::path& file, char open = '"') {
        std::vector<inclusion> out;
        std::ifstream in{file};
        const auto start = std::string{"#include "} + open;
        int number = 0;
        for (std::string line; std::getline(in, line);) {
            ++number;
            if (line.rfind(start, 0) == 0) {
                const auto end = line.find(open == '"' ? '"' : '>', start.size());
                out.push_back({fs::relative(file, root).string(),
                               line.substr(start.size(), end - start.size()),
                               number});
            }
        }
        return out;
    }

    /// "proxy/http", "proxy/net", ...; "proxy" for what lies in proxy itself, else the top folder. Of the parts of a
    /// folder two are layers by themselves: proxy/cache/policy, which knows keys and sizes and nothing of HTTP, and
    /// filter/plugins, which belongs to servers that are not ours.
    std::string layer_of(const std::string& path) {
        const fs::path parts{path};
        auto part = parts.begin();
        std::string layer = *part++;
        if (layer == "proxy" && std::distance(part, parts.end()) > 1) {
            layer += "/" + part->string();
        }
        for (const auto* part_of_one : {"proxy/cache/policy", "filter/plugins"}) {
            if (path.rfind(std::string{part_of_one} + "/", 0) == 0) {
                return part_of_one;
            }
        }
        return layer;
    }

    // From the bottom to the top: a layer may include what stands before it here, or less. One that is not here is
    // new: decide and add it.
    const std::map<std::string, std::set<std::string>> allowed = [] {
        std::map<std::string, std::set<std::string>> out{
            {"config", {}},
            {"filter", {}},
            {"filter/plugins",
             {}},  // of filter/ only what is installed: <reprise/admission.h>, <reprise/digest.h>
            {"proxy/base", {"config"}},
            {"proxy/http", {"proxy/base"}},
            {"proxy/net", {"config", "proxy/base", "proxy/http"}},
            {"proxy/cache/policy", {"config", "filter", "proxy/base"}},
        };
        std::set<std::string> below{
            "config", "filter", "proxy/base", "proxy/http", "proxy/net", "proxy/cache/policy"};
        for (const auto* layer :
             {"proxy/cache", "proxy/peer", "proxy/thread", "proxy/fetch", "proxy/serve"}) {
            out[layer] = below;
            below.insert(layer);
        }
        // Beside thread/, fetch/ and serve/, not above them: the figures and pages of an operator are told what they
        // show, and the routes that ask a worker or the store are given to it.
        out["proxy/admin"] = {"config",
                              "filter",
                              "proxy/base",
                              "proxy/http",
                              "proxy/net",
                              "proxy/cache",
                              "proxy/cache/policy",
                              "proxy/peer"};
        below.insert("proxy/admin");
        out["proxy/server"] = below;
        below.insert("proxy/server");
        out["proxy"] = below;
        return out;
    }();

    }  // namespace

    TEST_CASE("no include points up the layers") {
        for (const auto& file : sources({"config", "filter", "proxy"})) {
            for (const auto& one : inclusions(file)) {
                const auto from = layer_of(one.from);
                const auto to = layer_of(one.to);
                CAPTURE(one.from);
                CAPTURE(one.line);
                CAPTURE(one.to);
                REQUIRE_MESSAGE(allowed.count(from) == 1, "a layer that no rule names");
                CHECK((from == to || allowed.at(from).count(to) == 1));
            }
        }
    }

    TEST_CASE("proxy/ itself holds the program and nothing else") {
        for (const auto& entry : fs::directory_iterator{root / "proxy"}) {
            if (entry.is_regular_file() && is_source(entry.path())) {
                CHECK(entry.path().filename() == "main.cpp");
            }
        }
    }

    TEST_CASE("a file of proxy/ opens the namespace of its folder") {
        for (const auto& file : sources({"proxy"})) {
            const auto place = fs::relative(file.parent_path(), root / "proxy");
            const auto folder = place.begin()->string();
            const auto name = file.filename();
            if (folder == "." || name == "pch.hpp" || name == "asio_beast.cpp") {
                continue;
            }
            // What everybody says needs no prefix: base/, and the names of Asio that everything is written in.
            std::string wanted = "namespace reprise::proxy";
            if (folder != "base" && name != "asio.hpp") {
                wanted += "::" + folder;
            }
            std::ifstream in{file};
            const std::string text{std::istreambuf_iterator<char>{in}, {}};
            CAPTURE(file.string());
            CAPTURE(wanted);
            CHECK((text.find(wanted + " {") != std::string::npos ||
                   text.find(wanted + "::") != std::string::npos));
        }
    }

    TEST_CASE("what is pure includes no network and no event loop") {
        for (const auto& file : sources({"config", "filter", "proxy/http"})) {
            if (file.filename() == "pch.hpp") {
                continue;
            }
            if (layer_of(fs::relative(file, root).string()) == "filter/plugins") {
                continue;
            }
            for (const auto& one : inclusions(file, '<')) {
                CAPTURE(one.from);
                CAPTURE(one.line);
                CAPTURE(one.to);
                CHECK(one.to.rfind("boost/asio", 0) != 0);
                CHECK(one.to != "sys/socket.h");
            }
        }
    }

    // What a client sends reaches an origin by content_source, whichever protocol the client speaks.
    TEST_CASE("an origin's side knows no client's connection") {
        for (const auto& file : sources({"proxy/fetch"})) {
            for (const auto& one : inclusions(file)) {
                CAPTURE(one.from);
                CAPTURE(one.line);
                CHECK(one.to != "proxy/net/client_stream.hpp");
            }
        }
    }

    TEST_CASE("an include in quotes names an existing file from the root") {
        for (const auto& file : sources({"config", "filter", "proxy", "tools", "tests"})) {
            for (const auto& one : inclusions(file)) {
                CAPTURE(one.from);
                CAPTURE(one.line);
                CAPTURE(one.to);
                CHECK(fs::is_regular_file(root / one.to));
            }
        }
    }

    TEST_CASE("nothing includes a .cpp, and nothing but tests includes tests") {
        for (const auto& file : sources({"config", "filter", "proxy", "tools", "tests"})) {
            for (const auto& one : inclusions(file)) {
                CAPTURE(one.from);
                CAPTURE(one.line);
                CHECK(fs::path{one.to}.extension() == ".hpp");
                CHECK((layer_of(one.to) != "tests" || layer_of(one.from) == "tests"));
            }
        }
    }

    TEST_CASE("every header says #pragma once") {
        for (const auto& file : sources({"config", "filter", "proxy", "tools", "tests"})) {
            if (file.extension() != ".hpp" || file.filename() == "pch.hpp") {
                continue;
            }
            std::ifstream in{file};
            std::string line;
            std::getline(in, line);
            CAPTURE(file.string());
            CHECK(line == "#pragma once");
        }
    }

    TEST_CASE("a source file of some size says its idea before it opens its namespace") {
        constexpr std::size_t some_size = 200;  // lines
        for (const auto& file : sources({"config", "filter", "proxy"})) {
            if (file.extension() != ".cpp") {
                continue;
            }
            std::ifstream in{file};
            std::string first;
            std::size_t lines = 0;
            for (std::string line; std::getline(in, line); ++lines) {
                if (first.empty() && !line.empty() && line.front() != '#') {
                    first = line;
                }
            }
            CAPTURE(file.string());
            CHECK((lines < some_size || first.starts_with("//")));
        }
    }

    TEST_CASE("no condition awaits: GCC 12 makes wrong frames of some that do") {
        const std::regex begins{R"(\b(if|while|switch|for) (constexpr )?\()"};
        for (const auto& file : sources({"proxy", "tools", "tests"})) {
            if (file.filename() == "layering_test.cpp") {
                continue;
            }
            std::ifstream in{file};
            const std::string text{std::istreambuf_iterator<char>{in}, {}};
            for (std::sregex_iterator at{text.begin(), text.end(), begins}, end; at != end; ++at) {
                const auto open = static_cast<std::size_t>(at->position() + at->length() - 1);
                auto close = open;
                for (int depth = 0; close < text.size(); ++close) {
                    depth += text[close] == '(' ? 1 : text[close] == ')' ? -1 : 0;
                    if (depth == 0) {
                        break;
                    }
                }
                CAPTURE(file.string());
                CAPTURE(text.substr(open, close - open));
                CHECK(text.substr(open, close - open).find("co_await") == std::string::npos);
            }
        }
    }

    TEST_CASE("no shared pointer is an atomic: libstdc++ 12 lets go of one that was read without "
              "an order") {
        // What is read may be written to while the reader still copies it (GCC mended that in 13).
        for (const auto& file : sources({"config", "filter", "proxy", "tools"})) {
            std::ifstream in{file};
            const std::string text{std::istreambuf_iterator<char>{in}, {}};
            CAPTURE(file.string());
            CHECK(text.find("atomic<std::shared_ptr") == std::string::npos);
        }
    }

    TEST_CASE("a test file names its suite after its place, so that ctest's filters find it") {
        for (const auto& file : sources({"tests"})) {
            const auto place = fs::relative(file, root / "tests");
            const auto folder = place.begin()->string();
            std::string suite;
            if (folder == "scenario" && file.extension() == ".cpp") {
                suite = "scenario/" + file.stem().string();
            } else if (folder == "unit" && file.stem().string().ends_with("_test")) {
                const auto name = file.stem().string();
                suite = fs::relative(file.parent_path(), root / "tests/unit").string() + "/" +
                        name.substr(0, name.size() - std::string_view{"_test"}.size());
            } else {
                continue;
            }
            std::ifstream in{file};
            const std::string text{std::istreambuf_iterator<char>{in}, {}};
            CAPTURE(place.string());
            CAPTURE(suite);
            const auto named = "(\"" + suite + "\")";
            CHECK((text.find("TEST_SUITE" + named) != std::string::npos ||
                   text.find("TEST_SUITE_BEGIN" + named) != std::string::npos));
        }
    }

}  // TEST_SUITE
