// make_trace: a request trace of a kind, from a seed, as text.

#include "tools/make_trace/made_trace.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

int main(int argc, char** argv) {
    using namespace reprise::tools;
    CLI::App app{"Writes a made request trace (seconds,key,bytes and, of origins, microseconds) to "
                 "standard output"};
    std::string name;
    std::uint64_t seed = 1, requests = 300'000;
    app.add_option("kind", name, "soon, huge, drift, scan or origins")
        ->required()
        ->check(CLI::IsMember({"soon", "huge", "drift", "scan", "origins"}));
    app.add_option("--seed", seed, "another seed is another trace")->capture_default_str();
    app.add_option("--requests", requests, "lines")
        ->capture_default_str()
        ->check(CLI::Range(1, 1'000'000'000));
    CLI11_PARSE(app, argc, argv);
    try {
        make_trace(trace_kind_named(name).value(), seed, requests, [](const made_request& one) {
            std::printf("%llu,%llu,%llu",
                        static_cast<unsigned long long>(one.second),
                        static_cast<unsigned long long>(one.key),
                        static_cast<unsigned long long>(one.bytes));
            if (one.wait != 0) {
                std::printf(",%llu", static_cast<unsigned long long>(one.wait));
            }
            std::printf("\n");
        });
    } catch (const std::exception& what) {
        std::cerr << "make_trace: " << what.what() << '\n';
        return 1;
    }
    return std::fflush(stdout) == 0 ? 0 : 1;
}
