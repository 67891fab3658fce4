#include "proxy/http/message_signature.hpp"

#include "proxy/http/characters.hpp"
#include "proxy/http/structured_fields.hpp"

#include <algorithm>

// find_signature() finds one signature or none: a tag or a label that is there twice, or a line
// that is no dictionary, makes it malformed, so that no two readers choose differently.
// append_signature_base() walks what is covered in the order that was signed.

namespace reprise::proxy::http {

namespace {

bool has_escape(std::string_view text) noexcept {
    return text.find('\\') != text.npos;
}

/// Puts a parameter in its place. False: it is of another type, or there already.
bool take_number(std::optional<std::int64_t>& to, const sf_value& from) noexcept {
    if (to || from.kind != sf_kind::integer) {
        return false;
    }
    to = from.number;
    return true;
}

bool take_text(std::optional<std::string_view>& to, const sf_value& from) noexcept {
    if (to || from.kind != sf_kind::string || has_escape(from.text)) {
        return false;
    }
    to = from.text;
    return true;
}

bool take_parameter(message_signature& to, const sf_member& one) noexcept {
    if (one.key == "created") {
        return take_number(to.created, one.value);
    }
    if (one.key == "expires") {
        return take_number(to.expires, one.value);
    }
    if (one.key == "nonce") {
        return take_text(to.nonce, one.value);
    }
    if (one.key == "alg") {
        return take_text(to.alg, one.value);
    }
    if (one.key == "keyid") {
        return take_text(to.keyid, one.value);
    }
    return one.key != "tag" || take_text(to.tag, one.value);
}

bool has_tag(const sf_value& value, std::string_view tag) noexcept {
    parameter_reader reader{value.parameters};
    while (const auto one = reader.next()) {
        if (one->key == "tag" && one->value.kind == sf_kind::string && one->value.text == tag) {
            return true;
        }
    }
    return false;
}

/// Calls `each(member)` for every member of all lines with this name. False: one is no dictionary.
template <class Each>
bool for_each_entry(field_list fields, std::string_view name, Each&& each) {
    for (const auto& line : fields) {
        if (!iequals(line.name, name)) {
            continue;
        }
        dictionary_reader reader{line.value};
        while (const auto member = reader.next()) {
            each(*member);
        }
        if (reader.failed()) {
            return false;
        }
    }
    return true;
}

char in_lower_case(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// RFC 9421 2.2.3: in lower case, without the scheme's own port.
void append_authority(std::string& out, const signed_request& of) {
    auto host = of.host;
    const std::string_view own_port = of.secure ? ":443" : ":80";
    if (host.ends_with(own_port)) {
        host.remove_suffix(own_port.size());
    }
    std::transform(host.begin(), host.end(), std::back_inserter(out), in_lower_case);
}

/// 2.2; false: not one of those that are known.
bool append_derived(std::string& out, const signed_request& of, std::string_view name) {
    const auto mark = std::min(of.target.find('?'), of.target.size());
    const auto path = of.target.substr(0, mark);
    const auto query = of.target.substr(mark);
    const std::string_view scheme = of.secure ? "https" : "http";
    if (name == "@method") {
        out += of.method;
    } else if (name == "@authority") {
        append_authority(out, of);
    } else if (name == "@scheme") {
        out += scheme;
    } else if (name == "@request-target") {
        out += of.target;
    } else if (name == "@path") {
        out += path.empty() ? "/" : path;
    } else if (name == "@query") {
        out += query.empty() ? "?" : query;
    } else if (name == "@target-uri") {
        out.append(scheme).append("://");
        append_authority(out, of);
        out += of.target;
    } else {
        return false;
    }
    return true;
}

/// 2.1: the lines of one field, joined. False: there is none.
bool append_lines(std::string& out, field_list fields, std::string_view name) {
    bool any = false;
    for (const auto& line : fields) {
        if (iequals(line.name, name)) {
            out += any ? ", " : "";
            out += line.value;
            any = true;
        }
    }
    return any;
}

bool is_field_name(std::string_view name) noexcept {
    return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
        return is_tchar(c) && in_lower_case(c) == c;
    });
}

bool append_component(std::string& out, const signed_request& of, std::string_view name) {
    out.append("\"").append(name).append("\": ");
    const auto begin = out.size();
    const bool known = name.starts_with('@')
                           ? append_derived(out, of, name)
                           : is_field_name(name) && append_lines(out, of.fields, name);
    // No parsed head has a line end in a value; a base with one would have two readings.
    const bool is_one_line = out.find_first_of("\r\n", begin) == std::string::npos;
    out += '\n';
    return known && is_one_line;
}

}  // namespace

signature_search find_signature(field_list fields,
                                std::string_view tag,
                                message_signature& found) noexcept {
    std::size_t tagged = 0;
    sf_member input;
    const bool inputs_are_sound = for_each_entry(
        fields, signature_input_field, [&](const sf_member& one) {
            if (has_tag(one.value, tag)) {
                ++tagged;
                input = one;
            }
        });
    if (!inputs_are_sound) {
        return signature_search::malformed;
    }
    if (tagged == 0) {
        return signature_search::none;
    }
    if (tagged > 1 || input.value.kind != sf_kind::inner_list) {
        return signature_search::malformed;
    }
    message_signature out;
    out.label = input.key;
    out.covered = input.value.text;
    out.parameters = input.value.parameters;
    parameter_reader parameters{out.parameters};
    while (const auto one = parameters.next()) {
        if (!take_parameter(out, *one)) {
            return signature_search::malformed;
        }
    }
    std::size_t labelled = 0;
    sf_value value;
    const bool signatures_are_sound = for_each_entry(
        fields, signature_field, [&](const sf_member& one) {
            if (one.key == out.label) {
                ++labelled;
                value = one.value;
            }
        });
    std::size_t inputs_so_labelled = 0;
    (void)for_each_entry(fields, signature_input_field, [&](const sf_member& one) {
        inputs_so_labelled += one.key == out.label ? 1 : 0;
    });
    if (!signatures_are_sound || labelled != 1 || inputs_so_labelled != 1 ||
        value.kind != sf_kind::byte_sequence || !value.parameters.empty()) {
        return signature_search::malformed;
    }
    out.base64 = value.text;
    found = out;
    return signature_search::found;
}

bool append_signature_base(std::string& out,
                           const signed_request& request,
                           const message_signature& by) {
    inner_list_reader components{by.covered};
    while (const auto one = components.next()) {
        if (one->kind != sf_kind::string || !one->parameters.empty() || has_escape(one->text)) {
            return false;
        }
        inner_list_reader before{by.covered};
        for (auto other = before.next(); other && other->text.data() != one->text.data();
             other = before.next()) {
            if (other->text == one->text) {
                return false;
            }
        }
        if (!append_component(out, request, one->text)) {
            return false;
        }
    }
    out.append("\"@signature-params\": (").append(by.covered).append(")").append(by.parameters);
    return !components.failed();
}

bool covers(const message_signature& by, std::string_view component) noexcept {
    inner_list_reader components{by.covered};
    while (const auto one = components.next()) {
        if (one->kind == sf_kind::string && one->parameters.empty() && one->text == component) {
            return true;
        }
    }
    return false;
}

}  // namespace reprise::proxy::http
