#pragma once
// Whose answers most of the bytes to clients are, and how many of them the store gave.

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
/// Threads  any; a short lock for each call. Few requests come here (byte_sample.hpp).
class hosts_by_bytes {
public:
    static constexpr std::size_t most = 64;

    struct one {
        std::string host;
        std::uint64_t bytes = 0;       ///< since it took its place; at least so many, about
        std::uint64_t from_store = 0;  ///< of these
    };

    /// @throws std::bad_alloc
    void note(std::string_view host, std::uint64_t bytes, bool from_store) {
        const std::lock_guard lock{guard_};
        auto& stored = hosts_.add(host, bytes).from_store;
        stored += from_store ? bytes : 0;
    }

    /// The most first.
    [[nodiscard]] std::vector<one> figures() const {
        const std::lock_guard lock{guard_};
        std::vector<one> out;
        for (auto& entry : hosts_.in_order()) {
            out.push_back({std::move(entry.key), entry.own(), entry.about.from_store});
        }
        return out;
    }

private:
    struct share {
        std::uint64_t from_store = 0;
    };
    mutable std::mutex guard_;
    heaviest<share> hosts_{most};
};

}  // namespace reprise::proxy
