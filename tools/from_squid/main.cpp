// reprise-from-squid: a squid.conf as our settings.

#include "tools/from_squid/conversion.hpp"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <fstream>
#include <glob.h>
#include <iostream>
#include <iterator>
#include <string>
#include <system_error>

namespace {

using namespace reprise::from_squid;

constexpr std::size_t most_of_file = 16 << 20;

std::optional<std::string> read(const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    if (!file) {
        return std::nullopt;
    }
    std::string text, piece(64 << 10, '\0');
    while (file && text.size() <= most_of_file) {
        file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
        text.append(piece, 0, static_cast<std::size_t>(file.gcount()));
    }
    if (file.bad() || (text.empty() && !file.eof()) || text.size() > most_of_file) {
        return std::nullopt;
    }
    return text;
}

std::vector<std::string> matches(const std::string& pattern) {
    std::vector<std::string> out;
    ::glob_t found{};
    if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
        out.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    }
    ::globfree(&found);
    return out;
}

int run(const std::string& path, const std::string& output, bool strict) {
    const file_source files{read, matches};
    if (!read(path)) {
        std::cerr << "reprise-from-squid: cannot read " << path << '\n';
        return 1;
    }
    const auto made = convert(read_squid_conf(path, files), files);
    if (output.empty()) {
        if (!(std::cout << made.settings << std::flush)) {
            std::cerr << "reprise-from-squid: cannot write to standard output\n";
            return 1;
        }
    } else {
        std::ofstream file{output, std::ios::binary | std::ios::trunc};
        file << made.settings;
        file.close();
        if (!file) {
            std::cerr << "reprise-from-squid: cannot write " << output << '\n';
            return 1;
        }
    }
    std::size_t counts[4]{};
    for (const auto& each : made.told) {
        ++counts[static_cast<std::size_t>(each.what)];
        if (each.what == fate::laxer) {
            std::cerr << to_string(each.where) << ": allows more than before: " << each.why << '\n';
        }
    }
    std::cerr << counts[0] << " changed, " << counts[1] << " approximated, " << counts[2]
              << " left out, " << counts[3]
              << " left out so that more is allowed; each has a comment in the settings\n";
    return strict && counts[3] > 0 ? 3 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{
        "Reads a squid.conf and writes settings of reprise, with a comment for each line that "
        "was changed, approximated or left out, and why. What would allow more than before is "
        "told on standard error too. Try the result with reprise --check-config."};
    app.name("reprise-from-squid");
    app.set_version_flag("--version", "reprise-from-squid " REPRISE_VERSION);
    std::string path, output;
    bool strict = false;
    app.add_option("file", path, "the squid.conf; what it includes is read too")->required();
    app.add_option("--output", output, "the file to write; standard output without it");
    app.add_flag("--strict", strict, "exit status 3 where more is allowed than before");
    CLI11_PARSE(app, argc, argv);
    try {
        return run(path, output, strict);
    } catch (const std::exception& why) {
        std::cerr << "reprise-from-squid: " << why.what() << '\n';
        return 1;
    }
}
