#include "proxy/http/structured_fields.hpp"

#include "proxy/http/characters.hpp"

#include <cstddef>

// The `scanner` is section 4.2 of RFC 9651, a function for each of its algorithms. The readers keep
// no more than the rest of the text between two members, and what has failed stays so.

namespace reprise::proxy::http {

namespace {

bool is_lower(char c) noexcept {
    return c >= 'a' && c <= 'z';
}
bool is_hex(char c) noexcept {
    return is_digit(c) || (c >= 'a' && c <= 'f');
}

/// What is left of the text. Each `take_` consumes what it names from the front; on false or none
/// the position means nothing any more, since the whole field has failed.
class scanner {
public:
    explicit scanner(std::string_view text) noexcept : rest{text} {}

    std::string_view rest;

    bool take(char wanted) noexcept {
        if (rest.empty() || rest.front() != wanted) {
            return false;
        }
        rest.remove_prefix(1);
        return true;
    }
    void skip_spaces() noexcept {
        while (take(' ')) {
        }
    }
    void skip_blanks() noexcept {
        while (!rest.empty() && is_blank(rest.front())) {
            rest.remove_prefix(1);
        }
    }

    /// The front for as long as `belongs` holds; may be empty.
    template <class Belongs>
    std::string_view take_while(Belongs&& belongs) noexcept {
        std::size_t used = 0;
        while (used < rest.size() && belongs(rest[used])) {
            ++used;
        }
        const auto taken = rest.substr(0, used);
        rest.remove_prefix(used);
        return taken;
    }

    /// RFC 9651 4.2.3.3.
    std::optional<std::string_view> take_key() noexcept {
        if (rest.empty() || (!is_lower(rest.front()) && rest.front() != '*')) {
            return std::nullopt;
        }
        return take_while([](char c) {
            return is_lower(c) || is_digit(c) || c == '_' || c == '-' || c == '.' || c == '*';
        });
    }

    /// 4.2.3.2, and the text that they took.
    std::optional<std::string_view> take_parameters() noexcept {
        const auto whole = rest;
        while (!rest.empty() && rest.front() == ';') {
            if (!take_parameter()) {
                return std::nullopt;
            }
        }
        return whole.substr(0, whole.size() - rest.size());
    }

    /// ";", a key and perhaps a bare item.
    std::optional<sf_member> take_parameter() noexcept {
        if (!take(';')) {
            return std::nullopt;
        }
        skip_spaces();
        const auto key = take_key();
        if (!key) {
            return std::nullopt;
        }
        sf_member found{*key, {sf_kind::boolean, 1}};
        if (take('=')) {
            const auto value = take_bare_item();
            if (!value) {
                return std::nullopt;
            }
            found.value = *value;
        }
        return found;
    }

    /// 4.2.3.
    std::optional<sf_value> take_item() noexcept { return with_parameters(take_bare_item()); }

    /// 4.2.1.2; `rest` is behind the "(".
    std::optional<sf_value> take_inner_list() noexcept {
        const auto whole = rest;
        for (;;) {
            skip_spaces();
            const auto before = whole.size() - rest.size();
            if (take(')')) {
                sf_value list{sf_kind::inner_list, 0, whole.substr(0, before)};
                return with_parameters(list);
            }
            if (!take_item() || rest.empty() || (rest.front() != ' ' && rest.front() != ')')) {
                return std::nullopt;
            }
        }
    }

    /// 4.2.3.1.
    std::optional<sf_value> take_bare_item() noexcept {
        if (rest.empty()) {
            return std::nullopt;
        }
        const char c = rest.front();
        if (c == '-' || is_digit(c)) {
            return take_number();
        }
        if (is_alpha(c) || c == '*') {
            return sf_value{sf_kind::token, 0, take_while([](char x) {
                                return is_tchar(x) || x == ':' || x == '/';
                            })};
        }
        rest.remove_prefix(1);
        switch (c) {
        case '"': return take_string();
        case ':': return take_bytes();
        case '?': return take_boolean();
        case '@': return take_date();
        case '%': return take_display_string();
        default: return std::nullopt;
        }
    }

private:
    std::optional<sf_value> with_parameters(std::optional<sf_value> value) noexcept {
        const auto parameters = value ? take_parameters() : std::nullopt;
        if (!parameters) {
            return std::nullopt;
        }
        value->parameters = *parameters;
        return value;
    }

    /// 4.2.4. At most 15 digits fit in any case: no step can overflow.
    std::optional<sf_value> take_number() noexcept {
        const std::int64_t sign = take('-') ? -1 : 1;
        const auto whole = take_while(is_digit);
        std::int64_t number = 0;
        if (whole.empty() || whole.size() > 15) {
            return std::nullopt;
        }
        for (const char digit : whole) {
            number = number * 10 + (digit - '0');
        }
        if (!take('.')) {
            return sf_value{sf_kind::integer, sign * number};
        }
        const auto fraction = take_while(is_digit);
        if (whole.size() > 12 || fraction.empty() || fraction.size() > 3) {
            return std::nullopt;
        }
        for (std::size_t i = 0; i < 3; ++i) {
            number = number * 10 + (i < fraction.size() ? fraction[i] - '0' : 0);
        }
        return sf_value{sf_kind::decimal, sign * number};
    }

