#include "tools/make_trace/made_trace.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <queue>
#include <random>
#include <tuple>
#include <unordered_map>

namespace reprise::tools {

namespace {

using dice = std::mt19937_64;
using sink = std::function<void(const made_request&)>;

constexpr double requests_a_second = 50;

/// Ranks 0 to n - 1, the first the most likely: 1 / (rank + 1) ^ exponent.
class zipf {
public:
    zipf(std::size_t ranks, double exponent) {
        double sum = 0;
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            sum += std::pow(static_cast<double>(rank + 1), -exponent);
            up_to_.push_back(sum);
        }
    }
    [[nodiscard]] std::size_t operator()(dice& by) const {
        const auto at = std::uniform_real_distribution<>{0, up_to_.back()}(by);
        const auto found = std::upper_bound(up_to_.begin(), up_to_.end(), at);
        return std::min<std::size_t>(static_cast<std::size_t>(found - up_to_.begin()),
                                     up_to_.size() - 1);
    }

private:
    std::vector<double> up_to_;
};

/// Objects and what they are called: a size is drawn once, a key given at the first request.
class objects {
public:
    explicit objects(dice& by) : by_{by} {}

    /// Log-normal, as bodies on the Web are: half are below 16 KB, the mean is four times that.
    [[nodiscard]] std::uint64_t draw_size() {
        const auto size = std::lognormal_distribution<>{std::log(16e3), 1.66}(by_);
        return static_cast<std::uint64_t>(std::clamp(size, 200.0, 50e6));
    }
    [[nodiscard]] made_request request(std::uint64_t object, double second) {
        return request(object, second, [this] { return draw_size(); });
    }
    template <class Size>
    [[nodiscard]] made_request request(std::uint64_t object, double second, Size&& size) {
        auto [at, is_new] = known_.try_emplace(object);
        if (is_new) {
            at->second = {known_.size(), size()};
        }
        return {static_cast<std::uint64_t>(second), at->second.first, at->second.second, 0};
    }
    [[nodiscard]] std::uint64_t new_object() noexcept { return next_++; }

private:
    dice& by_;
    std::uint64_t next_ = std::uint64_t{1} << 32;
    std::unordered_map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> known_;
};

bool chance(dice& by, double share) {
    return std::uniform_real_distribution<>{}(by) < share;
}

void make_soon(dice& by, std::uint64_t requests, const sink& to) {
    constexpr double once = 0.6;      // of the objects
    constexpr double again = 0.6;     // after each further request
    constexpr double mean_gap = 3.0;  // seconds
    objects all{by};
    std::priority_queue<std::pair<double, std::uint64_t>,
                        std::vector<std::pair<double, std::uint64_t>>,
                        std::greater<>>
        due;
    std::exponential_distribution<> next_new{requests_a_second / 2}, gap{1 / mean_gap};
    double arrives = next_new(by);
    for (std::uint64_t i = 0; i < requests; ++i) {
        double now = arrives;
        std::uint64_t object = 0;
        bool returns = false;
        if (!due.empty() && due.top().first < arrives) {
            std::tie(now, object) = due.top();
            due.pop();
            returns = chance(by, again);
        } else {
            object = all.new_object();
            arrives += next_new(by);
            returns = !chance(by, once);
        }
        to(all.request(object, now));
        if (returns) {
            due.emplace(now + gap(by), object);
        }
    }
}

void make_huge(dice& by, std::uint64_t requests, const sink& to) {
    constexpr double of_huge = 2e-4, of_new = 0.25;  // of the requests
    constexpr std::uint64_t first_huge = std::uint64_t{1} << 31;
    const zipf popularity{50'000, 0.9};
    const zipf huge{6, 0.5};
    objects all{by};
    for (std::uint64_t i = 0; i < requests; ++i) {
        const auto now = static_cast<double>(i) / requests_a_second;
        if (chance(by, of_huge)) {
            to(all.request(first_huge + huge(by), now, [&by] {
                return std::uniform_int_distribution<std::uint64_t>{100'000'000, 400'000'000}(by);
            }));
        } else {
            to(all.request(chance(by, of_new) ? all.new_object() : popularity(by), now));
        }
    }
}

void make_drift(dice& by, std::uint64_t requests, const sink& to) {
    constexpr double born = 0.05;  // a request
    const zipf popularity{40'000, 0.9};
    objects all{by};
    std::vector<std::uint64_t> ranked(40'000);
    for (auto& one : ranked) {
        one = all.new_object();
    }
    for (std::uint64_t i = 0; i < requests; ++i) {
        to(all.request(ranked[popularity(by)], static_cast<double>(i) / requests_a_second));
        if (chance(by, born)) {
            // As likely in each tenfold of ranks, and those below sink by one.
            const auto rank = static_cast<std::size_t>(
                std::pow(40'000.0, std::uniform_real_distribution<>{}(by)) - 1);
            const auto last = std::min<std::size_t>(rank + 100, ranked.size() - 1);
            std::move_backward(ranked.begin() + static_cast<std::ptrdiff_t>(rank),
                               ranked.begin() + static_cast<std::ptrdiff_t>(last),
                               ranked.begin() + static_cast<std::ptrdiff_t>(last) + 1);
            ranked[rank] = all.new_object();
        }
    }
}

void make_scan(dice& by, std::uint64_t requests, const sink& to) {
    constexpr std::uint64_t between = 40'000, long_as = 20'000;  // requests
    constexpr double the_same = 0.3;                             // of the scans
    const zipf popularity{30'000, 0.9};
    objects all{by};
    std::vector<std::uint64_t> scanned;
    for (std::uint64_t i = 0; i < requests; ++i) {
        const auto in_turn = i % (between + long_as);
        if (in_turn == between && (scanned.empty() || !chance(by, the_same))) {
            scanned.clear();
            for (std::uint64_t n = 0; n < long_as; ++n) {
                scanned.push_back(all.new_object());
            }
        }
        const auto object = in_turn < between ? popularity(by) : scanned[in_turn - between];
        to(all.request(object, static_cast<double>(i) / requests_a_second));
    }
}

void make_origins(dice& by, std::uint64_t requests, const sink& to) {
    constexpr double of_new = 0.1;  // of the requests
    constexpr std::uint64_t hosts = 300;
    constexpr std::array<double, 3> answer_in{5e3, 50e3, 500e3};  // microseconds
    const zipf popularity{50'000, 0.9};
    std::lognormal_distribution<> jitter{0, 0.3};
    objects all{by};
    std::unordered_map<std::uint64_t, std::uint64_t> host_of;
    std::uniform_int_distribution<std::uint64_t> any_host{0, hosts - 1};
    for (std::uint64_t i = 0; i < requests; ++i) {
        const auto object = chance(by, of_new) ? all.new_object() : popularity(by);
        auto made = all.request(object, static_cast<double>(i) / requests_a_second);
        auto [host, is_new] = host_of.try_emplace(made.key);
        if (is_new) {
            host->second = any_host(by);
        }
        made.wait = static_cast<std::uint64_t>(answer_in[host->second % 3] * jitter(by)) + 1;
        to(made);
    }
}

}  // namespace

std::optional<trace_kind> trace_kind_named(std::string_view name) noexcept {
    constexpr std::array<std::pair<std::string_view, trace_kind>, 5> all{
        {{"soon", trace_kind::soon},
         {"huge", trace_kind::huge},
         {"drift", trace_kind::drift},
         {"scan", trace_kind::scan},
         {"origins", trace_kind::origins}}};
    for (const auto& [known, kind] : all) {
        if (known == name) {
            return kind;
        }
    }
    return std::nullopt;
}

void make_trace(trace_kind kind, std::uint64_t seed, std::uint64_t requests, const sink& to) {
    dice by{seed};
    switch (kind) {
    case trace_kind::soon: make_soon(by, requests, to); break;
    case trace_kind::huge: make_huge(by, requests, to); break;
    case trace_kind::drift: make_drift(by, requests, to); break;
    case trace_kind::scan: make_scan(by, requests, to); break;
    case trace_kind::origins: make_origins(by, requests, to); break;
    }
}

}  // namespace reprise::tools
