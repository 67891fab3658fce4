#pragma once
// What an answer may be, given the request, the object, the ledger and what was done to the program
// meanwhile (README.md has the rules). Where something can't be told with certainty it is allowed,
// and counted as such.

#include "tests/judge/asking.hpp"
#include "tests/judge/findings.hpp"
#include "tests/judge/ledger.hpp"

#include <atomic>
#include <mutex>
#include <set>

namespace reprise::tests::judge {

/// What was done to the program: since `at`, cuts are no surprise.
struct program_end {
    enum class way { none, drained, killed };
    std::atomic<way> how{way::none};
};

/// What a world allows beyond the rules for an honest client of a healthy origin.
struct allowance {
    std::vector<int> statuses{};  ///< of the program's own, or of an origin that misbehaves
    bool cut = false;             ///< a visible one
    bool no_answer = false;       ///< not even a head, if the connection ends
    bool old = false;             ///< a version that is no longer fresh
};

/// Which cookies clients were given: each is one client's.
class cookie_jar {
public:
    /// False: somebody has it already.
    [[nodiscard]] bool give(const std::string& cookie) {
        const std::lock_guard lock{guard_};
        return given_.insert(cookie).second;
    }

private:
    std::mutex guard_;
    std::set<std::string> given_;
};

class court {
public:
    court(const ledger& what,
          findings& into,
          cookie_jar& cookies,
          const found_in& where,
          milliseconds client_body)
        : ledger_{what},
          findings_{into},
          cookies_{cookies},
          where_{where},
          client_body_{client_body} {}

    /// An answer to GET or HEAD. True: nothing is wrong with it.
    bool judge_get(const wish& asked,
                   const answer_seen& got,
                   const allowance& beyond,
                   program_end::way ended) const;
    /// An answer to PUT or POST with or without a body.
    bool judge_unsafe(const wish& asked,
                      const answer_seen& got,
                      const allowance& beyond,
                      program_end::way ended) const;

private:
    struct hearing;
    [[nodiscard]] bool judge_arrival(hearing& of) const;
    [[nodiscard]] bool judge_status(hearing& of) const;
    [[nodiscard]] bool judge_body(hearing& of) const;
    [[nodiscard]] bool judge_end(hearing& of) const;
    [[nodiscard]] bool judge_age(hearing& of) const;

    const ledger& ledger_;
    findings& findings_;
    cookie_jar& cookies_;
    const found_in& where_;
    milliseconds client_body_;
};

/// Kinds of what may be wrong, as the table of README.md names them.
namespace kind {
inline constexpr const char* no_head = "bytes without their head";
inline constexpr const char* wrong_bytes = "wrong bytes";
inline constexpr const char* wrong_head = "a head that is not its body's";
inline constexpr const char* looks_whole = "a cut body that looks whole";
inline constexpr const char* cut = "an honest client was cut off";
inline constexpr const char* older = "an older version after a newer one";
inline constexpr const char* stale = "stale beyond what is allowed";
inline constexpr const char* failed = "an error where the origin was well";
inline constexpr const char* starved = "an honest client waited in vain";
inline constexpr const char* upload_failed = "an honest upload failed";
inline constexpr const char* upload_lost = "a body was lost that the origin went on reading";
inline constexpr const char* not_collapsed = "requests that came together were not collapsed";
inline constexpr const char* not_stored = "what may be stored is not";
inline constexpr const char* given_up = "what was good for others was given up";
inline constexpr const char* no_scheme = "an upstream is told no scheme, or a client's word for it";
inline constexpr const char* cookie = "one client's cookie reached another";
inline constexpr const char* ended = "the program ended badly";
}  // namespace kind

}  // namespace reprise::tests::judge
