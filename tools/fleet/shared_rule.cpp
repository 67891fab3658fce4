#include "tools/fleet/shared_rule.hpp"

#include "config/options.hpp"
#include "proxy/cache/admission/admission_gate.hpp"
#include "proxy/cache/plan.hpp"

namespace reprise::fleet {

namespace {

// The proxy's housekeeper comes every second; replay's models are content with this.
constexpr std::uint32_t seconds_between_housekeeping = 30;

config::options options_for(std::uint64_t memory_bytes) {
    config::options out;
    out.memory.size = memory_bytes;
    return out;
}

// A trace that begins later than 1970 makes it age once before it knows anything.
std::unique_ptr<proxy::cache::resizable_admission> begin(
    const filter::admission_settings& settings) {
    return std::make_unique<proxy::cache::resizable_admission>(
        std::make_unique<filter::admission_filter>(settings, std::chrono::sys_seconds{}));
}

}  // namespace

shared_rule::shared_rule(const proxy::peer::fleet_secret& secret, std::uint64_t memory_bytes)
    : secret_{secret},
      follows_{true} {
    const auto options = options_for(memory_bytes);
    settings_ = proxy::cache::filter_settings(options);
    bounds_ = proxy::cache::bounds_within(proxy::cache::remembering_bytes(options), settings_);
    sights_ = begin(settings_);
}

shared_rule::shared_rule(const proxy::peer::fleet_secret& secret,
                         const filter::admission_settings& fixed)
    : secret_{secret},
      settings_{fixed},
      follows_{false},
      sights_{begin(fixed)} {}

proxy::cache::resizable_admission& shared_rule::at(const replay::request& wanted) {
    const auto now = wanted.time();
    if (wanted.seconds - second_ < seconds_between_housekeeping) {
        return *sights_;
    }
    second_ = wanted.seconds;
    sights_->tidy();
    if (follows_ && !sights_->changing()) {
        std::optional<std::chrono::seconds> age;
        if (eviction_age_) {
            age = std::chrono::seconds{static_cast<std::int64_t>(*eviction_age_)};
        }
        const auto next = proxy::cache::follow(
            settings_, sights_->current()->figures(now), now, age, bounds_);
        if (next != settings_) {
            settings_ = next;
            sights_->change_to(next, now);
        }
    }
    return *sights_;
}

unsigned shared_rule::note(const replay::request& wanted) {
    return at(wanted).note(proxy::peer::key_of(wanted.key.low, secret_), wanted.time());
}

void shared_rule::hit(const replay::request& wanted) {
    at(wanted).refresh(proxy::peer::key_of(wanted.key.low, secret_), wanted.time());
}

void shared_rule::evicted(const filter::key_hash&, std::chrono::seconds unused) {
    // As memory_tier smooths it.
    const auto age = static_cast<double>(unused.count());
    eviction_age_ = eviction_age_ ? *eviction_age_ + (age - *eviction_age_) / 64 : age;
}

std::unique_ptr<filter::digest> shared_rule::young(const filter::digest_stamp& stamp) const {
    return std::make_unique<filter::digest>(sights_->recent_digest(stamp));
}

}  // namespace reprise::fleet
