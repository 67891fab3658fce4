#include "proxy/cache/disk/core.hpp"

#include "proxy/base/log.hpp"

#include <algorithm>
#include <new>
#include <random>
#include <utility>

// Records enter, move in and leave the index by functions of `core` alone, which keep the counts
// and note the death of what goes. Those that tell the listener take the key's turn first
// (in_order), so that it hears of a key in the order in which things happened.

namespace reprise::proxy::cache::disk {

namespace {

// The high half is new at each start, so that no id of an earlier one comes again; never 0.
std::uint64_t first_id() {
    std::random_device random;
    return (std::uint64_t{random()} | 1u << 31) << 32 | 1;
}

bool is_object(const index_entry& entry) noexcept {
    return entry.kind == record_kind::object || entry.kind == record_kind::large;
}

}  // namespace

core::core(const tier_settings& from,
           std::shared_ptr<filesystem> system,
           const superblock& found,
           const geometry& planned,
           std::uint32_t numbers,
           purge_list& bans,
           const invalidations& lately)
    : settings{from},
      files{std::move(system)},
      super{found},
      secret{filter::hash_secret::from_seed(found.seed)},
      shape{planned},
      purges{bans},
      invalidated{lately},
      segments{numbers},
      pool{{.threads = from.readers, .most_waiting = from.read_queue, .patience = from.patience}},
      room{{.segments = planned.segments,
            .numbers = numbers,
            .segment_bytes = planned.segment_bytes,
            .carry = from.carry,
            .exponent = from.exponent,
            .by_wait = from.by_wait}},
      requests{counted_keys(from.size)},
      first_id_{first_id()},
      next_id_{first_id_},
      died_(numbers) {}

std::string core::path_of(std::string_view name) const {
    std::string path = settings.path;
    path += '/';
    path += name;
    return path;
}

bool core::may_have_unknown_segments() const {
    const auto names = files->list(settings.path);
    if (!names) {
        throw_if_no_memory(names.error());
        return true;
    }
    return std::any_of(names->begin(), names->end(), [this](const std::string& name) {
        const auto number = segment_number_in(name);
        return number < most_segments &&
               (number >= segments.size() || segments.left_in_file(number) == 0);
    });
}

std::optional<core::located> core::locate(const filter::key_hash& key) const {
    constexpr unsigned most_tries = 3;  // it is carried once in a turn of the whole log
    auto entry = index.find(key);
    for (unsigned tries = 1; entry; ++tries) {
        auto from = segments.at(entry->place.segment);
        const auto now = index.find(key);
        if (!now || now->place == entry->place || tries == most_tries) {
            return located{*entry, std::move(from)};
        }
        entry = now;
    }
    return std::nullopt;
}

void core::count(const index_entry& entry, int sign) noexcept {
    if (is_object(entry)) {
        counts.objects.fetch_add(sign, std::memory_order_relaxed);
    }
    counts.bytes.fetch_add(sign * static_cast<std::int64_t>(entry.bytes),
                           std::memory_order_relaxed);
}

// By bits that the index keeps, so that a key known only in part finds the same one.
core::order& core::order_of(const filter::key_hash& key) noexcept {
    static_assert(orders == 1u << 10);
    return order_[key.high >> 54];
}

std::unique_lock<std::mutex> core::in_order(const filter::key_hash& key) noexcept {
    if (settings.told == nullptr) {
        return {};
    }
    auto& its = order_of(key);
    std::unique_lock lock{its.guard};
    ++its.steps;
    return lock;
}

std::uint64_t core::steps(const filter::key_hash& primary) {
    auto& its = order_of(primary);
    const std::lock_guard lock{its.guard};
    return its.steps;
}

void core::tell_gone(const filter::key_hash& key, const index_entry& entry) noexcept {
    if (settings.told != nullptr && entry.kind != record_kind::extent &&
        entry.kind != record_kind::refresh) {
        settings.told->gone(holder::disk, key);
    }
}

void core::tell_held(const filter::key_hash& primary, const saying& said) noexcept {
    const auto ordered = in_order(primary);
    if (settings.told != nullptr && index.find(primary)) {
        settings.told->held(holder::disk, primary, said.url, said.until);
    }
}

void core::tell_outdated(const filter::key_hash& primary) noexcept {
    const auto ordered = in_order(primary);
    if (settings.told != nullptr) {
        settings.told->outdated(primary);
    }
}

core::telling core::tell_found(const filter::key_hash& primary,
                               const saying& said,
                               const record_place& place,
                               std::uint64_t steps) {
    const auto ordered = in_order(primary);
    const auto there = index.find(primary);
    if (!there || there->place != place) {
        return telling::moved;
    }
    if (order_of(primary).steps != steps + 1) {  // one by this call
        return telling::late;
    }
    settings.told->held(holder::disk, primary, said.url, said.until);
    return telling::told;
}

bool core::expire(const filter::key_hash& primary, const soft_expiries::mark& made) {
    const auto ordered = in_order(primary);
    const bool noted = expiries.note(primary, made);
    if (settings.told != nullptr) {
        settings.told->outdated(primary);
    }
    return noted;
}

std::optional<index_entry> core::put(const filter::key_hash& key,
                                     const index_entry& entry,
                                     const saying* said) {
    const auto ordered = in_order(key);
    const auto before = index.put(key, entry);
    if (settings.told != nullptr && said != nullptr) {
        settings.told->held(holder::disk, key, said->url, said->until);
    }
    count(entry, 1);
    if (before) {
        count(*before, -1);
        note_death(*before);
    }
    return before;
}

bool core::put_if_absent(const filter::key_hash& key, const index_entry& entry) {
    if (!index.put_if_absent(key, entry)) {
        return false;
    }
    count(entry, 1);
    return true;
}

bool core::move(const filter::key_hash& key,
                const record_place& from,
                const index_entry& entry) noexcept {
    const auto before = index.find(key);
    if (!before || before->place != from || !index.replace(key, from, entry)) {
        return false;
    }
    count(*before, -1);
    count(entry, 1);
    note_death(*before);
    return true;
}

// Behind loading there is nothing to come; a part of a body has no older one.
void core::note_gone(const filter::key_hash& key, record_kind kind) noexcept {
    if (kind != record_kind::extent && loading.load(std::memory_order_relaxed)) {
        gone.note(key);
    }
}

bool core::erase(const filter::key_hash& key, const index_entry& entry) noexcept {
    note_gone(key, entry.kind);
    const auto ordered = in_order(key);
    if (!index.erase(key, entry.place)) {
        return false;
    }
    tell_gone(key, entry);
    count(entry, -1);
    note_death(entry);
    return true;
}

std::optional<index_entry> core::erase(const filter::key_hash& key) noexcept {
    const auto there = index.find(key);
    note_gone(key, there ? there->kind : record_kind::object);
    const auto ordered = in_order(key);
    const auto before = index.erase(key);
    if (before) {
        tell_gone(key, *before);
        count(*before, -1);
        note_death(*before);
    }
    return before;
}

void core::note_death(const index_entry& entry) noexcept {
    died_[entry.place.segment].fetch_add(entry.bytes, std::memory_order_relaxed);
}

void core::settle_deaths() noexcept {
    for (std::uint32_t number = 0; number < died_.size(); ++number) {
        if (const auto bytes = died_[number].exchange(0, std::memory_order_relaxed); bytes != 0) {
            room.died(number, {bytes, bytes, 1, {}});
        }
    }
}

core::condition core::health() const {
    const std::lock_guard lock{health_guard_};
    return health_;
}

std::string core::reason(std::string_view doing, const error_code& why) noexcept {
    try {
        std::string out{doing};
        out += ": ";
        out += why.message();
        return out;
    } catch (const std::bad_alloc&) {
        return "no memory";  // so short that it takes none
    }
}

void core::set_health(tier_state state, std::string reason) noexcept {
    {
        const std::lock_guard lock{health_guard_};
        if (health_.state == state && health_.reason == reason) {
            return;
        }
    }
    switch (state) {
    case tier_state::loading:
    case tier_state::ready: log::warn("disk: ", settings.path, ": works again"); break;
    case tier_state::reading:
        log::error("disk: ", settings.path, ": nothing is stored on disk: ", reason);
        break;
    case tier_state::off: log::error("disk: ", settings.path, ": turned off: ", reason); break;
    }
    const std::lock_guard lock{health_guard_};
    health_ = {state, std::move(reason)};
    takes_puts_.store(state == tier_state::ready, std::memory_order_relaxed);
}

}  // namespace reprise::proxy::cache::disk
