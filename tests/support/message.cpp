#include "tests/support/message.hpp"

#include <algorithm>
#include <charconv>

namespace reprise::tests {

namespace {

bool same_name(std::string_view a, std::string_view b) {
    return lower(a) == lower(b);
}

std::string_view trim(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
        text.remove_prefix(1);
    }
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) {
        text.remove_suffix(1);
    }
    return text;
}

bool last_coding_is_chunked(const field_lines& fields) {
    const auto codings = lower(fields.all("Transfer-Encoding"));
    const std::string_view chunked = "chunked";
    return codings.size() >= chunked.size() &&
           codings.compare(codings.size() - chunked.size(), chunked.size(), chunked) == 0;
}

std::uint64_t content_length(const field_lines& fields) {
    std::uint64_t length = 0;
    const auto text = fields.get("Content-Length");
    std::from_chars(text.data(), text.data() + text.size(), length);
    return length;
}

}  // namespace

std::string lower(std::string_view text) {
    std::string out{text};
    std::transform(out.begin(), out.end(), out.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return out;
}

std::optional<std::uint64_t> number_in(std::string_view text) noexcept {
    std::uint64_t out = 0;
    const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), out);
    return bad == std::errc{} && end == text.data() + text.size() ? std::optional{out}
                                                                  : std::nullopt;
}

std::optional<byte_span> span_of(std::string_view range, std::uint64_t size) {
    constexpr std::string_view unit = "bytes=";
    const auto dash = range.find('-');
    if (!range.starts_with(unit) || dash == std::string_view::npos ||
        range.find(',') != std::string_view::npos) {
        return std::nullopt;
    }
    const auto first = number_in(range.substr(unit.size(), dash - unit.size()));
    const auto last = number_in(range.substr(dash + 1));
    if (!first) {
        const auto count = std::min(last.value_or(0), size);
        return count == 0 ? std::nullopt : std::optional{byte_span{size - count, count}};
    }
    if (*first >= size) {
        return std::nullopt;
    }
    const auto end = std::min(last.value_or(size - 1), size - 1);
    return end < *first ? std::nullopt : std::optional{byte_span{*first, end - *first + 1}};
}

std::string content_range(const byte_span& part, std::uint64_t size) {
    return "Content-Range: bytes " + std::to_string(part.first) + "-" +
           std::to_string(part.first + part.count - 1) + "/" + std::to_string(size) + "\r\n";
}

std::optional<byte_span> content_span(std::string_view range, std::uint64_t size) {
    constexpr std::string_view unit = "bytes ";
    const auto slash = range.find('/');
    if (!range.starts_with(unit) || slash == std::string_view::npos ||
        number_in(range.substr(slash + 1)) != size) {
        return std::nullopt;
    }
    return span_of("bytes=" + std::string{range.substr(unit.size(), slash - unit.size())}, size);
}

bool field_lines::has(std::string_view name) const {
    return count(name) != 0;
}

std::size_t field_lines::count(std::string_view name) const {
    return static_cast<std::size_t>(std::count_if(
        lines.begin(), lines.end(), [&](const auto& line) { return same_name(line.name, name); }));
}

std::string field_lines::get(std::string_view name) const {
    for (const auto& line : lines) {
        if (same_name(line.name, name)) {
            return line.value;
        }
    }
    return {};
}

std::string field_lines::all(std::string_view name) const {
    std::string out;
    for (const auto& line : lines) {
        if (same_name(line.name, name)) {
            out += (out.empty() ? "" : ", ") + line.value;
        }
    }
    return out;
}

field_lines parse_fields(std::string_view text) {
    field_lines out;
    while (!text.empty()) {
        const auto end = std::min(text.find("\r\n"), text.size());
        const auto line = text.substr(0, end);
        text.remove_prefix(std::min(end + 2, text.size()));
        if (line.empty()) {
            continue;
        }
        const auto colon = std::min(line.find(':'), line.size());
        out.lines.push_back({std::string{line.substr(0, colon)},
                             std::string{trim(line.substr(std::min(colon + 1, line.size())))}});
    }
    return out;
}

std::optional<message_head> take_head(std::string& buffer) {
    const auto end = buffer.find("\r\n\r\n");
    if (end == std::string::npos) {
        return std::nullopt;
    }
    message_head out;
    out.raw = buffer.substr(0, end + 4);
    buffer.erase(0, end + 4);
    const auto line_end = out.raw.find("\r\n");
    out.start_line = out.raw.substr(0, line_end);
    out.fields = parse_fields(std::string_view{out.raw}.substr(line_end + 2));
    return out;
}

