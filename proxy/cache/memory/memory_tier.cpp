#include "proxy/cache/memory/memory_tier.hpp"

#include "proxy/base/relaxed.hpp"
#include "proxy/cache/memory/store_stripe.hpp"
#include "proxy/cache/recency.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <new>
#include <utility>

// The budget over all stripes: what is charged is counted once, in atomics, and what must leave
// leaves the fullest stripe. A visit locks one stripe; no two are ever locked at once.

namespace reprise::proxy::cache {

namespace {

constexpr std::size_t most_stripes = 64;

std::size_t stripes_for(const store_plan& plan) noexcept {
    constexpr std::uint64_t bytes_a_stripe = 16u << 20;
    return plan.stripes != 0 ? std::min(plan.stripes, most_stripes)
                             : std::bit_floor(std::clamp<std::size_t>(
                                   plan.capacity / bytes_a_stripe, 1, most_stripes));
}

}  // namespace

struct memory_tier::stripes {
    explicit stripes(const store_plan& plan)
        : count{stripes_for(plan)},
          by_size{plan.policy == eviction_kind::gdsf},
          requests{plan.requests} {
        const auto part = plan.capacity / count;
        for (std::size_t i = 0; i < count; ++i) {
            auto policy = make_policy(plan.policy,
                                      part,
                                      {.exponent = plan.exponent,
                                       .by_wait = plan.by_wait,
                                       .frequencies = requests.get()});
            all[i] = std::make_unique<store_stripe>(
                std::move(policy), part, plan.probation, plan.told);
        }
    }

    [[nodiscard]] std::size_t of(const filter::key_hash& key) const noexcept {
        return key.high % count;
    }

    // The fullest by `sizes`; begins elsewhere each time, so that equals take turns. Four cache
    // lines. `count`: all are empty.
    std::size_t fullest(const std::array<std::atomic<std::uint32_t>, most_stripes>& sizes) {
        const auto from = turn.fetch_add(1, relaxed);
        std::size_t best = count;
        std::uint32_t most = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const auto at = (from + i) % count;
            if (const auto size = sizes[at].load(relaxed); size > most) {
                most = size;
                best = at;
            }
        }
        return best;
    }

    const std::size_t count;
    const bool by_size;  // its exponent may change; lfu-da's is 0
    const std::shared_ptr<const frequency_sketch> requests;  // which the policies look into
    std::array<std::unique_ptr<store_stripe>, most_stripes> all;
    // Beside the stripes, and written when something comes or goes: a hit touches neither.
    std::array<std::atomic<std::uint32_t>, most_stripes> objects{}, waiting{};
    std::atomic<std::size_t> turn{0};
};

// A stripe, locked; what was changed there is accounted for at the end, and what left it destroyed
// after the lock is gone.
class memory_tier::locked_stripe {
public:
    locked_stripe(const memory_tier& store, std::size_t index)
        : store_{store},
          index_{index},
          home_{*store.stripes_->all[index]},
          lock_{home_.guard},
          bytes_{home_.held.bytes()},
          count_{home_.held.count()},
          waiting_bytes_{home_.held.probation_bytes()},
          line_bytes_{home_.held.line_bytes()},
          waiting_{home_.waiting} {}
    locked_stripe(const memory_tier& store, const filter::key_hash& key)
        : locked_stripe{store, store.stripes_->of(key)} {}
    locked_stripe(const locked_stripe&) = delete;
    locked_stripe& operator=(const locked_stripe&) = delete;

    ~locked_stripe() {
        const auto& held = home_.held;
        if (held.bytes() != bytes_) {
            store_.used_.fetch_add(held.bytes() - bytes_, relaxed);
        }
        if (held.count() != count_) {
            store_.objects_.fetch_add(held.count() - count_, relaxed);
            store_.stripes_->objects[index_].store(static_cast<std::uint32_t>(held.count()),
                                                   relaxed);
        }
        if (held.probation_bytes() != waiting_bytes_) {
            store_.waiting_bytes_.fetch_add(held.probation_bytes() - waiting_bytes_, relaxed);
        }
        if (held.line_bytes() != line_bytes_) {
            store_.line_bytes_.fetch_add(held.line_bytes() - line_bytes_, relaxed);
        }
        if (home_.waiting != waiting_) {
            store_.waiting_.fetch_add(home_.waiting - waiting_, relaxed);
            store_.stripes_->waiting[index_].store(static_cast<std::uint32_t>(home_.waiting),
                                                   relaxed);
        }
        if (purged_ != 0) {
            store_.purged_.fetch_add(purged_, relaxed);
        }
    }

