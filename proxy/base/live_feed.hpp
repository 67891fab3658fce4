#pragma once
// Requests as they end, for whoever watches just now (/live on the admin listener).
// It is a sample and no log: each viewer is given some of what it asked for, is told how many it was
// not given, and holds up nobody. The access log has them all.
//
// Threads   any.
// Cost      while nobody watches one relaxed load a request. Otherwise a short lock, and for a line
//           that is kept its formatting, at most `most_a_second` times a second and viewer.
// Memory    most_viewers x most_waiting lines of at most 16 KiB.

#include "proxy/base/access_line.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/base/outcome.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy {

class live_feed {
public:
    static constexpr std::size_t most_viewers = 4;
    static constexpr std::size_t most_a_second = 40;
    static constexpr std::size_t most_waiting = 80;  ///< of one viewer, for its being asked again

    /// What a viewer wants to see.
    struct wanted {
        std::string host{};            ///< and those below it; lower case; empty: any
        std::optional<outcome> how{};  ///< none: any
    };
    struct taken {
        std::vector<std::string> lines;  ///< as the access log has them, query values hidden
        std::uint64_t left_out = 0;      ///< since the last time, of what was wanted
    };

    /// A place among the viewers, for as long as it lives. The feed outlives it.
    class view {
    public:
        view(live_feed& of, std::size_t place) : of_{&of}, place_{place} {}
        view(const view&) = delete;
        view& operator=(const view&) = delete;
        ~view() { of_->leave(place_); }
        /// What has come since the last time.
        [[nodiscard]] taken take() { return of_->take(place_); }

    private:
        live_feed* of_;
        std::size_t place_;
    };

    /// Null: most_viewers watch already.
    [[nodiscard]] std::unique_ptr<view> watch(wanted what);

    [[nodiscard]] bool watched() const noexcept {
        return watching_.load(std::memory_order_relaxed) != 0;
    }
    [[nodiscard]] unsigned viewers() const noexcept {
        return watching_.load(std::memory_order_relaxed);
    }
    /// A request has ended. `host`: asked for, as it was written, without a port. What there is no
    /// memory for is left out.
    void note(const access_record& one, std::string_view host, steady_time now) noexcept;

private:
    struct viewer {
        bool here = false;
        wanted what{};
        std::vector<std::string> lines{};
        std::uint64_t left_out = 0;
        steady_time slot{};  ///< the beginning of the quarter of a second that `in_slot` counts in
        std::size_t in_slot = 0;
    };
    void leave(std::size_t place) noexcept;
    taken take(std::size_t place);

    std::atomic<unsigned> watching_{0};
    std::mutex guard_;
    std::array<viewer, most_viewers> viewers_{};
};

/// The host of a URL in absolute form, or of CONNECT's target; empty: it names none.
[[nodiscard]] std::string_view host_in(std::string_view target) noexcept;

}  // namespace reprise::proxy