    /// 4.2.5: printable ASCII, and a backslash only before itself or a quote.
    std::optional<sf_value> take_string() noexcept {
        for (std::size_t i = 0; i < rest.size(); ++i) {
            const char c = rest[i];
            if (c == '"') {
                return finish_text(sf_kind::string, i);
            }
            if (c == '\\') {
                ++i;
                if (i == rest.size() || (rest[i] != '"' && rest[i] != '\\')) {
                    break;
                }
            } else if (c < 0x20 || c > 0x7e) {
                break;
            }
        }
        return std::nullopt;
    }

    /// 4.2.7: the alphabet alone; padding and stray bits are the decoder's business.
    std::optional<sf_value> take_bytes() noexcept {
        const auto text = take_while(
            [](char c) { return is_alpha(c) || is_digit(c) || c == '+' || c == '/' || c == '='; });
        return take(':') ? std::optional{sf_value{sf_kind::byte_sequence, 0, text}} : std::nullopt;
    }

    /// 4.2.8.
    std::optional<sf_value> take_boolean() noexcept {
        if (take('1')) {
            return sf_value{sf_kind::boolean, 1};
        }
        return take('0') ? std::optional{sf_value{sf_kind::boolean, 0}} : std::nullopt;
    }

    /// 4.2.9.
    std::optional<sf_value> take_date() noexcept {
        auto when = take_number();
        if (!when || when->kind != sf_kind::integer) {
            return std::nullopt;
        }
        when->kind = sf_kind::date;
        return when;
    }

    /// 4.2.10, but for whether the bytes are UTF-8: nobody here shows them to anybody.
    std::optional<sf_value> take_display_string() noexcept {
        if (!take('"')) {
            return std::nullopt;
        }
        for (std::size_t i = 0; i < rest.size(); ++i) {
            const char c = rest[i];
            if (c == '"') {
                return finish_text(sf_kind::display_string, i);
            }
            if (c == '%') {
                if (rest.size() - i < 3 || !is_hex(rest[i + 1]) || !is_hex(rest[i + 2])) {
                    break;
                }
                i += 2;
            } else if (c < 0x20 || c > 0x7e) {
                break;
            }
        }
        return std::nullopt;
    }

    sf_value finish_text(sf_kind kind, std::size_t size) noexcept {
        const sf_value found{kind, 0, rest.substr(0, size)};
        rest.remove_prefix(size + 1);
        return found;
    }
};

}  // namespace

dictionary_reader::dictionary_reader(std::string_view text) noexcept : rest_{text} {
    while (rest_.starts_with(' ')) {
        rest_.remove_prefix(1);
    }
    while (rest_.ends_with(' ')) {
        rest_.remove_suffix(1);
    }
}

std::optional<sf_member> dictionary_reader::next() noexcept {
    if (failed_ || rest_.empty()) {
        return std::nullopt;
    }
    scanner in{rest_};
    failed_ = true;  // until the member is whole
    if (!first_) {
        in.skip_blanks();
        if (!in.take(',')) {
            return std::nullopt;
        }
        in.skip_blanks();  // a comma at the end leaves nothing, which is no key
    }
    const auto key = in.take_key();
    if (!key) {
        return std::nullopt;
    }
    sf_member found{*key, {sf_kind::boolean, 1}};
    if (in.take('=')) {
        const auto value = in.take('(') ? in.take_inner_list() : in.take_item();
        if (!value) {
            return std::nullopt;
        }
        found.value = *value;
    } else {
        const auto parameters = in.take_parameters();
        if (!parameters) {
            return std::nullopt;
        }
        found.value.parameters = *parameters;
    }
    first_ = failed_ = false;
    rest_ = in.rest;
    return found;
}

inner_list_reader::inner_list_reader(std::string_view text) noexcept : rest_{text} {
    while (rest_.starts_with(' ')) {
        rest_.remove_prefix(1);
    }
}

std::optional<sf_value> inner_list_reader::next() noexcept {
    if (failed_ || rest_.empty()) {
        return std::nullopt;
    }
    scanner in{rest_};
    const auto item = in.take_item();
    failed_ = !item || (!in.rest.empty() && in.rest.front() != ' ');
    if (failed_) {
        return std::nullopt;
    }
    in.skip_spaces();
    rest_ = in.rest;
    return item;
}

std::optional<sf_member> parameter_reader::next() noexcept {
    if (failed_ || rest_.empty()) {
        return std::nullopt;
    }
    scanner in{rest_};
    const auto one = in.take_parameter();
    failed_ = !one;
    rest_ = in.rest;
    return one;
}

}  // namespace reprise::proxy::http