    store_stripe* operator->() noexcept { return &home_; }
    store_stripe& operator*() noexcept { return home_; }

    /// store_stripe::settled with what belongs to this visit.
    store_stripe::resource settled(const filter::key_hash& key, std::string_view url) {
        return home_.settled(key, url, store_.purges_, purged_, gone);
    }

    void let_go(stored_ptr one) noexcept { store_stripe::let_go(gone, std::move(one)); }

    /// After what may have made the policy grow or shrink.
    void note_overhead() {
        const auto now = home_.held.overhead();
        store_.overhead_.fetch_add(now - std::exchange(home_.overhead, now), relaxed);
    }

    store_stripe::released gone;  // before the lock: destroyed after it is given back

private:
    const memory_tier& store_;
    const std::size_t index_;
    store_stripe& home_;
    const std::lock_guard<std::mutex> lock_;
    const std::uint64_t bytes_;
    const std::size_t count_;
    const std::uint64_t waiting_bytes_;
    const std::uint64_t line_bytes_;
    const std::size_t waiting_;
    std::uint64_t purged_ = 0;
};

memory_tier::memory_tier(const store_plan& plan)
    : stripes_{std::make_unique<stripes>(plan)},
      capacity_{plan.capacity},
      probation_{plan.probation} {
    for (std::size_t i = 0; i < stripes_->count; ++i) {
        locked_stripe{*this, i}.note_overhead();
    }
}

memory_tier::~memory_tier() = default;

lookup_result memory_tier::find(const filter::key_hash& key,
                                std::string_view url,
                                http::field_list request) const {
    locked_stripe home{*this, key};
    const auto found = home.settled(key, url);
    auto* one = store_stripe::selected(found, request);
    if (one == nullptr) {
        home->held.missed(key);
        return {found.empty() ? lookup::absent : lookup::other_variant, nullptr};
    }
    one->note_found();
    one->last_used = tick_.load(relaxed);
    lookup_result result{lookup::present, one->held_response(), home->held.use(*one)};
    if (result.just_admitted) {
        // Under the lock, as in evict_one: a purge from now on is seen by whoever gives it to the disk.
        result.asked = {invalidated_keys_.count(key), purges_.epoch_of(one->checked())};
        --home->waiting;
        promoted_.fetch_add(1, relaxed);
        const auto parts = one->response().parts();
        promoted_bytes_.fetch_add(parts ? parts->bytes() : one->response().size(), relaxed);
        home.note_overhead();
    }
    return result;
}

std::vector<stored_ptr> memory_tier::variants(const filter::key_hash& key,
                                              std::string_view url) const {
    std::vector<stored_ptr> all;
    locked_stripe home{*this, key};
    for (const auto& variant : home->resource_of(key, url)) {
        auto response = variant.held_response();
        const auto since = purges_.epoch_of(variant.checked());
        const auto said = purges_.judge(url, response->tags(), since);
        if (said.hard) {
            continue;
        }
        if (said.soft) {
            response = ended_at(*response, *said.soft);
        }
        all.push_back(std::move(response));
    }
    return all;
}

lookup_result memory_tier::peek(const filter::key_hash& key,
                                std::string_view url,
                                http::field_list request) const {
    const auto all = variants(key, url);
    lookup_result out{all.empty() ? lookup::absent : lookup::other_variant, nullptr};
    for (const auto& one : all) {
        if (http::matches(one->vary(), one->selecting(), request) &&
            (!out.response ||
             one->freshness().response_time >= out.response->freshness().response_time)) {
            out = {lookup::present, one};
        }
    }
    return out;
}

invalidation_mark memory_tier::mark(const filter::key_hash& key) const {
    return {invalidated_keys_.count(key), purges_.epoch()};
}

bool memory_tier::put(const filter::key_hash& key,
                      std::string_view url,
                      stored_ptr response,
                      invalidation_mark asked,
                      standing as,
                      unsigned uses_to_admit,
                      handing* to) {
    return put_if(key, url, nullptr, std::move(response), asked, as, uses_to_admit, to) ==
           placement::stored;
}

bool memory_tier::put_over(const filter::key_hash& key,
                           std::string_view url,
                           const stored_ptr& expected,
                           stored_ptr response,
                           invalidation_mark asked,
                           standing as,
                           unsigned uses_to_admit,
                           handing* to) {
    return put_if(key, url, &expected, std::move(response), asked, as, uses_to_admit, to) ==
           placement::stored;
}

