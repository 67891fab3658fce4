#pragma once
// What soak_new_urls is to do, and what of an URL follows from that.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace reprise::tests::new_urls {

using steady_clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

struct plan {
    unsigned nodes = 8;
    std::uint32_t urls = 10'000;
    double within = 5;  // seconds between a URL's first request and its last
    double rate = 800;  // requests a second, through all nodes
    bool homes = false;
    bool alone_too = true;
    std::string admission = "always";
    std::string trouble = "none";
    double calm = 1.25;          // seconds between one trouble and the next, in the mean
    unsigned origin_delay = 50;  // ms, of a head; half to one and a half of it
    unsigned body_takes = 50;    // ms, from the head to the end of a body; none to twice of it
    unsigned pause = 0;          // ms, in the middle of one body of sixteen
    unsigned news = 200;         // ms, peering.news
    unsigned link_delay = 0;     // ms, each way between two nodes
    bool disk = false;           // nodes keep what they store
    std::uint64_t seed = 1;
};

/// While this lasted a node was no node.
struct absence {
    unsigned node = 0;
    steady_clock::time_point from, to;
};

/// What the origin does with a URL. All of it follows from its number.
struct url_facts {
    url_facts(const plan& of, std::uint32_t number) {
        std::mt19937_64 random{of.seed << 32 | number};
        // Mostly some KiB, one in sixteen some hundred.
        size = random() % 16 == 0 ? 100'000 + random() % 300'000 : 100 + random() % 8'000;
        head_after = milliseconds{of.origin_delay / 2 + random() % (of.origin_delay + 1)};
        body_takes = milliseconds{random() % (2 * of.body_takes + 1)};
        paused = milliseconds{random() % 16 == 0 ? of.pause : 0};
        key = of.seed * 1'000'003 + number;
    }
    std::uint64_t key = 0;
    std::size_t size = 0;
    milliseconds head_after{0}, body_takes{0}, paused{0};
};

}  // namespace reprise::tests::new_urls
