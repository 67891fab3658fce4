// What every filter costs and errs with, beside the others: a page of Markdown for tools/results/.
//
//     bench_filter                      10^4, 10^5, 10^6 and 10^7 keys, at a rate of 0.01
//     bench_filter 100000000            so many (the static filters then take some 10 GB to build)
//     bench_filter --rate 0.001 10000   another rate
//     bench_filter --only block 10000   filters whose names contain this; or one of these tables:
//                                       "reads" (the split-block filter beside reads of memory),
//                                       "digests"; and "siblings" and "sibling_alternatives",
//                                       which nothing else prints
//
// One thread. How times are taken: harness.hpp. "bits/key" is memory, beside it what no filter of
// the measured rate can do without: log2(1 / rate).

#include "tools/bench_filter/subjects.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <string>

namespace {

using namespace reprise::bench;

struct options {
    std::vector<std::uint64_t> keys;
    double rate = 0.01;
    std::string only;
};

std::string processor() {
    std::ifstream info{"/proc/cpuinfo"};
    for (std::string line; std::getline(info, line);) {
        if (line.rfind("model name", 0) == 0) {
            return line.substr(line.find(':') + 2);
        }
    }
    return "unknown";
}

void print_table(const char* title,
                 const std::vector<subject>& subjects,
                 const workload& work,
                 const std::string& only) {
    const auto is_wanted = [&](const subject& one) {
        return one.name.find(only) != std::string::npos;
    };
    if (std::none_of(subjects.begin(), subjects.end(), is_wanted)) {
        return;
    }
    std::printf("%s\n\n"
                "| | insert, ns | hit, ns | miss, ns | alone, ns | found | rate | bits/key | "
                "log2(1/rate) | of it |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
                title);
    for (const auto& one : subjects) {
        if (!is_wanted(one)) {
            continue;
        }
        const auto row = one.run(work);
        const auto bound = row.rate > 0 ? -std::log2(row.rate) : 0;
        std::printf("| %s | %.1f | %.1f | %.1f | %.1f | %.1f %% | %.5f | %.2f | %.2f | %.2f |\n",
                    row.name.c_str(),
                    row.insert,
                    row.hit,
                    row.miss,
                    row.alone,
                    100 * row.found,
                    row.rate,
                    row.bits_a_key,
                    bound,
                    bound > 0 ? row.bits_a_key / bound : 0);
        std::fflush(stdout);
    }
    std::printf("\n");
}

void print_all(const options& wanted) {
    std::printf("Compiler GCC %s, %s. Rate asked for: %g.\n\n",
                __VERSION__,
                processor().c_str(),
                wanted.rate);
    if (wanted.only.empty()) {
        print_hashes();
    }
    for (const auto keys : wanted.keys) {
        std::printf("## %llu keys\n\n", static_cast<unsigned long long>(keys));
        const workload work{keys, wanted.rate};
        const auto is_wanted = [&](const char* table) {
            return wanted.only.empty() || wanted.only == table;
        };
        if (is_wanted("reads")) {
            compare_with_reads(keys, wanted.rate);
        }
        if (is_wanted("digests")) {
            print_digests(keys, wanted.rate);
        }
        if (wanted.only ==
            "siblings") {  // 64 digests: at the largest sizes they take more than there is
            compare_siblings(keys);
        }
        if (wanted.only == "sibling_alternatives") {
            compare_sibling_alternatives(keys, wanted.rate);
        }
        print_table("Filters, hash given.", our_filters(), work, wanted.only);
        print_table("Alternatives, hash given.", alternative_filters(), work, wanted.only);
        print_table("From the text of a URL of 80 bytes.", from_text(), work, wanted.only);
        if (wanted.only.empty()) {
            print_admission(keys, wanted.rate);
        }
    }
}

int usage() {
    std::fprintf(stderr, "usage: bench_filter [--rate R] [--only NAME] [KEYS...]\n");
    return 2;
}

}  // namespace

int main(int count, char** arguments) {
    options wanted;
    for (int i = 1; i < count; ++i) {
        const bool has_value = i + 1 < count;
        if (std::strcmp(arguments[i], "--rate") == 0 && has_value) {
            wanted.rate = std::strtod(arguments[++i], nullptr);
        } else if (std::strcmp(arguments[i], "--only") == 0 && has_value) {
            wanted.only = arguments[++i];
        } else if (const auto keys = std::strtoull(arguments[i], nullptr, 10); keys >= 16) {
            wanted.keys.push_back(keys);
        } else {
            return usage();
        }
    }
    if (!(wanted.rate > 0 && wanted.rate < 1)) {
        return usage();
    }
    if (wanted.keys.empty()) {
        wanted.keys = {10'000, 100'000, 1'000'000, 10'000'000};
    }
    try {
        print_all(wanted);
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "bench_filter: %s\n", failure.what());
        return 1;
    }
}