body_reader::body_reader(framing how, std::uint64_t length) : how_{how}, left_{length} {
    switch (how) {
    case framing::none: state_ = state::done; break;
    case framing::length: state_ = length == 0 ? state::done : state::data; break;
    case framing::chunked: state_ = state::chunk_line; break;
    case framing::until_close: state_ = state::data; break;
    }
}

void body_reader::feed(std::string& buffer, std::string& body) {
    // `used` is erased once at the end: a front erase a chunk would cost the square of the buffer.
    std::size_t used = 0;
    while (state_ != state::done && error_.empty() && step(buffer, body, used)) {
    }
    buffer.erase(0, used);
}

bool body_reader::step(std::string& buffer, std::string& body, std::size_t& used) {
    const auto rest = std::string_view{buffer}.substr(used);
    if (state_ == state::data || state_ == state::chunk_data) {
        auto take = rest.size();
        if (how_ != framing::until_close) {
            take = static_cast<std::size_t>(std::min<std::uint64_t>(take, left_));
            left_ -= take;
        }
        body.append(rest.substr(0, take));
        used += take;
        if (how_ != framing::until_close && left_ == 0) {
            state_ = state_ == state::data ? state::done : state::chunk_end;
            return true;
        }
        return false;
    }
    const auto end = rest.find("\r\n");
    if (end == std::string_view::npos) {
        if (rest.size() > 16 * 1024) {
            error_ = "a chunk or trailer line without end";
        }
        return false;
    }
    const auto line = rest.substr(0, end);
    used += end + 2;
    if (state_ == state::chunk_end) {
        if (!line.empty()) {
            error_ = "bytes between a chunk's data and its CRLF: " + std::string{line};
        }
        state_ = state::chunk_line;
        return true;
    }
    if (state_ == state::trailers) {
        if (line.empty()) {
            state_ = state::done;
        } else {
            const auto fields = parse_fields(line);
            trailers_.lines.insert(trailers_.lines.end(), fields.lines.begin(), fields.lines.end());
        }
        return true;
    }
    const auto digits = line.substr(0, line.find_first_not_of("0123456789abcdefABCDEF"));
    if (digits.size() != line.size()) {
        canonical_ = false;
    }
    const auto [stop,
                bad] = std::from_chars(digits.data(), digits.data() + digits.size(), left_, 16);
    if (bad != std::errc{} || stop != digits.data() + digits.size()) {
        error_ = "not a chunk size: " + std::string{line};
        return false;
    }
    state_ = left_ == 0 ? state::trailers : state::chunk_data;
    return true;
}

void body_reader::end_of_stream() {
    if (how_ == framing::until_close) {
        state_ = state::done;
    }
}

body_reader body_of_request(const field_lines& fields) {
    if (last_coding_is_chunked(fields)) {
        return body_reader{framing::chunked};
    }
    if (fields.has("Content-Length")) {
        return body_reader{framing::length, content_length(fields)};
    }
    return body_reader{};
}

body_reader body_of_response(std::string_view method, int status, const field_lines& fields) {
    if (method == "HEAD" || status / 100 == 1 || status == 204 || status == 304 ||
        (method == "CONNECT" && status / 100 == 2)) {
        return body_reader{};
    }
    if (last_coding_is_chunked(fields)) {
        return body_reader{framing::chunked};
    }
    if (!fields.has("Transfer-Encoding") && fields.has("Content-Length")) {
        return body_reader{framing::length, content_length(fields)};
    }
    return body_reader{framing::until_close};
}

std::string chunk(std::string_view bytes) {
    char size[20];
    const auto end = std::to_chars(size, size + sizeof size, bytes.size(), 16).ptr;
    std::string out{size, end};
    out += "\r\n";
    out += bytes;
    out += "\r\n";
    return out;
}

std::string patterned(std::size_t size, std::uint64_t seed) {
    std::string out(size, '\0');
    auto word = seed;
    for (std::size_t i = 0; i < size; ++i) {
        if (i % 8 == 0) {  // splitmix64 of the place
            word = (seed + i / 8 + 1) * 0x9e3779b97f4a7c15ull;
            word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ull;
            word ^= word >> 27;
        }
        out[i] = static_cast<char>(word >> (i % 8 * 8));
    }
    return out;
}

}  // namespace reprise::tests
