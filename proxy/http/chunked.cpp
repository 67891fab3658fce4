// A chunk line is read as a line, once it is whole: in place when it came in one piece, otherwise
// from a small copy. That makes a grammar of lines instead of a machine of characters, and a
// message cut anywhere is read like one that is not.

#include "proxy/http/chunked.hpp"

#include "proxy/http/message_head.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

namespace reprise::proxy::http {

namespace {

constexpr std::size_t most_line_bytes = 256;  // CRLF included
constexpr std::size_t most_size_digits = 16;
// Extensions have no use on the open Internet; a body that is mostly extensions is an attack on
// whoever reads it (CVE-2023-39326 is one such).
constexpr std::uint64_t free_overhead = 16u << 10;

void skip_blanks(std::string_view& text) noexcept {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
        text.remove_prefix(1);
    }
}

bool take_token(std::string_view& text) noexcept {
    const auto end = text.find_first_of(" \t;=\"");
    const bool good = is_token(text.substr(0, end));
    text.remove_prefix(std::min(end, text.size()));
    return good;
}

bool take_quoted(std::string_view& text) noexcept {
    for (std::size_t i = 1; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        if (c == '"') {
            text.remove_prefix(i + 1);
            return true;
        }
        if (c == '\\' && ++i == text.size()) {
            break;
        }
        if ((static_cast<unsigned char>(text[i]) < 0x20 && text[i] != '\t') || text[i] == 0x7f) {
            break;
        }
    }
    return false;
}

// chunk-ext = *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )
bool is_extensions(std::string_view text) noexcept {
    while (!text.empty()) {
        skip_blanks(text);
        if (!text.starts_with(';')) {
            return false;
        }
        text.remove_prefix(1);
        skip_blanks(text);
        if (!take_token(text)) {
            return false;
        }
        auto value = text;
        skip_blanks(value);
        if (value.starts_with('=')) {
            value.remove_prefix(1);
            skip_blanks(value);
            if (!(value.starts_with('"') ? take_quoted(value) : take_token(value))) {
                return false;
            }
            text = value;
        }
    }
    return true;
}

}  // namespace

chunked_decoder::step chunked_decoder::fail(const char* why) noexcept {
    state_ = state::failed;
    why_ = why;
    return {.consumed = 0, .data = {}, .done = false, .error = why};
}

void chunked_decoder::reset() noexcept {
    state_ = state::size_line;
    left_ = passed_ = overhead_ = 0;
    line_.clear();
    line_begin_ = 0;
    trailers_.clear();
    why_ = nullptr;
}

// The size line without its CRLF: left_ is set.
const char* chunked_decoder::begin_chunk(std::string_view line) {
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), left_, 16);
    const auto digits = static_cast<std::size_t>(end - line.data());
    if (line.starts_with('-') || digits == 0) {
        return "a chunk size that is no hexadecimal number";
    }
    if (error != std::errc{} || digits > most_size_digits ||
        left_ > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) - passed_) {
        return "a chunk size that is too large";
    }
    line.remove_prefix(digits);
    if (!is_extensions(line)) {
        return "something other than an extension behind a chunk size";
    }
    overhead_ += line.size();
    if (overhead_ > free_overhead + passed_) {
        return "more chunk extensions than data";
    }
    passed_ += left_;
    return nullptr;
}

// Takes bytes of `in` up to and with the next LF. Lines that came whole are seen in place, through
// `line`; others are put together in line_, from line_begin_ on.
const char* chunked_decoder::take_line(std::string_view& in,
                                       std::string_view& line,
                                       std::size_t most) {
    const auto lf = in.find('\n');
    const auto piece = in.substr(0, lf == std::string_view::npos ? in.size() : lf + 1);
    const auto begun = line_.size() - line_begin_;
    line = {};
    if (begun + piece.size() > most) {
        return "a chunk line or trailer that is too long";
    }
    in.remove_prefix(piece.size());
    if (lf == std::string_view::npos) {
        line_ += piece;
        return nullptr;
    }
    line = piece;
    if (begun != 0) {
        line_ += piece;
        line = std::string_view{line_}.substr(line_begin_);
    }
    if (!line.ends_with("\r\n")) {
        return "a line of the chunked coding ends in LF without CR";
    }
    return nullptr;
}