placement memory_tier::put_if(const filter::key_hash& key,
                              std::string_view url,
                              const stored_ptr* expected,
                              stored_ptr response,
                              invalidation_mark asked,
                              standing as,
                              unsigned uses_to_admit,
                              handing* to) {
    const auto needed = response->footprint();
    {
        locked_stripe home{*this, key};
        const auto* const older = store_stripe::variant_of(home.settled(key, url), *response);
        if (expected != nullptr) {
            if ((older == nullptr ? nullptr : &older->response()) != expected->get()) {
                return placement::refused;
            }
        }
        const auto said = purges_.judge(url, response->tags(), asked.purges);
        if (!said.none() || invalidated_keys_.since(key, asked.count)) {
            refused_.fetch_add(1, relaxed);
            return placement::refused;
        }
        if ((older != nullptr && is_outdated_by(*response, older->response())) ||
            home->is_behind_handed(key, *response)) {
            refused_.fetch_add(1, relaxed);
            return placement::refused;
        }
        if (to != nullptr) {
            begin(*to, *home, key, response.get());
        }
        home->outrun(key, *response);
        const auto done = home->put(key,
                                    url,
                                    std::move(response),
                                    purges_.counted_from_start(said.checked),
                                    capacity_.load(relaxed),
                                    most_variants,
                                    as,
                                    uses_to_admit,
                                    tick_.load(relaxed),
                                    home.gone);
        home.note_overhead();
        if (!done.fits) {
            refused_.fetch_add(1, relaxed);
            return placement::too_large;
        }
        (done.in_place ? replaced_ : inserted_).fetch_add(1, relaxed);
    }
    make_room(needed);
    return placement::stored;
}

// With the stripe's lock held.
void memory_tier::begin(handing& to,
                        store_stripe& home,
                        const filter::key_hash& key,
                        const stored_response* what) {
    home.handed_on.push_back({key, what});
    to.home_ = &home;
    to.what_ = what;
}

bool memory_tier::handing::end() noexcept {
    if (home_ == nullptr) {
        return false;
    }
    auto& home = *std::exchange(home_, nullptr);
    const std::lock_guard lock{home.guard};
    const auto at = std::find_if(home.handed_on.begin(),
                                 home.handed_on.end(),
                                 [this](const auto& one) { return one.what == what_; });
    const bool outrun = at->outrun;
    home.handed_on.erase(at);
    return outrun;
}

void memory_tier::hand_on(const filter::key_hash& key,
                          std::string_view url,
                          const stored_ptr& response,
                          handing& to) {
    locked_stripe home{*this, key};
    if (store_stripe::place_of(home->resource_of(key, url), response) != nullptr) {
        begin(to, *home, key, response.get());
    }
}

bool memory_tier::freshen(const filter::key_hash& key,
                          std::string_view url,
                          const stored_ptr& current,
                          stored_ptr updated,
                          invalidation_mark asked) {
    const auto needed = updated->footprint();
    {
        locked_stripe home{*this, key};
        home->outrun(current.get());
        auto* kept = store_stripe::place_of(home->resource_of(key, url), current);
        if (kept == nullptr) {
            return false;
        }
        const auto said = purges_.judge(url, updated->tags(), asked.purges);
        const auto since = purges_.epoch_of(kept->checked());
        if (!said.none() || !purges_.judge(url, current->tags(), since).none()) {
            return false;
        }
        kept->note_checked(purges_.counted_from_start(said.checked));
        home.let_go(home->replace(*kept, std::move(updated)));
        freshened_.fetch_add(1, relaxed);
    }
    make_room(needed);
    return true;
}

stored_ptr memory_tier::variant_of(const filter::key_hash& key,
                                   std::string_view url,
                                   const stored_response& like) const {
    locked_stripe home{*this, key};
    const auto* kept = store_stripe::variant_of(home.settled(key, url), like);
    return kept == nullptr ? nullptr : kept->held_response();
}

stored_ptr memory_tier::ended_by(const filter::key_hash& key,
                                 std::string_view url,
                                 const newcomer& by) const {
    locked_stripe home{*this, key};
    for (const auto& variant : home.settled(key, url)) {
        if (puts_an_end_to(by, variant.response())) {
            return variant.held_response();
        }
    }
    return nullptr;
}

