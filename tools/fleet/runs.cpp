#include "tools/fleet/runs.hpp"

#include "proxy/cache/plan.hpp"
#include "tools/mix.hpp"

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

namespace reprise::fleet {

namespace {

using tools::mix;

// How many others of its second come before a request, and how many there are in all.
class places_in_seconds {
public:
    explicit places_in_seconds(const replay::recorded_trace& requests) {
        std::optional<std::uint32_t> second;
        for (const auto& batch : requests.batches()) {
            for (const auto& one : batch.requests) {
                if (second != one.seconds) {
                    second = one.seconds;
                    counts_.push_back(0);
                }
                ++counts_.back();
            }
        }
    }

    /// The next request's time since its second began.
    milliseconds next() {
        if (before_ == counts_[at_]) {
            ++at_;
            before_ = 0;
        }
        return milliseconds{std::uint64_t{1000} * before_++ / counts_[at_]};
    }

private:
    std::vector<std::uint32_t> counts_;  // by second that has any
    std::size_t at_ = 0;
    std::uint32_t before_ = 0;
};

run_result run_one(const replay::recorded_trace& requests,
                   std::span<const std::uint32_t> clients,
                   const fleet_run& what) {
    const auto begun = std::chrono::steady_clock::now();
    fleet all{what.plan};
    std::uint64_t number = 0;
    std::optional<places_in_seconds> places;
    if (what.spread) {
        places.emplace(requests);
    }
    for (const auto& batch : requests.batches()) {
        for (const auto& wanted : batch.requests) {
            const auto client = clients.empty() ? 0 : clients[number];
            all.ask(wanted,
                    node_for(what.split, number, client, what.plan.exchange.seed, what.plan.nodes),
                    places ? places->next() : milliseconds{0});
            ++number;
        }
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    return {.what = what, .counted = all.figures(), .seconds = took.count()};
}

}  // namespace

std::optional<cache_choice> cache_choice_of(std::string_view text) {
    constexpr std::string_view strict = "+second-hit";
    if (text == "ours") {
        const config::options settings;
        return cache_choice{
            .name = "ours", .policy = {.kind = settings.memory.policy}, .strict = true};
    }
    cache_choice out{.name = std::string{text}, .policy = {}};
    if (text.ends_with(strict)) {
        out.strict = true;
        text.remove_suffix(strict.size());
    }
    const auto policy = replay::policy_choice_of(text);
    if (!policy) {
        return std::nullopt;
    }
    out.policy = *policy;
    return out;
}

std::optional<splitting> splitting_of(std::string_view name) noexcept {
    return name == "random"   ? std::optional{splitting::random}
           : name == "turns"  ? std::optional{splitting::turns}
           : name == "client" ? std::optional{splitting::client}
                              : std::nullopt;
}

node_number node_for(splitting how,
                     std::uint64_t number,
                     std::uint32_t client,
                     std::uint64_t seed,
                     node_number nodes) noexcept {
    switch (how) {
    case splitting::random: return static_cast<node_number>(mix(number ^ mix(seed)) % nodes);
    case splitting::turns: return static_cast<node_number>(number % nodes);
    case splitting::client: return static_cast<node_number>(mix(client ^ mix(seed)) % nodes);
    }
    return 0;
}

std::vector<run_result> run_all(const replay::recorded_trace& requests,
                                std::span<const std::uint32_t> clients,
                                std::span<const fleet_run> runs,
                                unsigned threads,
                                const std::function<void(std::size_t)>& done) {
    std::vector<run_result> out(runs.size());
    std::atomic<std::size_t> next{0};
    std::mutex guard;  // of what follows
    std::size_t finished = 0;
    std::exception_ptr failed;
    const auto work = [&] {
        for (;;) {
            const auto at = next.fetch_add(1);
            if (at >= runs.size()) {
                return;
            }
            try {
                out[at] = run_one(requests, clients, runs[at]);
                const std::scoped_lock lock{guard};
                ++finished;
                if (done) {
                    done(finished);
                }
            } catch (...) {
                const std::scoped_lock lock{guard};
                failed = std::current_exception();
                next.store(runs.size());
            }
        }
    };
    std::vector<std::jthread> crew;
    for (unsigned i = 1; i < threads; ++i) {
        crew.emplace_back(work);
    }
    work();
    crew.clear();
    if (failed) {
        std::rethrow_exception(failed);
    }
    return out;
}

}  // namespace reprise::fleet
