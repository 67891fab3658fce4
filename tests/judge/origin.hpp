#pragma once
// Every origin there is: it answers by the object that a path names, or as a behaviour says that
// was set for the path, and writes all of it into the ledger.

#include "tests/judge/ledger.hpp"
#include "tests/support/fake_origin.hpp"

#include <limits>
#include <memory>

namespace reprise::tests::judge {

inline constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

/// How the answers for one path differ from an honest origin's at its best.
struct behaviour {
    int status = 0;                    ///< in place of the object: this, with a short body
    int to_validations = 0;            ///< the same, only to conditional requests
    int to_ranges = 0;                 ///< the same, only to requests with Range
    milliseconds head_after{0};        ///< decided (Date, version) at once, sent so much later
    milliseconds validation_after{0};  ///< the same, only to conditional requests
    std::shared_ptr<gate> head_at{};   ///< the same, when it is opened
    std::uint64_t pace = 0;            ///< bytes a second; 0: as fast as they are taken
    std::uint64_t stall_at = never;    ///< stops before this byte until `stalled_until` opens
    std::shared_ptr<gate> stalled_until{};
    std::uint64_t cut_at = never;  ///< the connection ends before this byte
    bool cut_by_fin = false;       ///< in order, as far as TCP knows
    bool other_range = false;      ///< a 206 of other bytes than those asked for, and says so
    bool ignores_ranges = false;   ///< 200 to whatever Range
    seconds date{0};               ///< what Date is off by
    std::string surplus{};         ///< sent after the answer's end
    std::chrono::microseconds surplus_after{0};
    bool no_answer = false;      ///< the connection ends in place of a head
    bool answers_early = false;  ///< to an upload: 201 at its head, and reads on
};

class judge_origin {
public:
    explicit judge_origin(ledger& into);

    void behave(const std::string& path, const behaviour& how);
    [[nodiscard]] std::string url(const std::string& path) const { return origin_.url(path); }
    [[nodiscard]] std::string authority() const { return origin_.authority(); }
    /// The value of this field in the last request for the path.
    [[nodiscard]] std::string last_field(const std::string& path, std::string_view name) const;
    /// Nobody listens any more.
    void stop() { origin_.stop(); }

private:
    struct answering;
    void serve(origin_request& request, origin_connection& connection);
    void take_upload(answering& now);
    void answer_object(answering& now);
    void answer_status(answering& now, int status);
    bool send_body(answering& now, std::uint64_t from, std::uint64_t count);
    [[nodiscard]] behaviour behaviour_of(const std::string& path) const;

    ledger& ledger_;
    mutable std::mutex guard_;
    std::map<std::string, behaviour> behaviours_;
    std::map<std::string, field_lines> last_fields_;
    std::atomic<std::uint64_t> cookies_{0};
    fake_origin origin_;  // last: its threads end first
};

}  // namespace reprise::tests::judge
