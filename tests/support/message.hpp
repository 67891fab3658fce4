#pragma once
// HTTP messages as the tests' own client and origin read them.
// Written apart from the proxy's parsers on purpose, so that the two cannot be wrong together; and
// strict where a proxy must be canonical: a chunk line with an extension is reported, not skipped.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::tests {

struct field_line {
    std::string name, value;
};

/// Field lines in wire order; names are compared without case.
class field_lines {
public:
    std::vector<field_line> lines;

    [[nodiscard]] bool has(std::string_view name) const;
    [[nodiscard]] std::size_t count(std::string_view name) const;
    /// The first line's value, "" without one.
    [[nodiscard]] std::string get(std::string_view name) const;
    /// All lines' values, joined with ", ".
    [[nodiscard]] std::string all(std::string_view name) const;
};

/// A head as it came: start line and fields.
struct message_head {
    std::string raw;  ///< with its final empty line
    std::string start_line;
    field_lines fields;
};

/// Takes a whole head from the front of `buffer`; none while its empty line has not come.
[[nodiscard]] std::optional<message_head> take_head(std::string& buffer);

/// Field lines from CRLF-separated text.
[[nodiscard]] field_lines parse_fields(std::string_view text);

enum class framing { none, length, chunked, until_close };

/// Takes one message's body from a buffer that grows.
class body_reader {
public:
    body_reader() = default;
    explicit body_reader(framing how, std::uint64_t length = 0);

    /// Moves what belongs to the body from `buffer` to `body`; what follows it stays.
    void feed(std::string& buffer, std::string& body);
    /// The connection was closed in order.
    void end_of_stream();

    [[nodiscard]] bool is_complete() const { return state_ == state::done; }
    /// What is wrong with the framing; empty while nothing is.
    [[nodiscard]] const std::string& error() const { return error_; }
    [[nodiscard]] framing how() const { return how_; }
    [[nodiscard]] const field_lines& trailers() const { return trailers_; }
    /// Every chunk line so far was hexadecimal digits and nothing else.
    [[nodiscard]] bool chunk_lines_are_canonical() const { return canonical_; }

private:
    enum class state { data, chunk_line, chunk_data, chunk_end, trailers, done };
    bool step(std::string& buffer, std::string& body, std::size_t& used);

    framing how_ = framing::none;
    state state_ = state::done;
    std::uint64_t left_ = 0;
    field_lines trailers_;
    std::string error_;
    bool canonical_ = true;
};

/// How a request's body is framed.
[[nodiscard]] body_reader body_of_request(const field_lines& fields);
/// How the body of a response to `method` is framed (RFC 9112 6.3).
[[nodiscard]] body_reader body_of_response(std::string_view method,
                                           int status,
                                           const field_lines& fields);

/// `bytes` as one chunk; empty gives the last chunk with its empty trailer section.
[[nodiscard]] std::string chunk(std::string_view bytes);

[[nodiscard]] std::string lower(std::string_view text);

/// `text`, all of which is one decimal number.
[[nodiscard]] std::optional<std::uint64_t> number_in(std::string_view text) noexcept;

/// A run of a body.
struct byte_span {
    std::uint64_t first = 0, count = 0;
};
/// "bytes=5-9", "bytes=5-" or "bytes=-5" of so many bytes. None: not one range, or one with no byte
/// of these.
[[nodiscard]] std::optional<byte_span> span_of(std::string_view range, std::uint64_t size);
/// "Content-Range: bytes 5-9/100\r\n".
[[nodiscard]] std::string content_range(const byte_span& part, std::uint64_t size);
/// "bytes 5-9/100" of so many bytes. None: of another size, or no span at all.
[[nodiscard]] std::optional<byte_span> content_span(std::string_view range, std::uint64_t size);

/// A body whose every byte tells its place, so that a piece lost, doubled or from another body
/// shows. Equal for equal `seed`.
[[nodiscard]] std::string patterned(std::size_t size, std::uint64_t seed = 0);

}  // namespace reprise::tests
