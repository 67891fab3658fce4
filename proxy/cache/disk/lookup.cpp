#include "proxy/base/relaxed.hpp"
#include "proxy/cache/disk/core.hpp"
#include "proxy/cache/disk/large_body.hpp"
#include "proxy/cache/disk/record_read.hpp"
#include "proxy/cache/disk/tier.hpp"
#include "proxy/cache/disk/variants.hpp"

#include <algorithm>
#include <utility>

// A look-up reads up to three records, one after the other:
//
//     primary key ──object──────────────────────────────> refresh, if there is one ──> answer
//                 └─directory──select──variant──object──^
//
// Each is found in the index, read, and held against what it should be: key, URL, id. What fails
// is looked up again, for it may have been moved, or its segment begun anew, between the two; if
// the index still says the same, the record is damaged and goes.

namespace reprise::proxy::cache::disk {

namespace {
constexpr unsigned most_tries = 3;
}  // namespace

struct disk_lookup::state {
    enum class phase : std::uint8_t { primary, variant, refresh };

    state(std::shared_ptr<disk::core> from,
          const filter::key_hash& of,
          std::string_view named,
          net::wakeup::signal wakes)
        : core{std::move(from)},
          key{of},
          url{named},
          sleeper{std::move(wakes)},
          wanted{of} {}

    ~state() {
        if (reading) {
            reading->abandon();
        }
    }

    /// What read() came to.
    enum class read_result : std::uint8_t {
        good,
        waiting,
        gone,    ///< the index has nothing
        failed,  ///< it can't be had now, or was damaged
    };

    /// Looks `wanted` up and reads it.
    read_result read();
    /// What is known when a good record is there. True: the answer is in `out`.
    [[nodiscard]] bool take(http::field_list request, lookup_result& out);
    void take_object();
    [[nodiscard]] bool take_directory(http::field_list request, lookup_result& out);
    void answer(lookup_result& out);
    /// `wanted` is not there, can't be had, or is not what was asked for.
    [[nodiscard]] bool miss(lookup_result& out, read_result why = read_result::gone);
    [[nodiscard]] filter::key_hash object_key() const noexcept;

    std::shared_ptr<disk::core> core;
    const filter::key_hash key;
    const std::string_view url;
    const net::wakeup::signal sleeper;

    phase at = phase::primary;
    filter::key_hash wanted;
    std::shared_ptr<record_read> reading;
    bool pooled = false;
    unsigned tries = 0;
    unsigned moves = 0;
    std::uint64_t variant_id = 0;  // what the directory lists

