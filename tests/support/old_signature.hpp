#pragma once
// A request for a digest as nodes signed it before RFC 9421, in a field of our own that the proxy still takes
// (proxy/peer/signature.hpp) and can no longer make.

#include <cstdint>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string>
#include <string_view>

namespace reprise::tests {

struct old_request {
    std::string method = "GET", target, host;
    std::string to;         ///< the receiver's end of the connection
    std::int64_t time = 0;  ///< in seconds since 1970
    std::string nonce{"00000000000000000000000000000000"};
};

[[nodiscard]] inline std::string old_hmac(std::string_view key, std::string_view text) {
    std::string code(32, '\0');
    HMAC(EVP_sha256(),
         key.data(),
         static_cast<int>(key.size()),
         reinterpret_cast<const unsigned char*>(text.data()),
         text.size(),
         reinterpret_cast<unsigned char*>(code.data()),
         nullptr);
    return code;
}

/// The field's line. `secret` is the content of the fleet's file.
[[nodiscard]] inline std::string old_signature_line(const old_request& of,
                                                    std::string_view secret) {
    // HKDF's two steps (RFC 5869), of one block.
    std::string label{"reprise request signature, version 1"};
    const auto key = old_hmac(old_hmac(std::string(32, '\0'), secret), label += '\1');
    const auto time = std::to_string(of.time);
    std::string code;
    for (const unsigned char byte :
         old_hmac(key,
                  "reprise request, version 2\n" + of.method + "\n" + of.target + "\n" + of.host +
                      "\n" + time + "\n" + of.nonce + "\n" + of.to)) {
        constexpr std::string_view digits = "0123456789abcdef";
        code += digits[byte >> 4];
        code += digits[byte & 15];
    }
    return "Reprise-Signature: v=2;t=" + time + ";n=" + of.nonce + ";d=" + of.to + ";s=" + code +
           "\r\n";
}

}  // namespace reprise::tests
