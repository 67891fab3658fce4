#pragma once
// The origin of a catalogue: as quick as threads and blocking sockets allow, and without memory of
// what it was asked (fake_origin records everything, which at thousands of requests a second for
// half an hour is too much).
//
// GET       the body as it is now, with ETag, Surrogate-Key, Vary; ranges and conditions are
//           understood; what is `freshened` is fresh for a second, and for a day after a 304
// POST      204; what it changes the catalogue was told before

#include "tests/crash/catalogue.hpp"
#include "tests/support/stream.hpp"

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace reprise::tests::crash {

/// What it does wrong on purpose, so that the checker can show that it would see it.
enum class sabotage : std::uint8_t {
    none,
    torn,   ///< now and then the end of a body is of another version
    stale,  ///< purges are counted as acknowledged and never sent
    lost,   ///< now and then a reply forbids storing
};

class origin {
public:
    origin(const catalogue& what, sabotage wrong);
    origin(const origin&) = delete;
    origin& operator=(const origin&) = delete;
    ~origin();

    /// "127.0.0.1:41001"
    [[nodiscard]] std::string authority() const;
    [[nodiscard]] std::uint64_t requests() const noexcept { return requests_.load(); }

private:
    void accept_all();
    void serve(stream& connection);
    void append_answer(const message_head& asked, std::string& out);

    const catalogue& catalogue_;
    sabotage wrong_;
    acceptor acceptor_;
    std::atomic<bool> stopping_{false};
    std::atomic<std::uint64_t> requests_{0};
    std::vector<std::thread> threads_;  // touched by accepts_, and after its end
    std::thread accepts_;
};

}  // namespace reprise::tests::crash
