// What a million small objects take of memory, and how long after a start the first of them is a
// hit: after a clean stop, and after the process was killed while it filled the store further; with
// the files in the page cache, and without.
//
// "First hit" counts from before the tier is opened until a look-up of an object, picked at random
// among all, brings its right body. The last objects to be written are the first to be found, as
// the newest segments are loaded first, so it is not the time until everything is: that is "all".

#include "tools/bench_disk/child.hpp"
#include "tools/bench_disk/parts.hpp"
#include "tools/bench_disk/subject.hpp"

#include <filesystem>
#include <random>

namespace reprise::tools {

namespace {

constexpr std::uint64_t record_bytes_about(std::size_t body) {
    return body + 1024;
}

struct filled {
    std::uint64_t objects = 0, index_bytes = 0, resident_before = 0, resident_after = 0;
    double seconds = 0;
};

struct started {
    double first_hit_ms = 0, all_ms = 0;
    std::uint64_t tried = 0, objects = 0;
    std::uint64_t right = 0, asked = 0;  ///< of a sample, once all is loaded
};

double milliseconds_since(proxy::steady_time begin) {
    return std::chrono::duration<double, std::milli>(proxy::steady_now() - begin).count();
}

/// Fills; with kill_it it goes on to write until it is killed.
filled fill(const bench_plan& plan, const std::string& path, std::uint64_t size, how_to_end end) {
    return in_child<filled>(end, [&](const telling<filled>& tell) {
        const object_maker objects{plan.object_bytes};
        opened_tier tier{path, size};
        tier.wait_until_ready();
        filled out;
        out.resident_before = resident_bytes();
        const auto begin = proxy::steady_now();
        const auto had = tier.figures().objects;
        std::uint64_t next = 0;
        for (; next < plan.objects; ++next) {
            tier.put(next, objects);
        }
        tier.wait_until_written();
        out.seconds = milliseconds_since(begin) / 1e3;
        const auto figures = tier.figures();
        out.objects = figures.objects - (had < figures.objects ? had : 0);
        out.index_bytes = figures.index_bytes;
        out.resident_after = resident_bytes();
        if (end == how_to_end::let_it) {
            tier.stop();
            tell(out);
            return;
        }
        for (std::uint64_t more = 0; more < plan.objects; ++more) {
            if (more == plan.objects / 100) {
                tell(out);  // and is killed in the midst of what follows
            }
            tier.put(next + more, objects);
        }
    });
}

started start(const bench_plan& plan, const std::string& path, std::uint64_t size, how_to_end end) {
    return in_child<started>(end, [&](const telling<started>& tell) {
        const object_maker objects{plan.object_bytes};
        std::mt19937_64 random{7};
        started out;
        const auto begin = proxy::steady_now();
        opened_tier tier{path, size};
        while (true) {
            const auto number = random() % plan.objects;
            ++out.tried;
            const auto found = tier.find(number);
            if (found && objects.is_right(number, *found)) {
                break;
            }
        }
        out.first_hit_ms = milliseconds_since(begin);
        tier.wait_until_ready();
        out.all_ms = milliseconds_since(begin);
        out.objects = tier.figures().objects;
        for (; out.asked < 2000; ++out.asked) {
            const auto number = random() % plan.objects;
            const auto found = tier.find(number);
            out.right += found && objects.is_right(number, *found) ? 1 : 0;
        }
        if (end == how_to_end::let_it) {
            tier.stop();
            tell(out);
            return;
        }
        for (std::uint64_t more = 0; more < plan.objects; ++more) {
            if (more == plan.objects / 100) {
                tell(out);
            }
            tier.put(2 * plan.objects + more, objects);
        }
    });
}

void print(const char* what, const started& one) {
    std::printf("| %s | %.1f | %llu | %.1f | %llu | %llu of %llu |\n",
                what,
                one.first_hit_ms,
                static_cast<unsigned long long>(one.tried),
                one.all_ms,
                static_cast<unsigned long long>(one.objects),
                static_cast<unsigned long long>(one.right),
                static_cast<unsigned long long>(one.asked));
    std::fflush(stdout);
}

}  // namespace

void measure_starts(const bench_plan& plan) {
    const auto path = plan.directory + "/starts";
    // Room for the objects, for as many again written until the kill, and to spare.
    const std::uint64_t size = std::max<std::uint64_t>(
        3 * plan.objects * record_bytes_about(plan.object_bytes), 64 << 20);
    const auto one = fill(plan, path, size, how_to_end::let_it);
    const auto count = static_cast<double>(std::max<std::uint64_t>(one.objects, 1));
    std::printf(
        "%llu objects of %zu bytes, filled in %.1f s\n\n"
        "| memory | bytes an object |\n|---|---:|\n"
        "| index_bytes / objects | %.2f |\n"
        "| growth of resident memory / objects (queue and buffers included) | %.2f |\n\n",
        static_cast<unsigned long long>(one.objects),
        plan.object_bytes,
        one.seconds,
        static_cast<double>(one.index_bytes) / count,
        (static_cast<double>(one.resident_after) - static_cast<double>(one.resident_before)) /
            count);

    std::printf("| start | first hit, ms | look-ups until then | all, ms | objects | right |\n"
                "|---|---:|---:|---:|---:|---:|\n");
    print("clean, files in the page cache", start(plan, path, size, how_to_end::let_it));
    forget_pages(path);
    print("clean, files not in the page cache", start(plan, path, size, how_to_end::kill_it));
    print("killed while writing, in the page cache", start(plan, path, size, how_to_end::kill_it));
    forget_pages(path);
    print("killed while writing, not in the page cache",
          start(plan, path, size, how_to_end::let_it));
    std::filesystem::remove_all(path);

    (void)fill(plan, path, size, how_to_end::kill_it);
    print("killed while filling, in the page cache", start(plan, path, size, how_to_end::let_it));
    std::filesystem::remove_all(path);
    std::printf("\n");
}

}  // namespace reprise::tools
