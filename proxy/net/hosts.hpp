#pragma once
// The hosts file (hosts(5)), held in memory.
// Looked at again when it has changed, and for that looked at only every few seconds: a stat on the
// way of a dial is cheap, reading a file on it is not.

#include "proxy/base/clock.hpp"
#include "proxy/net/asio.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>

namespace reprise::proxy::net {

/// Names in lower case; the addresses of a name in the file's order.
using host_table = std::map<std::string, std::vector<asio::ip::address>, std::less<>>;

/// More of one name are passed over: each is compared with those before it.
inline constexpr std::size_t most_addresses_of_name = 256;

/// Every text yields a table: lines that make no sense are passed over, as the system does.
[[nodiscard]] host_table parse_hosts(std::string_view text);

/// One thread's copy of the file.
class hosts_file {
public:
    static constexpr std::chrono::seconds check_every{5};
    static constexpr std::size_t most_bytes = 4 << 20;  ///< what lies beyond is not read

    /// @param path  empty: no file. One that is not there, or that we may not read, is an empty one
    ///              until we can. One that can't be read just now (no descriptor is left, the disk
    ///              fails) stays as it was read last, and is tried again at the next look.
    explicit hosts_file(std::string path);

    /// The addresses of a name (lower case, no final dot), or null. At most every check_every it
    /// looks whether the file has changed, and reads it if so. Valid until the next call.
    [[nodiscard]] const std::vector<asio::ip::address>* find(std::string_view name,
                                                             steady_time now);

private:
    struct stamp {
        std::int64_t seconds = 0, nanoseconds = 0, bytes = -1;
        std::uint64_t inode = 0;
        bool operator==(const stamp&) const = default;
    };
    [[nodiscard]] static stamp stamp_of(const struct ::stat& facts) noexcept;
    void look(steady_time now);
    void read();
    void have_none(int why) noexcept;

    std::string path_;
    host_table table_;
    stamp read_at_;
    steady_time look_again_{};
};

}  // namespace reprise::proxy::net
