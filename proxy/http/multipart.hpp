#pragma once
// multipart/byteranges (RFC 9110 14.6, 15.3.7.2): several parts of a stored whole in one reply.
// The bytes between the parts are formatted once, in one text; the parts themselves are views of
// the stored body, which the caller sends in between. So a reply of sixteen parts is one gathered
// write, and its length is known before a byte of it goes out.

#include "proxy/http/fields.hpp"
#include "proxy/http/range.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace reprise::proxy::http {

/// The framing of one multipart/byteranges body.
///
/// The body is, for each part i in turn, head(i) and the stored bytes of parts()[i]; then tail().
/// Memory    one text of about 130 bytes per part, most_ranges of them at most.
class multipart_ranges {
public:
    /// `boundary` must not occur in the stored body. Nobody looks: let it be 16 random bytes in
    /// hexadecimal, of a source that whoever made the object cannot foretell.
    /// `content_type` is the stored Content-Type, repeated in each part (14.6); empty: none.
    /// @pre 2 <= parts.size() <= most_ranges; each lies within `length`
    /// @pre boundary is a token of at most 70 characters (RFC 2046 5.1.1)
    multipart_ranges(std::span<const byte_range> parts,
                     std::uint64_t length,
                     std::string_view content_type,
                     std::string_view boundary);

    [[nodiscard]] std::span<const byte_range> parts() const noexcept {
        return {parts_.data(), count_};
    }
    /// The delimiter, field lines and empty line in front of part i. Views live as long as this
    /// does, and stay where they are when it does.
    [[nodiscard]] std::string_view head(std::size_t i) const noexcept;
    [[nodiscard]] std::string_view tail() const noexcept;
    [[nodiscard]] std::string_view boundary() const noexcept;
    /// Bytes of the whole body: every head, every part, the tail.
    [[nodiscard]] std::uint64_t content_length() const noexcept { return content_length_; }

private:
    std::array<byte_range, most_ranges> parts_{};
    std::array<std::size_t, most_ranges + 1> ends_{};  ///< of each head, and of the tail, in text_
    std::size_t count_;
    std::uint64_t content_length_ = 0;
    std::string text_;
};

/// The lines that a multipart 206 states for itself, each ended by CR LF: Content-Type with the
/// boundary, and Content-Length. No Content-Range: 15.3.7.2 forbids it here.
void append_multipart_lines(std::string& head, const multipart_ranges& body);

/// The stored line belongs in the head of a multipart 206: all but Content-Type, Content-Length and
/// Content-Range, which say there what they say of the multipart text.
[[nodiscard]] bool belongs_in_multipart(const field& stored) noexcept;

}  // namespace reprise::proxy::http
