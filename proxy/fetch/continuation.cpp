#include "proxy/fetch/continuation.hpp"

#include "proxy/http/range.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace reprise::proxy::fetch {

namespace {

using http::field_id;

constexpr std::array described_by{field_id::content_type,
                                  field_id::content_encoding,
                                  field_id::content_language,
                                  field_id::content_location,
                                  field_id::etag,
                                  field_id::last_modified};

std::vector<std::string_view> values_of(http::field_list fields, field_id id) {
    std::vector<std::string_view> values;
    for (const auto& line : fields) {
        if (line.id == id) {
            values.push_back(line.value);
        }
    }
    return values;
}

bool is_same_range(const cache::fetched_head& begun, http::field_list next) {
    const auto* line = http::find(next, field_id::content_range);
    const auto range = line != nullptr ? http::parse_content_range(line->value)
                                       : http::content_range{};
    return begun.range_total != 0 && range.first == begun.range_first &&
           range.last == begun.range_last && range.total == begun.range_total;
}

}  // namespace

bool continues(const cache::fetched_head& begun,
               const http::response_head& next,
               const http::body_framing& framing) {
    if (next.status != begun.status) {
        return false;
    }
    if (begun.length && framing.kind == http::body_kind::length &&
        *begun.length != framing.length) {
        return false;
    }
    if (next.status == 206 && !is_same_range(begun, next.fields)) {
        return false;
    }
    const auto lines = cache::lines_of(begun);
    return std::all_of(described_by.begin(), described_by.end(), [&](field_id id) {
        return values_of(lines, id) == values_of(next.fields, id);
    });
}

}  // namespace reprise::proxy::fetch
