#pragma once
// The certificate authority (CA) that signs for hosts whose tunnels are opened: read from its files, and
// judged before it signs anything. What clients would refuse later, or what would make of its key
// a key to every site, is found here, all of it at once.

#include "config/options.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/net/pem_file.hpp"

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct evp_md_st;

namespace reprise::proxy::net {

/// Immutable; any thread. The key leaves this by a signature alone.
class leaf_authority {
public:
    struct reading;
    /// Reads intercept.ca_certificate (the CA's certificate, and behind it those above it) and
    /// intercept.ca_key, and finds whatever is wrong with them for intercept.hosts:
    ///  - a file cannot be read, or holds no certificate or key;
    ///  - others than its owner may read the key; it is another certificate's; it is weak;
    ///  - the CA's certificate is none of a CA (basicConstraints, keyUsage, extendedKeyUsage);
    ///  - one of the chain is not valid now, or not issued by the one behind it;
    ///  - name constraints leave a listed host out, or there are none that bind it to some names.
    ///    Those of a self-signed certificate don't count: RFC 5280 6.1 asks nobody to hold a trust
    ///    anchor to them, and Java doesn't;
    ///  - a certificate that it signs now for the first of the hosts does not verify under the last of
    ///    the chain, as a client would verify it. Asked where all of the above is well.
    /// Waits for the file system. Each mistake is a sentence that begins with its setting and
    /// names the file; none has a byte of what a file holds.
    /// @throws std::bad_alloc
    [[nodiscard]] static reading read(const config::intercept_options& wanted, wall_time now);

    [[nodiscard]] x509_st* certificate() const noexcept { return chain_.front().get(); }
    [[nodiscard]] evp_pkey_st* key() const noexcept { return key_.get(); }
    /// What is sent behind a certificate that it signed: its own and those above, but for what is
    /// self-signed, which clients have or don't believe.
    [[nodiscard]] std::span<const certificate_ptr> sent() const noexcept {
        return std::span{chain_}.first(sent_);
    }
    /// The end of its validity, or of the first above it to end.
    [[nodiscard]] wall_time until() const noexcept { return until_; }
    /// The same as whole days from now, for operators: 0 on the last, negative behind it.
    [[nodiscard]] std::chrono::days left(wall_time now) const noexcept {
        return std::chrono::floor<std::chrono::days>(until_ - now);
    }

    /// With less than this left there is a warning.
    static constexpr std::chrono::days warn_before{30};

private:
    leaf_authority() = default;
    std::vector<certificate_ptr> chain_;
    std::size_t sent_ = 0;
    private_key_ptr key_;
    wall_time until_{};
};
using leaf_authority_ptr = std::shared_ptr<const leaf_authority>;

/// What a certificate signed by `key` is hashed with; null: the signature has a hash of its own.
[[nodiscard]] const evp_md_st* signature_digest(const evp_pkey_st* key) noexcept;

struct leaf_authority::reading {
    leaf_authority_ptr authority{};       ///< null when there are mistakes
    std::vector<std::string> mistakes{};  ///< what keeps it from being used
    std::vector<std::string> warnings{};  ///< what an operator should know
};

}  // namespace reprise::proxy::net
