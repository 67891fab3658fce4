#pragma once
// The load of what is measured in processor time a request: wrk, with its requests from a script.

#include "tools/bench_proxy/servers.hpp"

#include <string>

namespace reprise::bench {

/// Which URL a request is for.
enum class asking {
    one,    ///< always the same
    turn,   ///< a thousand in turn
    fresh,  ///< a new one each time
    twice,  ///< each of them twice
    mixed,  ///< nine of a thousand in turn, then a new one
};

struct wrk_plan {
    asking what = asking::one;
    std::size_t size = 1024;  ///< of each body
    bool tls = false;
    bool closes = false;  ///< a new connection for each request
    unsigned seconds = 1, threads = 1, connections = 64;
    processor where = processor::second;
    std::string tag;  ///< tells the new URLs of one run from another's

    /// Whether what is asked for is not in a store yet.
    [[nodiscard]] bool stores() const noexcept {
        return what == asking::fresh || what == asking::twice || what == asking::mixed;
    }
};

struct wrk_outcome {
    double requests = 0;
    double processor_us = 0;  ///< of the server, a request
    double rate = 0;          ///< requests a second
    double origin_share = 0;  ///< requests that reached the origin, of all
};

/// wrk at work on one server, until its time is over.
class wrk_run {
public:
    wrk_run(const lab& of, const server& to, const wrk_plan& wanted);
    /// Waits for its end. @throws std::runtime_error when an answer was wrong, or none came
    [[nodiscard]] wrk_outcome end();

private:
    const lab& of_;
    const server& to_;
    wrk_plan wanted_;
    std::string output_;
    double used_before_ = 0;
    std::uint64_t asked_before_ = 0;
    child process_;
};

[[nodiscard]] inline wrk_outcome run_wrk(const lab& of, const server& to, const wrk_plan& wanted) {
    return wrk_run{of, to, wanted}.end();
}

}  // namespace reprise::bench
