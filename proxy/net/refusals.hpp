#pragma once
// Which tunnels are passed on though their host is listed, because opening one has failed: a client that
// refused our certificate for a host would refuse it again, and a host whose server wants a
// certificate of the client can't be asked in the client's place.
//
// The first is remembered of that client and that host together: what one client does closes
// nothing for another. The second holds for everybody, and is learned from the server alone.
// No client can make a name of its own fall together with another client's (secret_name).

#include "proxy/base/clock.hpp"
#include "proxy/net/address.hpp"
#include "proxy/net/expiring_marks.hpp"

#include <chrono>
#include <cstdint>
#include <string_view>

namespace reprise::proxy::net {

/// Memory   264 KiB, fixed: places for 16,384 refusals, as many of the contrary, and 1,024 hosts. When a place is wanted the
///          one of its four that ends first is given up: whoever has others' refusals forgotten
///          fails a connection of its own for each, and they fail one more.
/// Threads  any number; asking is four loads of one cache line and a hash of the name.
class refusals {
public:
    static constexpr std::chrono::hours for_a_host{1};

    /// @throws std::bad_alloc, std::runtime_error: there are no random bytes
    refusals();

    /// `client` doesn't take our certificate for `host` (lower case); true until `until`, at most
    /// 90 days ahead. False: that was known.
    bool note_client(const address_bytes& client,
                     std::string_view host,
                     steady_time until,
                     steady_time now) noexcept;
    [[nodiscard]] bool has_client(const address_bytes& client,
                                  std::string_view host,
                                  steady_time now) const noexcept;

    /// `client` has asked behind our certificate for `host`: for so long one connection that it leaves
    /// without a word is a spare one, as browsers make.
    static constexpr std::chrono::seconds spare{60};
    void note_taken(const address_bytes& client, std::string_view host, steady_time now) noexcept;
    /// `client` left one for `host` without a word. True: it is taken for a refusal; false: for a
    /// spare one, the first since it asked.
    [[nodiscard]] bool is_refusal(const address_bytes& client,
                                  std::string_view host,
                                  steady_time now) noexcept;

    /// What listens there is passed on for everybody, for an hour from now: its other ports may be
    /// other servers. False: that was known.
    bool note_host(std::string_view host, std::uint16_t port, steady_time now) noexcept;
    [[nodiscard]] bool has_host(std::string_view host,
                                std::uint16_t port,
                                steady_time now) const noexcept;

private:
    expiring_marks clients_{4'096};
    expiring_marks taken_{4'096};  // by a client that has left no spare connection since
    expiring_marks hosts_{256};
};

}  // namespace reprise::proxy::net
