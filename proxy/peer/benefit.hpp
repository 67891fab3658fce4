#pragma once
// Whether asking a sibling pays: what it saved and lost, and how often it is asked because of that.
//
// A true hit saves what the origin would have taken beyond what the sibling took, and the origin's
// bytes and work (peering.hit_worth); anything else loses what it took. Their mean over the last
// answers or so (exponentially weighted) is what a question to it is worth, in milliseconds. While
// that is below zero it is asked at every second chance, then at every fourth, and so on down to
// one in 256; but at least once per retry_after, so that one that has recovered is found to have.
// Each good answer then brings it one step back.
//
// Silence says nothing of what a sibling is worth once it is heard again: one that was stopped, started
// anew or cut off for a moment is what it was. So it is tried after a second, then two, four, up to
// retry_after, and its first answer takes back what its silence had made of it, all at once. So does its
// digest when it is had again, and another word of it, each once until it has answered one of these: one that
// answers for everything but objects is judged by those.
//
// One that is late and has said that it waits for an origin is not late by its own doing. It may say so each
// time: three times in a row it is believed.
//
// Threads   any number: relaxed atomics, and a lost race loses one answer's weight.

#include "proxy/base/clock.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace reprise::proxy::peer {

enum class asking_end : std::uint8_t {
    true_hit,
    false_hit,  ///< 504, or anything that does not count as an answer
    timed_out,  ///< did not begin within its time or the budget
    failed,     ///< no connection, or it broke
};
inline constexpr std::size_t asking_ends = 4;

/// What the sibling had said by the time that nobody waited for its answer any more.
enum class said_so_far : std::uint8_t {
    nothing,    ///< if it timed out or failed, it is silent
    an_answer,  ///< too late to be of use
    unclear,    ///< another was faster, before silence was silence
};

/// Latencies by powers of two of a millisecond: below 1, 2, 4, ... 2^14, and more.
inline constexpr std::size_t latency_classes = 16;

/// What a hit in a sibling gives: no wait for the origin, and `beside` that what its bytes and work
/// are worth. A sibling that is no faster than the origin is asked all the same; one that is slower
/// by more than `beside` is not.
struct hit_value {
    std::chrono::microseconds time;
    std::chrono::microseconds beside{20'000};
};

struct benefit_figures {
    std::uint64_t offered = 0;  ///< look-ups that its digest was in
    std::uint64_t named = 0;    ///< of those, that its digest said yes to
    std::array<std::uint64_t, asking_ends> ended{};
    std::uint64_t bytes = 0;       ///< of bodies it answered with
    std::uint64_t lost_bytes = 0;  ///< sent and received in vain
    std::uint64_t held_back = 0;   ///< not asked though named
    double saved_ms = 0, lost_ms = 0;
    double round_trip_ms = 0;  ///< of true hits, to the head: weighted mean
    double true_hit_rate = 0;  ///< of answers: weighted mean
    double worth_ms = 0;       ///< of a question: weighted mean
    unsigned one_in = 1;       ///< asked at one chance in so many
    std::array<std::uint64_t, latency_classes> latencies{};  ///< of true hits

    [[nodiscard]] std::uint64_t asked() const noexcept;
    /// Below so many milliseconds were `share` of true hits; 0 without any.
    [[nodiscard]] double quantile_ms(double share) const noexcept;
    /// False hits to be expected of a digest that errs with `rate`, to be compared with those that
    /// were met: each look-up of what it does not hold is a chance. Some of its yeses are never
    /// tested (held back, asked of another, not answered in time), so that only the share that it
    /// answered counts.
    [[nodiscard]] double expected_false(double rate) const noexcept;
};

class benefit {
public:
    /// So many look-ups that the sibling's digest was in.
    void offered(std::uint64_t times) noexcept;
    /// It said yes to one of them.
    void named() noexcept;

    /// Whether to ask it this time; counts what is held back. `after_others`: it would be asked
    /// only if others fail, so this is not the retry after a pause.
    [[nodiscard]] bool may_ask(steady_time now, bool after_others = false) noexcept;

    /// It was asked. `gives`: what a hit would have given, as far as known. `bytes` of a true hit
    /// are those of the body, else all that were sent and received.
    void ended(asking_end how,
               std::chrono::microseconds took,
               const hit_value& gives,
               std::uint64_t bytes,
               steady_time now,
               said_so_far what = said_so_far::nothing) noexcept;

    /// It was late, asked at `begun`, and had said that it waits for an origin: whether that is the origin's doing, so
    /// that nothing is counted. It is for `most_excused` times in a row, between which it has answered nothing. Questions that
    /// meet one wait together are one time. Else the caller counts it as an answer that was too late.
    [[nodiscard]] bool is_excused(steady_time begun, steady_time now) noexcept;
    static constexpr unsigned most_excused = 3;

    /// All of it was away, and it answers again: as if it had answered one of these questions, once. Where it is
    /// silent and goes away again before it has answered one, it may be away each time that it is asked.
    void came_back() noexcept;
    /// It has answered a question of another kind. If it is silent to these, that may have been a moment (it was cut off, or
    /// its disk was slow once): it is taken for one that came back, once. Where it is silent again before it has
    /// answered one of these, it is these that it can't answer.
    void heard() noexcept;

    /// What to expect of asking it now, in microseconds: the round trip over the true-hit rate.
    /// Lower is better; one that was never asked is tried early, and one that has just been silent last, until it is
    /// tried again: whoever waits for it has waited for nobody else.
    [[nodiscard]] double cost(steady_time now) const noexcept;

    /// How long it may be silent before another is asked beside it: four times what it takes in the mean, at least
    /// 10 ms, and at most half of `budget`; that half where nothing is known of it.
    [[nodiscard]] std::chrono::microseconds patience(
        std::chrono::microseconds budget) const noexcept;

    [[nodiscard]] benefit_figures figures() const noexcept;
    /// As new: another sibling has the slot.
    void forget() noexcept;

    static constexpr std::chrono::seconds retry_after{10};
    static constexpr std::chrono::seconds first_retry{1};  ///< of one that has fallen silent
    static constexpr unsigned longest_distance = 8;        ///< one in 2^8

private:
    void note_silence(bool silent) noexcept;
    void take_back_once(std::atomic<bool>& was) noexcept;

    std::atomic<std::uint64_t> offered_{0}, named_{0}, bytes_{0}, lost_bytes_{0}, held_back_{0},
        chances_{0};
    std::array<std::atomic<std::uint64_t>, asking_ends> ended_{};
    std::array<std::atomic<std::uint64_t>, latency_classes> latencies_{};
    std::atomic<double> saved_ms_{0}, lost_ms_{0}, round_trip_us_{0}, true_rate_{1}, worth_us_{0};
    std::atomic<std::uint32_t> answers_{0};
    std::atomic<unsigned> distance_{0};
    std::atomic<unsigned> distance_before_{0};  // it fell silent
    std::atomic<bool> silent_{false};
    std::atomic<bool> was_heard_{false}, was_back_{false};  // since it has answered one of these
    std::atomic<unsigned> excused_{0};                      // in a row
    std::atomic<std::int64_t> excused_at_{0};               // steady, nanoseconds: the last of them
    std::atomic<std::int64_t> retry_pause_{std::chrono::nanoseconds{retry_after}.count()};
    std::atomic<std::int64_t> last_asked_{0};  // steady, nanoseconds
};

}  // namespace reprise::proxy::peer
