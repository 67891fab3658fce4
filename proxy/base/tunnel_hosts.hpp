#pragma once
// Where CONNECTs lead: what opening the tunnels of each listed host (intercept.hosts) is worth, and which of
// the hosts whose tunnels are passed on move the most bytes, which is where opening them might be
// worth something.

#include "proxy/base/heaviest.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::proxy {

/// The requests inside opened tunnels of one host. Any thread counts.
struct inside_counts {
    std::atomic<std::uint64_t> requests{0};
    std::atomic<std::uint64_t> hits{0};
};

/// How often for which reason; reasons are static text.
using reason_counts = std::vector<std::pair<std::string_view, std::uint64_t>>;

/// Memory   `most` hosts of each kind; of those that are listed the ones with most CONNECTs, of the
///          others those with most bytes.
/// Threads  any; a short lock for each call. A request inside takes none.
class tunnel_hosts {
public:
    static constexpr std::size_t most = 64;

    struct listed {
        std::string host;
        std::uint64_t opened = 0, refused = 0, leaves = 0, requests = 0, hits = 0;
        reason_counts passed_on{};
    };
    struct unlisted {
        std::string host;
        std::uint64_t bytes = 0;  ///< both ways, of tunnels that are over
        std::uint64_t tunnels = 0;
        std::uint16_t port = 0;    ///< of the last
        std::string_view why{};  ///< the last was passed on
    };
    struct report {
        std::vector<listed> opened;
        std::vector<unlisted> most_bytes;
    };

    /// A tunnel to a listed host was opened. Whoever counts what happens inside holds the result.
    /// @param new_leaf  its certificate had to be made
    /// @throws std::bad_alloc, as all of these
    [[nodiscard]] std::shared_ptr<inside_counts> note_opened(std::string_view host, bool new_leaf);
    /// A client took no certificate of ours for it.
    void note_refused(std::string_view host, bool new_leaf);
    /// It was passed on, though it is listed.
    /// @param why  static text
    void note_passed_on(std::string_view host, std::string_view why);
    /// A tunnel that was not opened is over.
    /// @param why  static text
    void note_tunnel(std::string_view host,
                     std::uint16_t port,
                     std::string_view why,
                     std::uint64_t bytes);

    [[nodiscard]] report figures() const;

private:
    struct of_listed {
        std::uint64_t opened = 0, refused = 0, leaves = 0;
        reason_counts passed_on{};
        std::shared_ptr<inside_counts> inside{};
    };
    struct of_unlisted {
        std::uint64_t tunnels = 0;
        std::uint16_t port = 0;
        std::string_view why{};
    };

    mutable std::mutex guard_;
    heaviest<of_listed> listed_{most};
    heaviest<of_unlisted> unlisted_{most};
};

}  // namespace reprise::proxy
