#include "proxy/peer/signature.hpp"

#include "proxy/http/message_head.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <optional>
#include <vector>

// read() proves that a request was signed with the secret, by RFC 9421 or by the old field; only then
// judge() asks whom it is for, when, and whether its nonce is new. So nobody without the secret can
// fill the memory of nonces.

namespace reprise::proxy::peer {
namespace {

using seconds = std::chrono::seconds;

constexpr std::string_view label = "reprise";
constexpr std::string_view algorithm = "hmac-sha256";
constexpr seconds signed_for{60};
/// As they stand in Signature-Input.
constexpr std::string_view covered =
    R"("@method" "@authority" "@path" "@query" "reprise-node" "reprise-to")";
constexpr std::array<std::string_view, 6> must_cover{
    "@method", "@authority", "@path", "@query", "reprise-node", "reprise-to"};

constexpr std::string_view old_version = "reprise request, version 2\n";

std::int64_t seconds_of_time(wall_time when) {
    return std::chrono::floor<seconds>(when).time_since_epoch().count();
}

void append_hex(std::string& out, std::span<const std::byte> bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    for (const auto byte : bytes) {
        out += digits[std::to_integer<unsigned>(byte) >> 4];
        out += digits[std::to_integer<unsigned>(byte) & 15];
    }
}

std::string to_hex(std::span<const std::byte> bytes) {
    std::string out;
    append_hex(out, bytes);
    return out;
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

std::span<const std::byte> bytes_of_text(std::string_view text) {
    return std::as_bytes(std::span{text.data(), text.size()});
}

using base64_code = std::array<char, 45>;  // of 32 bytes, and a NUL

base64_code base64_of(const std::array<std::byte, 32>& code) {
    base64_code out{};
    EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                    reinterpret_cast<const unsigned char*>(code.data()),
                    static_cast<int>(code.size()));
    return out;
}

std::string_view text_of(const base64_code& code) {
    return {code.data(), code.size() - 1};
}

struct old_fields {
    std::int64_t time = 0;
    nonce fresh{};
    std::string_view destination;
    std::array<std::byte, 32> code{};
};

std::array<std::byte, 32> old_code_of(const fleet_secret& secret,
                                      const http::signed_request& request,
                                      const old_fields& said) {
    std::string text{old_version};
    for (const auto part : {request.method, request.target, request.host}) {
        text.append(part);
        text += '\n';
    }
    text += std::to_string(said.time);
    text += '\n';
    append_hex(text, said.fresh);
    text += '\n';
    text.append(said.destination);
    return hmac_sha256(secret.old_signing(), bytes_of_text(text));
}

// "v=2;t=<digits>;n=<32 hex>;d=<address:port>;s=<64 hex>", nothing else and in no other order.
std::optional<old_fields> read_old_field(std::string_view value) {
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
    old_fields out;
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

bool has_line_end(const http::signed_request& request) {
    const auto has = [](std::string_view text) {
        return text.find('\n') != std::string_view::npos;
    };
    return has(request.method) || has(request.target) || has(request.host);
}

std::string parameters_of(const fleet_secret& secret, std::int64_t created, const nonce& fresh) {
    std::string out = ";created=" + std::to_string(created) +
                      ";expires=" + std::to_string(created + signed_for.count()) + ";nonce=\"";
    append_hex(out, fresh);
    out.append("\";alg=\"").append(algorithm).append("\";keyid=\"");
    append_hex(out, secret.id());
    out.append("\";tag=\"").append(signature_tag).append("\"");
    return out;
}

std::string_view value_of(http::field_list fields, std::string_view name) {
    const auto* const line = http::find(fields, name);
    return line == nullptr ? std::string_view{} : line->value;
}

}  // namespace

/// What a request says of who asked whom, and when, once its code has proved to be the secret's.
struct signature_checker::claim {
    std::string_view signer, host, destination;
    std::int64_t created = 0, expires = 0;
    nonce fresh{};
};

std::string_view to_string(signature_verdict verdict) noexcept {
    switch (verdict) {
    case signature_verdict::good: return "good";
    case signature_verdict::missing: return "missing";
    case signature_verdict::malformed: return "malformed";
    case signature_verdict::other_secret: return "other_secret";
    case signature_verdict::wrong: return "wrong";
    case signature_verdict::elsewhere: return "elsewhere";
    case signature_verdict::out_of_time: return "out_of_time";
    case signature_verdict::replayed: return "replayed";
    case signature_verdict::too_many: return "too_many";
    }
    return "?";
}

nonce nonces::take() noexcept {
    nonce out;
    const std::uint64_t words[2] = {next_++, own_};
    static_assert(sizeof words == sizeof out);
    std::memcpy(out.data(), words, sizeof words);
    return out;
}

std::string sign(const fleet_secret& secret,
                 const http::signed_request& request,
                 const parties& who,
                 wall_time now,
                 const nonce& fresh) {
    const auto time = seconds_of_time(now);
    const std::array<http::field, 2> said{
        http::field{http::field_id::unknown, node_field, who.from},
        http::field{http::field_id::unknown, to_field, who.to}};
    const auto parameters = parameters_of(secret, time, fresh);
    auto as_signed = request;
    as_signed.fields = said;
    std::string base;
    // All that it covers is there.
    (void)http::append_signature_base(
        base, as_signed, {.label = label, .covered = covered, .parameters = parameters});
    const auto code = base64_of(hmac_sha256(secret.message_signing(), bytes_of_text(base)));

    std::string lines;
    http::append_field_line(lines, node_field, who.from);
    http::append_field_line(lines, to_field, who.to);
    std::string input{label};
    input.append("=(").append(covered).append(")").append(parameters);
    http::append_field_line(lines, http::signature_input_field, input);
    std::string signature{label};
    signature.append("=:").append(text_of(code)).append(":");
    http::append_field_line(lines, http::signature_field, signature);
    return lines;
}

std::size_t signature_checker::hash_of_nonce::operator()(const nonce& one) const noexcept {
    // Only holders of the secret put nonces in, which are random there, or count from a random number.
    std::size_t out = 0;
    std::memcpy(&out, one.data(), sizeof out);
    return out;
}

signature_checker::signature_checker(fleet_secret secret,
                                     std::optional<moment> start,
                                     seconds window,
                                     std::size_t most)
    : secret_{std::move(secret)},
      key_id_{to_hex(secret_.id())},
      window_{window.count()},
      most_{most} {
    if (start) {
        forgotten_ = seconds_of_time(start->wall) - 1;
        forgotten_until_ = start->steady + 2 * window;
    }
}

// `good`: it is the secret's. Whom it is for, and when, is not judged yet.
signature_verdict signature_checker::read(const http::signed_request& request, claim& out) const {
    http::message_signature said;
    switch (http::find_signature(request.fields, signature_tag, said)) {
    case http::signature_search::none: return read_old(request, out);
    case http::signature_search::malformed: return signature_verdict::malformed;
    case http::signature_search::found: break;
    }
    const bool covers_enough = std::all_of(
        must_cover.begin(), must_cover.end(), [&](std::string_view component) {
            return http::covers(said, component);
        });
    if (!covers_enough || said.alg != algorithm || !said.created || *said.created < 0 ||
        !said.expires || !said.keyid || !said.nonce || !read_hex(*said.nonce, out.fresh)) {
        return signature_verdict::malformed;
    }
    if (*said.keyid != key_id_) {
        return signature_verdict::other_secret;
    }
    std::string base;
    if (!http::append_signature_base(base, request, said)) {
        return signature_verdict::malformed;
    }
    const auto code = base64_of(hmac_sha256(secret_.message_signing(), bytes_of_text(base)));
    const auto expected = text_of(code);
    // One text alone is a code's base64: no other padding, no other last digit.
    if (said.base64.size() != expected.size() ||
        CRYPTO_memcmp(expected.data(), said.base64.data(), expected.size()) != 0) {
        return signature_verdict::wrong;
    }
    out.signer = value_of(request.fields, node_field);
    out.destination = value_of(request.fields, to_field);
    out.created = *said.created;
    out.expires = *said.expires;
    return signature_verdict::good;
}

signature_verdict signature_checker::read_old(const http::signed_request& request,
                                              claim& out) const {
    const auto* const line = http::find(request.fields, old_signature_field);
    if (line == nullptr || line->value.empty()) {
        return signature_verdict::missing;
    }
    const auto said = read_old_field(line->value);
    if (!said || has_line_end(request)) {
        return signature_verdict::malformed;
    }
    const auto expected = old_code_of(secret_, request, *said);
    if (CRYPTO_memcmp(expected.data(), said->code.data(), expected.size()) != 0) {
        return signature_verdict::wrong;
    }
    out.destination = said->destination;
    out.created = said->time;
    out.expires = said->time + window_;
    out.fresh = said->fresh;
    return signature_verdict::good;
}

judged_signature signature_checker::check(const http::signed_request& request,
                                          const receiver& here,
                                          wall_time now,
                                          steady_time steady) {
    claim said;
    said.host = request.host;
    const auto read_as = read(request, said);
    return {read_as == signature_verdict::good ? judge(said, here, now, steady) : read_as,
            said.signer};
}

signature_verdict signature_checker::judge(const claim& said,
                                           const receiver& here,
                                           wall_time now,
                                           steady_time steady) {
    if (!is_meant_for(here, said.host, said.destination)) {
        return signature_verdict::elsewhere;
    }
    // Whole seconds throughout: what is in time is remembered. No text is so long that it overflows.
    const auto second = seconds_of_time(now);
    if (said.created > second + window_ || said.expires < second || said.expires < said.created ||
        said.expires > said.created + window_) {
        return signature_verdict::out_of_time;
    }
    const std::scoped_lock lock{guard_};
    forget_what_is_past(second, steady);
    if (may_have_been_taken(said, steady)) {
        return signature_verdict::out_of_time;
    }
    if (seen_.count(said.fresh) != 0) {
        return signature_verdict::replayed;
    }
    if (seen_.size() >= most_) {
        return signature_verdict::too_many;
    }
    // Not until it expires: the same request signed by the old field may be in time for longer.
    order_.push({said.created, said.fresh});
    seen_.insert(said.fresh);
    return signature_verdict::good;
}

// A signature is in time until a window after it was made, which may be a window from now.
void signature_checker::forget_what_is_past(std::int64_t second, steady_time steady) {
    while (!order_.empty() && order_.top().created + window_ < second) {
        // No less than before, as long as that counts: what was taken since is younger.
        forgotten_ = order_.top().created;
        forgotten_until_ = steady + 2 * seconds{window_};
        seen_.erase(order_.top().one);
        order_.pop();
    }
}

// Before this start, or so long ago that it is forgotten.
bool signature_checker::may_have_been_taken(const claim& said, steady_time steady) const {
    return steady < forgotten_until_ && said.created <= forgotten_;
}

}  // namespace reprise::proxy::peer
