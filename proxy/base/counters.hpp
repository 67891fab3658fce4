#pragma once
// What the threads count, each for itself.
// Every worker thread has a block of counters that it alone writes, so that counting costs a load,
// an add and a store: no locked instruction, no shared cache line, no branch. A reader adds the
// blocks up. It may see a request counted and its bytes not yet: figures of different cells agree
// only to within the requests under way, and each cell for itself never goes back.
//
// What the figures mean to an operator is said once, in admin/metrics_table.cpp's rows (admin/README.md lists
// them).

#include "config/options.hpp"
#include "proxy/base/failure.hpp"
#include "proxy/base/histogram.hpp"
#include "proxy/base/outcome.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

namespace reprise::proxy {

/// Why a fetch for the store ended.
enum class fetch_end : std::uint8_t { finished, failed, given_up };
inline constexpr std::size_t fetch_end_count = 3;
[[nodiscard]] std::string_view to_string(fetch_end value) noexcept;

inline constexpr std::size_t policy_count = 6;  ///< of config::admission_policy
[[nodiscard]] std::string_view to_string(config::admission_policy value) noexcept;

/// Which latencies are kept apart: the tail of misses would hide the hits' otherwise.
enum class latency_class : std::uint8_t { hit, miss, pass };
inline constexpr std::size_t latency_class_count = 3;
[[nodiscard]] std::string_view to_string(latency_class value) noexcept;

/// Admission rules are counted by their index; those from here on share the last cell, so that a
/// long list costs no more memory nor metrics.
inline constexpr std::size_t counted_rules = 32;
/// Reasons for not storing (http's storability enumerators), by value; larger ones share the last.
inline constexpr std::size_t counted_reasons = 32;
inline constexpr std::size_t failure_count = static_cast<std::size_t>(failure_code::internal) + 1;

/// One number that one thread writes and any thread reads.
class counter {
public:
    counter() = default;
    counter(const counter&) = delete;
    counter& operator=(const counter&) = delete;

