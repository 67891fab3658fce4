#include "filter/c/signature_fields.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

// All lines of Signature-Input are walked for the one member with our tag, then those of Signature
// for the code under its label. A second of either, or a member that can't be read, makes all of it
// malformed, so that no two readers can choose differently.

namespace reprise::filter::c {

namespace {

constexpr std::string_view signature_input_name = "Signature-Input";
constexpr std::string_view signature_name = "Signature";
constexpr std::string_view algorithm = "hmac-sha256";
constexpr std::string_view tag = "reprise-peer";
constexpr std::int64_t signed_for = 60;  // seconds
constexpr std::array<std::string_view, 6> to_cover{
    "@method", "@authority", "@path", "@query", "reprise-node", "reprise-to"};
constexpr std::string_view covered_by_us =
    R"("@method" "@authority" "@path" "@query" "reprise-node" "reprise-to")";

char lower(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_name(std::string_view a, std::string_view b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char one, char other) {
        return lower(one) == lower(other);
    });
}

std::span<const reprise_field> fields_of(const reprise_request& request) noexcept {
    return {request.fields, request.fields == nullptr ? 0 : request.field_count};
}

/// Structured fields (RFC 9651), as far as they are wanted here.
struct field_cursor {
    std::string_view rest;

    bool eat(char c) noexcept {
        if (!rest.starts_with(c)) {
            return false;
        }
        rest.remove_prefix(1);
        return true;
    }
    void eat_spaces() noexcept {
        while (eat(' ') || eat('\t')) {
        }
    }
    std::string_view take(std::size_t count) noexcept {
        const auto out = rest.substr(0, count);
        rest.remove_prefix(out.size());
        return out;
    }
    /// Empty: none is there.
    std::string_view key() noexcept {
        const auto is_key = [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
                   c == '.' || c == '*';
        };
        const auto end = std::find_if_not(rest.begin(), rest.end(), is_key);
        return take(static_cast<std::size_t>(end - rest.begin()));
    }
    /// What is between two quotes, without escapes.
    std::optional<std::string_view> text() noexcept {
        if (!eat('"')) {
            return std::nullopt;
        }
        const auto end = rest.find_first_of("\"\\");
        if (end == rest.npos || rest[end] != '"') {
            return std::nullopt;
        }
        const auto out = take(end);
        (void)eat('"');
        return out;
    }
    std::optional<std::int64_t> number() noexcept {
        constexpr std::size_t longest = 15;
        std::int64_t out = 0;
        const auto* const begin = rest.data();
        const auto read = std::from_chars(begin, begin + std::min(rest.size(), longest), out);
        if (read.ec != std::errc{}) {
            return std::nullopt;
        }
        (void)take(static_cast<std::size_t>(read.ptr - begin));
        return out;
    }
    /// Behind a member: its end, or that of all.
    bool next_member() noexcept {
        eat_spaces();
        if (rest.empty()) {
            return true;
        }
        if (!eat(',')) {
            return false;
        }
        eat_spaces();
        return !rest.empty();
    }
};

/// One of Signature-Input's members.
struct input_member {
    std::string_view label;
    signature_said said;
    std::string_view alg, tag;
    bool has_created = false, has_expires = false;
};

bool read_list(field_cursor& at, input_member& out) noexcept {
    if (!at.eat('(')) {
        return false;
    }
    const auto whole = at.rest;
    while (!at.rest.starts_with(')')) {
        if (!at.text() || !(at.rest.starts_with(' ') || at.rest.starts_with(')'))) {
            return false;
        }
        while (at.eat(' ')) {
        }
    }
    out.said.covered = whole.substr(0, whole.size() - at.rest.size());
    return at.eat(')');
}

bool read_parameter(field_cursor& at, input_member& out) noexcept {
    const auto key = at.key();
    if (key.empty() || !at.eat('=')) {
        return false;
    }
    if (!at.rest.starts_with('"')) {
        const auto number = at.number();
        if (number && key == "created" && !out.has_created) {
            out.said.created = *number;
            out.has_created = true;
        } else if (number && key == "expires" && !out.has_expires) {
            out.said.expires = *number;
            out.has_expires = true;
        } else if (key == "created" || key == "expires") {
            return false;
        }
        return number.has_value();
    }
    const auto text = at.text();
    auto* const to = key == "nonce"   ? &out.said.nonce
                     : key == "keyid" ? &out.said.keyid
                     : key == "alg"   ? &out.alg
                     : key == "tag"   ? &out.tag
                                      : nullptr;
    if (!text || (to != nullptr && !to->empty())) {
        return false;
    }
    if (to != nullptr) {
        *to = *text;
    }
    return true;
}

bool read_input(field_cursor& at, input_member& out) noexcept {
    out.label = at.key();
    if (out.label.empty() || !at.eat('=') || !read_list(at, out)) {
        return false;
    }
    const auto whole = at.rest;
    while (at.eat(';')) {
        at.eat_spaces();
        if (!read_parameter(at, out)) {
            return false;
        }
    }
    out.said.parameters = whole.substr(0, whole.size() - at.rest.size());
    return true;
}

/// One of Signature's: label=:base64:
bool read_code(field_cursor& at, std::string_view& label, std::string_view& code) noexcept {
    label = at.key();
    if (label.empty() || !at.eat('=') || !at.eat(':')) {
        return false;
    }
    const auto end = at.rest.find(':');
    if (end == at.rest.npos) {
        return false;
    }
    code = at.take(end);
    return at.eat(':');
}

bool covers_all(std::string_view covered) noexcept {
    field_cursor at{covered};
    std::array<unsigned, to_cover.size()> times{};
    while (!at.rest.empty()) {
        const auto one = at.text();
        const auto known = one ? std::find(to_cover.begin(), to_cover.end(), *one) : to_cover.end();
        if (known == to_cover.end()) {
            return false;
        }
        ++times[static_cast<std::size_t>(known - to_cover.begin())];
        while (at.eat(' ')) {
        }
    }
    return std::all_of(times.begin(), times.end(), [](unsigned count) { return count == 1; });
}

std::string_view path_in(std::string_view target) noexcept {
    const auto path = target.substr(0, target.find('?'));
    return path.empty() ? "/" : path;
}

std::string_view query_in(std::string_view target) noexcept {
    const auto mark = target.find('?');
    return mark == target.npos ? "?" : target.substr(mark);
}

/// 2.2.3: in lower case, without plain HTTP's own port.
std::string authority_in(std::string_view host) {
    if (host.ends_with(":80")) {
        host.remove_suffix(3);
    }
    std::string out{host};
    std::transform(out.begin(), out.end(), out.begin(), lower);
    return out;
}

std::optional<std::string> component_in(const reprise_request& request, std::string_view name) {
    if (name == "@method") {
        return request.method;
    }
    if (name == "@authority") {
        return authority_in(request.authority);
    }
    if (name == "@path") {
        return std::string{path_in(request.target)};
    }
    if (name == "@query") {
        return std::string{query_in(request.target)};
    }
    std::optional<std::string> out;
    for (const auto& line : fields_of(request)) {
        if (is_name(line.name, name)) {
            out = out ? *out + ", " + line.value : std::string{line.value};
        }
    }
    return out;
}

}  // namespace

