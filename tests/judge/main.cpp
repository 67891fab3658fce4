// judge: plays worlds of origins and clients around the program and judges every answer.
// README.md says what is judged, and how.

#include "tests/judge/worlds.hpp"
#include "tests/support/complaint.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

using namespace reprise::tests::judge;

struct options {
    int seconds = 600;
    std::uint64_t seed = static_cast<std::uint64_t>(std::time(nullptr));
    std::vector<std::string> names;
    std::string program;
    unsigned together = 4;  ///< worlds at once: they wait more than they compute
    int turn = 0;           ///< seconds for one world; 0: as many as make two rounds of all
    bool once = false;
};

std::vector<world_kind> chosen(const options& asked) {
    if (asked.names.empty()) {
        return all_worlds();
    }
    std::vector<world_kind> out;
    for (const auto& one : all_worlds()) {
        if (std::find(asked.names.begin(), asked.names.end(), one.name) != asked.names.end()) {
            out.push_back(one);
        }
    }
    return out;
}

// Each world gets its turn until the time is over, and each at least once.
std::uint64_t play_all(const options& asked, const std::vector<world_kind>& kinds, findings& into) {
    const auto until = steady::now() + seconds{asked.seconds};
    const auto share = std::max(
        1, asked.seconds * static_cast<int>(asked.together) / static_cast<int>(kinds.size()));
    const milliseconds turn{1000 * (asked.turn > 0 ? asked.turn : std::clamp(share, 1, 30))};
    std::atomic<std::size_t> next{0};
    std::atomic<std::uint64_t> played{0};
    std::vector<std::jthread> players;
    for (unsigned i = 0; i < std::min<std::size_t>(asked.together, kinds.size()); ++i) {
        players.emplace_back([&] {
            for (;;) {
                const auto number = next++;
                const bool first_round = number < kinds.size();
                if (!first_round && (asked.once || steady::now() >= until)) {
                    return;
                }
                const auto& kind = kinds[number % kinds.size()];
                const auto seed = asked.seed + number / kinds.size();
                try {
                    world one{kind, seed, turn, into};
                    kind.play(one);
                } catch (const std::exception& what) {
                    into.wrong({kind.name, seed}, "the world came to an end", what.what());
                }
                ++played;
            }
        });
    }
    players.clear();
    return played;
}

}  // namespace

int main(int argc, char** argv) {
    options asked;
    CLI::App app{"Plays worlds of origins and clients around the proxy and judges every answer."};
    app.add_option("--seconds", asked.seconds, "how long; each world is played at least once")
        ->capture_default_str();
    app.add_option("--seed", asked.seed, "of the first round; the next ones count on")
        ->capture_default_str();
    app.add_option("--world", asked.names, "only these");
    app.add_option("--program", asked.program, "the proxy; default: of the same build");
    app.add_option("--together", asked.together, "worlds at once")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    app.add_option("--turn", asked.turn, "seconds that one world is played at a time");
    app.add_flag("--once", asked.once, "each world once, whatever time is left");
    bool list = false;
    app.add_flag("--list", list, "names the worlds");
    CLI11_PARSE(app, argc, argv);
    if (list) {
        for (const auto& one : all_worlds()) {
            std::printf("%-12s %s\n", one.name.c_str(), one.about.c_str());
        }
        return 0;
    }
    if (!asked.program.empty()) {
        ::setenv("REPRISE_PROGRAM", asked.program.c_str(), 1);
    }
    const auto kinds = chosen(asked);
    if (kinds.empty()) {
        std::fprintf(stderr, "judge: no such world; --list names them\n");
        return 2;
    }
    reprise::tests::complain = [](const std::string& what) {
        std::fprintf(stderr, "judge: %s\n", what.c_str());
    };
    findings into;
    const auto played = play_all(asked, kinds, into);
    std::printf("\nworlds played: %llu, seeds from %llu\n\n%s",
                static_cast<unsigned long long>(played),
                static_cast<unsigned long long>(asked.seed),
                into.table().c_str());
    return into.count() == 0 ? 0 : 1;
}
