#include "tests/framing/strict_reader.hpp"

#include <algorithm>

namespace reprise::framing {
namespace {

constexpr std::size_t most_body = std::size_t{1} << 24;

bool is_token_char(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view{"!#$%&'*+-.^_`|~"}.find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

// Visible characters, obs-text, space and tab (RFC 9110 5.5).
bool is_text(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
    });
}

bool is_digits(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t");
    if (first == text.npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::vector<std::string_view> members(std::string_view list) {
    std::vector<std::string_view> out;
    for (;;) {
        const auto comma = list.find(',');
        out.push_back(trimmed(list.substr(0, comma)));
        if (comma == list.npos) {
            return out;
        }
        list.remove_prefix(comma + 1);
    }
}

/// Reads on in a buffer; the first that is wrong, or missing, ends it.
struct cursor {
    std::string_view bytes;
    manner how;
    std::size_t at = 0;
    reading state = reading::whole;
    std::string why{};

    [[nodiscard]] bool good() const { return state == reading::whole; }
    void refuse(std::string reason) {
        if (good()) {
            state = reading::refused;
            why = std::move(reason);
        }
    }
    void starve() {
        if (good()) {
            state = reading::incomplete;
        }
    }
    [[nodiscard]] bool canonical() const { return how == manner::canonical; }

    // A line without its CRLF.
    std::string_view line() {
        if (!good()) {
            return {};
        }
        const auto end = bytes.find('\n', at);
        const auto seen = bytes.substr(at, end == bytes.npos ? end : end - at);
        const auto cr = seen.find('\r');
        if (cr != seen.npos && cr + 1 < seen.size()) {
            refuse("a bare CR");
            return {};
        }
        if (end == bytes.npos) {
            starve();
            return {};
        }
        if (cr == seen.npos) {
            refuse("a bare LF");
            return {};
        }
        at = end + 1;
        return seen.substr(0, cr);
    }

    std::string_view take(std::size_t size) {
        if (good() && bytes.size() - at < size) {
            starve();
        }
        if (!good()) {
            return {};
        }
        const auto taken = bytes.substr(at, size);
        at += size;
        return taken;
    }

    void read_fields(std::vector<field>& out) {
        for (;;) {
            const auto text = line();
            if (!good() || text.empty()) {
                return;
            }
            const auto colon = text.find(':');
            if (colon == text.npos || !is_token(text.substr(0, colon))) {
                return refuse("a field line that is none");
            }
            const auto value = text.substr(colon + 1);
            if (!is_text(value)) {
                return refuse("a control character in a field");
            }
            out.push_back({std::string{text.substr(0, colon)}, std::string{trimmed(value)}});
        }
    }

    void read_chunks(message& into) {
        for (;;) {
            const auto text = line();
            if (!good()) {
                return;
            }
            const auto digits = std::min(text.find_first_not_of("0123456789abcdefABCDEF"),
                                         text.size());
            const auto rest = text.substr(digits);
            const auto extension = trimmed(rest);
            if (digits == 0 || !is_text(rest) ||
                (!rest.empty() && (extension.empty() || extension.front() != ';'))) {
                return refuse("a chunk's size that is none");
            }
            const auto zeros = std::min(text.find_first_not_of('0'), digits - 1);
            if (canonical() && (!rest.empty() || zeros != 0)) {
                return refuse("a chunk line that is not canonical");
            }
            if (digits - zeros > 15) {
                return refuse("a chunk's size that is out of bounds");
            }
            const auto size = std::stoull(
                std::string{text.substr(zeros, digits - zeros)}, nullptr, 16);
            if (size == 0) {
                return read_fields(into.trailers);
            }
            if (size > most_body) {
                return starve();  // more than anybody here sends
            }
            into.body += take(size);
            const auto end = take(std::min<std::size_t>(2, good() ? bytes.size() - at : 0));
            if (good() && end != "\r\n") {
                if (end.empty() || end == "\r") {
                    return starve();
                }
                return refuse("a chunk without its CRLF");
            }
        }
    }

    // Content-Length: none, or all one number.
    std::optional<std::size_t> length_of(const std::vector<std::string>& values, bool may_repeat) {
        std::optional<std::size_t> length;
        std::size_t said = 0;
        for (const auto& value : values) {
            for (const auto member : members(value)) {
                ++said;
                const auto zeros = std::min(member.find_first_not_of('0'), member.size());
                if (!is_digits(member) || member.size() - zeros > 18) {
                    refuse("a Content-Length that is none");
                    return std::nullopt;
                }
                const auto number = std::stoull(std::string{member});
                if (length && *length != number) {
                    refuse("two Content-Lengths");
                    return std::nullopt;
                }
                length = number;
                if (canonical() && member.size() > 1 && member.front() == '0') {
                    refuse("a Content-Length with zeros in front");
                }
            }
        }
        if (said > 1 && (!may_repeat || canonical())) {
            refuse("more than one Content-Length");
        }
        return length;
    }

    void read_body(message& into, bool is_request, bool has_none, bool ended) {
        const auto codings = into.all("Transfer-Encoding");
        const auto lengths = into.all("Content-Length");
        const auto length = length_of(lengths, !is_request);
        if (!codings.empty()) {
            if (!lengths.empty()) {
                refuse("Content-Length and Transfer-Encoding");
            } else if (codings.size() > 1 || !same_text(codings[0], "chunked")) {
                refuse("a Transfer-Encoding other than chunked");
            } else if (into.minor == 0) {
                refuse("Transfer-Encoding in HTTP/1.0");
            }
        }
        if (!good() || has_none) {
            return;
        }
        if (!codings.empty()) {
            read_chunks(into);
        } else if (length) {
            if (*length > most_body) {
                return starve();
            }
            into.body = take(*length);
        } else if (!is_request) {
            into.until_close = true;
            into.body = bytes.substr(at);
            at = bytes.size();
            if (!ended) {
                starve();
            }
        }
    }
};

result conclude(cursor& from, message&& read) {
    read.bytes = from.at;
    return {from.state, std::move(read), std::move(from.why)};
}

// Of a version 1 that is later than 1.1 everybody reads what he knows: 1.1 (RFC 9110 2.5).
bool read_version(std::string_view text, unsigned& minor) {
    minor = text == "HTTP/1.0" ? 0 : 1;
    return text.size() == 8 && text.starts_with("HTTP/1.") && is_digits(text.substr(7));
}

}  // namespace

bool same_text(std::string_view a, std::string_view b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) {
        return lower(x) == lower(y);
    });
}

