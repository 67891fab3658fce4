#pragma once
// Feeds a trace to many models in one pass.

#include "tools/replay/model.hpp"
#include "tools/replay/trace.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace reprise::replay {

/// Requests that were decoded and are kept: for what must know the whole trace first (sizes in
/// percent of it), and to be played more than once.
///
/// Memory  32 bytes a request.
class recorded_trace {
public:
    /// Reads all of `from`. `progress`, if any, is told now and then how far it is, 0 to 1.
    ///
    /// Where there are more than `most` requests a sample is kept: the requests for some of the
    /// keys, chosen by their hash, so that a cache of the same share of the size has about the hits
    /// of the whole one (SHARDS: Waldspurger, Park, Garthwaite, Ahmad, FAST 2015). Its objects are
    /// numbered anew.
    explicit recorded_trace(trace& from,
                            const std::function<void(double)>& progress = {},
                            std::uint64_t most = ~std::uint64_t{0});

    struct batch {
        std::vector<request> requests;
        std::size_t objects = 0;  ///< in the trace so far
    };
    [[nodiscard]] std::span<const batch> batches() const noexcept { return batches_; }
    /// The share of keys that are in it.
    [[nodiscard]] double sample() const noexcept { return sample_; }

private:
    std::uint64_t halve();
    void number_anew(std::size_t objects);

    double sample_ = 1;
    std::vector<batch> batches_;
};

/// Feeds every model all of the trace, on `threads` threads (at least 1), each model on one of them
/// at a time. Returns the seconds that each took. An exception from a model ends the run and is
/// thrown here.
std::vector<double> run(const recorded_trace& requests,
                        std::span<const std::unique_ptr<model>> models,
                        unsigned threads,
                        const std::function<void(double)>& progress = {});

/// The same without keeping the requests: the next batch is decoded while models work on this one.
std::vector<double> run(trace& requests,
                        std::span<const std::unique_ptr<model>> models,
                        unsigned threads,
                        const std::function<void(double)>& progress = {});

}  // namespace reprise::replay