bool memory_tier::drop(const filter::key_hash& key,
                       std::string_view url,
                       const stored_ptr& outdated) {
    locked_stripe home{*this, key};
    home->outrun(outdated.get());
    auto* kept = store_stripe::place_of(home->resource_of(key, url), outdated);
    if (kept == nullptr) {
        return false;
    }
    home.let_go(home->remove(*kept));
    invalidated_.fetch_add(1, relaxed);
    return true;
}

std::size_t memory_tier::invalidate(const filter::key_hash& key, std::string_view url) {
    locked_stripe home{*this, key};
    invalidated_keys_.note(key);
    std::size_t count = 0;
    for (auto left = home.settled(key, url); !left.empty(); left = home->resource_of(key, url)) {
        home.let_go(home->remove(left.front()));
        ++count;
    }
    invalidated_.fetch_add(count, relaxed);
    return count;
}

std::size_t memory_tier::expire(const filter::key_hash& key, std::string_view url, wall_time now) {
    locked_stripe home{*this, key};
    invalidated_keys_.note(key);
    const auto found = home.settled(key, url);
    store_stripe::released ended;
    ended.reserve(found.size());
    for (const auto& variant : found) {
        ended.push_back(ended_at(variant.response(), now));
    }
    auto next = ended.begin();  // from here on nothing throws: all of them, or none
    for (auto& variant : found) {
        home.let_go(variant.exchange(std::move(*next++)));
    }
    return found.size();
}

bool memory_tier::takes(const filter::key_hash& key, std::string_view url, std::uint64_t bytes) {
    if (bytes <= room()) {
        return true;
    }
    locked_stripe home{*this, key};
    return !home.settled(key, url).empty() || home->takes(key, bytes, outlook(bytes));
}

// For a stripe to which `more` bytes are promised beside its part of all promises.
stripe_outlook memory_tier::outlook(std::uint64_t more) const noexcept {
    const auto taken = this->taken() + more;
    const auto excess = taken - std::min(taken, capacity_.load(relaxed));
    const auto for_more = std::min(excess, more);
    return {.expected = reserved_.load(relaxed) / stripes_->count + more,
            .excess = excess,
            .own = for_more + (excess - for_more) / stripes_->count};
}

std::uint64_t memory_tier::taken() const noexcept {
    return used_.load(relaxed) + reserved_.load(relaxed) + overhead_.load(relaxed);
}

bool memory_tier::is_over() const noexcept {
    return taken() > capacity_.load(relaxed);
}

// For `needed` bytes that have just come.
void memory_tier::make_room(std::uint64_t needed) {
    // Ends: each turn takes something out or finds nothing to take, but for what another thread
    // takes before us.
    std::size_t in_vain = 0;
    for (std::uint64_t evicted = 0; is_over() && in_vain < most_stripes;) {
        if (evicted >= 2 * needed && lowering_.load(relaxed) != 0) {
            return;  // the rest is set_capacity's
        }
        const auto bytes = evict_one(evicted_to_);
        evicted += bytes;
        in_vain = bytes != 0 ? 0 : in_vain + 1;
    }
}

// How many bytes that was; 0: nothing was there.
std::uint64_t memory_tier::evict_one(std::span<const eviction_listener> told) {
    const bool probation_first = static_cast<double>(line_bytes_.load(relaxed)) >
                                 probation_.load(relaxed) *
                                     static_cast<double>(capacity_.load(relaxed));
    auto at = probation_first ? stripes_->fullest(stripes_->waiting) : stripes_->count;
    if (at == stripes_->count) {
        at = stripes_->fullest(stripes_->objects);
    }
    if (at == stripes_->count) {
        return 0;
    }
    const bool for_room = told.data() == evicted_to_.data();
    bool hands_on = outrun_to_ && for_room;
    store_stripe::evicted out;
    invalidation_mark asked;
    handing on;
    {
        locked_stripe home{*this, at};
        if (hands_on && !home->can_hand_on()) {
            told = {};  // it leaves all the same, as what is not worth writing
            hands_on = false;
        }
        out = home->evict(probation_first, outlook(0));
        home.note_overhead();
        if (!out.one) {
            return 0;
        }
        asked = {invalidated_keys_.count(out.one->key), purges_.epoch_of(out.one->checked())};
        if (hands_on) {
            begin(on, *home, out.one->key, &out.one->response());
        }
    }
    const auto& gone = *out.one;
    evicted_.fetch_add(1, relaxed);
    evicted_bytes_.fetch_add(gone.charge, relaxed);
    if (out.was_admitted) {
        note_eviction_age(gone.last_used);
    }
    const auto left = gone.held_response();
    const evicted_response how{.key = gone.key,
                               .url = gone.url(),
                               .response = left,
                               .was_found = gone.was_found(),
                               .was_admitted = out.was_admitted,
                               .asked = asked};
    for (const auto& tell : told) {
        try {
            tell(how);
        } catch (const std::bad_alloc&) {
            if (!for_room) {
                throw;
            }
            // Whoever made room for something has it: that this was not worth writing is all that follows.
        }
    }
    if (on.end() && how.was_given_on) {
        outrun_to_(how);
    }
    return gone.charge;
}

