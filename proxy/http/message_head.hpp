#pragma once
// The start line and field lines of one message, as views into the buffer it was read to.
//
// One scanner of our own reads the grammar of RFC 9112 in one pass, strictly: what two recipients
// could read in two ways is refused, not repaired (README.md says why it is not Beast's parser).
// It knows syntax only; what the fields mean for the body is framing.hpp's.

#include "proxy/base/failure.hpp"
#include "proxy/http/fields.hpp"

#include <boost/beast/http/verb.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::http {

/// A request's head. All views point into the bytes given to parse_request_head.
/// Meant to be used again for the next request: `fields` keeps its capacity, so that after the
/// first few requests of a connection nothing is allocated.
struct request_head {
    boost::beast::http::verb method = boost::beast::http::verb::unknown;
    std::string_view method_text{};  ///< a token, case kept; also set for methods Beast knows
    std::string_view target{};       ///< as sent: not empty, no control character, space or DEL
    unsigned version = 11;           ///< 10 or 11; a higher minor version of 1 is taken as 1.1
    std::vector<field> fields{};     ///< in wire order
    std::size_t bytes = 0;           ///< of the whole head, empty lines before and after included
};

/// A response's head, in the same way.
struct response_head {
    unsigned version = 11;      ///< 10 or 11, as above
    unsigned status = 0;        ///< 100 to 999
    std::string_view reason{};  ///< may be empty
    std::vector<field> fields{};
    std::size_t bytes = 0;
};

enum class head_state { need_more, done, bad };

struct head_limits {
    std::size_t bytes = 64u << 10;
    unsigned fields = 200;           ///< field lines
    std::size_t target = 16u << 10;  ///< bytes; requests only
};

struct head_result {
    head_state state = head_state::need_more;
    failure_code code = failure_code::bad_request;  ///< when bad
    const char* why = "";                           ///< when bad: what was seen; static text
    std::size_t resume = 0;                         ///< when need_more: give this to the next call
};

/// Reads a request's head from the front of `bytes`.
///
/// `done`       `out` is whole; out.bytes of `bytes` belong to the head.
/// `need_more`  call again with the same bytes and more behind them, and with `resume`; `out` is
///              unspecified. Reported early as `bad` are a bad start line and a line without CR.
/// `bad`        bad_request, unsupported_version, url_too_long, head_too_large or too_many_fields:
///              answer it and close the connection, for where the next message begins is unknown.
///
/// Refused are bare LF, bare CR, NUL and other control characters, obs-fold, white space in front
/// of the first field line or of a colon, field lines without a name, HTTP/0.9. Up to four empty
/// lines before a request are skipped (RFC 9112 2.2).
/// Total: every input gives one of the three. Time is linear in what was not seen before, however
/// the bytes are split.
[[nodiscard]] head_result parse_request_head(std::string_view bytes,
                                             request_head& out,
                                             const head_limits& limits,
                                             std::size_t resume = 0);

/// Which of the methods that a proxy acts upon, and does not only pass on, its method is but for its case:
/// GET, HEAD, OPTIONS, TRACE, CONNECT or PURGE. Unknown: none of them, or it is written as it should be.
/// Methods have a case (RFC 9110 9.1), so it is another one; but some next hops take it for that one.
[[nodiscard]] boost::beast::http::verb method_in_other_case(const request_head& head) noexcept;

/// parse_request_head for a response; `code` is bad_response or response_head_too_large. A 1xx that frames a
/// body is refused too: it has none, and not everybody looks for the final response behind it.
[[nodiscard]] head_result parse_response_head(std::string_view bytes,
                                              response_head& out,
                                              const head_limits& limits,
                                              std::size_t resume = 0);

/// Reads whole field lines, each ended by CRLF, up to the end of `bytes` and without the empty line
/// (a trailer section's, a stored head's); appends to `out`, at most `most` lines in all.
/// Null when all is well, otherwise what is wrong.
[[nodiscard]] const char* parse_field_lines(std::string_view bytes,
                                            std::vector<field>& out,
                                            unsigned most);

/// "name: value" and CRLF.
void append_field_line(std::string& out, std::string_view name, std::string_view value);

/// True when `text` is a token (RFC 9110 5.6.2): not empty, tchar only.
[[nodiscard]] bool is_token(std::string_view text) noexcept;

}  // namespace reprise::proxy::http
