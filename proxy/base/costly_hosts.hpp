#pragma once
// The hosts that admission lost the most hits for: where an admission rule that stores at first
// sight would gain most.

#include "proxy/base/heaviest.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::proxy {

/// Memory   `most` hosts: those with most (heaviest.hpp).
/// Threads  any; a short lock for each call. Only what goes to an origin though it was asked for before
///          comes here, never a hit.
class costly_hosts {
public:
    static constexpr std::size_t most = 64;

    struct one {
        std::string host;
        std::uint64_t hits_lost = 0;  ///< since it took its place; at least so many
    };

    /// @throws std::bad_alloc
    void note(std::string_view host, std::uint64_t hits_lost) {
        const std::lock_guard lock{guard_};
        (void)hosts_.add(host, hits_lost);
    }

    /// The most first.
    [[nodiscard]] std::vector<one> figures() const {
        const std::lock_guard lock{guard_};
        std::vector<one> out;
        for (auto& entry : hosts_.in_order()) {
            out.push_back({std::move(entry.key), entry.own()});
        }
        return out;
    }

private:
    struct nothing {};
    mutable std::mutex guard_;
    heaviest<nothing> hosts_{most};
};

}  // namespace reprise::proxy
