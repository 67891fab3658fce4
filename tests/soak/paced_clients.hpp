#pragma once
// Clients of several proxies that keep to a timetable: a request goes out when its time has come,
// whatever became of those before it (an open loop), so that proxies which are late are not spared.
// One thread asks for all; connections are kept and used again, and a request that finds a kept one
// dead goes out once more on a new one, as any client's would.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::tests {

struct planned_request {
    std::chrono::microseconds at{0};  ///< since the beginning
    unsigned node = 0;                ///< through which proxy
    std::uint32_t url = 0;            ///< a number
};

/// What became of one. Every request comes to be one of these.
enum class asking_outcome : std::uint8_t {
    right,      ///< 200, whole, and the right bytes
    wrong,      ///< 200 and whole, and not these bytes: what must not be
    error,      ///< whole, of another status: the client sees that it failed
    cut,        ///< less than was promised: it sees that, too
    no_answer,  ///< refused, closed or reset before a head
    timed_out,
};
[[nodiscard]] std::string_view to_string(asking_outcome of) noexcept;

struct asked_request {
    asking_outcome what = asking_outcome::no_answer;
    int status = 0;
    bool own_hit = false;         ///< of the asked proxy's own store
    bool by_another = false;      ///< of another proxy: two of them are in Via
    bool is_first_sight = false;  ///< not stored, since admission has not seen it before
    std::chrono::steady_clock::time_point due, begun, ended;
    std::string trouble;  ///< of what is not right

    [[nodiscard]] double took_ms() const {
        return std::chrono::duration<double, std::milli>(ended - begun).count();
    }
};

struct paced_clients {
    std::vector<std::uint16_t> ports;               ///< of the proxies
    std::function<std::string(std::uint32_t)> url;  ///< of a number
    std::function<bool(std::uint32_t, std::string_view)> is_body;
    std::chrono::milliseconds patience{0};  ///< for one answer, all of it

    /// Asks all of them, which are in the order of their times, and returns when the last has ended.
    /// What became of each, in the same order.
    [[nodiscard]] std::vector<asked_request> ask(const std::vector<planned_request>& all) const;
};

}  // namespace reprise::tests
