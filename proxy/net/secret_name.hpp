#pragma once
// What somebody is called in a table that all share: a hash under a secret of the process. Whoever may choose a name (a client's
// host, an origin's) can't choose one that falls together with another's, and so be taken for it.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace reprise::proxy::net {

/// 64 bits that are as good as drawn at random for each pair of parts. Of no use beyond the process.
class secret_name {
public:
    /// Nobody's.
    secret_name() = default;
    /// Where one part ends counts: ("ab", "c") is another than ("a", "bc").
    /// Threads  any.
    /// Cost     three hashes of XXH3.
    /// @throws std::runtime_error: there are no random bytes. In the process's first name alone.
    secret_name(std::string_view first, std::string_view second);

    /// Makes the process's first name, for those who may not throw later. @throws as a name
    static void draw_secret() { static_cast<void>(secret_name{{}, {}}); }

    /// Each bit as good as another.
    [[nodiscard]] std::uint64_t bits() const noexcept { return bits_; }
    auto operator<=>(const secret_name&) const = default;

private:
    std::uint64_t bits_ = 0;
};

}  // namespace reprise::proxy::net

template <>
struct std::hash<reprise::proxy::net::secret_name> {
    std::size_t operator()(reprise::proxy::net::secret_name name) const noexcept {
        return name.bits();
    }
};
