#include "proxy/peer/signature.hpp"

#include "proxy/http/message_head.hpp"

#include <charconv>
#include <cstring>
#include <openssl/crypto.h>
#include <optional>

namespace reprise::proxy::peer {
namespace {

using seconds = std::chrono::seconds;

constexpr std::string_view version = "reprise request, version 2\n";

void append_hex(std::string& out, std::span<const std::byte> bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    for (const auto byte : bytes) {
        out += digits[std::to_integer<unsigned>(byte) >> 4];
        out += digits[std::to_integer<unsigned>(byte) & 15];
    }
}

// Lower-case digits alone, so that one value has one form.
bool read_hex(std::string_view text, std::span<std::byte> out) {
    if (text.size() != out.size() * 2) {
        return false;
    }
    const auto digit = [](char c) -> int {
        if (c >= '0' && c <= '9') {
            return c - '0';
        }
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    };
    for (std::size_t i = 0; i < out.size(); ++i) {
        const auto high = digit(text[2 * i]);
        const auto low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        out[i] = static_cast<std::byte>(high * 16 + low);
    }
    return true;
}

std::array<std::byte, 32> code_of(const fleet_secret& secret,
                                  const signed_parts& parts,
                                  std::string_view destination,
                                  std::int64_t time,
                                  const nonce& fresh) {
    std::string text{version};
    for (const auto part : {parts.method, parts.target, parts.host}) {
        text.append(part);
        text += '\n';
    }
    text += std::to_string(time);
    text += '\n';
    append_hex(text, fresh);
    text += '\n';
    text.append(destination);
    return hmac_sha256(secret.signing(), std::as_bytes(std::span{text.data(), text.size()}));
}

struct fields {
    std::int64_t time = 0;
    nonce fresh{};
    std::string_view destination;
    std::array<std::byte, 32> code{};
};

// "v=2;t=<digits>;n=<32 hex>;d=<address:port>;s=<64 hex>", nothing else and in no other order.
std::optional<fields> read(std::string_view value) {
    const auto take = [&value](std::string_view name) -> std::optional<std::string_view> {
        if (!value.starts_with(name)) {
            return std::nullopt;
        }
        value.remove_prefix(name.size());
        const auto text = value.substr(0, value.find(';'));
        value.remove_prefix(text.size());
        return text;
    };
    const auto v = take("v=");
    const auto t = take(";t=");
    const auto n = take(";n=");
    const auto d = take(";d=");
    const auto s = take(";s=");
    fields out;
    if (!v || *v != "2" || !t || !n || !d || !s || !value.empty() || t->empty() || t->size() > 12 ||
        d->empty()) {
        return std::nullopt;
    }
    out.destination = *d;
    const auto [end, error] = std::from_chars(t->data(), t->data() + t->size(), out.time);
    if (error != std::errc{} || end != t->data() + t->size() || out.time < 0 ||
        !read_hex(*n, out.fresh) || !read_hex(*s, out.code)) {
        return std::nullopt;
    }
    return out;
}

bool is_meant_for(const receiver& here, std::string_view host, std::string_view destination) {
    if (destination == here.endpoint) {
        return true;
    }
    const auto colon = host.rfind(':');
    const bool has_port = colon != std::string_view::npos && host.find(']', colon) == host.npos;
    return !here.name.empty() && (http::iequals(host, here.name) ||
                                  (has_port && http::iequals(host.substr(0, colon), here.name)));
}

bool has_line_end(const signed_parts& parts) {
    return (parts.method.find('\n') & parts.target.find('\n') & parts.host.find('\n')) !=
           std::string_view::npos;
}

}  // namespace

std::string_view to_string(signature_verdict verdict) noexcept {
    switch (verdict) {
    case signature_verdict::good: return "good";
    case signature_verdict::missing: return "missing";
    case signature_verdict::malformed: return "malformed";
    case signature_verdict::wrong: return "wrong";
    case signature_verdict::elsewhere: return "elsewhere";
    case signature_verdict::out_of_time: return "out_of_time";
    case signature_verdict::replayed: return "replayed";
    case signature_verdict::too_many: return "too_many";
    }
    return "?";
}

std::string sign(const fleet_secret& secret,
                 const signed_parts& parts,
                 std::string_view destination,
                 wall_time now,
                 const nonce& fresh) {
    const auto time = std::chrono::floor<seconds>(now).time_since_epoch().count();
    std::string value = "v=2;t=" + std::to_string(time) + ";n=";
    append_hex(value, fresh);
    value.append(";d=").append(destination).append(";s=");
    append_hex(value, code_of(secret, parts, destination, time, fresh));
    return value;
}

std::size_t signature_checker::hash_of_nonce::operator()(const nonce& one) const noexcept {
    // Only holders of the secret put nonces in, and they are random.
    std::size_t out = 0;
    std::memcpy(&out, one.data(), sizeof out);
    return out;
}

signature_checker::signature_checker(fleet_secret secret,
                                     wall_time since,
                                     seconds window,
                                     std::size_t most)
    : secret_{std::move(secret)},
      since_{std::chrono::floor<seconds>(since)},
      window_{window},
      most_{most} {}

signature_verdict signature_checker::check(const signed_parts& parts,
                                           const receiver& here,
                                           std::string_view value,
                                           wall_time now) {
    if (value.empty()) {
        return signature_verdict::missing;
    }
    const auto said = read(value);
    if (!said || has_line_end(parts)) {
        return signature_verdict::malformed;
    }
    const auto expected = code_of(secret_, parts, said->destination, said->time, said->fresh);
    if (CRYPTO_memcmp(expected.data(), said->code.data(), expected.size()) != 0) {
        return signature_verdict::wrong;
    }
    if (!is_meant_for(here, parts.host, said->destination)) {
        return signature_verdict::elsewhere;
    }
    const wall_time signed_at{seconds{said->time}};
    if (signed_at > now + window_ || signed_at < now - window_ || signed_at < since_) {
        return signature_verdict::out_of_time;
    }
    const std::scoped_lock lock{guard_};
    // A signature is in time until a window after it was made, which may be a window from now.
    while (!order_.empty() && order_.front().until < now) {
        seen_.erase(order_.front().one);
        order_.pop_front();
    }
    if (seen_.count(said->fresh) != 0) {
        return signature_verdict::replayed;
    }
    if (seen_.size() >= most_) {
        return signature_verdict::too_many;
    }
    order_.push_back({signed_at + window_, said->fresh});
    seen_.insert(said->fresh);
    return signature_verdict::good;
}

}  // namespace reprise::proxy::peer
