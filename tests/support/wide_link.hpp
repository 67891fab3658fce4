#pragma once
// A way between two programs that is not loopback's: a TCP relay with a length, that can be cut.
// Whoever is to be reached by it is named by the link's address in place of its own. What a real
// wide-area link does to a connection, and loopback never does, is done here: each byte takes its
// time, and of a cut nobody is told (no FIN, no RST, no refusal: a black hole), so that whoever waits
// finds out by a deadline of its own or not at all.
//
// Order     of a connection's bytes stays; none is lost, none comes sooner than the delay.
// Pace      is not bounded but by what is on its way: most_on_way bytes of a connection and direction.
//           Behind them the sender's window closes, as on a real link that is too long for it.
// Cut       what is on its way stays there, and arrives when the link is mended: TCP would send it
//           again. Nothing is taken from either side, and connections can't be made: a SYN is not
//           answered (the backlog is kept full), but for one or two that the kernel had taken before.
// Ends      FIN and RST travel like bytes, behind those before them.
// Not shown A link has no loss, no jitter and no order between connections. A connection that the far
//           end would refuse is made, and reset two delays later.
// Threads   each link has one of its own; every method may be called from any.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace reprise::tests {

struct link_options {
    std::uint16_t to = 0;  ///< the port that it leads to
    std::string to_address = "127.0.0.1";
    std::string address = "127.0.0.1";   ///< where it listens, at a port that the system picks
    std::chrono::milliseconds delay{0};  ///< in each direction: a round trip takes twice as long
};

/// What went through since the link was made.
struct link_counts {
    std::uint64_t there = 0;        ///< bytes delivered to the far end
    std::uint64_t back = 0;         ///< bytes delivered to whoever connected
    std::uint64_t connections = 0;  ///< taken from whoever connects
    std::uint64_t open = 0;         ///< of these, now
};

class wide_link {
public:
    static constexpr std::size_t most_on_way = 4u << 20;

    /// Listens from here on.
    /// @throws std::exception when it can't
    explicit wide_link(link_options options);
    wide_link(const wide_link&) = delete;
    wide_link& operator=(const wide_link&) = delete;
    /// Connections that are open are reset.
    ~wide_link();

    [[nodiscard]] std::uint16_t port() const noexcept;

    /// From now on; what is on its way comes as it would have.
    void set_delay(std::chrono::milliseconds each_way);
    /// It is in force at the return. Twice is once.
    void cut();
    void mend();

    [[nodiscard]] link_counts counts() const;

private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace reprise::tests
