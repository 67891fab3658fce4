#pragma once
// What goes on while the program is killed: threads that ask for objects at a steady pace, and
// others that purge what was just asked for. Every reply is judged as it comes.
//
//     small      most requests; a cursor goes round all URLs, so that nearly each is a write, and a
//                few recent and popular ones are asked again
//     freshened  each again a second later and more, when it is validated and answered 304
//     varied     by flavour
//     large      a thread of its own; ranges of them too
//     changes    by URL, hard and soft, by prefix, by tag, and POST: first the origin changes, then
//                the proxy is told, then the floor rises
//
// One load lives from one start of the program to its end; where the cursors stood outlives it.

#include "tests/crash/catalogue.hpp"
#include "tests/crash/figures.hpp"
#include "tests/crash/ledger.hpp"
#include "tests/crash/origin.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace reprise::tests::crash {

struct load_options {
    std::string authority;  ///< the origin's
    unsigned threads = 4;
    double rate = 1'800;      ///< requests a second, large ones apart
    double large_rate = 2;    ///< large objects a second
    double change_rate = 16;  ///< purges and unsafe methods a second
    sabotage wrong = sabotage::none;
};

/// What was seen, in all lives together. Atomic counters, and the first few faults in words.
class sightings {
public:
    std::atomic<std::uint64_t> replies{0}, hits{0}, from_origin{0}, validated{0}, large{0};
    std::atomic<std::uint64_t> hard{0}, soft{0}, unsafe{0}, prefix{0}, tag{0}, unkept{0},
        withdrawn{0};
    std::atomic<std::uint64_t> wrong{0}, stale{0}, broken{0}, failed{0};

    /// A reply that may be nothing but right.
    void fault(ruling what, const std::string& in_words);
    /// Checking found a body that could be read to its end no more; what came of it was right.
    void broke_off(const std::string& in_words);
    /// One that did not come, or came as an error, while the program should have been well.
    void failure(const std::string& in_words);
    [[nodiscard]] std::vector<std::string> words() const;

private:
    void keep(const std::string& in_words);
    mutable std::mutex guard_;
    std::vector<std::string> words_;
};

/// Where the cursors stand.
struct cursors {
    std::atomic<std::uint64_t> small{0}, freshened{0}, varied{0}, large{0};
};

class load {
public:
    load(const proxy_process& on,
         catalogue& what,
         ledger& owed,
         sightings& seen,
         cursors& at,
         const load_options& options,
         std::uint64_t seed);
    load(const load&) = delete;
    load& operator=(const load&) = delete;
    ~load();  ///< join()

    /// From here on the program may fail: it is about to be killed.
    void expect_the_end() noexcept { ending_ = true; }
    /// The threads end, at the latest when their connections do.
    void join();

    /// Of the unsafe methods those are counted on from now on that were answered a second before
    /// the end or earlier; after an end in order, all. @pre joined
    void settle(std::optional<steady::time_point> killed);

    /// Writes that the store took in its last second, a second.
    [[nodiscard]] double pace() const;
    /// What the store said last. `log` of the ledger is kept up to date with it.
    [[nodiscard]] store_figures last() const;

private:
    using engine = std::mt19937_64;
    struct asking;
    void ask_all(std::uint64_t seed);
    void ask_large(std::uint64_t seed);
    void change_all(std::uint64_t seed);
    void watch();
    [[nodiscard]] std::uint32_t recent_url(engine& dice) const;
    [[nodiscard]] std::pair<std::uint32_t, unsigned> next_url(engine& dice);
    void ask(asking& by, std::uint32_t url, unsigned flavour, std::string_view fields);
    [[nodiscard]] bool change(asking& by, engine& dice);
    /// A reply to a change: nothing if it did not come.
    [[nodiscard]] int tell(asking& by,
                           std::string_view method,
                           std::string_view path,
                           std::string_view fields);

    const proxy_process& program_;
    catalogue& catalogue_;
    ledger& ledger_;
    sightings& seen_;
    cursors& at_;
    const load_options& options_;
    const std::uint64_t log_before_;
    std::uint64_t skipped_ = 0;  // by the watch's last look, and when that was
    steady::time_point looked_ = steady::now();
    std::atomic<bool> ending_{false}, stop_{false};
    struct sample {
        steady::time_point when;
        store_figures figures;
    };
    mutable std::mutex guard_;  // of samples_ and told_
    struct told_change {
        std::uint32_t url, number;
        steady::time_point when;
    };
    std::vector<told_change> told_;
    std::deque<sample> samples_;
    std::vector<std::thread> threads_;
};

}  // namespace reprise::tests::crash
