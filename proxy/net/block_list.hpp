#pragma once
// Hosts that nobody is to reach through this proxy: what access.block_lists say.
//
// A line is a domain, or has the form of a hosts file: an address, whatever it is, and behind it one
// name or more. Either kind of name means that host and all hosts below it, as ".example.org" of
// Squid's dstdomain does; a leading "*." or "." may be written, and says the same. An address that
// stands alone means itself, in whatever spelling it is asked for. "#" begins a comment. The lines by which such lists name the machine itself (127.0.0.1 localhost, 0.0.0.0
// 0.0.0.0, ::1 ip6-loopback) name nobody else, and are passed over.
//
// A name is kept as 64 bits: SipHash-2-4 under a key that this process has drawn at random (login.hpp).
// Hashes that are only fast would do for names that come by accident, but lists are others' work, and
// whoever writes one and knows the function could choose a name that takes another with it. With
// n names kept, another one is taken for one of them with a probability of n / 2^64: 3 in 10^13 at
// 5,000,000 names, for each of its parents that is looked for.

#include "config/options.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::net {

/// A host in the one form in which it is compared: a name in lower case without its last dot, or an
/// address's 16 bytes behind a zero.
class host_key {
public:
    static constexpr std::size_t most =
        253;  ///< bytes of a name (RFC 1035 2.3.4, without its root)
    /// @param host  as a URL names it: any case, perhaps a last dot, IPv6 perhaps in brackets
    /// None: it is longer than a name can be, or empty. O(host), no allocation for names.
    [[nodiscard]] static std::optional<host_key> of(std::string_view host);

    [[nodiscard]] std::string_view bytes() const noexcept { return {bytes_.data(), size_}; }
    [[nodiscard]] bool is_address() const noexcept { return bytes_[0] == '\0'; }

private:
    host_key() = default;
    std::array<char, most> bytes_{};
    std::uint8_t size_ = 0;
};

/// Reads one line, without its end. What it names is put in the place of what was in `names`: nothing,
/// for a line that is empty or passed over.
/// Gives what is wrong with it and would be right; empty: nothing. Total; O(line).
[[nodiscard]] std::string read_block_line(std::string_view line, std::vector<host_key>& names);

/// Most of a line, and of all lists together.
inline constexpr std::size_t most_block_line = 4096;
inline constexpr std::size_t most_blocked = 5'000'000;
inline constexpr std::uint64_t most_block_bytes = std::uint64_t{512} << 20;
/// Most mistakes that one reading tells.
inline constexpr std::size_t most_block_mistakes = 20;

/// Memory    8.25 bytes a name at most, 41 MB for 5,000,000; up to 100 MB while that is made.
/// Threads   any number: it is immutable.
class block_list {
public:
    struct reading;
    /// Null, and no mistakes, where no list is named. Blocks on files: 2.5 s of a processor for 5,000,000 lines.
    [[nodiscard]] static reading read(const config::access_options& access);

    /// From names one after another; each may come more than once.
    class maker;

    /// Whether `host`, as a URL names it, or a domain above it is listed; an address, in any form that it
    /// may stand for (forms_of). One hash for each of its parents that has as many labels as some listed
    /// name; no allocation but a thread's first.
    [[nodiscard]] bool holds(std::string_view host) const;
    [[nodiscard]] std::size_t size() const noexcept { return hashes_.size(); }
    /// What the table takes.
    [[nodiscard]] std::size_t bytes() const noexcept {
        return hashes_.capacity() * sizeof hashes_[0] + begins_.capacity() * sizeof begins_[0];
    }

private:
    block_list() = default;
    [[nodiscard]] bool has(std::string_view bytes) const;
    [[nodiscard]] bool has_address(std::string_view key) const;

    // Sorted, and where in it the hashes with the same leading bits begin: some 16 to 32 of them, so
    // that a look-up costs one line of memory to find them and a few within.
    std::vector<std::uint64_t> hashes_;
    std::vector<std::uint32_t> begins_;
    unsigned shift_ = 63;
    std::uint64_t labels_ = 0;  // bit k: a name of k labels is listed; the last one: or of more
    bool addresses_ = false;
};
using block_list_ptr = std::shared_ptr<const block_list>;

class block_list::maker {
public:
    /// False: there are as many as there may be, or OpenSSL makes no hash.
    [[nodiscard]] bool add(const host_key& name);
    [[nodiscard]] block_list_ptr make() &&;

private:
    block_list made_;
};

struct block_list::reading {
    block_list_ptr list{};
    std::vector<std::string> mistakes{};  ///< each with its setting, file and line
};

}  // namespace reprise::proxy::net
