#pragma once
// What a fleet shares: one file of random bytes, and the keys made of it.
//
// The file's content goes through HKDF-SHA256 (RFC 5869) under a label for each use: one key hashes
// the URLs of digests (key_hash.hpp: XXH3, which is no PRF and may leak), one signs requests, and one
// checks the field that signed them before (signature.hpp). So whatever is learnt of the first tells
// nothing of the others, and none tells the file. A line end at the file's end does not count,
// whatever wrote it.
//
// Without a file there is a hash key all the same, one that everybody knows: digests then are
// protected by nothing but being served to listed addresses alone, and whoever reads one can test
// URLs against it and choose URLs that collide in it.
//
// Nothing here has a printed form, and no error tells any of the content.

#include "filter/key_hash.hpp"
#include "filter/seed_id.hpp"

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace reprise::proxy::peer {

enum class secret_errc {
    unreadable = 1,  ///< no such file, no permission, no regular file
    too_short,       ///< fewer than least_secret bytes
    too_long,        ///< more than most_secret bytes: not a file of keys
};
[[nodiscard]] const boost::system::error_category& secret_category() noexcept;
[[nodiscard]] boost::system::error_code make_error_code(secret_errc code) noexcept;

inline constexpr std::size_t least_secret = 32;
inline constexpr std::size_t most_secret = 4096;

/// Threads   immutable: any number.
class fleet_secret {
public:
    /// @returns too_short or too_long. @throws std::bad_alloc when libcrypto is out of memory
    [[nodiscard]] static boost::system::result<fleet_secret> from_content(std::string_view content);
    /// The key that everybody knows, for nodes without a file: has_file() is false, nothing is
    /// signed.
    [[nodiscard]] static fleet_secret none();

    fleet_secret(const fleet_secret&) = default;
    fleet_secret& operator=(const fleet_secret&) = default;
    ~fleet_secret();  ///< overwrites the signing keys

    [[nodiscard]] bool has_file() const noexcept { return has_file_; }
    /// What digests' URLs are hashed under.
    [[nodiscard]] const filter::hash_secret& hashing() const noexcept { return hashing_; }
    /// The public name of that, which digests carry.
    [[nodiscard]] const filter::seed_id& id() const noexcept { return id_; }
    /// What RFC 9421's signatures are made with. @pre has_file()
    [[nodiscard]] std::span<const std::byte, 32> message_signing() const noexcept {
        return message_signing_;
    }
    /// What Reprise-Signature is checked with. @pre has_file()
    [[nodiscard]] std::span<const std::byte, 32> old_signing() const noexcept {
        return old_signing_;
    }

private:
    fleet_secret(std::span<const std::byte> content, bool has_file);

    filter::hash_secret hashing_;
    filter::seed_id id_{};
    std::array<std::byte, 32> message_signing_{}, old_signing_{};
    bool has_file_ = false;
};

/// Reads digest.secret_file. Blocks for the disk: at start and on a reload.
[[nodiscard]] boost::system::result<fleet_secret> load_secret(const std::string& path);

/// HKDF-SHA256, extract and expand (RFC 5869 2). @pre out.size() <= 255 * 32
/// @throws std::bad_alloc
void hkdf_sha256(std::span<const std::byte> secret,
                 std::span<const std::byte> salt,
                 std::span<const std::byte> info,
                 std::span<std::byte> out);

/// HMAC-SHA256 (RFC 2104). @throws std::bad_alloc
[[nodiscard]] std::array<std::byte, 32> hmac_sha256(std::span<const std::byte> key,
                                                    std::span<const std::byte> text);

/// What a digest knows a URL by: 64 bits of its hash under the fleet's secret.
///
/// A digest's owner must be able to take a key out of its filter when the object leaves, which may
/// be a record on disk whose URL is not in memory: so it remembers a name for each key, and 8 bytes
/// are half of a whole hash. What filters are asked for is the hash of the name (key_of), so that a
/// digest is what DIGEST_FORMAT.md says, of texts of 8 bytes. Two URLs of n share a name with
/// chance n^2 / 2^65.
using url_name = std::uint64_t;

/// The low word of hash_of(url, hashing). `url` is the primary key's text. A store that keys by the
/// fleet's secret has it already: key_hash::low.
[[nodiscard]] url_name name_of(std::string_view url, const fleet_secret& secret) noexcept;

/// The name's own hash: what goes into filters and digests.
[[nodiscard]] filter::key_hash key_of(url_name name, const fleet_secret& secret) noexcept;

}  // namespace reprise::proxy::peer

template <>
struct boost::system::is_error_code_enum<reprise::proxy::peer::secret_errc> : std::true_type {};
