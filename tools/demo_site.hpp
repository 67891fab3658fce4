#pragma once
// What the demonstration's origin answers: a few pages of its own, or a folder's files, with what a
// cache needs to show itself (a lifetime, an ETag, Last-Modified, conditions, ranges). No socket
// here: demo_origin.cpp carries the answers out.

#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/message.hpp>

#include <cstdint>
#include <ctime>
#include <fstream>
#include <string>

namespace reprise::tools {

namespace http = boost::beast::http;

using request = http::request<http::buffer_body>;

struct site_options {
    std::string root;         ///< folder to serve; empty: the pages
    unsigned max_age = 3600;  ///< lifetime of what may be stored, in seconds
};

/// An answer's head, and what its body is made of: a text, made-up bytes, or a run of a file's.
struct answer {
    http::status status = http::status::ok;
    std::string fields;  ///< each line ended by CRLF; without framing and Date
    std::string text;
    std::uint64_t made_up = 0;  ///< bytes of filling
    std::ifstream file;
    std::uint64_t from_file = 0;  ///< bytes of `file`, from where it stands
    [[nodiscard]] std::uint64_t length() const { return text.size() + made_up + from_file; }
};

/// IMF-fixdate (RFC 9110 5.6.7).
[[nodiscard]] std::string http_date(std::time_t when);

/// A text that no cache keeps.
[[nodiscard]] answer plain(http::status status, std::string text);

/// The answer to a GET or HEAD; the body of a HEAD's is to be left away.
[[nodiscard]] answer answer_to(const request& asked, const site_options& site);

}  // namespace reprise::tools
