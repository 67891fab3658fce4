#include "config/admission_settings.hpp"

#include "config/checks.hpp"
#include "config/units.hpp"
#include "config/unread.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

// `remember` is no plain row, since it is a text or an object: what it reads, keeps at a reload and
// describes goes on to the object's own table.

namespace reprise::config {
namespace {

using namespace std::chrono_literals;
using enum change;

// "policy" and "hits" stand in three places: at the top, in a listener, in a rule.
row<admission_choice> policy_row() {
    return value(
        "policy",
        &admission_choice::policy,
        one_of<admission_policy>({{"second-hit", admission_policy::second_hit},
                                  {"always", admission_policy::always},
                                  {"never", admission_policy::never},
                                  {"nth-hit", admission_policy::nth_hit},
                                  {"tinylfu", admission_policy::tinylfu},
                                  {"auto", admission_policy::automatic}}),
        live,
        "At which request an object is stored. \"always\" stores what is never asked for "
        "again; \"second-hit\" costs one more fetch of what is; \"tinylfu\" stores what "
        "was asked for more often than what leaves nowadays; \"auto\" is whichever of these "
        "/stats finds best, with probation or without, second-hit with probation 100% to "
        "begin with; with memory.policy \"gdsf\" it finds how much size counts, too.");
}

row<admission_choice> hits_row() {
    return by_default(
        "none",
        value("hits",
              &admission_choice::hits,
              small_count_between(1, 15, "requests"),
              live,
              "With \"nth-hit\" alone, and then needed: the request that stores. More keeps "
              "out what is seldom asked for and costs as many fetches."));
}

// The object that says how much is remembered, or "auto" in its place.
struct auto_or_object {
    object_table<remember_options> table;
    std::string_view why;

    void read(const json_value& from, remember_options& into, const place& here) const {
        if (from.kind == json_kind::text && from.text == "auto") {
            into.automatic = true;
        } else if (from.kind == json_kind::object) {
            into.automatic = false;
            read_object(table, from, into, here);
        } else {
            here.wrong(from, "must be \"auto\", or an object: { ... }");
        }
    }
    void keep(const remember_options& before,
              remember_options& next,
              const std::string& at,
              put_back& kept) const {
        if (before.automatic != next.automatic) {
            next = before;
            kept.names.push_back(at);
        } else {
            keep_in_object(table, before, next, at, kept);
        }
    }
    void describe(const remember_options& standard,
                  const std::string& at,
                  std::vector<setting>& out) const {
        const auto* shown = standard.automatic ? "\"auto\"" : "{}";
        out.push_back({{"\"auto\" or object"}, at, shown, false, restart, why});
        describe_object(table, standard, at, out);
    }
};

}  // namespace

object_table<admission_choice> choice_table() {
    return {{policy_row(), hits_row()}, "policy", check_hits};
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
    const object_table<admission_rule> rule{
        {
            required(value("url",
                           &admission_rule::url,
                           url_pattern(),
                           live,
                           "Which URLs the rule is for. * stands for any run of "
                           "characters: \"http://*.example.org/*\". An accelerator's are "
                           "http:// (with `tls` https://) and what Host says.")),
            required(within(&admission_rule::choice, policy_row())),
            within(&admission_rule::choice, hits_row()),
        },
        {},
        [](const admission_rule& into, const given& members, const place& here) {
            check_hits(into.choice, members, here);
        }};
    return {
        {
            within(&admission_options::choice, policy_row()),
            within(&admission_options::choice, hits_row()),
            by_default(
                "0%; with disk.path or \"policy\": \"auto\" 100%",
                value("probation",
                      &admission_options::probation,
                      percentage_between(0, 1),
                      live,
                      "The share of memory where what is asked for a first time waits, so that a "
                      "soon "
                      "second request needs no second fetch. More spares origins more of them, and "
                      "leaves as much less to what was admitted; once the disk is full nothing is "
                      "written there of what waits (disk.selective). \"0%\": strictly at the "
                      "second request. \"100%\": all of memory takes "
                      "first requests, in the order of memory.policy, and admission decides only "
                      "what "
                      "goes to disk.")),
            value("frozen",
                  &admission_options::frozen,
                  yes_or_no(),
                  live,
                  "With \"auto\": what it has chosen stays, and what it would choose is told in "
                  "/stats alone."),
            row_of({"remember"},
                   &admission_options::remember,
                   auto_or_object{
                       remember,
                       "How much the filter remembers, which decides how large it is. "
                       "\"auto\" follows the store: for as long as an object stays there "
                       "unused, since what is asked for again later than that would not have "
                       "been kept; within a 64th of memory.size and a 4096th of disk.size."}),
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
            value("share",
                  &admission_options::share,
                  yes_or_no(),
                  restart,
                  "Whether siblings with the same digest.secret_file are told what was asked for "
                  "here once, and theirs counts here: then a second request anywhere in the fleet "
                  "is a second. Off, each must fetch an object twice to keep it."),
        },
        "policy",
        [](admission_options& into, const given& members, const place& here) {
            into.has_probation = {members.has("probation")};
            into.has_share = {members.has("share")};
            check_hits(into.choice, members, here);
            check_master({"save_every"},
                         "state",
                         "save_every says how often it is written; write a file, or \"off\"",
                         members,
                         here);
            if (into.frozen && into.choice.policy != admission_policy::automatic) {
                here.member("frozen").wrong("is for \"policy\": \"auto\" alone");
            }
            check_shadowed(into.rules, members, here);
        }};
}

}  // namespace reprise::config
