// Look-ups of whole small objects through the tier's own interface, one after another on one
// thread: what the page cache has is read in place, the rest by the pool. And of keys that are not
// there, which cost a look at the index.

#include "tools/bench_disk/child.hpp"
#include "tools/bench_disk/parts.hpp"
#include "tools/bench_disk/subject.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <random>
#include <vector>

namespace reprise::tools {

namespace {

struct timed {
    double median_us = 0, p99_us = 0;
    std::uint64_t asked = 0, right = 0, in_place = 0, pooled = 0;
};

struct read_times {
    timed absent, cold, warm;
};

timed look_up(opened_tier& tier,
              const object_maker& objects,
              std::uint64_t first,
              std::uint64_t keys,
              std::uint64_t count,
              std::uint64_t seed) {
    std::mt19937_64 random{seed};
    std::vector<double> took;
    took.reserve(count);
    timed out;
    const auto before = tier.figures();
    for (; out.asked < count; ++out.asked) {
        const auto number = first + random() % keys;
        const auto begin = proxy::steady_now();
        const auto found = tier.find(number);
        took.push_back(
            std::chrono::duration<double, std::micro>(proxy::steady_now() - begin).count());
        out.right += found && objects.is_right(number, *found) ? 1 : 0;
    }
    const auto after = tier.figures();
    out.in_place = after.in_place - before.in_place;
    out.pooled = after.pooled - before.pooled;
    std::sort(took.begin(), took.end());
    out.median_us = took[took.size() / 2];
    out.p99_us = took[took.size() * 99 / 100];
    return out;
}

void print(const char* what, const timed& one) {
    std::printf("| %s | %.2f | %.2f | %llu | %llu | %llu | %llu |\n",
                what,
                one.median_us,
                one.p99_us,
                static_cast<unsigned long long>(one.asked),
                static_cast<unsigned long long>(one.right),
                static_cast<unsigned long long>(one.in_place),
                static_cast<unsigned long long>(one.pooled));
}

}  // namespace

void measure_reading(const bench_plan& plan) {
    const auto path = plan.directory + "/reading";
    const auto keys = std::max<std::uint64_t>(plan.objects / 10, 1000);
    const std::uint64_t size = std::max<std::uint64_t>(2 * keys * (plan.object_bytes + 1024),
                                                       64 << 20);
    const auto all = in_child<read_times>(how_to_end::let_it, [&](const telling<read_times>& tell) {
        const object_maker objects{plan.object_bytes};
        opened_tier tier{path, size};
        tier.wait_until_ready();
        for (std::uint64_t number = 0; number < keys; ++number) {
            tier.put(number, objects);
        }
        tier.wait_until_written();
        read_times out;
        out.absent = look_up(tier, objects, 2 * keys, keys, 100'000, 1);
        forget_pages(path);
        out.cold = look_up(tier, objects, 0, keys, 2'000, 2);
        for (std::uint64_t number = 0; number < keys; ++number) {
            (void)tier.find(number);
        }
        out.warm = look_up(tier, objects, 0, keys, 100'000, 3);
        tier.stop();
        tell(out);
    });
    std::printf("%llu objects of %zu bytes, one look-up at a time\n\n"
                "| look-ups | median, us | p99, us | asked | right | in place | pooled |\n"
                "|---|---:|---:|---:|---:|---:|---:|\n",
                static_cast<unsigned long long>(keys),
                plan.object_bytes);
    print("absent", all.absent);
    print("not in the page cache at first", all.cold);
    print("in the page cache", all.warm);
    std::printf("\n");
    std::filesystem::remove_all(path);
}

}  // namespace reprise::tools
