#pragma once
// One HTTP/1.x message as only one reader can read it: for each byte sequence the one meaning that
// RFC 9112 leaves, or "refused" where two recipients might differ. It shares no code with the
// program, decides by whole buffers and knows no streaming: what it says is what a proxy may pass
// on, and nothing else.
//
// Tolerated of strangers, since all who accept it read the same: empty lines before a request,
// white space around a value, chunk extensions, leading zeros, trailers, equal Content-Length
// values in a response (RFC 9110 8.6). A canonical message has none of these: so does the program
// write.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::framing {

struct field {
    std::string name, value;
    bool operator==(const field&) const = default;
};

struct message {
    std::string method, target;  ///< of a request
    unsigned status = 0;         ///< of a response
    unsigned minor = 1;
    std::vector<field> fields, trailers;
    std::string body;
    bool until_close = false;
    std::size_t bytes = 0;  ///< of the input that it took

    /// The values of a field, in order.
    [[nodiscard]] std::vector<std::string> all(std::string_view name) const;
    [[nodiscard]] std::string get(std::string_view name) const;
    /// Whether a list field has this member.
    [[nodiscard]] bool has_token(std::string_view name, std::string_view token) const;
};

enum class reading { whole, incomplete, refused };

struct result {
    reading what = reading::incomplete;
    message read;
    std::string why{};  ///< of refused
};

enum class manner { strangers, canonical };

[[nodiscard]] result read_request(std::string_view bytes, manner how);
/// `method`: of the request it answers. `ended`: nothing follows `bytes`, and the end was clean.
[[nodiscard]] result read_response(std::string_view bytes,
                                   std::string_view method,
                                   bool ended,
                                   manner how);

[[nodiscard]] bool same_text(std::string_view a, std::string_view b);

}  // namespace reprise::framing