    std::shared_ptr<record_read> object, newer;
    object_view view, newer_view;
    unsigned uses = 0;
};

disk_lookup::state::read_result disk_lookup::state::read() {
    for (;;) {
        if (!reading) {
            auto there = core->locate(wanted);
            if (!there) {
                return read_result::gone;
            }
            if (!there->from.from || there->from.sequence == 0) {
                return read_result::failed;
            }
            reading = std::make_shared<record_read>(
                sleeper, std::move(there->from), there->entry, core->super.store_id);
            pooled = !reading->try_at_once();
            if (pooled && !core->pool.submit(reading)) {
                core->counts.refused.fetch_add(1, relaxed);
                reading = nullptr;
                return read_result::failed;
            }
            (pooled ? core->counts.pooled : core->counts.in_place).fetch_add(1, relaxed);
        }
        if (pooled) {
            switch (reading->what()) {
            case read_job::stage::waiting: return read_result::waiting;
            case read_job::stage::late:
                core->counts.read_errors.fetch_add(1, relaxed);
                reading = nullptr;
                return read_result::failed;
            case read_job::stage::done: break;
            }
        }
        const auto& entry = reading->entry();
        const bool unmoved = core->segments.sequence(entry.place.segment) == reading->sequence();
        switch (reading->how()) {
        case record_read::found::good:
            if (unmoved) {
                return read_result::good;
            }
            break;
        case record_read::found::unreadable:
            core->counts.read_errors.fetch_add(1, relaxed);
            reading = nullptr;
            return read_result::failed;
        case record_read::found::none:
        case record_read::found::damaged: {
            const auto now = core->index.find(wanted);
            if (unmoved && now && now->place == entry.place) {
                core->counts.damaged.fetch_add(1, relaxed);
                core->note_unlisted(key);  // a later start may be able to read it
                (void)core->erase(wanted, entry);
                if (at == phase::refresh) {
                    // Nobody knows its newest head.
                    (void)core->erase(object_key(), object->entry());
                }
                reading = nullptr;
                return read_result::failed;
            }
            break;
        }
        }
        reading = nullptr;
        if (++tries >= most_tries) {
            return read_result::failed;
        }
    }
}

filter::key_hash disk_lookup::state::object_key() const noexcept {
    return index_key(record_kind::object, key, object->header().discriminator);
}

// Without a newer head the object is good if it still is what the index has. A newer head that
// can't be read now may allow less than the object's own.
bool disk_lookup::state::miss(lookup_result& out, read_result why) {
    if (at == phase::refresh && why == read_result::gone) {
        const auto now = core->index.find(object_key());
        if (now && now->place == object->entry().place) {
            answer(out);
            return true;
        }
        if (now && ++moves < most_tries) {  // it was carried, or replaced
            object = nullptr;
            reading = nullptr;
            at = phase::primary;
            wanted = key;
            tries = 0;
            return false;
        }
    }
    switch (at) {
    case phase::refresh: out.what = lookup::absent; break;
    case phase::variant: out.what = lookup::other_variant; break;
    case phase::primary: out.what = lookup::absent; break;
    }
    core->counts.misses.fetch_add(1, relaxed);
    return true;
}

bool disk_lookup::state::take(http::field_list request, lookup_result& out) {
    const auto kind = reading->header().kind;
    if (reading->header().primary != key) {
        return miss(out);  // another's, under an equal tag
    }
    if (at == phase::refresh) {
        if (kind == record_kind::refresh && reading->header().subject == object->header().id) {
            if (const auto read = read_object(reading->bytes()); read && read->url == url) {
                newer = std::exchange(reading, nullptr);
                newer_view = *read;
            }
        }
        answer(out);
        return true;
    }
    if (at == phase::primary && kind == record_kind::variants) {
        return take_directory(request, out);
    }
    if (kind != record_kind::object && kind != record_kind::large) {
        return miss(out);
    }
    const auto read = read_object(reading->bytes());
    const bool wrong_variant = at == phase::variant && reading->header().id != variant_id;
    if (!read || read->url != url || wrong_variant) {
        return miss(out);
    }
    if (!read->vary_names.empty() &&
        !http::matches({std::string{read->vary_names}, false}, read->selecting, request)) {
        at = phase::variant;
        return miss(out);
    }
    // This first, and then the index once more, whether this still is its object: so one of the two
    // sees what is newer.
    const auto itself = index_key(record_kind::object, key, reading->header().discriminator);
    if (core->on_their_way.has_either_form(itself, key)) {
        return miss(out);
    }
    view = *read;
    object = std::exchange(reading, nullptr);
    at = phase::refresh;
    wanted = refresh_key(key, object->header().discriminator);
    tries = 0;
    return false;
}

bool disk_lookup::state::take_directory(http::field_list request, lookup_result& out) {
    const auto named = read_variants_url(reading->bytes());
    if (!named || *named != url) {
        return miss(out);
    }
    const auto directory = read_variants(reading->bytes());
    if (!directory) {
        return miss(out);
    }
    reading = nullptr;
    at = phase::variant;
    const auto* chosen = select(*directory, key, request);
    if (chosen == nullptr) {
        return miss(out);
    }
    variant_id = chosen->id;
    wanted = index_key(record_kind::object, key, chosen->discriminator);
    tries = 0;
    return false;
}

void disk_lookup::state::answer(lookup_result& out) {
    out.what = lookup::absent;
    if (core->dropped.has(object->header().id)) {
        core->counts.misses.fetch_add(1, relaxed);
        return;  // the writer takes it out
    }
    const auto& entry = object->entry();
    auto& head = newer ? newer_view : view;
    core->to_own_time(head.header, head.freshness);
    const auto drop = [&](std::atomic<std::uint64_t>& counter) {
        counter.fetch_add(1, relaxed);
        core->counts.misses.fetch_add(1, relaxed);
        (void)core->erase(object_key(), entry);
    };

    auto made = make_response(head);
    const auto said = core->purges.judge(url, made.tags, head.ban_epoch);
    if (said.hard) {
        drop(core->counts.invalidated);
        return;
    }
    if (object->header().kind == record_kind::object) {
        made.content = object->body();
    } else {
        const large_shape shape{key, view.header.id, view.length, view.extent_bytes, view.extents};
        if (!has_extents(core->index, shape)) {
            if (core->loading.load(relaxed)) {
                core->counts.misses.fetch_add(1, relaxed);  // they may still come
            } else {
                drop(core->counts.evicted);
            }
            return;
        }
        made.on_disk = make_large_body(core, shape);
    }
    auto ended = said.soft;
    if (const auto since = core->expiries.since(key, (newer ? newer : object)->position())) {
        ended = ended ? std::min(*ended, *since) : *since;
    }
    uses = core->index.count_use(object_key(), entry.place);
    core->counts.hits.fetch_add(1, relaxed);
    out.what = lookup::present;
    if (ended || made.purged_softly) {
        // An earlier process's clock may have been ahead of ours, and what it ended would last until then.
        const auto now = resident_now();
        end_at(made, std::min(ended.value_or(now), now));
    }
    out.response = stored_response::make(made);
}

disk_lookup::disk_lookup(tier& from,
                         const filter::key_hash& key,
                         std::string_view url,
                         net::wakeup::signal sleeper)
    : asked{from.core_->invalidated.count(key), from.core_->purges.epoch()},
      state_{std::make_unique<state>(from.core_, key, url, std::move(sleeper))} {
    state_->core->requests.note(key);
}

disk_lookup::~disk_lookup() = default;

bool disk_lookup::step(http::field_list request) {
    auto& now = *state_;
    for (;;) {
        if (now.core->closed.load(std::memory_order_acquire)) {
            result = {};
            return true;
        }
        const auto came = now.read();
        switch (came) {
        case state::read_result::waiting: return false;
        case state::read_result::gone:
        case state::read_result::failed:
            if (now.miss(result, came)) {
                uses = now.uses;
                return true;
            }
            break;
        case state::read_result::good:
            if (now.take(request, result)) {
                uses = now.uses;
                return true;
            }
            break;
        }
    }
}

}  // namespace reprise::proxy::cache::disk
