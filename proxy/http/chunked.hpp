#pragma once
// The chunked coding, both ways (RFC 9112 7.1).
//
// The decoder gives out data as views and forgets everything else: extensions are checked and
// dropped, sizes are re-emitted in one canonical form, so that no odd chunk line ever reaches the
// next hop. Its memory is one chunk line, at most, and the trailer section, within limits.

#include "proxy/http/fields.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::http {

struct chunked_limits {
    std::size_t trailer_bytes = 64u << 10;
    unsigned trailer_fields = 200;
};

/// Decodes one chunked body, in pieces of any size.
/// Refused: anything but CRLF as a line's end, more than 16 digits or 2^63-1 bytes of chunk size,
/// white space around the size, a chunk line above 256 bytes, extensions against the grammar or
/// out of proportion to the data (more than 16 KiB above it), bad or too large trailers.
class chunked_decoder {
public:
    /// What one call came to. While neither done nor error, the caller goes on with what is behind
    /// `consumed`, and with more bytes when nothing is left.
    struct step {
        std::size_t consumed = 0;     ///< bytes of `in` that belong to the body's coding
        std::string_view data;        ///< a piece of the body, in `in`; may be empty
        bool done = false;            ///< the last byte of the coding was consumed
        const char* error = nullptr;  ///< static text; final
    };

    explicit chunked_decoder(const chunked_limits& limits = {}) : limits_{limits} {}

    /// Consumes at least one byte of a non-empty `in`, unless the body is done or in error. At most
    /// one piece of data per call, as long as `in` allows. Allocates for trailers only.
    [[nodiscard]] step feed(std::string_view in);

    /// Once done: the trailer section's lines that may be forwarded. Views into the decoder, valid
    /// until reset or destruction; the decoder must not be moved meanwhile.
    [[nodiscard]] field_list trailers() const noexcept { return trailers_; }

    /// Ready for the next body; memory is kept.
    void reset() noexcept;

private:
    enum class state : std::uint8_t { size_line, data, data_cr, data_lf, trailers, done, failed };

    const char* take_line(std::string_view& in, std::string_view& line, std::size_t most);
    const char* begin_chunk(std::string_view line);
    const char* take_trailers(std::string_view& in);
    step fail(const char* why) noexcept;

    chunked_limits limits_;
    state state_ = state::size_line;
    std::uint64_t left_ = 0;      ///< of the chunk's data
    std::uint64_t passed_ = 0;    ///< data of the whole body
    std::uint64_t overhead_ = 0;  ///< extension bytes of the whole body
    std::string line_;            ///< the unfinished size line, or the trailer section
    std::size_t line_begin_ = 0;  ///< in the trailer section: where its last line begins
    std::vector<field> trailers_;
    const char* why_ = nullptr;
};

/// False for what a trailer must not say (RFC 9110 6.5.1): framing, routing, authentication,
/// request modifiers, response control data, and how to read the content; also hop-by-hop fields.
[[nodiscard]] bool may_be_trailer(const field& line) noexcept;

/// "1a2b\r\n" without allocation. Data and a CRLF follow it.
class chunk_header {
public:
    /// @pre size > 0: a chunk of 0 bytes ends the body
    explicit chunk_header(std::uint64_t size) noexcept;
    [[nodiscard]] std::string_view view() const noexcept {
        return {text_.data() + begin_, text_.size() - begin_};
    }

private:
    std::array<char, 18> text_{};
    std::size_t begin_;
};
void append_chunk_header(std::string& out, std::uint64_t size);

/// The last chunk, the trailers and the empty line.
void append_last_chunk(std::string& out, field_list trailers = {});

}  // namespace reprise::proxy::http
