// reprise-make-ca: the CA that interception needs, in two tiers.

#include "config/load.hpp"
#include "tools/make_ca/authority_files.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <variant>
#include <vector>

namespace {

using namespace reprise;

int root(const std::string& out) {
    const auto made = make_ca::write_root(out, proxy::wall_now());
    std::printf("%s  give this to clients: what they are to trust\n"
                "%s  move this to where no network is: it signs the next intermediate\n",
                made.certificate.c_str(),
                made.key.c_str());
    return 0;
}

int intermediate(const std::string& settings, const make_ca::wishes& wanted) {
    const auto loaded = config::load_file(settings);
    if (const auto* mistakes = std::get_if<std::vector<config::mistake>>(&loaded)) {
        for (const auto& one : *mistakes) {
            std::fprintf(stderr, "%s\n", config::to_string(one).c_str());
        }
        return 1;
    }
    const auto& intercept = std::get<config::options>(loaded).intercept;
    if (!intercept) {
        std::fprintf(stderr, "%s: intercept is missing: its hosts are needed\n", settings.c_str());
        return 1;
    }
    const auto made = make_ca::write_intermediate(*intercept, wanted, proxy::wall_now());
    std::printf("%s  intercept.ca_certificate, for these hosts and no others:\n",
                made.certificate.c_str());
    for (const auto& host : intercept->hosts) {
        std::printf("  %s\n", host.c_str());
    }
    std::printf("%s  intercept.ca_key: the proxy's user must own it\n", made.key.c_str());
    return 0;
}

}  // namespace

int main(int count, char** arguments) {
    std::string out;
    std::string settings;
    make_ca::wishes wanted;
    unsigned days = static_cast<unsigned>(wanted.lifetime.count());
    CLI::App app{"Makes a CA for interception: a root that clients trust, and an intermediate for "
                 "the proxy that can sign for the listed hosts alone."};
    app.require_subcommand(1);
    auto* first = app.add_subcommand("root", "a root: root.pem and root.key, for ten years");
    first->add_option("--out", out, "the directory to write to, made if it is not there")
        ->required();
    auto* second = app.add_subcommand("for", "an intermediate for the hosts of intercept.hosts");
    second->add_option("settings", settings, "the proxy's settings, reprise.json")->required();
    second->add_option("--root", wanted.root, "the root's directory")->required();
    second->add_option("--out",
                       wanted.out,
                       "the directory for ca.pem and ca.key, made if it is not there; without, "
                       "they are written where the settings name them");
    second->add_flag("--renew",
                     wanted.renews,
                     "put it in the place of the one that is there: for other hosts, or a later end");
    second->add_option("--days", days, "how long it is valid, never longer than the root")
        ->capture_default_str()
        ->check(CLI::Range(1u, 3'652u));
    CLI11_PARSE(app, count, arguments);
    wanted.lifetime = std::chrono::days{days};
    try {
        return first->parsed() ? root(out) : intermediate(settings, wanted);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "make-ca: %s\n", error.what());
        return 1;
    }
}
