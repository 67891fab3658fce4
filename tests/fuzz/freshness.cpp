// Any Date, Expires, Age and Last-Modified, cut from one text at its line feeds, with any
// Cache-Control behind them: ages and lifetimes are never negative nor beyond what can be read, the
// two forms of the freshness test agree, and time only makes a response older.

#include "proxy/http/freshness.hpp"

#include "proxy/http/reuse.hpp"
#include "tests/fuzz/require.hpp"

#include <array>
#include <string_view>

namespace {

using namespace reprise::fuzz;
using namespace reprise::proxy::http;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    auto text = text_of(data, size);
    const std::array<field, 5> response{
        field{field_id::date, "Date", take_line(text)},
        field{field_id::expires, "Expires", take_line(text)},
        field{field_id::age, "Age", take_line(text)},
        field{field_id::last_modified, "Last-Modified", take_line(text)},
        field{field_id::cache_control, "Cache-Control", take_line(text)}};
    const reprise::proxy::wall_time arrived{seconds{784111777}};
    const auto allowed = read_response_directives(response);
    for (const unsigned status : {200u, 404u, 503u, 999u}) {
        for (const auto& rules : {freshness_rules{},
                                  freshness_rules{.negative = seconds{10}},
                                  freshness_rules{.negative = seconds{10},
                                  .at_least = seconds{30},
                                  .at_most = seconds{3600},
                                  .set_aside = {.expires = true, .max_age = true}}}) {
            // Expires and its absence.
            for (const field_list lines : {field_list{response}, field_list{response}.subspan(2)}) {
                const auto facts = freshness_of(
                    status, lines, allowed, arrived - seconds{2}, arrived, rules);
                require(facts.initial_age >= seconds{2});
                require(facts.lifetime >= seconds{0});
                require(facts.source != lifetime_source::none || facts.lifetime == seconds{0});
                require(facts.source != lifetime_source::negative ||
                        facts.lifetime == rules.negative);
                require(!rules.at_most || facts.lifetime <= *rules.at_most);
                require(status != 200 || facts.lifetime >= rules.at_least ||
                        facts.source == lifetime_source::s_maxage);
                seconds before{0};
                for (const auto later : {-5, 0, 1, 59, 60, 86400}) {
                    const auto now = arrived + seconds{later};
                    const auto age = current_age(facts, now);
                    require(age >= before && age >= facts.initial_age);
                    before = age;
                    const bool fresh = age < facts.lifetime;
                    require(fresh == (now < fresh_until(facts)));
                    require(fresh == (remaining(facts, now) > seconds{0}));
                    const bool reusable = judge_reuse(allowed, facts, {}, now).what == reuse::fresh;
                    require(reusable == (now < reusable_until(allowed, facts)));
                }
            }
        }
    }
    return 0;
}
