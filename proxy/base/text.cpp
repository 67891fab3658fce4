#include "proxy/base/text.hpp"

#include "proxy/base/text_pieces.hpp"

#include <cstdint>

namespace reprise::proxy {

namespace {

constexpr char hex[] = "0123456789abcdef";

constexpr unsigned byte_at(std::string_view text, std::size_t at) noexcept {
    return static_cast<unsigned char>(text[at]);
}

// Length of the well-formed UTF-8 sequence at `at` (RFC 3629: shortest form, no surrogates, up to
// U+10FFFF), or 0.
std::size_t utf8_length(std::string_view text, std::size_t at) noexcept {
    const auto lead = byte_at(text, at);
    std::size_t length = 0;
    unsigned least = 0x80, most = 0xbf;  // of the second byte
    if (lead < 0x80) {
        return 1;
    } else if (lead >= 0xc2 && lead <= 0xdf) {
        length = 2;
    } else if (lead >= 0xe0 && lead <= 0xef) {
        length = 3;
        least = lead == 0xe0 ? 0xa0 : 0x80;
        most = lead == 0xed ? 0x9f : 0xbf;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
        length = 4;
        least = lead == 0xf0 ? 0x90 : 0x80;
        most = lead == 0xf4 ? 0x8f : 0xbf;
    }
    if (length == 0 || text.size() - at < length) {
        return 0;
    }
    for (std::size_t i = 1; i < length; ++i) {
        const auto next = byte_at(text, at + i);
        if (next < least || next > most) {
            return 0;
        }
        least = 0x80;
        most = 0xbf;
    }
    return length;
}

// C1 controls, U+0080 to U+009F, are "\xc2\x80" to "\xc2\x9f"; some terminals obey them.
bool is_c1(std::string_view text, std::size_t at) noexcept {
    return byte_at(text, at) == 0xc2 && byte_at(text, at + 1) <= 0x9f;
}

bool is_control(unsigned byte) noexcept {
    return byte < 0x20 || byte == 0x7f;
}

// Copies runs that need nothing; calls odd(at), which appends what stands for the bytes at `at` and
// returns how many they were, for the rest.
template <class IsPlain, class Odd>
void copy_runs(std::string& out, std::string_view text, IsPlain is_plain, Odd odd) {
    std::size_t run = 0, at = 0;
    while (at < text.size()) {
        if (is_plain(byte_at(text, at))) {
            ++at;
            continue;
        }
        out.append(text.substr(run, at - run));
        at += odd(at);
        run = at;
    }
    out.append(text.substr(run));
}

void append_u(std::string& out, unsigned code) {
    const char escape[] = {'\\', 'u', '0', '0', hex[code >> 4 & 15], hex[code & 15]};
    out.append(escape, sizeof escape);
}

void append_x(std::string& out, unsigned byte) {
    const char escape[] = {'\\', 'x', hex[byte >> 4 & 15], hex[byte & 15]};
    out.append(escape, sizeof escape);
}

}  // namespace

void append_json_escaped(std::string& out, std::string_view text) {
    const auto is_plain = [](unsigned byte) {
        return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
    };
    copy_runs(out, text, is_plain, [&](std::size_t at) -> std::size_t {
        const auto byte = byte_at(text, at);
        if (byte == '"' || byte == '\\') {
            out.push_back('\\');
            out.push_back(static_cast<char>(byte));
            return 1;
        }
        if (is_control(byte)) {
            append_u(out, byte);
            return 1;
        }
        const auto length = utf8_length(text, at);
        if (length == 0) {
            out.append("\\ufffd");
            return 1;
        }
        if (is_c1(text, at)) {
            append_u(out, byte_at(text, at + 1));
        } else {
            out.append(text.substr(at, length));
        }
        return length;
    });
}

void append_printable(std::string& out, std::string_view text) {
    const auto is_plain = [](unsigned byte) { return byte >= 0x20 && byte < 0x7f && byte != '\\'; };
    copy_runs(out, text, is_plain, [&](std::size_t at) -> std::size_t {
        const auto byte = byte_at(text, at);
        if (byte == '\\') {
            out.append("\\\\");
            return 1;
        }
        const auto length = is_control(byte) ? 0 : utf8_length(text, at);
        if (length == 0 || is_c1(text, at)) {
            append_x(out, byte);
            return 1;
        }
        out.append(text.substr(at, length));
        return length;
    });
}

std::string printable(std::string_view text) {
    std::string out;
    append_printable(out, text);
    return out;
}

void append_html_escaped(std::string& out, std::string_view text) {
    const auto is_plain = [](unsigned byte) {
        return byte >= 0x20 && byte < 0x7f && byte != '<' && byte != '>' && byte != '&' &&
               byte != '"' && byte != '\'';
    };
    copy_runs(out, text, is_plain, [&](std::size_t at) -> std::size_t {
        const auto byte = byte_at(text, at);
        switch (byte) {
        case '<': out.append("&lt;"); return 1;
        case '>': out.append("&gt;"); return 1;
        case '&': out.append("&amp;"); return 1;
        case '"': out.append("&quot;"); return 1;
        case '\'': out.append("&#39;"); return 1;
        default: break;
        }
        if (byte == '\n' || byte == '\t') {
            out.push_back(static_cast<char>(byte));
            return 1;
        }
        const auto length = is_control(byte) ? 0 : utf8_length(text, at);
        if (length == 0 || is_c1(text, at)) {
            out.append("\xef\xbf\xbd");  // U+FFFD: no HTML reference may name a control
            return length == 0 ? 1 : length;
        }
        out.append(text.substr(at, length));
        return length;
    });
}

void append_redacted_url(std::string& out, std::string_view url, bool query_values) {
    for_each_public_piece(url, query_values, [&](std::string_view piece) { out.append(piece); });
}

}  // namespace reprise::proxy
