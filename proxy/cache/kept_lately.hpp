#pragma once
// Which directories brought what was stored, lately: whether a fetch that has only been asked for will
// probably be stored too, so that siblings can be told of it before its head is there.
//
// A directory is a URL up to its path's last slash. One small count for each, in a table of fixed size
// by hash: what was stored adds one, up to `enough`; what was not begins anew. So a directory whose
// responses are now stored and now not is seldom relied on. What is remembered is a hint and nothing
// else: directories that share a place mislead each other, by chance alone (net/secret_name), and a wrong
// word is taken back when the head is there.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace reprise::proxy::cache {

/// Memory   4 KiB.
/// Threads  any number; one or two relaxed accesses per call.
class kept_lately {
public:
    static constexpr std::uint8_t enough = 3;

    /// @throws std::runtime_error: there are no random bytes
    kept_lately();

    void note(std::string_view url, bool kept) noexcept;
    /// The last `enough` of its directory were.
    [[nodiscard]] bool expects(std::string_view url) const noexcept;

private:
    static constexpr std::size_t places = 1u << 12;
    [[nodiscard]] static std::size_t place_of(std::string_view url) noexcept;
    std::array<std::atomic<std::uint8_t>, places> counts_{};
};

}  // namespace reprise::proxy::cache
