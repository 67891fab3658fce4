#include "config/admission_settings.hpp"

#include "config/checks.hpp"

#include <chrono>
#include <utility>

namespace reprise::config {
namespace {

using namespace std::chrono_literals;
using enum change;

constexpr auto day = 24h;

// "policy" and "hits" stand in three places: at the top, in a listener, in a rule.
template <class T, class Choice>
std::vector<row<T>> choice_rows(Choice choice) {
    const auto policy = [choice](auto& in) -> auto& {
        return std::invoke(choice, in).policy;
    };
    const auto hits = [choice](auto& in) -> auto& {
        return std::invoke(choice, in).hits;
    };
    return {
        value<T>("policy",
                 policy,
                 one_of<admission_policy>({{"second-hit", admission_policy::second_hit},
                                           {"always", admission_policy::always},
                                           {"never", admission_policy::never},
                                           {"nth-hit", admission_policy::nth_hit}}),
                 live,
                 "At which request an object is stored. \"always\" stores what is never asked for "
                 "again; \"second-hit\" costs one more fetch of what is."),
        by_default(
            "none",
            value<T>("hits",
                     hits,
                     small_count_between(1, 15, "requests"),
                     live,
                     "With \"nth-hit\" alone, and then needed: the request that stores. More keeps "
                     "out what is seldom asked for and costs as many fetches.")),
    };
}

}  // namespace

object_table<admission_choice> choice_table() {
    return {
        choice_rows<admission_choice>([](auto& in) -> auto& { return in; }), "policy", check_hits};
}

object_table<admission_options> admission_table() {
    const object_table<remember_options> remember{{
        value("objects",
              &remember_options::objects,
              count_between(1'000, 1'000'000'000, "objects"),
              restart,
              "How many distinct objects the filter remembers. More recognises rarer ones; its "
              "memory grows in proportion."),
        value("age",
              &remember_options::age,
              seconds_between(1min, 366 * day),
              restart,
              "For how long a sight is remembered at least, as long as no more "
              "than `objects` came after it."),
    }};
    const auto rule_choice = choice_rows<admission_rule>(&admission_rule::choice);
    const object_table<admission_rule> rule{
        {
            required(value("url",
                           &admission_rule::url,
                           url_pattern(),
                           live,
                           "Which URLs the rule is for. * stands for any run of "
                           "characters: \"http://*.example.org/*\".")),
            required(rule_choice[0]),
            rule_choice[1],
        },
        {},
        [](const admission_rule& into, const given& members, const place& here) {
            check_hits(into.choice, members, here);
        }};
    auto rows = choice_rows<admission_options>(&admission_options::choice);
    rows.insert(
        rows.end(),
        {
            object("remember",
                   &admission_options::remember,
                   remember,
                   "How much the filter remembers, which decides how large it is."),
            value("false_positive_rate",
                  &admission_options::false_positive_rate,
                  fraction_between(1e-6, 0.5),
                  restart,
                  "How often a first sight is stored by mistake when the filter is full. Less "
                  "costs memory, in proportion to its logarithm."),
            objects("rules",
                    &admission_options::rules,
                    rule,
                    0,
                    1'000,
                    live,
                    "Policies for some URLs; the first that matches decides. Each is tried in "
                    "turn for what is not in the store, so many cost time."),
            value("state",
                  &admission_options::state,
                  path_or_off(),
                  restart,
                  "The file that keeps what the filter remembers over a restart "
                  "(mode 0600); \"off\": it starts empty."),
            value("save_every",
                  &admission_options::save_every,
                  seconds_between(1s, 1 * day),
                  live,
                  "How often `state` is written, beside at shutdown. Longer "
                  "spares the disk; a crash forgets as much."),
        });
    return {std::move(rows),
            "policy",
            [](admission_options& into, const given& members, const place& here) {
                check_hits(into.choice, members, here);
            }};
}

}  // namespace reprise::config
