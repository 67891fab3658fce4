// Any Range value against representations of several lengths: what is satisfiable lies within,
// what is not has no parts, several parts are disjoint and no larger than the whole, and an
// If-Range of any text never holds by accident.

#include "proxy/http/range.hpp"

#include "proxy/http/multipart.hpp"
#include "tests/fuzz/require.hpp"

#include <array>
#include <span>
#include <string_view>

namespace {

using namespace reprise::fuzz;
using namespace reprise::proxy::http;

/// Disjoint, and what is sent of them is less than the whole, heads included.
void check_parts(std::span<const byte_range> parts, std::uint64_t length) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
        require(parts[i].first <= parts[i].last && parts[i].last < length);
        for (std::size_t j = 0; j < i; ++j) {
            require(parts[i].last < parts[j].first || parts[j].last < parts[i].first);
        }
    }
    if (parts.size() > 1 && length <= std::uint64_t{1} << 40) {
        const multipart_ranges body{parts, length, "a/b", "0123456789abcdef"};
        require(body.content_length() < length);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = text_of(data, size);
    const reprise::proxy::wall_time now{std::chrono::seconds{784111777}};
    for (const std::uint64_t length : {std::uint64_t{0},
                                       std::uint64_t{1},
                                       std::uint64_t{1000},
                                       std::uint64_t{1} << 40,
                                       ~std::uint64_t{0}}) {
        const auto set = parse_ranges(text, length);
        require(set.count <= most_ranges);
        require((set.answer == range_answer::part) == (set.count > 0));
        for (const auto& part : set.ranges()) {
            require(part.first <= part.last && part.last < length);
        }
        const std::array<field, 1> request{field{field_id::range, "Range", text}};
        const auto judged = judge_ranges("GET", request, {}, length, now);
        require(judged.answer != range_answer::part || set.answer == range_answer::part);
        require((judged.answer == range_answer::unsatisfiable) ==
                (set.answer == range_answer::unsatisfiable));
        check_parts(judged.ranges(), length);
    }
    const std::array<field, 1> conditional{field{field_id::if_range, "If-Range", text}};
    const std::array<field, 1> stored{field{field_id::etag, "ETag", "\"a\""}};
    require(if_range_holds(conditional, stored, now) == (text == "\"a\""));
    return 0;
}
