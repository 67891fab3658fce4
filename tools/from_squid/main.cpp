// reprise-from-squid: a squid.conf as our settings.

#include "tools/from_squid/conversion.hpp"
#include "tools/from_squid/files.hpp"

#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <string>
#include <utility>

namespace {

using namespace reprise::from_squid;

int run(const std::string& path, const std::string& output, bool strict) {
    auto text = contents_of(path);
    if (!text) {
        std::cerr << "reprise-from-squid: cannot read " << path << '\n';
        return 1;
    }
    if (!output.empty() && is_one_file(path, output)) {
        std::cerr << "reprise-from-squid: " << output << " is the squid.conf: write another file\n";
        return 1;
    }
    const auto files = files_beside(path, std::move(*text));
    const auto read = read_squid_conf(path, files);
    const auto made = convert(read, files);
    if (!output.empty()) {
        replace_file(output, made.settings);
    } else if (!(std::cout << made.settings << std::flush)) {
        std::cerr << "reprise-from-squid: cannot write to standard output\n";
        return 1;
    }
    const bool says_nothing = read.statements.empty();
    if (says_nothing) {
        std::cerr << path << ": there is no statement in it, and so nobody is served\n";
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
    return strict && (counts[3] > 0 || says_nothing) ? 3 : 0;
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
    app.add_flag("--strict",
                 strict,
                 "exit status 3 where more is allowed than before, or the file says nothing");
    CLI11_PARSE(app, argc, argv);
    try {
        return run(path, output, strict);
    } catch (const std::exception& why) {
        std::cerr << "reprise-from-squid: " << why.what() << '\n';
        return 1;
    }
}
