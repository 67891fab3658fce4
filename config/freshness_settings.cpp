#include "config/freshness_settings.hpp"

#include "config/checks.hpp"
#include "config/units.hpp"
#include "config/unread.hpp"

#include <chrono>

namespace reprise::config {
namespace {

using namespace std::chrono_literals;
using enum change;

object_table<freshness_rule> rule_table() {
    return {
        {
            required(value("url",
                           &freshness_rule::url,
                           url_pattern(),
                           live,
                           "Which URLs the rule is for, written as in admission.rules.")),
            value("at_least",
                  &freshness_rule::at_least,
                  seconds_between(0s, 366 * day),
                  live,
                  "A response whose origin states no lifetime is fresh for at least so long (RFC "
                  "9111 4.2.2), and one that states a shorter one too where `override` names how "
                  "it is stated. Errors (4xx and 5xx, but for 410) and redirects that are not "
                  "permanent (302, 303, 307) are not meant. Longer spares "
                  "more requests, and shows as much longer what the origin has replaced."),
            by_default("none",
                       value("at_most",
                             &freshness_rule::at_most,
                             optional(seconds_between(0s, 366 * day)),
                             live,
                             "No response is fresh for longer, whoever says so: a cache may always "
                             "ask sooner (RFC 9111 4.2). Less finds changes sooner, and asks "
                             "origins more. Purges make it needless where they come.")),
            by_default("as freshness.heuristic_fraction",
                       value("heuristic_fraction",
                             &freshness_rule::heuristic_fraction,
                             optional(fraction_between(0, 1)),
                             live,
                             "In place of freshness.heuristic_fraction (RFC 9111 4.2.2).")),
            by_default("as freshness.heuristic_most",
                       value("heuristic_most",
                             &freshness_rule::heuristic_most,
                             optional(seconds_between(0s, 366 * day)),
                             live,
                             "In place of freshness.heuristic_most.")),
            value("override",
                  &freshness_rule::overrides,
                  list_of(one_of<overridden>({{"expires", overridden::expires},
                                              {"max-age", overridden::max_age},
                                              {"s-maxage", overridden::s_maxage},
                                              {"no-store", overridden::no_store},
                                              {"no-cache", overridden::no_cache},
                                              {"private", overridden::private_response},
                                              {"must-revalidate", overridden::must_revalidate}}),
                          0,
                          7),
                  live,
                  "What the origin says and this cache does not obey; each breaks RFC 9111. "
                  "\"expires\" (5.3), \"max-age\" (5.2.2.1) and \"s-maxage\" (5.2.2.10): a "
                  "lifetime that is stated so is raised to at_least. \"no-store\" (5.2.2.5) and "
                  "\"private\" (5.2.2.7): it is stored and shared all the same. \"no-cache\" "
                  "(5.2.2.4): it answers without being validated; neither where it names fields "
                  "that can't be left out alone, nor with any in a targeted field. "
                  "\"must-revalidate\" (5.2.2.2, "
                  "and proxy-revalidate, 5.2.2.8): it may be sent stale. None of them, nor "
                  "at_least, is for what belongs to one client: a response to a request with "
                  "Authorization or Cookie, or one with Set-Cookie, is judged as if the rule "
                  "had neither. More hits, of things that the origin did not want shared."),
            value(
                "reload",
                &freshness_rule::reload,
                one_of<reload_answer>(
                    {{"obey", reload_answer::obey}, {"ignore", reload_answer::ignore}}),
                live,
                "Requests that want the origin asked (no-cache, RFC 9111 5.2.1.4; max-age=0, "
                "5.2.1.1; Pragma: no-cache, 5.4), as a browser's reload does. \"obey\" validates "
                "what is stored, and fetches it anew only if it changed; \"ignore\" answers as if "
                "they did not say so, which breaks the RFC: nobody but a purge gets a newer one "
                "before the lifetime is over."),
        },
        {},
        check_freshness_rule};
}

}  // namespace

object_table<freshness_options> freshness_table() {
    return {
        {
            value("heuristic_fraction",
                  &freshness_options::heuristic_fraction,
                  fraction_between(0, 1),
                  live,
                  "A response that does not say how long it is fresh is so for this "
                  "fraction of the time since its Last-Modified (RFC 9111 4.2.2). "
                  "More hits, and more of them out of date; 0: none."),
            value("heuristic_most",
                  &freshness_options::heuristic_most,
                  seconds_between(0s, 366 * day),
                  live,
                  "But at most for so long."),
            value("heuristic_errors",
                  &freshness_options::heuristic_errors,
                  yes_or_no(),
                  live,
                  "Whether that holds for 404, 405, 414 and 501 too, as RFC 9110 15.1 allows; it "
                  "does "
                  "for what says `public`, whatever is set here (RFC 9111 4.2.2). Few "
                  "errors have a Last-Modified; one that has may be a page that is back by then."),
            value(
                "negative",
                &freshness_options::negative,
                seconds_between(0s, 1 * day),
                live,
                "How long a 404, 410 or 5xx is fresh that does not say so itself. Longer spares a "
                "failing origin the repetition, and shows its failure for as long after it is "
                "mended; for 5xx it goes beyond RFC 9111 4.2.2. 0s: none."),
            value(
                "stale_on_error",
                &freshness_options::stale_on_error,
                seconds_between(0s, 366 * day),
                live,
                "When the origin's name does not resolve, or it does not answer, a stored response "
                "that went stale less than this ago is sent all the same, unless it forbids that "
                "(RFC 9111 4.2.4); and so is one that the client would rather have had validated "
                "(no-cache, max-age, min-fresh: 5.2.1). More outages go unnoticed; 0s: none."),
            value("stale_on_error_status",
                  &freshness_options::stale_on_error_status,
                  yes_or_no(),
                  live,
                  "Whether stale_on_error holds too when the origin answers 500, 502, 503 or 504, "
                  "though the response did not say stale-if-error (RFC 5861 4). More failures go "
                  "unnoticed, those that were meant to be seen among them."),
            objects(
                "rules",
                &freshness_options::rules,
                rule_table(),
                0,
                1'000,
                live,
                "Lifetimes for some URLs; the first rule that matches decides. A rule is asked "
                "for when a response comes, so one that a reload brings holds for what is stored "
                "or validated from then on; what is stored already keeps its lifetime. `reload` "
                "is asked for with each request, and holds at once."),
        },
        {},
        [](const freshness_options& into, const given& members, const place& here) {
            check_freshness(into, members, here);
            check_shadowed(into.rules, members, here);
        }};
}

}  // namespace reprise::config
