#include "proxy/peer/digest_source.hpp"

#include "filter/digest.hpp"
#include "filter/line_words.hpp"
#include "proxy/base/let_go.hpp"
#include "proxy/peer/source_filters.hpp"

#include <algorithm>
#include <bit>
#include <exception>
#include <utility>

// A tick takes the inbox, sweeps, goes on with a change of size, publishes if it must, and tells
// news last: so a step that is told has all that was in the inbox, but for what there was no memory for. settle() does the same to the
// end. What is fresh they ask resident time, by which the store serves it; what is published has a date, wall time.

namespace reprise::proxy::peer {

namespace {

/// Where seven follow, 0.7 s without a change save so many.
constexpr unsigned most_saved_steps = 8;

constexpr unsigned shrink_below = 4;  // the capacity's share of keys, as a divisor

std::uint32_t& until_of(key_facts& facts, holder by) noexcept {
    return facts.until[by == holder::memory ? 0 : 1];
}

constexpr auto under_way = static_cast<std::uint8_t>(holder::under_way);

bool will_be_held(const key_facts& facts) noexcept {
    return (facts.holders & under_way) != 0;
}

bool is_useful(const key_facts& facts, wall_time now) noexcept {
    return will_be_held(facts) || key_table::is_ahead(facts.until[0], now) ||
           key_table::is_ahead(facts.until[1], now);
}

}  // namespace

source_plan plan_of(const config::digest_options& options, const config::peering_options& peering) {
    source_plan plan;
    plan.false_positive_rate = options.false_positive_rate;
    plan.publish_after_change = options.publish_after_change;
    plan.publish_after = options.publish_after;
    plan.squid = options.squid;
    plan.site_nodes = std::bit_ceil(options.site_nodes);
    plan.news = peering.news;
    return plan;
}

digest_source::digest_source(const source_plan& plan,
                             const fleet_secret& secret,
                             std::function<std::uint64_t()> random,
                             source_signals signals)
    : plan_{plan},
      secret_{secret},
      random_{std::move(random)},
      signals_{std::move(signals)},
      table_{plan.squid},
      now_{std::make_unique<source_filters>(plan.least_capacity, plan)},
      epoch_{random_()} {
    if (plan.news.count() > 0) {
        teller_.emplace(
            news_plan{.every = plan.news,
                      .most_saved = most_saved_steps,
                      .key_of = [this](std::uint64_t name) { return key_of(name, secret_); },
                      .stir = signals_.stir,
                      .told = signals_.told,
                      .readers = signals_.readers});
    }
}

digest_source::~digest_source() = default;

void digest_source::push(const source_event& event) noexcept {
    if (inbox_.push(event) && teller_) {
        signals_.stir();
    }
}

std::uint32_t digest_source::packed(wall_time until, wall_time now) const noexcept {
    // What never was fresh ended at the beginning of time.
    return until <= now ? 0 : key_table::pack_time(until - plan_.least_use, now);
}

void digest_source::held(
    holder by, const filter::key_hash& key, std::string_view url, wall_time until, wall_time now) {
    const bool secure = url.starts_with("https://");
    if (secure ? !secret_.has_file() || url.find(' ') != std::string_view::npos
               : !url.starts_with("http://")) {
        return;
    }
    source_event event{.key = key, .name = name_of(url, secret_), .by = by};
    if (plan_.squid && !secure) {
        event.squid = filter::squid_key_of(url);
    }
    event.until = packed(until, now);
    if (is_worth_noting(event)) {
        push(event);
    }
}

void digest_source::held(
    holder by, const filter::key_hash& key, url_name name, wall_time until, wall_time now) {
    const source_event event{.key = key, .name = name, .until = packed(until, now), .by = by};
    if (is_worth_noting(event)) {
        push(event);
    }
}

bool digest_source::is_worth_noting(const source_event& event) const noexcept {
    return event.by != holder::under_way || (teller_ && event.until != 0);
}

void digest_source::gone(holder by, const filter::key_hash& key) {
    push({.key = key, .what = source_event::kind::gone, .by = by});
}

void digest_source::outdated(const filter::key_hash& key) {
    push({.key = key, .what = source_event::kind::outdated});
}

void digest_source::enter(const filter::key_hash& key, key_facts& facts, urgency what) {
    const auto hashed = key_of(facts.name, secret_);
    const auto turns = now_->journal ? now_->journal->turns() : 0;
    now_->insert(hashed, facts.squid);
    if (next_ && key_table::shard_of(key) < filled_) {
        next_->insert(hashed, facts.squid);
    }
    if (now_->journal) {
        const auto since = now_->journal->turns();
        now_->journal->came(facts.name, since - std::min(since, turns), what);
    }
    facts.listed = true;
    ++listed_;
}

void digest_source::leave(std::size_t shard, key_facts& facts) {
    const auto hashed = key_of(facts.name, secret_);
    now_->erase(hashed, facts.squid);
    if (next_ && shard < filled_) {
        next_->erase(hashed, facts.squid);
    }
    facts.listed = false;
    --listed_;
}

void digest_source::apply(const source_event& event, wall_time now) {
    key_facts facts;
    const bool known = table_.find(event.key, facts);
    const auto by = static_cast<std::uint8_t>(event.by);
    const auto shard = key_table::shard_of(event.key);
    if (event.what != source_event::kind::held) {
        if (!known) {
            return;
        }
        const bool was_listed = facts.listed;
        if (event.what == source_event::kind::outdated) {
            facts.until = {};
        } else {
            under_way_ -= (facts.holders & by & under_way) != 0 ? 1 : 0;
            facts.holders &= static_cast<std::uint8_t>(~by);
            if (event.by != holder::under_way) {
                until_of(facts, event.by) = 0;
            }
        }
        if (was_listed && !is_useful(facts, now)) {
            leave(shard, facts);
        }
        if (facts.holders == 0) {
            table_.erase(event.key);
        } else {
            table_.put(event.key, facts);
        }
        return;
    }
    if (known && facts.name != event.name) {
        // Another key with the same 48 bits: the later one has the slot.
        if (facts.listed) {
            leave(shard, facts);
        }
        under_way_ -= will_be_held(facts) ? 1 : 0;
        facts = {};
    }
    facts.name = event.name;
    facts.squid = event.squid;
    const bool is_new_promise = event.by == holder::under_way && !will_be_held(facts);
    if (event.by != holder::under_way) {
        until_of(facts, event.by) = event.until;
    }
    facts.holders |= by;
    const bool ahead = is_useful(facts, now);
    // The slot first: it may need memory, and the filter must not know what the table does not.
    const bool was_listed = facts.listed;
    table_.put(event.key, facts);
    under_way_ += is_new_promise ? 1 : 0;
    if (ahead == was_listed) {
        return;
    }
    if (ahead) {
        enter(event.key, facts, is_promise(event) ? urgency::urgent : urgency::ordinary);
    } else {
        leave(shard, facts);
    }
    table_.put(event.key, facts);
}

void digest_source::take_inbox(wall_time now) {
    if (handled_ == in_hand_.size()) {
        handled_ = 0;
        trusts_no_promise_ = inbox_.take(in_hand_);
    }
    // Each is of a key that nobody has looked at for long.
    constexpr std::size_t ahead = 8;
    for (auto i = handled_; i < std::min(handled_ + ahead, in_hand_.size()); ++i) {
        table_.prefetch(in_hand_[i].key);
    }
    for (; handled_ < in_hand_.size(); ++handled_) {
        if (handled_ + ahead < in_hand_.size()) {
            table_.prefetch(in_hand_[handled_ + ahead].key);
        }
        apply(in_hand_[handled_], now);
    }
    if (std::exchange(trusts_no_promise_, false)) {
        take_back_all(now);
    }
    constexpr std::size_t keep = 1 << 16;
    if (in_hand_.capacity() > keep) {
        let_go(in_hand_);
        handled_ = 0;
    }
}

// What of them is true is listed when it is stored.
void digest_source::take_back_all(wall_time now) {
    for (std::size_t shard = 0; shard < key_table::shards; ++shard) {
        table_.visit(shard, [this, shard, now](key_facts& facts) {
            if (!will_be_held(facts)) {
                return true;
            }
            facts.holders &= static_cast<std::uint8_t>(~under_way);
            if (facts.listed && !is_useful(facts, now)) {
                leave(shard, facts);
            }
            return facts.holders != 0;
        });
    }
    under_way_ = 0;
}

void digest_source::sweep(std::size_t shards, wall_time now) {
    for (std::size_t i = 0; i < shards; ++i) {
        const auto shard = swept_;
        table_.visit(shard, [this, shard, now](key_facts& facts) {
            for (auto& until : facts.until) {
                if (until != 0 && !key_table::is_ahead(until, now)) {
                    until = 0;
                }
            }
            if (facts.listed && !is_useful(facts, now)) {
                leave(shard, facts);
            }
            return true;
        });
        swept_ = (swept_ + 1) % key_table::shards;
    }
}

bool digest_source::must_resize() const {
    if (next_) {
        return false;
    }
    const bool too_small = listed_ > now_->capacity;
    const bool too_large = now_->capacity > plan_.least_capacity &&
                           listed_ * shrink_below < now_->capacity;
    return too_small || too_large;
}

void digest_source::resize(std::size_t keys, steady_time steady, wall_time now) {
    if (must_resize()) {
        next_ = std::make_unique<source_filters>(capacity_for(listed_, plan_.least_capacity),
                                                 plan_);
        filled_ = 0;
    }
    if (next_) {
        fill_next(keys);
        if (filled_ == key_table::shards) {
            take_next(steady, now);
        }
    }
}

void digest_source::fill_next(std::size_t keys) {
    std::size_t moved = 0;
    while (filled_ < key_table::shards && moved < keys) {
        table_.visit(filled_, [this, &moved](key_facts& facts) {
            if (facts.listed) {
                next_->insert(key_of(facts.name, secret_), facts.squid);
            }
            ++moved;
            return true;
        });
        ++filled_;
    }
}

// Until it is taken the old one is what is told; so where it has to be published first, and can't be, news of that goes on.
void digest_source::take_next(steady_time steady, wall_time now) {
    const filter::digest_generation first{.epoch = random_(), .counter = 1};
    const bool is_told = teller_ && counter_ != 0;
    if (is_told) {
        publish_as(first, *next_, steady, now);
    }
    // Nothing throws from here on.
    now_ = std::move(next_);
    epoch_ = first.epoch;
    counter_ = is_told ? first.counter : 0;
    if (is_told) {
        begin_news(steady);
    } else if (now_->journal) {
        now_->journal->begin(0);
    }
    ++resizes_;
}

// News ends a step here, so that whoever has the whole goes on from it.
void digest_source::publish(steady_time steady, wall_time now) {
    const bool goes_on = now_->journal && counter_ != 0;
    if (goes_on) {
        (void)end_step(steady);
        now_->keys_at_step = listed_;
    }
    const filter::digest_generation next{.epoch = epoch_,
                                         .counter = goes_on ? counter_ : counter_ + 1};
    publish_as(next, *now_, steady, now);
    counter_ = next.counter;
    if (now_->journal && !goes_on) {
        begin_news(steady);
    }
}

void digest_source::begin_news(steady_time steady) noexcept {
    now_->journal->begin(counter_);
    now_->keys_at_step = listed_;
    teller_->stepped(steady);
}

// What throws comes first: nothing has changed then.
void digest_source::publish_as(const filter::digest_generation& generation,
                               source_filters& of,
                               steady_time steady,
                               wall_time now) {
    const auto bits = of.bits.now();
    const auto bloom = of.bits.size();
    filter::digest whole{
        {.layout = filter::digest_layout::standard, .bits = bloom.bits, .probes = bloom.probes},
        filter::line_words(bits.begin(), bits.end()),
        {.seed = secret_.id(), .generation = generation, .keys = listed_}};
    wire_bytes squid;
    squid_figures said;
    if (of.squid) {
        // Saturated, it waits for the larger one.
        if (auto encoded = of.squid->encode(); encoded.has_value()) {
            squid = std::make_shared<const std::vector<std::byte>>(std::move(*encoded));
            const auto size = of.squid->size();
            said = {size.capacity, size.bits_per_entry, size.mask_bytes(), of.squid->fill()};
        }
    }
    digests_.publish(std::move(whole), now);
    of.bits.mark_published();
    last_publish_ = steady;
    ++generations_;
    if (teller_) {
        teller_->whole_is_there();
    }
    const std::scoped_lock lock{outside_};
    if (squid && (!squid_.wire || *squid != *squid_.wire)) {
        // A date has whole seconds: these bytes must not pass for those before by it, even
        // where the clock was set back.
        const auto second = std::chrono::floor<std::chrono::seconds>(now);
        last_squid_ = std::max<wall_time>(second, last_squid_ + std::chrono::seconds{1});
        squid_.changed = last_squid_;
    }
    squid_.wire = std::move(squid);
    figures_.squid = said;
    figures_.published_at = now;
}

// Each part by itself: what there is no memory for keeps nothing else from being done, and news least of all.
void digest_source::tick(steady_time steady, wall_time resident, wall_time now) {
    const at_end awaits{*this};
    // Before the inbox: what was said before loaded() is in that then, and none of it in the next.
    bool all_said = loaded_.load(std::memory_order_acquire);
    if (teller_) {
        teller_->listen(steady);
    }
    std::exception_ptr lack;
    const auto attempt = [&lack](const auto& part) {
        try {
            part();
            return true;
        } catch (...) {
            lack = std::current_exception();
            return false;
        }
    };
    if (!attempt([&] { take_inbox(resident); })) {
        all_said = all_said && generations_ != 0;  // a first digest has all of it
    }
    const auto a_shard = std::chrono::duration_cast<steady_time::duration>(plan_.publish_after) /
                         (2 * key_table::shards);
    if (last_sweep_ == steady_time{}) {
        last_sweep_ = steady;
    }
    const auto due = static_cast<std::uint64_t>((steady - last_sweep_) / a_shard);
    sweep(std::min<std::uint64_t>(due, key_table::shards), resident);
    last_sweep_ += due * a_shard;
    const auto gap = publish_gap(now_->counts.size().bits, plan_.publish_at_most);
    if (steady >= resize_not_before_ && !attempt([&] { resize(plan_.resize_step, steady, now); })) {
        resize_not_before_ = steady + gap;
    }
    if (steady >= publish_not_before_ && must_publish(all_said, steady) &&
        !attempt([&] { publish(steady, now); })) {
        publish_not_before_ = steady + gap;
    }
    tell(steady, false);
    note_figures();
    if (lack) {
        std::rethrow_exception(lack);
    }
}

bool digest_source::must_publish(bool all_said, steady_time steady) const {
    const auto since = steady - last_publish_;
    const auto gap = publish_gap(now_->counts.size().bits, plan_.publish_at_most);
    const bool never = counter_ == 0;  // of this epoch
    const bool may = generations_ == 0 || since >= gap || (never && teller_);
    if (!all_said || !may) {
        return false;
    }
    if (never) {
        return true;
    }
    const filter::digest_generation newest{.epoch = epoch_, .counter = counter_};
    const bool was_told_beyond = digests_.now()->bits->stamp().generation != newest;
    const auto changed = now_->bits.changed();
    const auto enough = static_cast<double>(now_->counts.bits_on()) * plan_.publish_after_change;
    // Where bits have turned back to what was published, but news told of both, whoever holds what was in between needs a newer
    // generation of the same bits.
    const bool is_time = (changed > 0 && static_cast<double>(changed) >= enough) ||
                         ((changed > 0 || was_told_beyond) && since >= plan_.publish_after);
    if (!teller_ || plan_.squid || teller_->has_plain_readers(steady)) {
        return is_time;
    }
    // For people, who look at it as published: a seldom thing beside what it costs.
    const auto seldom = plan_.publish_after +
                        std::chrono::seconds{10 * (now_->counts.size().bits >> 24)};
    const bool has_newer = now_->journal->is_open() || was_told_beyond;
    return (teller_->wants_whole() && has_newer) || (changed > 0 && since >= seldom);
}

// Whatever fails behind it: what was closed is a generation, and is put on the shelf.
bool digest_source::end_step(steady_time steady) {
    if (!now_->journal->is_open() || !now_->journal->close(counter_ + 1)) {
        return false;
    }
    ++counter_;
    now_->keys_at_step = listed_;
    teller_->stepped(steady);
    return true;
}

void digest_source::tell(steady_time steady, bool at_once) {
    if (!teller_ || counter_ == 0) {
        return;
    }
    auto& journal = *now_->journal;
    if (teller_->is_due(journal, steady) || at_once) {
        (void)end_step(steady);
    }
    const auto size = now_->counts.size();
    teller_->tell(
        journal,
        {.layout = filter::digest_layout::standard, .bits = size.bits, .probes = size.probes},
        {.seed = secret_.id(),
         .generation = {.epoch = epoch_, .counter = counter_},
         .keys = now_->keys_at_step},
        now_->bits.now());
}

steady_time digest_source::due_at() const noexcept {
    return teller_ && counter_ != 0 ? teller_->due_at(*now_->journal) : steady_time::max();
}

// What came during a tick, when it was not known that nothing is left to be told, has stirred nobody.
void digest_source::await_more() noexcept {
    if (inbox_.note_plan(due_at() != steady_time::max())) {
        signals_.stir();
    }
}

void digest_source::settle(steady_time steady, wall_time resident, wall_time now) {
    const at_end awaits{*this};
    const bool all_said = loaded_.load(std::memory_order_acquire);
    take_inbox(resident);
    sweep(key_table::shards, resident);
    last_sweep_ = steady;
    resize(~std::size_t{0}, steady, now);
    if (all_said && (counter_ == 0 || now_->bits.changed() > 0)) {
        publish(steady, now);
    }
    tell(steady, true);
    note_figures();
}

squid_form digest_source::squid_digest() const {
    const std::scoped_lock lock{outside_};
    return squid_;
}

void digest_source::note_figures() {
    const auto bytes = table_.bytes() + now_->bytes() + (next_ ? next_->bytes() : 0) +
                       digests_.bytes() + in_hand_.capacity() * sizeof(source_event);
    const auto lost = inbox_.lost();
    const std::scoped_lock lock{outside_};
    figures_.lost = lost;
    figures_.loaded = loaded_.load(std::memory_order_acquire);
    figures_.known = table_.keys();
    figures_.listed = listed_;
    figures_.under_way = under_way_;
    figures_.capacity = now_->capacity;
    figures_.bits = now_->counts.size().bits;
    figures_.bits_on = now_->counts.bits_on();
    figures_.stuck = now_->counts.stuck();
    figures_.changed = now_->bits.changed();
    figures_.generations = generations_;
    figures_.resizes = resizes_;
    figures_.resizing = next_ != nullptr;
    figures_.probes = now_->counts.size().probes;
    if (teller_) {
        figures_.news = teller_->figures(*now_->journal);
    }
    figures_.bytes = bytes + (squid_.wire ? squid_.wire->size() : 0);
}

source_figures digest_source::figures() const {
    const std::scoped_lock lock{outside_};
    return figures_;
}

}  // namespace reprise::proxy::peer
