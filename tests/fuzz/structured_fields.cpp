// Any text as a dictionary and as a targeted field: what is given out lies within the text, two lines read as one, and
// what is no dictionary governs nothing. What a dictionary took for an inner list, or for parameters, is one; any other text
// ends as one or fails.

#include "proxy/http/structured_fields.hpp"

#include "proxy/http/targeted.hpp"
#include "tests/fuzz/require.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace reprise::fuzz;
using namespace reprise::proxy::http;

void check(const sf_value& value, std::string_view within) {
    const auto lies_within = [&](std::string_view part) {
        return part.empty() || (part.data() >= within.data() &&
                                part.data() + part.size() <= within.data() + within.size());
    };
    require(lies_within(value.text) && lies_within(value.parameters));
    constexpr std::int64_t most = 999'999'999'999'999;
    require(value.number >= -most && value.number <= most);
}

/// Whether it is read to its end.
bool has_parameters(std::string_view text) {
    parameter_reader reader{text};
    while (const auto one = reader.next()) {
        require(!one->key.empty());
        check(one->value, text);
    }
    return !reader.failed();
}

bool has_items(std::string_view text) {
    inner_list_reader reader{text};
    while (const auto one = reader.next()) {
        check(*one, text);
        require(one->kind != sf_kind::inner_list && has_parameters(one->parameters));
    }
    return !reader.failed();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = text_of(data, size);
    bool any = false;
    dictionary_reader reader{text};
    while (const auto member = reader.next()) {
        require(!member->key.empty());
        check(member->value, text);
        require(has_parameters(member->value.parameters));
        require(member->value.kind != sf_kind::inner_list || has_items(member->value.text));
        any = true;
    }
    const bool valid = !reader.failed();
    (void)has_parameters(text);
    (void)has_items(text);

    static const std::vector<std::string> targets{"CDN-Cache-Control"};
    const std::array<field, 2> lines{
        field{field_id::unknown, "CDN-Cache-Control", text},
        field{field_id::unknown, "cdn-cache-control", "no-store, max-age=9"}};
    const auto allowed = read_governing_directives(field_list{lines}.first(1), targets);
    require(allowed.targeted == (valid && any));
    require(allowed.targeted || allowed == response_directives{});
    for (const auto& time : {allowed.max_age, allowed.s_maxage, allowed.stale_if_error}) {
        require(!time || (*time >= seconds{0} && *time <= longest_delta));
    }
    const auto both = read_governing_directives(lines, targets);
    require(both.targeted == (valid && any));
    require(!both.targeted || (both.no_store && both.max_age == seconds{9}));
    return 0;
}
