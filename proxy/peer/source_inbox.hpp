#pragma once
// What the store says of keys, on its way to the keeper's thread.
//
// The keeper is stirred by what may have to be told soon: by the first event after nothing, and by the first promise
// (holder::under_way), which is urgent. While it will look in any case no other event needs it.
//
// Threads   push: any, a short lock, maybe under the store's own. All else: the keeper's.

#include "filter/key_hash.hpp"
#include "filter/squid_key.hpp"
#include "proxy/peer/key_table.hpp"
#include "proxy/peer/secret.hpp"

#include <cstdint>
#include <mutex>
#include <vector>

namespace reprise::proxy::peer {

/// What was said of one key. `until` is a packed time (key_table::pack_time).
struct source_event {
    enum class kind : std::uint8_t { held, gone, outdated };
    filter::key_hash key{};  ///< the store's; for gone and outdated, as much as is known
    url_name name = 0;
    filter::squid_key squid{};
    std::uint32_t until = 0;
    kind what = kind::held;
    holder by = holder::memory;
};

/// A fetch under way will bring it.
[[nodiscard]] constexpr bool is_promise(const source_event& event) noexcept {
    return event.what == source_event::kind::held && event.by == holder::under_way;
}

class source_inbox {
public:
    /// What there is no memory for is lost, and counted. True: the keeper is to be stirred.
    [[nodiscard]] bool push(const source_event& event) noexcept;

    /// All that came since the last call, in its order, in place of what `into` has. True: that a promise has ended
    /// may have been lost, and it would stand for ever.
    [[nodiscard]] bool take(std::vector<source_event>& into) noexcept;

    /// `looks`: from now on the keeper looks again soon, whatever comes. True: it does not, and something came
    /// while it was thought to.
    [[nodiscard]] bool note_plan(bool looks) noexcept;

    [[nodiscard]] std::uint64_t lost() const noexcept;

private:
    mutable std::mutex guard_;
    std::vector<source_event> events_;
    std::uint64_t lost_ = 0;
    bool lost_end_of_promise_ = false;
    bool has_promise_ = false;
    bool will_look_ = false;
};

}  // namespace reprise::proxy::peer
