#pragma once
// The keys that session tickets are sealed with (RFC 5077, RFC 8446 4.6.1), by which a returning
// client resumes without a signature of ours. They are random, known to this process alone, and
// forgotten: recordings can't be read later by taking the memory. A restart forgets them
// too, and clients shake hands in full.

#include "proxy/base/clock.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>

namespace reprise::proxy::net {

/// Threads   any; a short lock, taken in handshakes alone.
/// Rotation  whoever asks after `period` makes a new key; the one before opens tickets for another
///           period. So a ticket is good for at least a period, and for no more than two.
class ticket_keys {
public:
    static constexpr std::chrono::hours period{2};
    static constexpr std::size_t name_bytes = 16;

    struct key {
        std::array<unsigned char, name_bytes> name;
        std::array<unsigned char, 32> cipher;  // AES-256-CBC
        std::array<unsigned char, 32> mac;     // HMAC-SHA-256
    };

    ticket_keys() = default;
    ~ticket_keys();
    ticket_keys(const ticket_keys&) = delete;
    ticket_keys& operator=(const ticket_keys&) = delete;

    /// To seal with. None: no random bytes are to be had.
    [[nodiscard]] std::optional<key> current(steady_time now);
    struct opener {
        key with;
        bool is_current = true;  ///< otherwise the client is due another ticket
    };
    /// To open what says that it was sealed with `name`.
    [[nodiscard]] std::optional<opener> find(std::span<const unsigned char, name_bytes> name,
                                             steady_time now);

private:
    void rotate(steady_time now);

    std::mutex guard_;
    std::optional<key> current_;
    std::optional<key> previous_;
    steady_time made_{};
};

}  // namespace reprise::proxy::net
