#pragma once
// Keeping up with one sibling's digest: when to ask, what to make of an answer. A state machine
// without a socket; digest_fetch.hpp carries out what it says.
//
// By news: each question says how long it may be left open (`wait`), and a sibling that tells news
// (its answers say so) is asked again as soon as it has answered, but not more often than a pace of `news`
// allows. Its news turns bits of what is held, where they lie; what does not fit is answered by
// asking for the whole: at once, the first time since news or a delta did fit, and else behind a wait that doubles
// each time, whatever the wholes are, since one whose news never fits would send wholes without end. A sibling that does not know of `wait` answers at once, and is followed as
// follows.
//
// A good answer is asked for again after `refresh`, a little earlier or later each time, so that
// siblings that started together do not ask together. A failure doubles the wait, from `refresh` up
// to a minute or `refresh`, whichever is longer. What is held is used until it is `stale_after`
// old: a sibling that can't be reached for its digest can't be asked for objects either, and its
// own benefit (benefit.hpp) ends that sooner.
//
// A sibling that was away and asks this node for something is there again, and is not left alone for the rest
// of that wait. It may still be one that hears nobody (a rule of a firewall, a wrong url), or that loads: so what is
// asked early comes 100 ms behind a failure, then 200, and so on, and where it fails the wait goes on as it was.
//
// What is refused is refused by name, and what was held stays as it is: a sibling that sends
// garbage once is not better known by forgetting what it had a moment ago. But a sibling that says
// that its secret is another or its epoch new has told the truth about what is held: that goes.

#include "filter/digest.hpp"
#include "filter/digest_replica.hpp"
#include "filter/digest_wire.hpp"
#include "filter/squid_digest.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/base/failure.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::peer {

enum class follow_state : std::uint8_t {
    never,     ///< nothing was got yet
    current,   ///< the last answer was good
    failing,   ///< the last was not; what is held is used all the same
    outdated,  ///< and that is too old now: not used
    itself,    ///< it is this very instance, found by DNS
};
[[nodiscard]] std::string_view to_string(follow_state state) noexcept;

/// Why a digest is not used, or the last answer was no good.
enum class follow_trouble : std::uint8_t {
    none,
    unreachable,  ///< no connection, or it broke
    timed_out,
    refused,      ///< 401, 403: it does not know us, or our signature
    no_digest,    ///< 404: it serves none
    not_ready,    ///< 503: its index is loading
    bad_status,   ///< any other
    bad_message,  ///< not HTTP, or framed badly
    too_large,    ///< above most_bytes or limits, far more bits than its keys need, or no room
    malformed,    ///< not a digest: detail() says which digest_errc or squid_errc
    saturated,    ///< says too little to be asked
    other_secret,
    wrong_base,  ///< a delta or news from something else: the whole is asked for next
    went_back,   ///< an older generation of the epoch that is held, and used
};
inline constexpr std::size_t follow_troubles = 14;
[[nodiscard]] std::string_view to_string(follow_trouble trouble) noexcept;

