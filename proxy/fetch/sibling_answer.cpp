#include "proxy/fetch/sibling_answer.hpp"

#include "proxy/cache/verdict.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/range.hpp"
#include "proxy/http/reuse.hpp"
#include "proxy/http/storability.hpp"
#include "proxy/http/targeted.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace reprise::proxy::fetch {

namespace {

constexpr unsigned most_lines = std::numeric_limits<unsigned>::max();  // of what we wrote

bool may_answer(unsigned status) noexcept {
    return (status >= 200 && status < 400) || status == 404 || status == 410;
}

// A part answers a request for that part, or for several that it makes up; many parts answer a
// request for several.
bool is_part_asked_for(http::field_list answer, std::string_view asked) {
    const auto* range = http::find(answer, http::field_id::content_range);
    if (range == nullptr) {
        const auto* type = http::find(answer, http::field_id::content_type);
        return asked.find(',') != std::string_view::npos && type != nullptr &&
               http::iequals(type->value.substr(0, type->value.find(';')), "multipart/byteranges");
    }
    const auto part = http::parse_content_range(range->value);
    if (part.total == 0 || http::count(answer, http::field_id::content_range) != 1) {
        return false;
    }
    const auto wanted = http::parse_ranges(asked, part.total);
    const auto any = [&](auto&& is) {
        return std::any_of(wanted.ranges().begin(), wanted.ranges().end(), is);
    };
    return any([&](const http::byte_range& one) { return one.first == part.first; }) &&
           any([&](const http::byte_range& one) { return one.last == part.last; });
}

// Whether a request of these bytes can have this status for an answer: 304 and 206 only if it asked
// for them.
bool fits(const http::response_head& answer, std::string_view request) {
    if (answer.status != 304 && answer.status != 206) {
        return true;
    }
    std::vector<http::field> lines;
    request.remove_prefix(std::min(request.find("\r\n") + 2, request.size()));
    request.remove_suffix(std::min<std::size_t>(2, request.size()));  // the empty line
    if (http::parse_field_lines(request, lines, most_lines) != nullptr) {
        return false;
    }
    const auto facts = cache::read_request_facts(true, false, lines);
    return answer.status == 304
               ? facts.has_conditions
               : facts.has_range &&
                     is_part_asked_for(answer.fields,
                                       http::find(lines, http::field_id::range)->value);
}

// Whether a cache that shares what it stores may have had it, and may give it out now.
bool is_shared_and_current(const http::response_head& head, const sibling_terms& terms) {
    const auto rules = http::is_personal({}, head.fields) ? terms.rules.for_one_client()
                                                          : terms.rules;
    const auto said = http::without(http::read_governing_directives(head.fields, terms.targeted),
                                    rules.set_aside);
    const bool understood = said.must_understand && http::is_understood(head.status);
    if (said.private_ || (said.no_store && !understood) || said.no_cache) {
        return false;
    }
    const auto facts = http::freshness_of(
        head.status, head.fields, said, terms.sent, terms.came, rules);
    if (terms.max_age && facts.initial_age >= *terms.max_age) {
        return false;
    }
    return !http::is_explicit(facts.source) ||
           http::judge_reuse(said, facts, terms.asked, terms.came).what !=
               http::reuse::must_validate ||
           http::may_serve_while_revalidating(said, facts, terms.came);
}

}  // namespace

sibling_answer judge_sibling_answer(const http::response_head& head,
                                    std::size_t received,
                                    const sibling_terms& terms) {
    sibling_answer out;
    const auto framing = http::response_framing(head, boost::beast::http::verb::get);
    if (!framing) {
        return out;
    }
    out.is_framed = true;
    const bool has_length = framing->kind == http::body_kind::length;
    const bool is_empty = framing->kind == http::body_kind::none ||
                          (has_length && framing->length == 0);
    out.has_begun = is_empty || received > head.bytes;
    if (framing->reusable && (has_length || framing->kind == http::body_kind::none)) {
        const auto come = received - head.bytes;
        const auto said = has_length ? framing->length : 0;
        out.frees_connection = come == said && http::keep_alive(head.version, head.fields);
        out.has_surplus = come > said;
    }
    if (may_answer(head.status) && framing->kind != http::body_kind::until_close &&
        fits(head, terms.request) && is_shared_and_current(head, terms)) {
        out.age = http::stated_age(head.fields);  // which says that it comes from a store
    }
    return out;
}

}  // namespace reprise::proxy::fetch
