#pragma once
// One run of one world: origins, the program under given settings, clients of all kinds, and the
// court that judges what they get. A world's play goes on in rounds until its time is over.

#include "tests/judge/origin.hpp"
#include "tests/judge/verdict.hpp"
#include "tests/support/proxy_process.hpp"

#include <functional>
#include <memory>
#include <random>
#include <thread>

namespace reprise::tests::judge {

class world;

/// One kind of world.
struct world_kind {
    std::string name;
    std::string about;  ///< what it may find, in a few words
    std::function<void(world&)> play;
};
/// All there are, in the order they are played.
[[nodiscard]] const std::vector<world_kind>& all_worlds();

class world {
public:
    world(const world_kind& of, std::uint64_t seed, milliseconds length, findings& into);
    ~world();

    /// @name The program
    void start(json settings, const std::vector<std::string>& environment = {});
    /// SIGTERM; how it ended is judged.
    void stop();
    void kill();
    /// After a kill, when no client asks any more: what need not have outlived it is owed no
    /// longer.
    void forget_what_may_be_lost();
    [[nodiscard]] proxy_process& program() { return *program_; }
    [[nodiscard]] proxy_place& place() { return place_; }

    /// @name The rounds
    [[nodiscard]] bool goes_on() const;
    [[nodiscard]] std::uint64_t below(std::uint64_t limit);
    [[nodiscard]] bool one_in(std::uint64_t times) { return below(times) == 0; }
    /// A path that no other object of this run has.
    [[nodiscard]] std::string fresh(object of);

    /// @name Clients: asked and judged, on a connection of their own or on one that is kept
    answer_seen get(const wish& what, const allowance& beyond = {});
    answer_seen get(asker& by, const wish& what, const allowance& beyond = {});
    answer_seen get(const std::string& path) { return get(wish{.path = path}); }
    answer_seen unsafe(wish what, const allowance& beyond = {});
    /// All of them at once, each in a thread of its own; at the end of the slowest.
    std::vector<answer_seen> all(const std::vector<wish>& together, const allowance& beyond = {});
    /// The origin has a new version, and nothing older may be shown once the purge is answered.
    void purge(const std::string& path, const allowance& beyond = {});

    /// What findings say of the circumstances from now on. Not while clients ask.
    void circumstances(const std::string& words) { where_.circumstances = words; }
    void wrong(const char* kind, const std::string& words) { into_.wrong(where_, kind, words); }
    void judged(const std::string& what) { into_.judged(what); }

    ledger record;
    judge_origin origin{record};

    /// Settings that store at once, with short patience where `timeouts` says so.
    [[nodiscard]] json settings() const;

private:
    /// Spoils a copy of the answer, and sees whether the court would have found it.
    void try_the_court(const wish& what, const answer_seen& got, const allowance& beyond);
    void note_kept(const wish& what, const answer_seen& got);

    findings& into_;
    found_in where_;
    milliseconds length_;
    std::optional<steady::time_point> until_;  // from when the program is up for the first time
    std::mt19937_64 dice_;
    unsigned made_ = 0;
    std::atomic<unsigned> asked_{0};
    std::string name_;
    std::unique_ptr<proxy_process> program_;
    program_end end_;
    steady::time_point killed_{};
    cookie_jar cookies_;
    milliseconds client_body_{30'000};
    proxy_place place_;
};

/// A disk of the program's own, for as long as this lives.
[[nodiscard]] json with_disk(json settings,
                             const temp_dir& at,
                             const char* write,
                             const char* size);

}  // namespace reprise::tests::judge
