// What the store on disk costs, through its own interface (proxy/cache/disk/tier.hpp).
//
//   bench_disk                      all of it, in a directory of its own under the present one
//   bench_disk --only starts        memory an object, and the time to the first hit after a start
//   bench_disk --only writing       sequential writing beside dd
//   bench_disk --only reading       look-ups in place and by the pool
//
// tools/results/ keeps what it printed. What a hit on disk costs through the whole proxy is
// bench_hits' question.

#include "proxy/base/log.hpp"
#include "tools/bench_disk/parts.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

int main(int argc, char** argv) {
    using namespace reprise::tools;
    bench_plan plan;
    plan.directory = ".";
    std::vector<std::string> only{"starts", "writing", "reading"};
    CLI::App app{"Measures the store on disk."};
    app.add_option("--dir", plan.directory, "a directory on the disk to be measured")
        ->check(CLI::ExistingDirectory);
    app.add_option("--objects", plan.objects, "small objects")->check(CLI::PositiveNumber);
    app.add_option("--object-size", plan.object_bytes, "bytes of body of each");
    app.add_option("--bytes", plan.sequential_bytes, "to be written in sequence")
        ->transform(CLI::AsSizeValue(false));
    app.add_option("--block", plan.block_bytes, "dd's block")->transform(CLI::AsSizeValue(false));
    app.add_option("--trials", plan.trials, "of writing")->check(CLI::PositiveNumber);
    app.add_option("--only", only, "parts")
        ->delimiter(',')
        ->check(CLI::IsMember({"starts", "writing", "reading"}));
    CLI11_PARSE(app, argc, argv);

    reprise::proxy::set_log_level(reprise::config::log_level::warn);
    plan.directory += "/bench_disk-" + std::to_string(::getpid());
    std::filesystem::create_directory(plan.directory);
    const std::map<std::string, std::function<void(const bench_plan&)>> parts{
        {"starts", measure_starts}, {"writing", measure_writing}, {"reading", measure_reading}};
    int status = 0;
    try {
        for (const auto& part : only) {
            std::printf("## %s\n\n", part.c_str());
            parts.at(part)(plan);
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_disk: %s\n", error.what());
        status = 1;
    }
    std::filesystem::remove_all(plan.directory);
    return status;
}
