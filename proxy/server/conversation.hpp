#pragma once
// One end of the pair between the old program and the new one (UPGRADE.md): messages, sockets with
// them, and the purges of each told to the other.
//
// Nobody who sends waits: what the other end takes no time to read waits here, up to `most_waiting`
// messages. Beyond that purges are not told any more, and nobody hears that they were carried out.

#include "proxy/base/clock.hpp"
#include "proxy/base/descriptor.hpp"
#include "proxy/server/handover_message.hpp"
#include "proxy/thread/other_process.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::proxy::server {

/// From one lack of memory to the next look.
inline constexpr std::chrono::milliseconds until_memory{100};

/// Threads   send, tell, when_carried_out, interrupt, is_over: any. next, attend: one at a time.
class conversation final : public thread::other_process,
                           public std::enable_shared_from_this<conversation> {
public:
    static constexpr std::size_t most_waiting = 1u << 16;
    static constexpr std::size_t largest_order = 16u << 20;

    /// @throws std::system_error: there are no descriptors
    explicit conversation(descriptor end);

    /// `with` goes along. What can't be sent any more is dropped.
    void send(const handover_message& message, descriptor with = {});

    struct heard {
        handover_message message;
        descriptor with;  ///< none: none came, or there was no descriptor for it here
    };
    /// The next message that is no purge's; sends what waits, and carries purges out, until then. None:
    /// `until` has come, interrupt() was called, or it is over.
    /// @throws std::bad_alloc: a message was lost. An order of which it may have been a piece is not carried out
    [[nodiscard]] std::optional<heard> next(steady_time until);
    /// Calls next() until it is over, or interrupted. What there is no memory to carry out is not carried out, and nobody
    /// hears that it was.
    void attend() noexcept;
    /// next() ends now, or the next time. For good.
    void interrupt() noexcept;
    [[nodiscard]] bool is_interrupted() const;
    /// The other has ended, or can't be understood.
    [[nodiscard]] bool is_over() const;
    /// Nobody is told any more, and those who wait for what they told go on. Until then they wait, though
    /// the other may have ended: for what is to be done about that.
    void end() noexcept;

    /// What carries purges out that the other tells of, and calls its second argument when they are
    /// kept; called by next(). Those that came before are kept until then. @pre next() does not run
    using carry_out = std::function<void(const thread::purge_order&, std::function<void()> kept)>;
    void on_purge(carry_out by);

    void tell(const thread::purge_order& order) override;
    void when_carried_out(std::function<void()> carried_out) override;

private:
    struct outgoing {
        std::string bytes;
        descriptor with;
    };
    void push(outgoing one);
    void wake() const noexcept;
    [[nodiscard]] bool flush();
    [[nodiscard]] std::optional<heard> receive();
    void gather(const handover_message& piece);
    void take(const handover_message& message);
    void carry(std::uint64_t number, const std::string& bytes);
    void note_heard(std::uint64_t number);

    const descriptor end_;
    const descriptor wake_;

    mutable std::mutex guard_;
    std::deque<outgoing> waiting_;
    // mute_: nothing can be sent any more. What the other sent before is yet to be read, and only its end is the end.
    bool over_ = false, mute_ = false, ended_ = false, interrupted_ = false,
         said_that_it_is_full_ = false, lost_one_ = false;
    std::uint64_t last_number_ = 0;
    std::set<std::uint64_t> told_;  // and not carried out so far
    // Each for all that was told up to a number.
    std::vector<std::pair<std::uint64_t, std::function<void()>>> waiters_;

    // next()'s own.
    carry_out carry_out_;
    std::string order_;  // its pieces so far
    std::uint64_t order_number_ = 0;
    bool lacks_a_piece_ = false;  // there was no memory for one
    std::vector<std::pair<std::uint64_t, std::string>> early_;
};

}  // namespace reprise::proxy::server
