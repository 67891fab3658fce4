// A Vary line and two requests' lines, cut from one text at its line feeds: a request matches the
// values it made itself, matching is comparing canonical texts, and a preference list read again
// from its canonical form is the same.

#include "proxy/http/vary.hpp"

#include "proxy/http/preferences.hpp"
#include "tests/fuzz/require.hpp"

#include <array>
#include <string>
#include <string_view>

namespace {

using namespace reprise::fuzz;
using namespace reprise::proxy::http;

std::array<field, 3> take_request(std::string_view& text) {
    return {field{field_id::accept_language, "Accept-Language", take_line(text)},
            field{field_id::unknown, "Foo", take_line(text)},
            field{field_id::accept_language, "accept-language", take_line(text)}};
}

std::string canonical(const preference_list& list) {
    std::string all;
    for (const auto& [name, weight] : list.members()) {
        all.append(all.empty() ? "" : ",").append(name);
        if (!weight.empty()) {
            all.append(";q=").append(weight);
        }
    }
    return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    auto text = text_of(data, size);
    const std::array<field, 2> response{field{field_id::vary, "Vary", take_line(text)},
                                        field{field_id::vary, "Vary", "Accept-Language"}};
    const auto spec = read_vary(response);
    require(varies_by_anything(response) == spec.any);
    require(spec.any == spec.names.empty());
    const auto one = take_request(text);
    const auto other = take_request(text);
    const auto ones = selecting_values(spec, one);
    require(matches(spec, ones, one) == !spec.any);
    require(matches(spec, ones, other) == (!spec.any && selecting_values(spec, other) == ones));

    const preference_list list{one, "accept-language"};
    if (list.is_plain()) {
        const auto written = canonical(list);
        const field again{field_id::accept_language, "Accept-Language", written};
        const preference_list reread{{&again, 1}, "accept-language"};
        require(reread.is_plain() && canonical(reread) == written);
    }
    return 0;
}
