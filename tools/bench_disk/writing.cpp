// Sequential writing: a store filled with large records beside dd, as many bytes in blocks of one
// size, to files of the same directory, all of it on the disk at the end of both (fdatasync).
// Trials of the two take turns, so that what else the machine does meets both.
//
// "new" is a store's first round, into files that it makes, beside dd into a new file; "again" is
// every later one, over segments that are there, all of them, beside dd over the same file.
//
// The first trial of each counts for nothing: it makes what "again" writes over, and on a virtual
// machine it may be what takes its memory from the host. Where free memory goes back there
// meanwhile (free page reporting), whoever takes such pages into the page cache pays up to ten
// times the copy, and who that is is chance: tools/results/2026-11-22-bench_disk.md says how to
// measure then.

#include "tools/bench_disk/child.hpp"
#include "tools/bench_disk/parts.hpp"
#include "tools/bench_disk/subject.hpp"
#include "tools/sized_body.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

namespace reprise::tools {

namespace {

// One body for all of them: making bytes is not what is measured. Half a MiB is a record of its
// own in a store of this size, not an object in extents.
constexpr std::size_t large_body = std::size_t{512} << 10;
// As in a store of the default size, 20 GiB: each segment is synced when it is begun and closed.
constexpr std::uint64_t segment = std::uint64_t{160} << 20;

double seconds_since(proxy::steady_time begin) {
    return std::chrono::duration<double>(proxy::steady_now() - begin).count();
}

struct written {
    std::uint64_t bytes = 0;
    double seconds = 0, cpu_seconds = 0;
};

double own_cpu_seconds() {
    timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

// As many bytes more than are written in a trial are in the store.
constexpr std::uint64_t spare = 4 * segment;

/// Puts keys from `first` on, of `bytes` in all.
written fill_store(const bench_plan& plan,
                   const std::string& path,
                   std::uint64_t first,
                   std::uint64_t bytes) {
    return in_child<written>(how_to_end::let_it, [&](const telling<written>& tell) {
        const object_maker objects{large_body};
        const auto one = objects.make(0);
        opened_tier tier{path, plan.sequential_bytes + spare, segment};
        tier.wait_until_ready();
        const auto had = tier.figures().written_bytes;
        const auto begin = proxy::steady_now();
        const auto cpu = own_cpu_seconds();
        for (std::uint64_t put = 0; put < bytes / large_body; ++put) {
            tier.put(first + put, one);
        }
        tier.stop();
        sync_files(path);
        tell({tier.figures().written_bytes - had, seconds_since(begin), own_cpu_seconds() - cpu});
    });
}

/// What dd copies: noise as the store's bodies are, since disks of virtual machines may make short
/// work of zeros. Just written, it is in the page cache.
void make_input(const bench_plan& plan, const std::string& file) {
    std::vector<char> piece(1 << 20);
    std::ofstream out{file, std::ios::binary};
    for (std::uint64_t at = 0; at < plan.sequential_bytes; at += piece.size()) {
        fill_body(0, at, piece);
        out.write(piece.data(), static_cast<std::streamsize>(piece.size()));
    }
    if (!out.flush()) {
        throw std::runtime_error("can't write " + file);
    }
}

written run_dd(const bench_plan& plan, const std::string& input, const std::string& file) {
    const auto blocks = plan.sequential_bytes / plan.block_bytes;
    const auto command = "dd if='" + input + "' of='" + file +
                         "' bs=" + std::to_string(plan.block_bytes) +
                         " count=" + std::to_string(blocks) + " conv=notrunc,fdatasync status=none";
    const auto begin = proxy::steady_now();
    if (std::system(command.c_str()) != 0) {
        throw std::runtime_error("dd failed");
    }
    return {blocks * plan.block_bytes, seconds_since(begin), 0};
}

double bandwidth(const written& one) {
    return static_cast<double>(one.bytes) / one.seconds / 1e6;
}

double median(std::vector<double> of) {
    std::sort(of.begin(), of.end());
    return of[of.size() / 2];
}

void compare(const bench_plan& plan, const std::string& input, bool again) {
    const auto path = plan.directory + "/writing";
    const auto file = plan.directory + "/dd";
    std::vector<double> ratios;
    std::uint64_t next = 0;  // key
    const auto fill = [&](std::uint64_t bytes) {
        const auto filled = fill_store(plan, path, next, bytes);
        next += bytes / large_body;
        return filled;
    };
    for (unsigned trial = 0; trial <= plan.trials; ++trial) {
        if (!again || trial == 0) {
            std::filesystem::remove_all(path);
            std::filesystem::remove(file);
        }
        const auto dd = run_dd(plan, input, file);
        if (trial == 0) {
            (void)fill(plan.sequential_bytes + 2 * spare);  // no segment is left to be made
            continue;
        }
        const auto ours = fill(plan.sequential_bytes);
        ratios.push_back(bandwidth(ours) / bandwidth(dd));
        std::printf("| %s | %.0f | %.0f | %.2f | %.2f |\n",
                    again ? "again" : "new",
                    bandwidth(dd),
                    bandwidth(ours),
                    ratios.back(),
                    ours.cpu_seconds * 1e9 / static_cast<double>(ours.bytes));
        std::fflush(stdout);
    }
    std::printf("| %s, median | | | %.2f | |\n", again ? "again" : "new", median(ratios));
    std::filesystem::remove_all(path);
    std::filesystem::remove(file);
}

}  // namespace

void measure_writing(const bench_plan& plan) {
    std::printf("%llu MiB, dd in blocks of %zu KiB, the store in bodies of %zu KiB\n\n"
                "| files | dd, MB/s | store, MB/s | ratio | store's CPU, ns a byte |\n"
                "|---|---:|---:|---:|---:|\n",
                static_cast<unsigned long long>(plan.sequential_bytes >> 20),
                plan.block_bytes >> 10,
                large_body >> 10);
    const auto input = plan.directory + "/input";
    make_input(plan, input);
    compare(plan, input, false);
    compare(plan, input, true);
    std::filesystem::remove(input);
    std::printf("\n");
}

}  // namespace reprise::tools
