#include "proxy/cache/disk/contents_loader.hpp"

#include "proxy/base/log.hpp"
#include "proxy/cache/disk/record_read.hpp"
#include "proxy/cache/disk/variants.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

// How often something was done to a key is taken before its record is read (core::steps) and
// compared when it is told: where it has gone on meanwhile nothing is told, and the record is read
// again. tell_variants() does the same for one directory.

namespace reprise::proxy::cache::disk {

namespace {

constexpr std::uint64_t at_a_time = 1u << 20;  // records
/// Attempts per record, which may change or be carried on each time while it is read; between two
/// carries nearly a round of the log passes.
constexpr unsigned attempts = 16;

struct placed {
    filter::key_hash partial;
    record_place place;
    std::uint32_t bytes = 0;
};

class contents_loader {
public:
    explicit contents_loader(core& from) : core_{from} {}

    /// Reads what is there, or wherever it was carried since, and says it, if it is a primary
    /// key's.
    void tell(placed one);

    /// The latest of theirs; none: no variant is of use.
    [[nodiscard]] std::optional<wall_time> until_of_variants(const variant_directory& listed,
                                                             const filter::key_hash& primary);
    /// What is listed under a key in the index; none: it is no directory.
    [[nodiscard]] std::optional<variant_directory> directory_of(const filter::key_hash& primary,
                                                                const index_entry& entry);

private:
    /// Tells what is at `one`'s place.
    [[nodiscard]] core::telling tell_there(const placed& one);
    /// The front of the record, whole and verified; false: it is not there any more, or damaged.
    [[nodiscard]] bool read(const record_place& at, std::uint64_t bytes, record_header& header);
    /// Until when the object in front_ is of use; none: a purge has ended it.
    [[nodiscard]] std::optional<wall_time> until_of(const record_place& at,
                                                    const record_header& header,
                                                    std::string& url);
    /// read() of what the key has, wherever it is carried meanwhile; none: it has nothing good.
    [[nodiscard]] std::optional<record_place> read_of(const filter::key_hash& key,
                                                      record_header& header);
    core& core_;
    std::vector<char> front_;
    std::uint64_t sequence_ = 0;  // of the segment that front_ was read from
};

bool contents_loader::read(const record_place& at, std::uint64_t bytes, record_header& header) {
    const auto seen = read_front(core_, at, bytes, front_);
    if (!seen) {
        return false;
    }
    header = seen->header;
    sequence_ = seen->sequence;
    return true;
}

std::optional<record_place> contents_loader::read_of(const filter::key_hash& key,
                                                     record_header& header) {
    std::optional<record_place> before;
    for (unsigned i = 0; i < attempts; ++i) {
        const auto there = core_.index.find(key);
        if (!there || there->place == before) {
            break;  // gone, or damaged
        }
        if (read(there->place, there->bytes, header)) {
            return there->place;
        }
        before = there->place;
    }
    return std::nullopt;
}

std::optional<wall_time> contents_loader::until_of(const record_place& at,
                                                   const record_header& header,
                                                   std::string& url) {
    const auto seen = read_object(front_);
    if (!seen) {
        return std::nullopt;
    }
    url = seen->url;
    auto response = make_response(*seen);
    core_.to_own_time(seen->header, response.freshness);
    auto said = core_.purges.judge(url, response.tags, seen->ban_epoch);
    log_position written{sequence_, at.offset};
    // The newest head there is.
    record_header of_newer;
    const auto newer = read_of(refresh_key(header.primary, header.discriminator), of_newer);
    if (newer && of_newer.kind == record_kind::refresh && of_newer.subject == header.id) {
        if (const auto head = read_object(front_)) {
            response = make_response(*head);
            core_.to_own_time(head->header, response.freshness);
            said = core_.purges.judge(url, response.tags, head->ban_epoch);
            written = {sequence_, newer->offset};
        }
    }
    if (said.hard) {
        return std::nullopt;
    }
    const bool ended = said.soft || response.purged_softly ||
                       core_.expiries.since(header.primary, written);
    return ended ? wall_time::min() : useful_until(response.freshness, response.directives);
}

std::optional<variant_directory> contents_loader::directory_of(const filter::key_hash& primary,
                                                               const index_entry& entry) {
    record_header header;
    if (entry.kind != record_kind::variants || !read(entry.place, entry.bytes, header) ||
        header.primary != primary) {
        return std::nullopt;
    }
    auto listed = read_variants(front_);
    return listed ? std::optional{std::move(*listed)} : std::nullopt;
}

std::optional<wall_time> contents_loader::until_of_variants(const variant_directory& listed,
                                                            const filter::key_hash& primary) {
    std::optional<wall_time> latest;
    for (const auto& variant : listed.variants) {
        record_header header;
        std::string url;
        const auto there = read_of(index_key(record_kind::object, primary, variant.discriminator),
                                   header);
        if (there && header.primary == primary && header.id == variant.id) {
            if (const auto until = until_of(*there, header, url)) {
                latest = std::max(latest.value_or(wall_time::min()), *until);
            }
        }
    }
    return latest;
}

void contents_loader::tell(placed one) {
    for (unsigned i = 0; i < attempts; ++i) {
        const auto how = tell_there(one);
        if (how == core::telling::told) {
            return;
        }
        const auto there = core_.index.find(one.partial);
        if (!there || (how == core::telling::moved && there->place == one.place)) {
            return;  // gone, damaged, or a variant: its directory speaks for it
        }
        one.place = there->place;
        one.bytes = static_cast<std::uint32_t>(there->bytes);
    }
}

core::telling contents_loader::tell_there(const placed& one) {
    const auto steps = core_.steps(one.partial);
    record_header header;
    if (!read(one.place, one.bytes, header) ||
        record_index::partial(header.primary) != one.partial) {
        return core::telling::moved;  // or gone, another came in its place, or it is a variant
    }
    std::string url;
    std::optional<wall_time> until;
    if (header.kind == record_kind::variants) {
        if (const auto listed = read_variants(front_)) {
            url = listed->url;
            until = until_of_variants(*listed, header.primary);
        }
    } else {
        until = until_of(one.place, header, url);
    }
    return until ? core_.tell_found(header.primary, {url, *until}, one.place, steps)
                 : core::telling::told;  // there is nothing to say
}

// What the directory of `primary` says now.
void tell_variants_there(core& from, const filter::key_hash& primary) {
    contents_loader says{from};
    for (unsigned i = 0; i < attempts; ++i) {
        const auto steps = from.steps(primary);
        const auto entry = from.index.find(primary);
        const auto listed = entry ? says.directory_of(primary, *entry) : std::nullopt;
        if (!listed) {
            return;
        }
        const auto is_there = [&](const listed_variant& one) {
            return from.index.find(index_key(record_kind::object, primary, one.discriminator))
                .has_value();
        };
        if (std::none_of(listed->variants.begin(), listed->variants.end(), is_there)) {
            (void)from.erase(primary, *entry);
            return;
        }
        // If none can be read, or all were purged, none is of use.
        const auto until = says.until_of_variants(*listed, primary).value_or(wall_time::min());
        if (from.tell_found(primary, {listed->url, until}, entry->place, steps) !=
            core::telling::late) {
            return;
        }
    }
}

}  // namespace

void tell_variants(core& from, const filter::key_hash& primary) noexcept {
    // While the index loads it is not known what there is; all of it will be told.
    if (from.settings.told == nullptr || from.loading.load(std::memory_order_relaxed)) {
        return;
    }
    try {
        tell_variants_there(from, primary);
    } catch (const std::bad_alloc&) {
        from.tell_outdated(primary);
    }
}

void tell_contents(core& from, memory_patience& patience) {
    const auto begun = steady_now();
    contents_loader says{from};
    const auto records = std::max<std::uint64_t>(1, from.index.records());
    const auto shards_a_part = std::clamp<std::size_t>(
        record_index::shards * at_a_time / records, 1, record_index::shards);
    std::vector<placed> part;
    std::uint64_t told = 0;
    for (std::size_t first = 0; first < record_index::shards; first += shards_a_part) {
        const bool is_listed = patience.with_memory([&] {
            part.clear();
            const auto last = std::min(first + shards_a_part, record_index::shards);
            for (auto shard = first; shard < last; ++shard) {
                from.index.for_each(
                    shard, [&](const filter::key_hash& key, const index_entry& entry) {
                        if (entry.kind != record_kind::extent &&
                            entry.kind != record_kind::refresh) {
                            part.push_back(
                                {key, entry.place, static_cast<std::uint32_t>(entry.bytes)});
                        }
                    });
            }
        });
        if (!is_listed) {
            return;
        }
        std::sort(part.begin(), part.end(), [](const placed& a, const placed& b) {
            return std::tie(a.place.segment, a.place.offset) <
                   std::tie(b.place.segment, b.place.offset);
        });
        for (const auto& one : part) {
            if (patience.is_stopped() || !patience.with_memory([&] { says.tell(one); })) {
                return;
            }
            ++told;
        }
    }
    from.settings.told->loaded();
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(steady_now() - begun);
    log::info("disk: ",
              from.settings.path,
              ": ",
              told,
              " records read for the digest in ",
              took.count(),
              " ms");
}

}  // namespace reprise::proxy::cache::disk
