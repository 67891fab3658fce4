#pragma once
// What is done while hits are measured (tails.cpp): each is a setting of the server, and what happens beside the hits.

#include "tools/bench_proxy/servers.hpp"

#include <nlohmann/json.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reprise::bench {

inline constexpr std::size_t hot_objects = 100;  ///< that the hits are of

/// The figure of /stats at a JSON pointer.
[[nodiscard]] double figure(const nlohmann::json& stats, const char* at);

/// What a disturbance may use: the server under measurement, and when to end.
struct scene {
    const lab& of;
    reprise_server& ours;
    const std::atomic<bool>& over;

    /// Or until it is over.
    void wait(double seconds) const;
};

struct disturbance {
    std::string name;
    nlohmann::json settings = nlohmann::json::object();
    /// Once, before anything is measured.
    std::function<void(const lab&, const reprise_server&)> prepare;
    /// Before each round.
    std::function<void(const lab&, reprise_server&)> before_round;
    /// Beside the hits, until `over`.
    std::function<void(const scene&)> meanwhile;
    /// A count in /stats that rises in each round, or the round shows nothing.
    std::string rises;
    std::string fields{};  ///< of the hits, each ended by CRLF
    /// What the hits' p99 is set beside, in the same round: this in the other's place. And how many
    /// times that it may be.
    std::function<void(const scene&)> instead{};
    std::optional<double> beside_instead{};
};

[[nodiscard]] disturbance quiet();
[[nodiscard]] disturbance disk_writes(const lab& of);
[[nodiscard]] disturbance digest_published();

/// One other instance with 64 listeners, each a sibling; what it lists is `listed`.
class siblings {
public:
    static constexpr std::size_t count = 64;

    siblings(const lab& of, std::size_t listed);
    [[nodiscard]] nlohmann::json as_peers() const;

private:
    std::vector<std::uint16_t> ports_ = free_ports(count);
    std::unique_ptr<reprise_server> server_;
};
[[nodiscard]] disturbance stats_read(const siblings& others);

[[nodiscard]] disturbance settings_reloaded();
[[nodiscard]] disturbance generation_cleared(const lab& of);
[[nodiscard]] disturbance purged_by_tag(const lab& of);
[[nodiscard]] disturbance memory_given_back();
/// Wrong ones, as fast as they are answered, and hits of one whose right one is known.
[[nodiscard]] disturbance wrong_passwords(const lab& of);

}  // namespace reprise::bench