std::vector<std::string> message::all(std::string_view name) const {
    std::vector<std::string> out;
    for (const auto& one : fields) {
        if (same_text(one.name, name)) {
            out.push_back(one.value);
        }
    }
    return out;
}

std::string message::get(std::string_view name) const {
    const auto found = all(name);
    return found.empty() ? std::string{} : found.front();
}

bool message::has_token(std::string_view name, std::string_view token) const {
    for (const auto& value : all(name)) {
        for (const auto member : members(value)) {
            if (same_text(member, token)) {
                return true;
            }
        }
    }
    return false;
}

result read_request(std::string_view bytes, manner how) {
    cursor in{bytes, how};
    message out;
    if (!in.canonical()) {
        while (bytes.substr(in.at).starts_with("\r\n")) {
            in.at += 2;
        }
    }
    const auto line = in.line();
    if (in.good()) {
        const auto first = line.find(' ');
        const auto last = line.rfind(' ');
        if (first == line.npos || first == last) {
            in.refuse("a request line that is none");
        } else {
            out.method = line.substr(0, first);
            out.target = line.substr(first + 1, last - first - 1);
            const bool plain = is_text(out.target) && !out.target.empty() &&
                               out.target.find_first_of(" \t") == std::string::npos;
            if (!is_token(out.method) || !plain ||
                !read_version(line.substr(last + 1), out.minor)) {
                in.refuse("a request line with odd parts");
            }
        }
    }
    if (in.good() && in.canonical() && out.minor != 1) {
        in.refuse("not HTTP/1.1");
    }
    in.read_fields(out.fields);
    if (in.good()) {
        const auto hosts = out.all("Host");
        if (hosts.size() > 1 || (hosts.empty() && out.minor == 1) ||
            (!hosts.empty() && hosts[0].empty())) {
            in.refuse("not one Host");
        }
    }
    const bool has_none = out.method == "CONNECT" || out.method == "TRACE";
    in.read_body(out, true, false, false);
    if (in.good() && has_none && !out.body.empty()) {
        in.refuse("a body with " + out.method);
    }
    return conclude(in, std::move(out));
}

result read_response(std::string_view bytes, std::string_view method, bool ended, manner how) {
    cursor in{bytes, how};
    message out;
    const auto line = in.line();
    if (in.good()) {
        const auto code = line.size() >= 12 ? line.substr(9, 3) : std::string_view{};
        const bool separated = line.size() >= 12 && line[8] == ' ' &&
                               (line.size() == 12 || line[12] == ' ');
        if (!separated || !read_version(line.substr(0, 8), out.minor) || !is_digits(code) ||
            !is_text(line) || code < "100" || code > "599") {
            in.refuse("a status line that is none");
        } else {
            out.status = static_cast<unsigned>(std::stoul(std::string{code}));
        }
    }
    in.read_fields(out.fields);
    const bool has_none = method == "HEAD" || out.status < 200 || out.status == 204 ||
                          out.status == 304;
    in.read_body(out, false, has_none, ended);
    const auto length = out.get("Content-Length");
    if (out.status < 200 && (!out.all("Transfer-Encoding").empty() ||
                             length.find_first_not_of('0') != std::string::npos)) {
        in.refuse("an interim response with a body: the final one is behind it, or in it");
    }
    return conclude(in, std::move(out));
}

}  // namespace reprise::framing
