#pragma once
// What happened at the origins, and what was promised since: from which follows what an answer may
// be. All times are steady time's, so that a wall clock that misbehaves misleads nobody here.
//
// Threads   any number; one lock, held for a few words' work.

#include "tests/judge/object.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace reprise::tests::judge {

/// One request at the origin and its answer.
struct origin_exchange {
    steady::time_point begun{}, ended = steady::time_point::max();
    std::string method{};
    unsigned version = 0;
    int status = 0;
    std::int64_t date = 0;     ///< as told, seconds since the epoch
    bool conditional = false;  ///< a validation
    bool misbehaved =
        false;  ///< error, cut, silence: on purpose, or since the judge was late itself
};

/// From `since` on no answer to a new request may be older than `version`.
struct version_floor {
    unsigned version = 0;
    steady::time_point since{};
    std::string why{};
    /// Of what was stored: what has no earlier one may have overlapped with it, and be taken for
    /// the more recent. 0: Date decides nothing, since it was invalidated, or nothing overlapped.
    std::int64_t date = 0;
    bool kept_only = false;  ///< holds for what was stored, not for who joined an older fetch
};

struct upload_record {
    std::uint64_t received = 0;
    bool whole = false, right = true;
};

class ledger {
public:
    [[nodiscard]] unsigned current(const std::string& path) const;
    /// The next version is current from now on.
    unsigned change(const std::string& path);
    /// When this version ceased to be current; none while it is.
    [[nodiscard]] std::optional<steady::time_point> superseded(const std::string& path,
                                                               unsigned version) const;
    [[nodiscard]] bool changed_between(const std::string& path,
                                       steady::time_point from,
                                       steady::time_point until) const;

    [[nodiscard]] std::size_t begin(const std::string& path, const origin_exchange& what);
    /// What it answers: said before the first byte goes out.
    void answers(const std::string& path, std::size_t number, int status);
    void end(const std::string& path, std::size_t number, bool misbehaved);
    [[nodiscard]] std::vector<origin_exchange> exchanges(const std::string& path) const;
    [[nodiscard]] std::size_t count(const std::string& path) const;
    /// An exchange that overlapped with [from, until], or ended a moment before, misbehaved: what
    /// was begun may be cut.
    [[nodiscard]] bool troubled(const std::string& path,
                                steady::time_point from,
                                steady::time_point until) const;
    /// The same, but it was answered in good order, and with an error: status 0 is no answer at
    /// all.
    [[nodiscard]] bool refused(const std::string& path,
                               int status,
                               steady::time_point from,
                               steady::time_point until) const;
    [[nodiscard]] bool failing(const std::string& path,
                               steady::time_point from,
                               steady::time_point until) const;

    /// An exchange that answers with this version had not ended at `at`.
    [[nodiscard]] bool is_running(const std::string& path,
                                  unsigned version,
                                  steady::time_point at) const;

    /// The earliest Date that came with this version; 0: none.
    [[nodiscard]] std::int64_t first_date(const std::string& path, unsigned version) const;

    void promise(const std::string& path, const version_floor& what);
    /// The highest floor that no answer to a request begun at `at` may be below, if `version` is.
    [[nodiscard]] std::optional<version_floor> broken_floor(const std::string& path,
                                                            unsigned version,
                                                            steady::time_point at,
                                                            bool joined) const;
    /// The program was killed: what it said within the last moments before that holds no longer.
    void forget_since(steady::time_point when);
    /// Its store in memory has gone in order.
    void forget_kept();

    [[nodiscard]] unsigned next_upload() { return ++uploads_made_; }
    void uploaded(unsigned number, const upload_record& what);
    [[nodiscard]] upload_record upload(unsigned number) const;

private:
    template <class Which>
    [[nodiscard]] bool any_of(const std::string& path,
                              steady::time_point from,
                              steady::time_point until,
                              Which&& which) const;
    struct entry {
        std::vector<steady::time_point> changes;  ///< changes[i]: version i + 1 became current
        std::vector<origin_exchange> exchanges;
        std::vector<version_floor> floors;
    };
    [[nodiscard]] static std::int64_t latest_date(const entry& of, unsigned version);

    mutable std::mutex guard_;
    std::map<std::string, entry> entries_;
    std::map<unsigned, upload_record> uploads_;
    std::atomic<unsigned> uploads_made_{0};
};

}  // namespace reprise::tests::judge
