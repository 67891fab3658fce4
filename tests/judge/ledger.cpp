#include "tests/judge/ledger.hpp"

#include <algorithm>

namespace reprise::tests::judge {

unsigned ledger::current(const std::string& path) const {
    const std::lock_guard lock{guard_};
    const auto found = entries_.find(path);
    return found == entries_.end() ? 0 : static_cast<unsigned>(found->second.changes.size());
}

unsigned ledger::change(const std::string& path) {
    const std::lock_guard lock{guard_};
    auto& changes = entries_[path].changes;
    changes.push_back(steady::now());
    return static_cast<unsigned>(changes.size());
}

std::optional<steady::time_point> ledger::superseded(const std::string& path,
                                                     unsigned version) const {
    const std::lock_guard lock{guard_};
    const auto found = entries_.find(path);
    if (found == entries_.end() || found->second.changes.size() <= version) {
        return std::nullopt;
    }
    return found->second.changes[version];
}

bool ledger::changed_between(const std::string& path,
                             steady::time_point from,
                             steady::time_point until) const {
    const std::lock_guard lock{guard_};
    const auto found = entries_.find(path);
    return found != entries_.end() &&
           std::any_of(found->second.changes.begin(), found->second.changes.end(), [&](auto when) {
               return when >= from && when <= until;
           });
}

std::size_t ledger::begin(const std::string& path, const origin_exchange& what) {
    const std::lock_guard lock{guard_};
    auto& all = entries_[path].exchanges;
    all.push_back(what);
    return all.size() - 1;
}

void ledger::answers(const std::string& path, std::size_t number, int status) {
    const std::lock_guard lock{guard_};
    entries_[path].exchanges.at(number).status = status;
}

void ledger::end(const std::string& path, std::size_t number, bool misbehaved) {
    const std::lock_guard lock{guard_};
    auto& one = entries_[path].exchanges.at(number);
    one.ended = steady::now();
    one.misbehaved = one.misbehaved || misbehaved;
}

std::vector<origin_exchange> ledger::exchanges(const std::string& path) const {
    const std::lock_guard lock{guard_};
    const auto found = entries_.find(path);
    return found == entries_.end() ? std::vector<origin_exchange>{} : found->second.exchanges;
}

std::size_t ledger::count(const std::string& path) const {
    const std::lock_guard lock{guard_};
    const auto found = entries_.find(path);
    return found == entries_.end() ? 0 : found->second.exchanges.size();
}

// What an origin did a moment before the request may be what the answer tells of: a fetch that was
// joined, a failure that is remembered for a little while.
template <class Which>
bool ledger::any_of(const std::string& path,
                    steady::time_point from,
                    steady::time_point until,
                    Which&& which) const {
    const std::lock_guard lock{guard_};
    const auto found = entries_.find(path);
    return found != entries_.end() && std::any_of(found->second.exchanges.begin(),
                                                  found->second.exchanges.end(),
                                                  [&](const auto& one) {
                                                      return one.begun <= until &&
                                                             one.ended >= from - seconds{3} &&
                                                             which(one);
                                                  });
}

bool ledger::troubled(const std::string& path,
                      steady::time_point from,
                      steady::time_point until) const {
    return any_of(path, from, until, [](const auto& one) { return one.misbehaved; });
}

bool ledger::refused(const std::string& path,
                     int status,
                     steady::time_point from,
                     steady::time_point until) const {
    return any_of(path, from, until, [status](const auto& one) { return one.status == status; });
}

bool ledger::failing(const std::string& path,
                     steady::time_point from,
                     steady::time_point until) const {
    return any_of(path, from, until, [](const auto& one) {
        return one.misbehaved || one.status == 0 || one.status >= 500;
    });
}

bool ledger::is_running(const std::string& path, unsigned version, steady::time_point at) const {
    return any_of(path, at, at, [&](const auto& one) {
        return one.version == version && one.begun <= at && one.ended >= at;
    });
}

void ledger::promise(const std::string& path, const version_floor& what) {
    const std::lock_guard lock{guard_};
    auto& floors = entries_[path].floors;
    // One that is not above another of the same kind says nothing new.
    const bool known = std::any_of(floors.begin(), floors.end(), [&](const auto& one) {
        return one.version >= what.version && one.since <= what.since &&
               one.kept_only <= what.kept_only && (one.date == 0) >= (what.date == 0);
    });
    if (!known) {
        floors.push_back(what);
    }
}

std::int64_t ledger::latest_date(const entry& of, unsigned version) {
    std::int64_t out = 0;
    for (const auto& one : of.exchanges) {
        if (one.version == version) {
            out = std::max(out, one.date);
        }
    }
    return out;
}

std::int64_t ledger::first_date(const std::string& path, unsigned version) const {
    const std::lock_guard lock{guard_};
    std::int64_t out = 0;
    if (const auto found = entries_.find(path); found != entries_.end()) {
        for (const auto& one : found->second.exchanges) {
            if (one.version == version && (out == 0 || one.date < out)) {
                out = one.date;
            }
        }
    }
    return out;
}

std::optional<version_floor> ledger::broken_floor(const std::string& path,
                                                  unsigned version,
                                                  steady::time_point at,
                                                  bool joined) const {
    const std::lock_guard lock{guard_};
    const auto found = entries_.find(path);
    if (found == entries_.end()) {
        return std::nullopt;
    }
    std::optional<version_floor> out;
    for (const auto& one : found->second.floors) {
        if (one.version <= version || one.since >= at || (joined && one.kept_only)) {
            continue;
        }
        // By their dates either may be the more recent, where they may have overlapped.
        if (one.date != 0 && latest_date(found->second, version) >= one.date) {
            continue;
        }
        if (!out || one.version > out->version) {
            out = one;
        }
    }
    return out;
}

void ledger::forget_since(steady::time_point when) {
    const std::lock_guard lock{guard_};
    for (auto& [path, one] : entries_) {
        std::erase_if(one.floors, [&](const auto& each) { return each.since >= when; });
    }
}

void ledger::forget_kept() {
    const std::lock_guard lock{guard_};
    for (auto& [path, one] : entries_) {
        std::erase_if(one.floors, [](const auto& each) { return each.kept_only; });
    }
}

void ledger::uploaded(unsigned number, const upload_record& what) {
    const std::lock_guard lock{guard_};
    uploads_[number] = what;
}

upload_record ledger::upload(unsigned number) const {
    const std::lock_guard lock{guard_};
    const auto found = uploads_.find(number);
    return found == uploads_.end() ? upload_record{} : found->second;
}

}  // namespace reprise::tests::judge
