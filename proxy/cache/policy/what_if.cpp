// Playing the sample through the ghosts. Which ghosts there are is decided in what_if_ghosts.cpp, and
// what comes of it is told in what_if_report.cpp.

#include "proxy/cache/policy/what_if.hpp"

#include "proxy/base/relaxed.hpp"
#include "proxy/cache/policy/what_if_parts.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <new>
#include <utility>

namespace reprise::proxy::cache {

namespace {

using objective = config::caching_objective;

constexpr std::uint64_t least_remembered = 1'000, least_counted = 64;
constexpr std::size_t most_spare = 64;
constexpr std::uint64_t smallest_threshold = 1u << 12;  // a millionth of the keys
constexpr std::chrono::seconds pace_is_of{8};
constexpr std::uint64_t played = 16, set_aside = 1;  // what each counts for in the pace

std::chrono::sys_seconds filter_time(steady_time now) noexcept {
    return std::chrono::sys_seconds{
        std::chrono::floor<std::chrono::seconds>(now.time_since_epoch())};
}

}  // namespace

what_if::what_if(const what_if_setup& setup, steady_time now, double sample)
    : threshold_{static_cast<std::uint64_t>(std::ldexp(std::clamp(sample, 0.0, 1.0), 32))},
      setup_{setup},
      minutes_(static_cast<std::size_t>(covered.count()) + 1),
      begun_{now} {
    size_filter(now);
    size_sketch();
    spare_.reserve(most_spare);
    begin_ghosts(nullptr);
}

what_if::~what_if() = default;

std::uint64_t what_if::scaled(double bytes) const noexcept {
    return static_cast<std::uint64_t>(bytes * sample());
}

void what_if::set(const what_if_setup& setup, steady_time now) {
    const std::lock_guard lock{guard_};
    if (setup.admission != setup_.admission) {
        leave(in_force_, what_if_row::group::admission);
    }
    if (setup.exponent != setup_.exponent) {
        leave(rung_in_force(), what_if_row::group::exponent);
    }
    const auto before = std::exchange(setup_, setup);
    size_sketch();
    begin_ghosts(&before);
    std::fill(minutes_.begin(), minutes_.end(), minute{});
    dropped_.store(0, relaxed);
    begun_ = now;
}

void what_if::remember(std::uint64_t objects, std::chrono::seconds age) {
    const std::lock_guard lock{guard_};
    setup_.remembers = objects;
    setup_.remembers_for = age;
}

what_if::minute& what_if::minute_of(steady_time now) {
    const auto number = std::chrono::floor<std::chrono::minutes>(now.time_since_epoch()).count();
    auto& at = minutes_[static_cast<std::size_t>(number) % minutes_.size()];
    if (at.number != number) {
        at = minute{};
        at.number = number;
    }
    return at;
}

bool what_if::may_count(std::uint64_t client, steady_time now) noexcept {
    const auto number = std::chrono::floor<std::chrono::minutes>(now.time_since_epoch()).count();
    if (number != counted_in_) {
        of_clients_.fill(0);
        counted_ = 0;
        counted_in_ = number;
    }
    if (client != 0) {
        auto& own = of_clients_[client % of_clients_.size()];
        if (own >= client_notes && own >= counted_ - own) {
            return false;
        }
        ++own;
    }
    ++counted_;
    return true;
}

void what_if::note_sampled(const filter::key_hash& key,
                           std::uint64_t size,
                           steady_time now,
                           packed_wait wait,
                           std::uint64_t client) noexcept {
    const std::unique_lock lock{guard_, std::try_to_lock};
    if (!lock) {
        dropped_.fetch_add(1, relaxed);
        return;
    }
    // Again under the lock: the sample may have been halved meanwhile.
    if (!samples(key)) {
        return;
    }
    if (is_to_halve_) {
        dropped_.fetch_add(1, relaxed);
        return;
    }
    try {
        const bool counts = may_count(client, now);
        keep_pace(now, counts ? played : set_aside);
        if (!samples(key)) {
            return;
        }
        if (counts) {
            play(key, size, now, wait);
        } else {
            ++minute_of(now).set_aside;
        }
    } catch (const std::bad_alloc&) {
        // What some ghosts had of it already is an error of one request.
    }
}

// The mean of some seconds, so that a page's burst is none.
void what_if::keep_pace(steady_time now, std::uint64_t units) {
    const auto number = now.time_since_epoch() / pace_is_of;
    if (number != pace_of_) {
        pace_of_ = number;
        pace_ = 0;
    }
    pace_ += units;
    if (pace_ > static_cast<std::uint64_t>(pace_is_of.count()) * most_pace * played) {
        pace_ = 0;
        begin_to_halve();
    }
}

// Another size, or another age, is another filter; the former is asked beside it until it has filled a
// generation, as in the proxy (admission/resizable_admission.hpp).
void what_if::size_filter(steady_time now) {
    if (former_) {
        return;
    }
    const filter::admission_settings wanted{
        .objects = std::clamp(
            scaled(static_cast<double>(setup_.remembers)), least_remembered, most_remembered),
        .age = setup_.remembers_for,
        .layers = 2};
    if (filter_ && filter_->settings() == wanted) {
        return;
    }
    former_ = std::exchange(filter_,
                            std::make_unique<filter::admission_filter>(wanted, filter_time(now)));
    generation_ = 0;
    generation_began_ = now;
}

void what_if::size_sketch() {
    const auto wanted = std::clamp(
        scaled(static_cast<double>(setup_.counts)), least_counted, most_remembered);
    if (!requests_) {
        requests_ = std::make_unique<frequency_sketch>(wanted);
    }
    requests_->grow_to(wanted);
    requests_->shrink_to(wanted);
}

unsigned what_if::sights_before(const filter::key_hash& key, steady_time now) {
    auto seen = filter_->note(key, filter_time(now));
    if (former_) {
        for (const auto before = former_->peek(key); seen < before; ++seen) {
            filter_->note(key, filter_time(now));
        }
        if (filter_->generations() != 0) {
            former_.reset();
        }
    }
    return seen;
}

// Whether filter or sketch has just let go of what it would still know if it were not bounded.
bool what_if::forgot_too_soon(steady_time now) noexcept {
    bool forgot = false;
    if (filter_->generations() != generation_) {
        forgot |= scaled(static_cast<double>(setup_.remembers)) > most_remembered &&
                  now - generation_began_ < setup_.remembers_for;
        generation_ = filter_->generations();
        generation_began_ = now;
    }
    if (requests_->agings() != agings_) {
        forgot |= scaled(static_cast<double>(setup_.counts)) > most_remembered;
        agings_ = requests_->agings();
    }
    return forgot;
}

// What ghost `which` does with a request for a key that was asked for `seen` times before, as far
// as the filter remembers, and `asked` times lately, as far as the sketch counts. True: a hit.
bool what_if::ask(std::size_t which, slot& at, unsigned seen, unsigned asked, double& written) {
    auto& in = *ghosts_[which];
    auto& entry = at.in[which];
    if ((at.held_by >> which & 1) == 0) {
        missed(which, at, seen, asked, written);
        return false;
    }
    if ((at.on_disk >> which & 1) != 0) {
        in.disk->use(entry);
    } else if (in.held->use(entry) && !in.disk) {
        written += static_cast<double>(entry.charge);
    }
    return true;
}

void what_if::missed(std::size_t which, slot& at, unsigned seen, unsigned asked, double& written) {
    auto& in = *ghosts_[which];
    auto& entry = at.in[which];
    in.held->missed(entry.key);
    if (at.size > in.largest) {
        return;
    }
    using enum admission_variant::kind;
    bool admitted = true;
    unsigned uses_to_admit = 1;
    switch (in.admission.what) {
    case always: break;
    case nth_hit:
        admitted = seen + 1 >= in.admission.hits;
        uses_to_admit = admitted ? 1 : in.admission.hits - seen - 1;
        break;
    case tinylfu:
        admitted = in.bar.admits(asked, requests_->agings());
        if (!admitted) {
            in.bar.note_refused(requests_->agings());
        }
        break;
    }
    if (!admitted && in.admission.probation <= 0) {
        return;
    }
    entry.charge = at.size;
    entry.set_wait(at.wait);
    if (at.size > in.largest_in_memory) {
        if (in.disk && admitted) {
            written += to_disk(which, entry) + make_room(which, &at);
        }
        return;
    }
    in.held->enter(entry, admitted ? standing::admitted : standing::probation, uses_to_admit);
    at.held_by |= 1u << which;
    written += admitted && !in.disk ? static_cast<double>(entry.charge) : 0;
    written += make_room(which, &at);
}

// Onto the ghost's disk, if it is worth it; make_room follows. The bytes that were written.
double what_if::to_disk(std::size_t which, evictable& entry) {
    auto& in = *ghosts_[which];
    if (!in.disk->is_worth_writing(entry.key, entry.charge, entry.wait())) {
        return 0;
    }
    entry.to_go = 0;
    in.disk->enter(entry);
    auto& home = *static_cast<slot::entry&>(entry).home;
    home.held_by |= 1u << which;
    home.on_disk |= 1u << which;
    return static_cast<double>(entry.charge);
}

// Until the ghost's memory, and then its disk, is within its room. `current` stays even when nobody holds
// it any more: it is still being asked for. The bytes that were written to the disk.
double what_if::make_room(std::size_t which, const slot* current) {
    auto& in = *ghosts_[which];
    double written = 0;
    while (in.held->bytes() > in.memory) {
        auto* gone = in.held->evict();
        if (gone == nullptr) {
            break;
        }
        auto& home = *static_cast<slot::entry*>(gone)->home;
        home.held_by &= ~(1u << which);
        const bool admitted = residents::standing_of(*gone) == standing::admitted;
        if (admitted && in.admission.what == admission_variant::kind::tinylfu) {
            in.bar.note_left(requests_->estimate(gone->key), requests_->agings());
        }
        if (in.disk && (admitted || in.disk->filling())) {
            try {
                written += to_disk(which, *gone);
            } catch (const std::bad_alloc&) {
                // It has left, as what is not worth writing.
            }
        }
        let_go(which, home, current);
    }
    while (in.disk) {
        auto* const gone = in.disk->evict();
        if (gone == nullptr) {
            break;
        }
        auto& home = *static_cast<slot::entry*>(gone)->home;
        home.held_by &= ~(1u << which);
        home.on_disk &= ~(1u << which);
        let_go(which, home, current);
    }
    return written;
}

void what_if::let_go(std::size_t which, slot& home, const slot* current) noexcept {
    if (home.held_by == 0 && &home != current) {
        forget(slots_.find(home.in[which].key));
    }
}

what_if::slot& what_if::slot_for(const filter::key_hash& key) {
    if (const auto found = slots_.find(key); found != slots_.end()) {
        return *found->second;
    }
    if (spare_.empty()) {
        slot_table one;
        one.emplace(key, std::make_unique<slot>());
        spare_.push_back(one.extract(key));
    }
    auto node = std::move(spare_.back());
    spare_.pop_back();
    node.key() = key;
    auto& fresh = *slots_.insert(std::move(node)).position->second;
    fresh.held_by = 0;
    fresh.on_disk = 0;
    fresh.wait = {};
    for (auto& one : fresh.in) {
        one.key = key;
        one.home = &fresh;
    }
    return fresh;
}

// Its slot is nobody's from now on. What follows it.
what_if::slot_table::iterator what_if::forget(slot_table::iterator gone) noexcept {
    const auto next = std::next(gone);
    if (spare_.size() < spare_.capacity()) {
        spare_.push_back(slots_.extract(gone));
    } else {
        slots_.erase(gone);
    }
    return next;
}

void what_if::play(const filter::key_hash& key,
                   std::uint64_t size,
                   steady_time now,
                   packed_wait wait) {
    requests_->note(key);
    const auto asked = requests_->estimate(key);
    const auto seen = sights_before(key, now);
    auto& at = slot_for(key);
    at.size = std::max<std::uint64_t>(size, 1);
    at.wait = wait.is_known() ? wait : at.wait;
    waits_.note(wait);
    const auto seconds = waits_.seconds_of(at.wait);

    auto& counts = minute_of(now);
    if (counts.requests == 0) {
        size_filter(now);
    }
    ++counts.requests;
    counts.bytes += size;
    counts.seconds += seconds;
    counts.dropped += dropped_.exchange(0, relaxed);
    const auto scale = 1 / sample();
    const auto worth = setup_.wanted == objective::requests ? 1.0
                       : setup_.wanted == objective::bytes  ? static_cast<double>(size)
                                                            : seconds;
    bool hit_in_force = false;
    bool hit_always = false;
    for (std::size_t i = 0; i < ghosts_.size(); ++i) {
        double written = 0;
        const bool hit = ask(i, at, seen, asked, written);
        auto& line = counts.of[i];
        if (hit) {
            ++line.hits;
            line.hit_bytes += size;
            line.hit_seconds += seconds;
            evidence_.hit(i, worth);
        }
        line.written += written * scale;
        hit_in_force |= hit && i == in_force_;
        hit_always |= hit && i == always_;
    }
    counts.lost += hit_always && !hit_in_force ? 1 : 0;
    counts.won += hit_in_force && !hit_always ? 1 : 0;
    evidence_.end_request(worth);
    if (at.held_by == 0) {
        forget(slots_.find(key));
    }
    if (forgot_too_soon(now) || slots_.size() > most_slots) {
        begin_to_halve();
    }
}

// Taking half of the keys from all ghosts takes milliseconds, and this is a request's thread.
void what_if::begin_to_halve() noexcept {
    is_to_halve_ = threshold_.load(relaxed) > smallest_threshold;
}

void what_if::tend() {
    const std::lock_guard lock{guard_};
    while (is_to_halve_) {
        halve();
        is_to_halve_ = slots_.size() > most_slots && threshold_.load(relaxed) > smallest_threshold;
    }
}

// Half of the keys leave the sample, and half of the capacity goes with them.
void what_if::halve() {
    threshold_.store(std::max(threshold_.load(relaxed) / 2, smallest_threshold), relaxed);
    const auto threshold = threshold_.load(relaxed);
    for (auto it = slots_.begin(); it != slots_.end();) {
        if (it->first.high >> 32 < threshold) {
            ++it;
            continue;
        }
        for (std::size_t i = 0; i < ghosts_.size(); ++i) {
            auto& one = it->second->in[i];
            if ((it->second->on_disk >> i & 1) != 0) {
                ghosts_[i]->disk->leave(one);
            } else if ((it->second->held_by >> i & 1) != 0) {
                ghosts_[i]->held->leave(one);
            }
        }
        it = forget(it);
    }
    for (std::size_t i = 0; i < ghosts_.size(); ++i) {
        auto& one = *ghosts_[i];
        plan(one);
        one.held->set_capacity(one.memory);
        if (one.disk) {
            one.disk->set_bytes(one.disk_bytes);
        }
        static_cast<void>(make_room(i, nullptr));  // no request wrote that
    }
    size_sketch();
}

}  // namespace reprise::proxy::cache