const char* chunked_decoder::take_trailers(std::string_view& in) {
    while (!in.empty() && state_ == state::trailers) {
        std::string_view line;
        const auto room = limits_.trailer_bytes - std::min(limits_.trailer_bytes, line_begin_);
        const auto begun = line_.size() - line_begin_;
        if (const char* why = take_line(in, line, std::max<std::size_t>(room, 2))) {
            return why;
        }
        if (line.empty()) {
            break;
        }
        if (line == "\r\n") {
            line_.resize(line_begin_);
            if (const char* why = parse_field_lines(line_, trailers_, limits_.trailer_fields)) {
                return why;
            }
            std::erase_if(trailers_, [](const field& one) { return !may_be_trailer(one); });
            state_ = state::done;
            break;
        }
        if (begun == 0) {
            line_ += line;
        }
        line_begin_ = line_.size();
    }
    return nullptr;
}

chunked_decoder::step chunked_decoder::feed(std::string_view in) {
    const auto whole = in.size();
    step out;
    while (!in.empty() && state_ != state::done) {
        switch (state_) {
        case state::size_line: {
            std::string_view line;
            if (const char* why = take_line(in, line, most_line_bytes)) {
                return fail(why);
            }
            if (line.empty()) {
                break;
            }
            line.remove_suffix(2);
            if (const char* why = begin_chunk(line)) {
                return fail(why);
            }
            line_.clear();
            state_ = left_ == 0 ? state::trailers : state::data;
            break;
        }
        case state::data: {
            const auto size = std::min<std::uint64_t>(left_, in.size());
            out.data = in.substr(0, static_cast<std::size_t>(size));
            in.remove_prefix(out.data.size());
            left_ -= size;
            if (left_ == 0) {
                state_ = state::data_cr;
            }
            out.consumed = whole - in.size();
            return out;
        }
        case state::data_cr:
        case state::data_lf:
            if (in.front() != (state_ == state::data_cr ? '\r' : '\n')) {
                return fail("a chunk's data is not followed by CRLF");
            }
            in.remove_prefix(1);
            state_ = state_ == state::data_cr ? state::data_lf : state::size_line;
            break;
        case state::trailers:
            if (const char* why = take_trailers(in)) {
                return fail(why);
            }
            break;
        case state::failed: return fail(why_);
        case state::done: break;
        }
    }
    out.consumed = whole - in.size();
    out.done = state_ == state::done;
    return out;
}

bool may_be_trailer(const field& line) noexcept {
    switch (line.id) {
    // framing and routing
    case field_id::transfer_encoding:
    case field_id::content_length:
    case field_id::host:
    case field_id::trailer:
    case field_id::te:
    case field_id::connection:
    case field_id::keep_alive:
    case field_id::proxy_connection:
    case field_id::upgrade:
    case field_id::http2_settings:
    case field_id::via:
    case field_id::forwarded:
    case field_id::max_forwards:
    case field_id::location:
    // request modifiers
    case field_id::cache_control:
    case field_id::expect:
    case field_id::pragma:
    case field_id::range:
    case field_id::if_match:
    case field_id::if_none_match:
    case field_id::if_modified_since:
    case field_id::if_unmodified_since:
    case field_id::if_range:
    // authentication and state
    case field_id::authorization:
    case field_id::authentication_info:
    case field_id::www_authenticate:
    case field_id::proxy_authenticate:
    case field_id::proxy_authorization:
    case field_id::proxy_authentication_info:
    case field_id::cookie:
    case field_id::set_cookie:
    case field_id::set_cookie2:
    // response control data
    case field_id::age:
    case field_id::date:
    case field_id::expires:
    case field_id::retry_after:
    case field_id::vary:
    case field_id::warning: return false;
    default: break;
    }
    // How to read the content; digests of it are what trailers are for.
    const std::string_view content = "Content-";
    if (iequals(line.name.substr(0, content.size()), content)) {
        return is_content_digest(line);
    }
    // Cache directives for some caches alone (RFC 9213); Cache-Control's own number is above.
    const std::string_view targeted = "-Cache-Control";
    if (line.name.size() > targeted.size() &&
        iequals(line.name.substr(line.name.size() - targeted.size()), targeted)) {
        return false;
    }
    // What proxies, this one too, say of a message on its way.
    return !iequals(line.name, "Cache-Status") && !iequals(line.name, "Proxy-Status") &&
           !iequals(line.name.substr(0, 12), "X-Forwarded-");
}

chunk_header::chunk_header(std::uint64_t size) noexcept : begin_{text_.size()} {
    text_[--begin_] = '\n';
    text_[--begin_] = '\r';
    do {
        text_[--begin_] = "0123456789abcdef"[size & 0xf];
        size >>= 4;
    } while (size != 0);
}

void append_chunk_header(std::string& out, std::uint64_t size) {
    out += chunk_header{size}.view();
}

void append_last_chunk(std::string& out, field_list trailers) {
    out += "0\r\n";
    for (const auto& line : trailers) {
        append_field_line(out, line.name, line.value);
    }
    out += "\r\n";
}

}  // namespace reprise::proxy::http
