#include "tests/judge/object.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <stdexcept>

namespace reprise::tests::judge {

namespace {

constexpr std::size_t cell = 32;
constexpr char digits[] = "0123456789abcdef";

void write_hex(char* into, std::uint64_t value, std::size_t width) {
    for (std::size_t i = width; i-- > 0; value >>= 4) {
        into[i] = digits[value & 15];
    }
}

void write_cell(char* into, const body_id& of, std::uint64_t number) {
    write_hex(into, of.whose, 12);
    into[12] = ' ';
    into[13] = 'v';
    auto version = of.version;
    for (int i = 17; i >= 14; --i, version /= 10) {
        into[i] = static_cast<char>('0' + version % 10);
    }
    into[18] = of.flavour;
    into[19] = ' ';
    write_hex(into + 20, number * cell, 11);
    into[31] = '\n';
}

bool take_number(std::string_view word, std::string_view prefix, auto& into) {
    if (!word.starts_with(prefix)) {
        return false;
    }
    word.remove_prefix(prefix.size());
    const auto [end, bad] = std::from_chars(word.data(), word.data() + word.size(), into);
    return bad == std::errc{} && end == word.data() + word.size();
}

}  // namespace

std::string object::path() const {
    auto out = "/" + name + ".s" + std::to_string(size);
    switch (framed) {
    case framing::chunked: out += ".chunked"; break;
    case framing::until_close: out += ".close"; break;
    case framing::length:
    case framing::none: break;
    }
    switch (validated) {
    case validator::none: out += ".bare"; break;
    case validator::weak: out += ".weak"; break;
    case validator::strong: break;
    }
    out += lifetime < 0 ? ".nostore" : ".life" + std::to_string(lifetime);
    out += while_revalidate > 0 ? ".swr" + std::to_string(while_revalidate) : "";
    out += if_error > 0 ? ".sie" + std::to_string(if_error) : "";
    out += ranges ? "" : ".noranges";
    out += varies ? ".vary" : "";
    out += cookie ? ".cookie" : "";
    return out;
}

object object::of(std::string_view path) {
    const auto refuse = [&] {
        throw std::runtime_error("no object of ours: " + std::string{path});
    };
    object out;
    if (!path.starts_with('/')) {
        refuse();
    }
    auto rest = path.substr(1);
    for (bool first = true; !rest.empty(); first = false) {
        const auto dot = rest.find('.');
        const auto word = rest.substr(0, dot);
        rest.remove_prefix(dot == std::string_view::npos ? rest.size() : dot + 1);
        if (first) {
            out.name = word;
        } else if (word == "chunked") {
            out.framed = framing::chunked;
        } else if (word == "close") {
            out.framed = framing::until_close;
        } else if (word == "bare") {
            out.validated = validator::none;
        } else if (word == "weak") {
            out.validated = validator::weak;
        } else if (word == "nostore") {
            out.lifetime = -1;
        } else if (word == "noranges") {
            out.ranges = false;
        } else if (word == "vary") {
            out.varies = true;
        } else if (word == "cookie") {
            out.cookie = true;
        } else if (!take_number(word, "swr", out.while_revalidate) &&
                   !take_number(word, "sie", out.if_error) &&
                   !take_number(word, "life", out.lifetime) && !take_number(word, "s", out.size)) {
            refuse();
        }
    }
    return out;
}

std::string object::etag(unsigned version) const {
    if (validated == validator::none) {
        return {};
    }
    const auto quoted = "\"" + identity_text(path()) + "-" + std::to_string(version) + "\"";
    return validated == validator::weak ? "W/" + quoted : quoted;
}

std::uint64_t identity_of(std::string_view path) noexcept {
    std::uint64_t word = 14695981039346656037u;
    for (const unsigned char c : path) {
        word = (word ^ c) * 1099511628211u;
    }
    return (word ^ word >> 31) & 0xffff'ffff'ffffu;
}

std::string identity_text(std::string_view path) {
    std::string out(12, '0');
    write_hex(out.data(), identity_of(path), 12);
    return out;
}

std::string body_piece(const body_id& of, std::uint64_t at, std::size_t count) {
    const auto first = at / cell;
    const auto before = static_cast<std::size_t>(at % cell);
    const auto cells = (before + count + cell - 1) / cell;
    std::string out(cells * cell, '\0');
    for (std::size_t i = 0; i < cells; ++i) {
        write_cell(out.data() + i * cell, of, first + i);
    }
    out.resize(before + count);
    out.erase(0, before);
    return out;
}

std::size_t first_wrong(std::string_view bytes, const body_id& of, std::uint64_t at) {
    constexpr std::size_t step = 64 << 10;
    for (std::size_t done = 0; done < bytes.size(); done += step) {
        const auto piece = bytes.substr(done, step);
        const auto right = body_piece(of, at + done, piece.size());
        if (std::memcmp(piece.data(), right.data(), piece.size()) != 0) {
            const auto pair = std::mismatch(piece.begin(), piece.end(), right.begin());
            return done + static_cast<std::size_t>(pair.first - piece.begin());
        }
    }
    return std::string_view::npos;
}

std::string excerpt(std::string_view bytes, std::size_t around) {
    const auto from = around - std::min<std::size_t>(around, 32);
    std::string out = "\"";
    for (const char c : bytes.substr(std::min(from, bytes.size()), 96)) {
        out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : c >= ' ' && c < 127 ? std::string{c} : "?";
    }
    return out + "\"";
}

}  // namespace reprise::tests::judge