    /// Writer's thread only.
    void add(std::uint64_t much = 1) noexcept {
        value_.store(value_.load(std::memory_order_relaxed) + much, std::memory_order_relaxed);
    }
    /// Writer's thread only; for what goes up and down (connections open now).
    void subtract(std::uint64_t much = 1) noexcept {
        value_.store(value_.load(std::memory_order_relaxed) - much, std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t read() const noexcept {
        return value_.load(std::memory_order_relaxed);
    }

private:
    std::atomic<std::uint64_t> value_{0};
};

template <class Cell>
struct admission_cells {
    Cell admitted{};
    Cell
        refused{};  ///< first sights: storable, and because of admission not stored, or on probation
    Cell bytes_refused{};  ///< their bodies', counted when a body has passed
};

/// All that is counted. One shape for a thread's cells and for the sums: see `thread_counters`
/// and `totals`. It is made of cells alone, so that it can be walked as an array of them.
template <class Cell>
struct basic_counters {
    std::array<Cell, outcome_count> requests{};
    std::array<Cell, outcome_count> requests_of_siblings{};  ///< of those, that siblings asked
    Cell handed_on_joined{};  ///< of those, handed on to this node as their home, and collapsed
    std::array<Cell, 6> responses_by_class{};  ///< [1] is 1xx ... [5] is 5xx; [0]: anything else
    std::array<Cell, failure_count> failures{};

    Cell bytes_from_clients{};  ///< heads, bodies and tunnelled bytes, as on the wire
    Cell bytes_to_clients{};
    Cell bytes_from_origins{};
    Cell bytes_to_origins{};
    Cell body_bytes_to_clients{};       ///< of answered requests: no tunnels, no error pages
    Cell body_bytes_from_store{};       ///< of those, from a stored response
    Cell body_bytes_from_collapsing{};  ///< of those, to followers of another request's fetch
    Cell body_bytes_from_siblings{};    ///< of bodies that siblings gave
    Cell body_bytes_to_siblings{};      ///< of body_bytes_to_clients, for siblings' requests
    Cell body_bytes_to_siblings_from_store{};       ///< of body_bytes_from_store, likewise
    Cell body_bytes_to_siblings_from_collapsing{};  ///< of body_bytes_from_collapsing, likewise
    Cell body_bytes_of_sibling_hits{};              ///< to other clients, from a sibling's store
    Cell wait_spared{};  ///< microseconds: what the fetches took of all that hits sent, as stored

    Cell client_accepted{};
    Cell client_refused{};     ///< closed at once, and a front's requests with a 403
    Cell client_over_limit{};  ///< of those whom we serve, without a place (limits.*connections*)
    Cell client_open{};        ///< now: until their clients have all, and while hands are shaken
    Cell client_rate_waits{};  ///< for a turn, by limits.client_rate
    Cell origin_opened{};
    Cell tunnels_opened{};     ///< by intercept: TLS with a certificate of ours began
    Cell tunnels_refused{};    ///< the client did not take it
    Cell tunnels_passed_on{};  ///< listed, and not opened for what the client's hello said
    Cell origin_reused{};      ///< requests sent on a pooled connection
    Cell peering_misses{};     ///< that siblings might have answered
    Cell icp_messages{};       ///< that ICP would have sent for these (peer/icp_cost.hpp)
    Cell icp_bytes{};
    Cell
        siblings_asked_beside{};  ///< questions beside one that was silent (fetch/sibling_query.hpp)
    Cell caught_up_first{};       ///< fetches that waited for siblings' word (peer/catching_up.hpp)
    Cell handed_to_homes{};       ///< requests for what belongs to a sibling (peering.homes)
    Cell asked_by_sites{};        ///< requests of other sites for what siblings hold
    Cell sites_answered{};        ///< of those, answered by one of them
    Cell homes_failed{};          ///< of those, asked elsewhere after all
    Cell origin_surplus{};        ///< connections with bytes behind an answer
    Cell origin_failed{};         ///< connection attempts without success, names' failures included
    Cell origin_open{};           ///< now, idle ones included
    Cell dns_queries{};  ///< sent; what the cache or the hosts file answered is in dns_cached
    Cell dns_cached{};
    Cell dns_failures{};

    std::array<admission_cells<Cell>, policy_count> admission_by_policy{};
    std::array<admission_cells<Cell>, counted_rules> admission_by_rule{};
    /// Later sights of what could be stored, not too large for it, that had to go to the origin.
    Cell admission_hits_lost{};
    Cell admission_hit_bytes_lost{};

    std::array<Cell, counted_reasons> not_stored_by_reason{};
    Cell stored_objects{};  ///< put in the store, new or replacing
    Cell stored_bytes{};
    Cell store_refreshed{};    ///< stored heads updated by a 304
    Cell store_invalidated{};  ///< by unsafe methods

    Cell fetches_started{};  ///< each for one request, or for all that share it
    std::array<Cell, fetch_end_count> fetches_ended{};
    Cell collapsed_joined{};    ///< by requests, each time one joined a fetch under way
    Cell collapsed_released{};  ///< of those times, it was sent on to another fetch after all

    std::array<basic_histogram<Cell>, latency_class_count> first_byte{};
    std::array<basic_histogram<Cell>, latency_class_count> complete{};
};

/// The cells of one thread, on cache lines of their own.
struct alignas(64) thread_counters : basic_counters<counter> {};

/// The sum over all threads at one moment.
using totals = basic_counters<std::uint64_t>;

/// Counts a finished request: its outcome and its response's status (0: none was sent).
inline void note_request(thread_counters& counts, outcome how, unsigned status) noexcept {
    counts.requests[static_cast<std::size_t>(how)].add();
    if (status != 0) {
        const auto in_class = status / 100;
        counts.responses_by_class[in_class <= 5 ? in_class : 0].add();
    }
}

/// Counts how long a request took, from its head being complete: until the first byte of our
/// response was written, and until the last. Outcomes that measure the client's or the origin's
/// patience rather than this proxy (tunnels, errors) are not kept.
void note_latency(thread_counters& counts,
                  outcome how,
                  std::chrono::nanoseconds first_byte,
                  std::chrono::nanoseconds complete) noexcept;

inline void note_failure(thread_counters& counts, failure_code code) noexcept {
    counts.failures[static_cast<std::size_t>(code)].add();
}

/// Counts a storable response that the store will not get, whose reason is http's storability.
inline void note_not_stored(thread_counters& counts, std::size_t reason) noexcept {
    counts.not_stored_by_reason[reason < counted_reasons ? reason : counted_reasons - 1].add();
}

/// Which rule of admission.rules decided; none: the policy at the top or the listener's own.
inline constexpr std::size_t no_rule = ~std::size_t{0};

/// An absent, storable object met the admission policy: it may enter, or it may not.
inline void note_admission(thread_counters& counts,
                           config::admission_policy policy,
                           std::size_t rule,
                           bool admitted) noexcept {
    auto& by_policy = counts.admission_by_policy[static_cast<std::size_t>(policy)];
    (admitted ? by_policy.admitted : by_policy.refused).add();
    if (rule != no_rule) {
        auto& by_rule = counts.admission_by_rule[rule < counted_rules ? rule : counted_rules - 1];
        (admitted ? by_rule.admitted : by_rule.refused).add();
    }
}

/// The ledger's other half: called when the body of a refused object has passed, with its bytes.
inline void note_refused_bytes(thread_counters& counts,
                               config::admission_policy policy,
                               std::size_t rule,
                               std::uint64_t body_bytes) noexcept {
    counts.admission_by_policy[static_cast<std::size_t>(policy)].bytes_refused.add(body_bytes);
    if (rule != no_rule) {
        counts.admission_by_rule[rule < counted_rules ? rule : counted_rules - 1].bytes_refused.add(
            body_bytes);
    }
}

/// All cells of a block, in the order of declaration.
template <class Block, class Cell>
std::span<Cell> cells_of(Block& block) noexcept {
    static_assert(std::is_standard_layout_v<Block> && sizeof(Block) % sizeof(Cell) == 0);
    return {reinterpret_cast<Cell*>(&block), sizeof(Block) / sizeof(Cell)};
}

/// Owns one block per thread for as long as the process serves. The number is fixed at construction,
/// so that nothing here needs a lock.
class counters_registry {
public:
    /// @throws std::bad_alloc
    explicit counters_registry(std::size_t threads);

    [[nodiscard]] std::size_t threads() const noexcept { return threads_; }

    /// The block that thread number `thread` alone writes. @pre thread < threads()
    [[nodiscard]] thread_counters& of_thread(std::size_t thread) noexcept {
        return blocks_[thread];
    }

    /// Adds all blocks up. Any thread; O(threads x cells): microseconds.
    [[nodiscard]] totals snapshot() const;

private:
    std::size_t threads_;
    std::unique_ptr<thread_counters[]> blocks_;
};

/// Requests that the hit ratio looks at: all that were answered in full from the store or by an
/// origin (hit, revalidated, stale, miss, sibling, collapsed, pass). Tunnels, local answers, refusals,
/// errors and what was broken off say nothing about a cache.
[[nodiscard]] std::uint64_t answered_requests(const totals& counts) noexcept;

/// Those of them that were answered from the store: hit, revalidated, stale.
[[nodiscard]] std::uint64_t hits(const totals& counts) noexcept;

/// The same of requests by outcome, whoever's they are.
[[nodiscard]] std::uint64_t answered_requests(
    const std::array<std::uint64_t, outcome_count>& requests) noexcept;
[[nodiscard]] std::uint64_t hits(const std::array<std::uint64_t, outcome_count>& requests) noexcept;

}  // namespace reprise::proxy