struct follow_plan {
    std::chrono::milliseconds refresh{10'000};
    std::chrono::milliseconds news{0};         ///< 0: `wait` is not asked for
    filter::key_by_name key_of;                ///< of names in news
    std::chrono::milliseconds stale_after{0};  ///< 0: the longer of 10 refreshes and a minute
    std::chrono::milliseconds itself_again{
        60'000};  ///< between questions to itself, unless refresh is longer
    filter::seed_id seed{};
    bool squid = false;
    unsigned site_nodes = 1;  ///< so many times the bits that its keys need it may have
    filter::digest_layout layout = filter::digest_layout::standard;
    /// A digest made for 34 million keys at 1 % has 76 MiB. Bits become columns of a sibling_index,
    /// which may take eight times as much.
    filter::digest_limits limits{.bytes = std::uint64_t{96} << 20, .false_positive_rate = 0.2};
    std::uint64_t most_bytes = std::uint64_t{64} << 20;  ///< of one answer's body
};

/// What a response said, its body read whole.
struct follow_answer {
    unsigned status = 0;
    std::string_view etag;                            ///< as it stands, quotes included
    std::string_view node;                            ///< Reprise-Node
    bool tells_news = false;                          ///< Reprise-News: it heeds `wait`
    std::string_view last_modified{};                 ///< Squid: as it stands
    std::optional<std::chrono::seconds> fresh_for{};  ///< Squid: until Expires or max-age
    std::span<const std::byte> body;
    bool had_more = false;  ///< news of something else came along: the wait was not for nothing
};

struct follow_figures {
    follow_state state = follow_state::never;
    follow_trouble trouble = follow_trouble::none;
    std::string detail;
    std::string node;  ///< its pseudonym, as it said last
    std::uint64_t asked = 0, wholes = 0, deltas = 0, unchanged = 0, failed = 0;
    std::uint64_t whole_bytes = 0, delta_bytes = 0;
    std::uint64_t news = 0, news_bytes = 0;  ///< pieces of it that were taken
    std::uint64_t news_places = 0;           ///< bits that it turned
    std::optional<steady_time> news_at;      ///< the last piece
    bool by_news = false;                    ///< it is followed so
    std::optional<steady_time> good_at;
    steady_time answered_since{};        ///< the question that was answered last was asked then
    std::optional<steady_time> next_at;  ///< it is asked again; of a failure alone
};

/// Nobody was there to say anything of use: what a sibling's next word to this node may have ended.
[[nodiscard]] bool was_away(const follow_figures& of) noexcept;

/// Why the digest is not to be had and when it is asked for again: ": refused (status 403); it is
/// asked for again in 8 s". Empty where nothing is wrong.
[[nodiscard]] std::string in_words(const follow_figures& of, steady_time now);

/// Threads   one. What is held may be shared as a replica.
class digest_follower {
public:
    /// `seed` for the jitter: any number that differs from sibling to sibling.
    digest_follower(const follow_plan& plan, std::uint64_t seed, steady_time now);

    /// When to ask next.
    [[nodiscard]] steady_time next() const noexcept { return next_; }

    /// What to send: the target's query ("since=...") and conditions, each empty for none.
    struct question {
        std::string query;
        std::string none_match;
        std::string modified_since;
        std::chrono::seconds wait{0};  ///< in `query`: the answer may take so much longer
    };
    [[nodiscard]] question ask(steady_time now);
    /// From where news is asked for, if this is followed so.
    [[nodiscard]] std::optional<filter::digest_generation> news_from() const noexcept;

    /// Whether answered() with this takes a moment, and waits for nobody: a short piece of news, or word
    /// that there is none. True: it is called next, on this thread.
    [[nodiscard]] bool begins_light(unsigned status, std::span<const std::byte> body);

    /// What came of it. After either of these next() is new, and take_change() says what changed.
    void answered(const follow_answer& answer, std::string_view our_node, steady_time now);
    void failed(follow_trouble why, std::string detail, steady_time now);
    /// The sibling has just asked this node for something. If it was away next() comes sooner.
    void heard(steady_time now) noexcept;
    /// From a failure to the first question that comes early; twice as long to the second, and so on.
    static constexpr std::chrono::milliseconds before_early{100};

    /// What was taken is too large to be used: it is let go of.
    void refuse(std::string detail, steady_time now);

    /// Time has passed: what is held may be too old.
    void look(steady_time now);

    /// What has changed since the last call of take_change.
    struct change {
        enum class kind : std::uint8_t { nothing, replaced, flipped, gone };
        kind what = kind::nothing;
        std::vector<std::uint64_t> places;  ///< flipped: of the digest that was held
    };
    [[nodiscard]] change take_change();
    /// What was taken could not be used: the next change is the whole.
    void tell_again() noexcept;

    /// What is to be used; null: nothing. One of them at most. News turns bits of a digest: whoever
    /// is on another thread looks at it by held_replica.
    [[nodiscard]] const std::shared_ptr<const filter::digest>& held() const noexcept {
        return usable_ ? held_ : nothing_;
    }
    [[nodiscard]] std::shared_ptr<const filter::digest_replica> held_replica() const noexcept {
        return usable_ ? replica_ : nullptr;
    }
    [[nodiscard]] const std::shared_ptr<const filter::squid_digest>& held_squid() const noexcept {
        return usable_ ? squid_ : nothing_squid_;
    }
    [[nodiscard]] const follow_figures& figures() const noexcept { return figures_; }

private:
    void good(steady_time now, std::chrono::milliseconds wait);
    [[nodiscard]] bool wants_whole_at_once(steady_time now) noexcept;
    void drop();
    void take(filter::digest next, bool by_delta);
    void judge_news(const follow_answer& answer, steady_time now);
    [[nodiscard]] std::chrono::milliseconds after_news() const noexcept;
    void go_on(bool by_news, std::chrono::milliseconds least, steady_time now);
    [[nodiscard]] std::chrono::milliseconds jittered(std::chrono::milliseconds wait);
    void judge(const follow_answer& answer, steady_time now);
    void judge_squid(const follow_answer& answer, steady_time now);
    void good_of_squid(const follow_answer& answer, steady_time now);

    follow_plan plan_;
    std::chrono::milliseconds stale_after_{0};  // of the plan; of a Squid, longer while it says so
    std::minstd_rand random_;
    steady_time next_;
    unsigned failures_ = 0;
    steady_time failed_at_{};
    std::chrono::milliseconds early_gap_{0};
    bool is_early_ = false;  // the next question, or the one under way
    steady_time planned_{};  // when it would be asked else
    bool whole_next_ = false;
    unsigned wrong_bases_ = 0;                  // since something fitted what is held
    std::optional<steady_time> wrong_base_at_;  // the last
    bool usable_ = false;
    steady_time asked_at_{};
    std::string etag_;
    std::string last_modified_;  // of a Squid's, which has no tag
    std::shared_ptr<filter::digest_replica> replica_;
    filter::digest_replica::hold hold_;                     // of a light answer, until it is taken
    std::shared_ptr<const filter::digest> held_, nothing_;  // replica_'s own
    std::shared_ptr<const filter::squid_digest> squid_, nothing_squid_;
    change change_;
    follow_figures figures_;
};

}  // namespace reprise::proxy::peer
