#include "proxy/fetch/expectation.hpp"

#include "proxy/base/clock.hpp"
#include "proxy/cache/fetch.hpp"
#include "proxy/fetch/admit.hpp"

#include <chrono>

namespace reprise::proxy::fetch {

namespace {

constexpr std::chrono::hours expected_to_last{1};  // as far as is said before it is known
constexpr std::chrono::seconds worth_expecting{10};

}  // namespace

// Not what may be answered for its client alone.
void expectation::begin() {
    const auto& o = order_;
    const auto* whole = o.as<wanted::whole>();
    auto& common = w_.common;
    if (ruling_ || whole == nullptr || whole->behind || !o.listed || !o.may_ask_siblings ||
        o.exempt || o.own_range || o.own_conditions || !common.fetches.tells() ||
        !common.kept_lately.expects(o.url) ||
        common.uncacheable.was_too_large(o.key, steady_now())) {
        return;
    }
    const admission_question asked{o.key, o.url, o.admission, o.may_use_peers};
    ruling_ = rule_on(w_, asked, o.pending_sights);
    if (!ruling_->admitted) {
        return;
    }
    said_ = true;
    o.into->producer_expects_to_keep();
    common.fetches.promise_stored(o.key, o.into, resident_now() + expected_to_last);
}

// That admission waits says nothing of the next.
void expectation::learn(bool is_kept, wall_time until) {
    if (w_.common.fetches.tells() && order_.listed && order_.as<wanted::whole>() != nullptr) {
        w_.common.kept_lately.note(order_.url, is_kept && until > resident_now() + worth_expecting);
    }
}

void expectation::failed() noexcept {
    if (said_) {
        w_.common.kept_lately.note(order_.url, false);
    }
}

}  // namespace reprise::proxy::fetch