void memory_tier::empty_into(const eviction_listener& told) {
    while (evict_one({&told, 1}) != 0) {
    }
}

void memory_tier::tick(steady_time now) noexcept {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count();
    tick_.store(static_cast<std::uint32_t>(seconds), relaxed);
}

void memory_tier::note_eviction_age(std::uint32_t last_used) noexcept {
    const auto now = tick_.load(relaxed);
    if (now == 0 || last_used == 0) {
        return;
    }
    const auto age = static_cast<double>(now - std::min(last_used, now));
    const auto before = eviction_age_.load(relaxed);
    // Threads that meet here lose one sample of 64.
    eviction_age_.store(before < 0 ? age : before + (age - before) / 64, relaxed);
}

void memory_tier::set_capacity(std::uint64_t bytes) {
    lowering_.fetch_add(1, relaxed);
    capacity_.store(bytes, relaxed);
    try {
        for (std::size_t i = 0; i < stripes_->count; ++i) {
            locked_stripe home{*this, i};
            home->held.set_capacity(bytes / stripes_->count);
            home.note_overhead();
        }
        // Before, as far as can be told what will stay: or what is taken for keys that are to go would push
        // out the others too. And after, for what was put meanwhile had it grow again.
        const auto held = std::max<std::uint64_t>(used_.load(relaxed), 1);
        trim_policies(std::min(1.0, static_cast<double>(bytes) / static_cast<double>(held)));
        make_room(std::numeric_limits<std::uint64_t>::max() / 2);
        trim_policies(1);
    } catch (...) {
        lowering_.fetch_sub(1, relaxed);
        throw;
    }
    lowering_.fetch_sub(1, relaxed);
}

// For a share of what each holds.
void memory_tier::trim_policies(double share) {
    for (std::size_t i = 0; i < stripes_->count; ++i) {
        locked_stripe home{*this, i};
        try {
            home->held.trim(
                static_cast<std::uint64_t>(static_cast<double>(home->held.count()) * share));
        } catch (const std::bad_alloc&) {
            // It stays as large as it is.
        }
        home.note_overhead();
    }
}

void memory_tier::set_probation(double share) {
    probation_.store(share, relaxed);
    for (std::size_t i = 0; i < stripes_->count; ++i) {
        locked_stripe home{*this, i};
        home->held.set_probation(share);
    }
}

void memory_tier::set_exponent(double exponent) {
    for (std::size_t i = 0; stripes_->by_size && i < stripes_->count; ++i) {
        locked_stripe home{*this, i};
        home->held.set_exponent(exponent);
    }
}

std::uint64_t memory_tier::room() const noexcept {
    const auto taken = this->taken();
    const auto capacity = capacity_.load(relaxed);
    return capacity > taken ? capacity - taken : 0;
}

store_figures memory_tier::figures() const noexcept {
    store_figures f;
    f.objects = objects_.load(relaxed);
    f.bytes = used_.load(relaxed);
    f.reserved = reserved_.load(relaxed);
    f.capacity = capacity_.load(relaxed);
    f.overhead = overhead_.load(relaxed);
    f.probation_objects = waiting_.load(relaxed);
    f.probation_bytes = waiting_bytes_.load(relaxed);
    f.inserted = inserted_.load(relaxed);
    f.replaced = replaced_.load(relaxed);
    f.freshened = freshened_.load(relaxed);
    f.evicted = evicted_.load(relaxed);
    f.evicted_bytes = evicted_bytes_.load(relaxed);
    f.invalidated = invalidated_.load(relaxed);
    f.refused = refused_.load(relaxed);
    f.purged = purged_.load(relaxed);
    f.promoted = promoted_.load(relaxed);
    f.promoted_bytes = promoted_bytes_.load(relaxed);
    if (const auto age = eviction_age_.load(relaxed); age >= 0) {
        f.eviction_age = std::chrono::seconds{static_cast<std::int64_t>(age)};
    }
    return f;
}

}  // namespace reprise::proxy::cache
