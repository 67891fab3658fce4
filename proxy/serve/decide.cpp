#include "proxy/serve/decide.hpp"

#include "proxy/http/forwarding.hpp"

// The order is that of what may be known: whoever may not ask learns nothing of the store, and
// nobody is refused an answer that is stored because its origin could not be asked.

namespace reprise::proxy::serve {

namespace {

using boost::beast::http::verb;

// OPTIONS and TRACE: how far they go is their client's to say (RFC 9110 7.6.2).
std::optional<answer> decide_hops(const request& asked) {
    const auto& head = *asked.head;
    if (head.method != verb::options && head.method != verb::trace) {
        return std::nullopt;
    }
    const auto hops = http::judge_hops(head);
    if (!hops) {
        return answers::refused{hops.error()};
    }
    const bool of_proxy = asked.target.form == http::target_form::asterisk && !asked.accelerator &&
                          !asked.inside;
    if (hops->what != http::hops::answer_here && !of_proxy) {
        return std::nullopt;
    }
    answers::local here;
    if (head.method == verb::trace) {
        http::append_trace(here.text, head);
        here.type = "message/http";
    }
    return here;
}

}  // namespace

std::optional<decision> decide(const request& asked,
                               const thread::settings& now,
                               std::string_view pseudonym) {
    const auto as = [](answer what) { return decision{std::move(what), {}}; };
    if (!asked.accelerator && !now.options.access.deny_destinations.empty() &&
        denies_host(now, asked.target)) {
        return as(answers::refused{
            failure{failure_code::destination_refused,
                    std::string{asked.target.host} + " is in access.deny_destinations"}});
    }
    if (!asked.accelerator && now.blocked && now.blocked->holds(asked.target.host)) {
        return as(answers::refused{
            failure{failure_code::host_blocked,
                    std::string{asked.target.host} + " is in access.block_lists"}});
    }
    if (asked.head->method == verb::connect) {
        if (auto refused = judge_tunnel(now, asked, pseudonym)) {
            return as(answers::refused{std::move(*refused)});
        }
        return as(answers::tunnel{});
    }
    if (auto here = decide_hops(asked)) {
        return as(std::move(*here));
    }
    if (asked.head->method == verb::purge) {
        return as(answers::purge{});
    }
    if (!asked.passes()) {
        return std::nullopt;
    }
    decision out{answers::passed{}, {}};
    out.why.why = cache::rule::method;
    out.why.forward = http::forward_reason::method;
    if (auto refused = judge_destination(now, asked, pseudonym)) {
        out.what = answers::refused{std::move(*refused)};
    } else if (asked.facts.asked.only_if_cached) {
        out.what = answers::refused{failure{failure_code::only_if_cached_miss, ""}};
    }
    return out;
}

answer decide(const request& asked,
              const cache::lookup_result& kept,
              const thread::settings& now,
              std::string_view pseudonym,
              peers_question by,
              wall_time at,
              cache::verdict& why) {
    why = cache::judge(kept, asked.facts, asked.head->fields, at);
    if (why.what == cache::ruling::hit || (why.answers() && !by.hits_alone)) {
        return answers::stored{};
    }
    if (why.answers()) {
        why.what = cache::ruling::unavailable;
        why.forward = http::forward_reason::stale;
    }
    // A precondition is the origin's to judge, and of what is under way nobody has judged this one.
    if (asked.facts.asked.only_if_cached && by.joins && !asked.facts.has_origin_conditions) {
        return answers::under_way{};
    }
    if (asked.facts.asked.only_if_cached && by.asks_members &&
        !judge_destination(now, asked, pseudonym)) {
        return answers::of_members{};
    }
    if (why.what == cache::ruling::unavailable || asked.facts.asked.only_if_cached) {
        return answers::refused{failure{failure_code::only_if_cached_miss, ""}};
    }
    if (auto refused = judge_destination(now, asked, pseudonym)) {
        return answers::refused{std::move(*refused)};
    }
    if (why.what == cache::ruling::complete) {
        return answers::partial{};
    }
    return answers::fetched{};
}

}  // namespace reprise::proxy::serve
