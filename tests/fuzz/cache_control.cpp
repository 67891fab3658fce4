// Any Cache-Control value is read, on either side; times keep to their bounds; and a further
// no-store on a line of its own is never overlooked.

#include "proxy/http/cache_control.hpp"

#include "tests/fuzz/require.hpp"

#include <array>
#include <optional>
#include <string_view>

namespace {

using namespace reprise::fuzz;
using namespace reprise::proxy::http;

void check(const std::optional<seconds>& time) {
    require(!time || (*time >= seconds{0} && *time <= longest_delta));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = text_of(data, size);
    const std::array<field, 2> lines{field{field_id::cache_control, "Cache-Control", text},
                                     field{field_id::cache_control, "Cache-Control", "no-store"}};
    const auto allowed = read_response_directives(field_list{lines}.first(1));
    check(allowed.max_age);
    check(allowed.s_maxage);
    check(allowed.stale_while_revalidate);
    check(allowed.stale_if_error);
    for (const std::string_view needed : {"Vary", "etag", "CACHE-CONTROL"}) {
        require(!withheld_names{lines}.has({field_id::unknown, needed, ""}));
    }
    // What is withheld was named, by a directive that is obeyed field by field or whole.
    if (withheld_names{field_list{lines}.first(1)}.has({field_id::unknown, "x", ""})) {
        require(allowed.no_cache || allowed.no_cache_fields || allowed.private_ ||
                allowed.private_fields);
    }
    auto with_no_store = allowed;
    with_no_store.no_store = true;
    require(read_response_directives(lines) == with_no_store);

    const auto asked = read_request_directives(field_list{lines}.first(1));
    check(asked.max_age);
    check(asked.min_fresh);
    check(asked.max_stale);
    require(read_request_directives(lines).no_store);
    return 0;
}
