#include "proxy/cache/disk/reclaimer.hpp"

#include "proxy/base/relaxed.hpp"
#include "proxy/cache/disk/contents_loader.hpp"
#include "proxy/cache/disk/record_read.hpp"
#include "proxy/cache/disk/recovery.hpp"
#include "proxy/cache/disk/variants.hpp"

#include <algorithm>
#include <new>
#include <unordered_map>
#include <utility>

// begin() lists a segment's records and chooses among them, carry_one() carries one as far as it is
// due, finish() lets go of the others, tell_due() and tell_one() say later of which URLs. Between
// these anything may happen to a record, so each asks the index first whether it still lies here
// (live).

namespace reprise::proxy::cache::disk {

namespace {

// Carrying and telling are done when so much of the segment is written: what comes last may be
// large.
constexpr double done_at = 0.8;
// URLs to tell of. One takes 64 bytes, and has two records at least in its segment, so hardly any
// segment has more.
constexpr std::size_t most_untold = 1u << 16;

bool is_of_large(const footer_entry& one) noexcept {
    return one.kind == record_kind::extent || one.kind == record_kind::large;
}

}  // namespace

recovered_segment read_segment(file& from, const core& of, std::uint32_t number) {
    return recover(
        [&from](std::uint64_t offset, std::span<char> into) {
            const auto failed = read_all(from, offset, std::as_writable_bytes(into));
            throw_if_no_memory(failed);
            return !failed;
        },
        {.store_id = of.super.store_id, .number = number, .segment_bytes = of.shape.segment_bytes});
}

std::optional<index_entry> reclaimer::live(const footer_entry& one) const {
    const auto found = core_.index.find(one.key());
    const record_place place{static_cast<std::uint16_t>(*number_), one.offset};
    return found && found->place == place ? found : std::nullopt;
}

void reclaimer::begin(std::uint32_t segment) {
    number_ = segment;
    listed_.clear();
    chosen_.clear();
    objects_.clear();
    next_ = 0;
    chosen_bytes_ = done_bytes_ = 0;
    complete_ = false;
    try {
        choose();
    } catch (const std::bad_alloc&) {
        number_
            .reset();  // chosen again when there is memory: what is worth it is not to be let go for that
        throw;
    }
}

void reclaimer::choose() {
    const auto segment = *number_;
    const auto view = core_.segments.at(segment);
    if (!view.from) {
        return;
    }
    auto found = read_segment(*view.from, core_, segment);
    complete_ = found.state == segment_state::closed;
    listed_ = std::move(found.entries);

    std::vector<candidate> there;
    std::vector<occupant> occupants;
    // A large object is worth what it is as a whole, of which this segment most often has all: an
    // extent kept where another goes is room lost.
    struct large {
        std::uint64_t bytes = 0;
        packed_wait wait;  // which its head knows, and its extents do not
    };
    std::unordered_map<std::uint64_t, large> whole;
    for (const auto& one : listed_) {
        const auto entry = live(one);
        if (!entry || one.kind == record_kind::refresh) {
            continue;  // a newer head is carried in its object; on its own it would seem newer
        }
        // What belongs to an object goes with it. Directories lead to what may lie anywhere.
        const bool belongs = one.kind == record_kind::extent || one.discriminator != 0;
        if (belongs && !core_.index.find(one.primary)) {
            continue;
        }
        const auto frequency = std::max<unsigned>(core_.requests.estimate(one.primary),
                                                  one.kind == record_kind::variants ? 1 : 0);
        occupants.push_back(
            {one.bytes, one.bytes, std::max<unsigned>(frequency, entry->uses), one.wait});
        there.push_back({one, *entry});
        if (is_of_large(one)) {
            auto& its = whole[one.primary.low];
            its.bytes += one.bytes;
            its.wait = longer(its.wait, one.wait);
        }
    }
    for (std::size_t i = 0; i < there.size(); ++i) {
        if (is_of_large(there[i].listed)) {
            const auto& its = whole[there[i].listed.primary.low];
            occupants[i].length = its.bytes;
            occupants[i].wait = its.wait;
        }
    }
    chosen_.reserve(there.size());  // before that choosing, which moves the threshold, is done
    for (const auto i : core_.room.choose(occupants)) {
        chosen_bytes_ += there[i].entry.bytes;
        chosen_.push_back(there[i]);
    }
}

bool reclaimer::carry_one(log_tail& tail, double filled) {
    const auto due = static_cast<std::uint64_t>(std::min(filled / done_at, 1.0) *
                                                static_cast<double>(chosen_bytes_));
    if (next_ >= chosen_.size() || done_bytes_ >= due || !carry(tail, chosen_[next_])) {
        return false;
    }
    done_bytes_ += chosen_[next_].entry.bytes;
    ++next_;
    return true;
}

bool reclaimer::carry(log_tail& tail, const candidate& one) {
    const auto entry = live(one.listed);
    // What waits to be written is newer, and must not find this behind it.
    if (!entry || tail.awaits(one.listed.key())) {
        return true;
    }
    const bool has_head = one.listed.kind == record_kind::object ||
                          one.listed.kind == record_kind::large;
    if (has_head && tail.awaits(refresh_key(one.listed.primary, one.listed.discriminator))) {
        return false;  // with the newest, once that is written
    }
    auto view = core_.segments.at(*number_);
    record_read read{{}, std::move(view), *entry, core_.super.store_id};
    read.read_now();
    if (read.how() != record_read::found::good) {
        const bool damaged = read.how() == record_read::found::damaged;
        (damaged ? core_.counts.damaged : core_.counts.read_errors).fetch_add(1, relaxed);
        drop(one.listed, *entry);
        return true;
    }
    switch (one.listed.kind) {
    case record_kind::object:
    case record_kind::large: return carry_object(tail, one, read);
    case record_kind::variants: return carry_directory(tail, one, read);
    case record_kind::refresh: return true;
    case record_kind::extent: break;
    }
    // There may be pieces of an earlier response to the same URL that only the index knows of.
    return !has_object(one.listed.primary, read.header().subject) ||
           carry_as_it_is(tail, one, read, read.header().body_bytes);
}

// Read once for all that belongs to it in this segment.
bool reclaimer::has_object(const filter::key_hash& primary, std::uint64_t id) {
    auto known = objects_.find(primary);
    if (known == objects_.end()) {
        known = objects_.emplace(primary, objects_under(primary)).first;
    }
    const auto& ids = known->second;
    return std::find(ids.begin(), ids.end(), id) != ids.end();
}

std::vector<std::uint64_t> reclaimer::objects_under(const filter::key_hash& primary) const {
    std::vector<std::uint64_t> ids;
    const auto entry = core_.index.find(primary);
    auto from = entry ? core_.segments.at(entry->place.segment) : segment_table::view{};
    if (!from.from || from.sequence == 0) {
        return ids;
    }
    record_read read{{}, std::move(from), *entry, core_.super.store_id};
    read.read_now();
    if (read.how() != record_read::found::good || read.header().primary != primary) {
        return ids;
    }
    if (read.header().kind != record_kind::variants) {
        ids.push_back(read.header().id);
    } else if (const auto directory = read_variants(read.bytes())) {
        for (const auto& variant : directory->variants) {
            ids.push_back(variant.id);
        }
    }
    return ids;
}

publication reclaimer::carried_as(const candidate& one, std::uint64_t length) {
    return {.key = one.listed.key(),
            .entry = {},
            .primary = one.listed.primary,
            .length = length,
            .asked = {},
            .moved_from = one.entry.place};
}

bool reclaimer::carry_as_it_is(log_tail& tail,
                               const candidate& one,
                               record_read& read,
                               std::uint64_t length) {
    if (!tail.has_room(one.entry.bytes)) {
        return false;
    }
    tail.append(
        one.entry.bytes,
        read.header().id,
        [&](std::span<char> into, const record_stamp& stamp) noexcept {
            std::copy(read.bytes().begin(), read.bytes().end(), into.begin());
            return restamp(into, core_.super.store_id, stamp.sequence);
        },
        carried_as(one, length));
    return true;
}

bool reclaimer::carry_object(log_tail& tail, const candidate& one, record_read& read) {
    const auto view = read_object(read.bytes());
    if (!view) {
        drop(one.listed, one.entry);
        return true;
    }
    auto head = *view;
    auto written = read.position();

    // The newest head there is.
    std::optional<record_read> newer;
    const auto newer_key = refresh_key(one.listed.primary, one.listed.discriminator);
    if (const auto entry = core_.index.find(newer_key)) {
        auto place = core_.segments.at(entry->place.segment);
        if (place.from && place.sequence != 0) {
            newer.emplace(net::wakeup::signal{}, std::move(place), *entry, core_.super.store_id);
            newer->read_now();
        }
        if (!newer || newer->how() != record_read::found::good) {
            return true;  // the older head may say more than it should: it is not carried
        }
        const bool is_its = newer->header().kind == record_kind::refresh &&
                            newer->header().subject == view->header.id;
        const auto refreshed = is_its ? read_object(newer->bytes()) : format_errc::bad_field;
        if (refreshed && refreshed->url == view->url) {
            head = *refreshed;
            written = newer->position();
        } else {
            newer.reset();
        }
    }

    auto response = make_response(head);
    const auto said = core_.purges.judge(head.url, response.tags, head.ban_epoch);
    if (said.hard) {
        drop(one.listed, one.entry);
        core_.counts.invalidated.fetch_add(1, relaxed);
        return true;
    }
    const auto since = core_.expiries.since(one.listed.primary, written);
    if (!newer && !said.soft && !since && said.checked == head.ban_epoch) {
        return carry_as_it_is(tail, one, read, view->length);
    }

    // It is written anew, and says so: what it said of when it came must not be held against that.
    core_.to_own_time(head.header, response.freshness);
    for (const auto& ended : {said.soft, since}) {
        if (ended) {
            end_at(response, *ended);
        }
    }
    if (one.listed.kind == record_kind::object) {
        response.content = read.body();
    }
    const auto whole = stored_response::make(response);
    const object_source source{.kind = one.listed.kind,
                               .primary = one.listed.primary,
                               .discriminator = one.listed.discriminator,
                               .url = view->url,
                               .response = *whole,
                               .ban_epoch = said.checked,
                               .subject = 0,
                               .length = view->length,
                               .extent_bytes = view->extent_bytes,
                               .carried = true};
    const auto bytes = sized(source);
    if (!bytes) {
        drop(one.listed, one.entry);
        return true;
    }
    if (!tail.has_room(*bytes)) {
        return false;
    }
    tail.append(
        *bytes,
        view->header.id,
        [&](std::span<char> into, const record_stamp& stamp) noexcept {
            return encode(source, stamp, core_.super.store_id, into);
        },
        carried_as(one, view->length));
    return true;
}

bool reclaimer::carry_directory(log_tail& tail, const candidate& one, record_read& read) {
    auto directory = read_variants(read.bytes());
    if (!directory) {
        drop(one.listed, one.entry);
        return true;
    }
    std::erase_if(directory->variants, [&](const listed_variant& variant) {
        return !core_.index.find(
            index_key(record_kind::object, one.listed.primary, variant.discriminator));
    });
    if (directory->variants.empty()) {
        return true;
    }
    const directory_source source{one.listed.primary, *directory};
    const auto bytes = sized(source);
    if (!bytes) {
        return true;
    }
    if (!tail.has_room(*bytes)) {
        return false;
    }
    tail.append(
        *bytes,
        read.header().id,
        [&](std::span<char> into, const record_stamp& stamp) noexcept {
            return encode(source, stamp, core_.super.store_id, into);
        },
        carried_as(one, *bytes));
    return true;
}

void reclaimer::let_go(const filter::key_hash& key, const index_entry& entry) noexcept {
    if (!core_.erase(key, entry)) {
        return;
    }
    if (entry.kind == record_kind::object || entry.kind == record_kind::large) {
        core_.counts.evicted.fetch_add(1, relaxed);
    }
    core_.counts.evicted_bytes.fetch_add(entry.bytes, relaxed);
}

// Until its segment is begun anew a restart may find it.
void reclaimer::drop(const footer_entry& one, const index_entry& entry) noexcept {
    core_.unlisted.note(one.primary, core_.segments.sequence(*number_));
    (void)core_.erase(one.key(), entry);
    tell_later(one);
}

// Variants are not told one by one: their directory is.
void reclaimer::tell_later(const footer_entry& gone) noexcept {
    if (core_.settings.told == nullptr || gone.discriminator == 0 ||
        gone.kind == record_kind::extent) {
        return;
    }
    try {
        untold_.insert(gone.primary);
    } catch (const std::bad_alloc&) {
        tell_variants(core_, gone.primary);
        return;
    }
    if (untold_.size() > most_untold) {
        tell_one();
    }
}

void reclaimer::tell_one() noexcept {
    const auto primary = *untold_.begin();
    untold_.erase(untold_.begin());
    tell_variants(core_, primary);
}

void reclaimer::tell_due(double filled) noexcept {
    const auto may_wait = static_cast<std::size_t>((1 - std::min(filled / done_at, 1.0)) *
                                                   static_cast<double>(to_tell_));
    while (untold_.size() > may_wait) {
        tell_one();
    }
}

void reclaimer::finish() {
    for (const auto& one : listed_) {
        if (const auto entry = live(one)) {
            core_.unlisted.note(one.primary,
                                core_.segments.sequence(*number_));  // as drop() has it
            let_go(one.key(), *entry);
            if (one.kind == record_kind::refresh) {
                let_go_without(one);
            } else {
                tell_later(one);
            }
        }
    }
    if (!complete_) {
        sweep_index();
    }
    to_tell_ = untold_.size();
    core_.segments.end(*number_);
    number_.reset();
    listed_.clear();
    chosen_.clear();
}

// A carried object contains its newest head. One that was passed over (after a failure) lies before
// that head, and without it would count as fresher than it is.
void reclaimer::let_go_without(const footer_entry& head) noexcept {
    const auto key = index_key(record_kind::object, head.primary, head.discriminator);
    const auto object = core_.index.find(key);
    if (!object) {
        return;
    }
    const log_position its{core_.segments.sequence(object->place.segment), object->place.offset};
    if (its < log_position{core_.segments.sequence(*number_), head.offset}) {
        core_.note_unlisted(head.primary);  // its own segment stays
        let_go(key, *object);
        tell_later(head);
    }
}

// Where the footer can't be had, the index itself says what lies in the segment.
void reclaimer::sweep_index() {
    std::vector<std::pair<filter::key_hash, index_entry>> found;
    for (std::size_t shard = 0; shard < record_index::shards; ++shard) {
        core_.index.for_each(shard, [&](const filter::key_hash& key, const index_entry& entry) {
            if (entry.place.segment == *number_) {
                found.emplace_back(key, entry);
            }
        });
    }
    for (const auto& [key, entry] : found) {
        let_go(key, entry);
    }
}

}  // namespace reprise::proxy::cache::disk
