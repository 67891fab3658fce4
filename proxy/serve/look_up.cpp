#include "proxy/serve/look_up.hpp"

#include "proxy/fetch/admit.hpp"
#include "proxy/serve/decide.hpp"
#include "proxy/serve/orders.hpp"

namespace reprise::proxy::serve {

namespace {

// What waited on probation is asked for again: that admits it, and it goes where the admitted go.
void note_admitted(exchange_state& x) {
    const auto& asked = x.asked;
    auto& common = x.w.common;
    const auto by = cache::choice_for(
        x.settings->options.admission, x.listener().admission, asked.url);
    const auto ruling = fetch::rule_on(x.w, {asked.key, asked.url, by});
    note_admission(x.w.counts, ruling.policy, ruling.rule, true);
    common.store.admitted(asked.key, asked.url, x.stored.response, x.stored.asked);
}

// Judges what is stored; where that answers, it is noted as found.
answer judge_stored(exchange_state& x, wall_time now) {
    const auto& asked = x.asked;
    auto& common = x.w.common;
    peers_question by;
    if (asked.facts.asked.only_if_cached) {
        by.hits_alone = x.is_squids_question();
        by.asks_members = x.is_sites_question();
        by.joins = x.is_siblings_question() && common.fetches.has(asked.key, asked.url);
    }
    x.judged_at = now;
    auto decided = decide(asked, x.stored, *x.settings, common.pseudonym, by, now, x.verdict);
    if (!std::holds_alternative<answers::stored>(decided)) {
        return decided;
    }
    const auto& stored = *x.stored.response;
    if (x.verdict.what == cache::ruling::stale_behind && !asked.facts.asked.only_if_cached &&
        !asked.facts.asked.no_store) {
        revalidate_behind(x);
    }
    const auto generation = common.admission.generation() + 1;
    if (stored.told_at.load(std::memory_order_relaxed) != generation) {
        stored.told_at.store(generation, std::memory_order_relaxed);
        common.admission.hit(asked.key, now);
    }
    return decided;
}

}  // namespace

answer look_up_in_memory(exchange_state& x, wall_time now) {
    auto& common = x.w.common;
    common.admission.count_request(x.asked.key);
    x.stored = common.store.find(x.asked.key, x.asked.url, x.asked.head->fields);
    if (x.stored.just_admitted) {
        note_admitted(x);
    }
    return judge_stored(x, now);
}

answer judge_without_store(exchange_state& x) {
    x.stored = {};
    return judge_stored(x, resident_now());
}

disk_look_up::disk_look_up(exchange_state& x, cache::disk::tier& disk)
    : x_{x},
      lookup_{disk, x.asked.key, x.asked.url, x.out.wakeup().handle()} {}

std::unique_ptr<disk_look_up> disk_look_up::begin(exchange_state& x) {
    auto* disk = x.w.common.store.disk();
    if (disk == nullptr) {
        return nullptr;
    }
    if (x.stored.what == cache::lookup::present || !disk->may_hold(x.asked.key)) {
        disk->note_request(x.asked.key);
        return nullptr;
    }
    return std::make_unique<disk_look_up>(x, *disk);
}

bool disk_look_up::step() {
    return lookup_.step(x_.asked.head->fields);
}

answer disk_look_up::adopt() {
    auto found = std::move(lookup_.result);
    if (found.what != cache::lookup::absent) {
        x_.stored = std::move(found);
        if (x_.stored.what == cache::lookup::present) {
            x_.w.common.store.promote(
                x_.asked.key, x_.asked.url, x_.stored.response, lookup_.uses, lookup_.asked);
        }
    }
    return judge_stored(x_, resident_now());
}

}  // namespace reprise::proxy::serve
