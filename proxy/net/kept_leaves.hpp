#pragma once
// The leaves that were made, by host: a client that returns, or the next one, is shown the same. Those
// used least recently go first.

#include "proxy/base/clock.hpp"
#include "proxy/base/relaxed.hpp"
#include "proxy/net/leaf_maker.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace reprise::proxy::net {

/// Memory   about 3 KiB a leaf, at most `most` of them, whatever hosts are asked for.
/// Threads  any; a short lock, and none while a leaf is made. Two that want the same new host at
///          once may both make one; one of the two is kept.
/// Cost     a search among `most` names; of a new host leaf_maker::make.
class kept_leaves {
public:
    /// @pre most > 0
    kept_leaves(leaf_maker maker, std::size_t most);

    /// Who we are in this host's place: as it is kept while less than half of the leaf's lifetime
    /// is over, and made anew otherwise. Null: the CA has expired, or OpenSSL cannot make one.
    /// @param host  as CONNECT named it, a name in lower case
    /// @param made_anew  if not null, told that none was kept
    /// @throws std::bad_alloc
    [[nodiscard]] tls_identity_ptr identity_for(std::string_view host,
                                                wall_time now,
                                                bool* made_anew = nullptr);

    [[nodiscard]] const leaf_authority& authority() const noexcept { return maker_.authority(); }
    [[nodiscard]] std::uint64_t made() const noexcept { return made_.load(relaxed); }
    [[nodiscard]] std::uint64_t reused() const noexcept { return reused_.load(relaxed); }
    [[nodiscard]] std::size_t size() const;

private:
    struct entry {
        std::string host;
        made_leaf leaf;
    };
    using list = std::list<entry>;

    [[nodiscard]] tls_identity_ptr find(std::string_view host, wall_time now);
    [[nodiscard]] tls_identity_ptr keep(entry made, wall_time now);

    const leaf_maker maker_;
    const std::size_t most_;
    mutable std::mutex guard_;
    list by_use_;                                         // the last used first
    std::map<std::string_view, list::iterator> by_host_;  // of names in by_use_
    std::atomic<std::uint64_t> made_{0};
    std::atomic<std::uint64_t> reused_{0};
};

}  // namespace reprise::proxy::net