std::string_view field_value(const reprise_request& request, std::string_view name) noexcept {
    for (const auto& line : fields_of(request)) {
        if (is_name(line.name, name)) {
            return line.value;
        }
    }
    return {};
}

signature_there find_signature(const reprise_request& request, signature_said& found) {
    unsigned tagged = 0;
    std::string_view label;
    for (const auto& line : fields_of(request)) {
        field_cursor at{line.value};
        while (is_name(line.name, signature_input_name) && !at.rest.empty()) {
            input_member one;
            if (!read_input(at, one) || !at.next_member()) {
                return signature_there::malformed;
            }
            if (one.tag != tag) {
                continue;
            }
            ++tagged;
            label = one.label;
            found = one.said;
            if (!one.has_created || !one.has_expires || one.alg != algorithm ||
                !covers_all(one.said.covered)) {
                return signature_there::malformed;
            }
        }
    }
    if (tagged != 1) {
        return tagged == 0 ? signature_there::none : signature_there::malformed;
    }
    unsigned labelled = 0;
    for (const auto& line : fields_of(request)) {
        field_cursor at{line.value};
        while (is_name(line.name, signature_name) && !at.rest.empty()) {
            std::string_view name, code;
            if (!read_code(at, name, code) || !at.next_member()) {
                return signature_there::malformed;
            }
            if (name == label) {
                ++labelled;
                found.base64 = code;
            }
        }
    }
    return labelled == 1 ? signature_there::found : signature_there::malformed;
}

std::optional<std::string> signature_base(const reprise_request& request,
                                          std::string_view covered,
                                          std::string_view parameters) {
    std::string out;
    field_cursor at{covered};
    while (const auto name = at.text()) {
        const auto value = component_in(request, *name);
        // A value with a line end in it would give two readings of one text.
        if (!value || value->find_first_of("\r\n") != std::string::npos) {
            return std::nullopt;
        }
        out.append("\"").append(*name).append("\": ").append(*value).append("\n");
        while (at.eat(' ')) {
        }
    }
    out.append("\"@signature-params\": (").append(covered).append(")").append(parameters);
    return out;
}

std::string_view all_covered() noexcept {
    return covered_by_us;
}

std::string parameters_of(std::int64_t created, std::string_view nonce, std::string_view keyid) {
    std::string out = ";created=" + std::to_string(created) +
                      ";expires=" + std::to_string(created + signed_for) + ";nonce=\"";
    out.append(nonce).append("\";alg=\"").append(algorithm).append("\";keyid=\"");
    out.append(keyid).append("\";tag=\"").append(tag).append("\"");
    return out;
}

}  // namespace reprise::filter::c
