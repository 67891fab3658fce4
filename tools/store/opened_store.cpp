#include "tools/store/opened_store.hpp"

#include "proxy/cache/disk/superblocks.hpp"
#include "proxy/http/freshness.hpp"
#include "proxy/http/reuse.hpp"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <ostream>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace reprise::store {

using proxy::cache::purge_mode;

namespace {

/// All of a file that has at most `most` bytes. None: it has more, or can't be read.
std::optional<std::vector<char>> all_of(const std::string& path, std::uint64_t most) {
    const store_file file{path};
    const auto size = file.size();
    if (!size || *size > most) {
        return std::nullopt;
    }
    std::vector<char> bytes(*size);
    return file.read(0, bytes) ? std::optional{std::move(bytes)} : std::nullopt;
}

disk::superblock superblock_of(const std::string& path) {
    std::string trouble;
    for (const auto name : disk::superblock_names) {
        const auto file = path + "/" + std::string{name};
        constexpr std::uint64_t most = 4096;
        const auto bytes = all_of(file, most);
        const auto read = bytes ? std::optional{disk::read_superblock(*bytes)} : std::nullopt;
        if (read && read->has_value()) {
            return **read;
        }
        if (trouble.empty()) {
            trouble = file + ": " + (read ? read->error().message() : "can't be read");
        }
    }
    throw std::runtime_error{trouble};
}

bool is_head(disk::record_kind kind) noexcept {
    return kind == disk::record_kind::object || kind == disk::record_kind::large;
}

}  // namespace

store_file::store_file(const std::string& path)
    : file_{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)} {}

store_file::~store_file() {
    if (file_ >= 0) {
        ::close(file_);
    }
}

std::optional<std::uint64_t> store_file::size() const {
    struct stat facts {};
    if (file_ < 0 || ::fstat(file_, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        return std::nullopt;
    }
    return static_cast<std::uint64_t>(facts.st_size);
}

bool store_file::read(std::uint64_t offset, std::span<char> into) const {
    while (!into.empty()) {
        const auto got = ::pread(file_, into.data(), into.size(), static_cast<off_t>(offset));
        if (got <= 0) {
            return false;
        }
        offset += static_cast<std::uint64_t>(got);
        into = into.subspan(static_cast<std::size_t>(got));
    }
    return true;
}

opened_store::opened_store(std::string path)
    : path_{std::move(path)},
      block_{superblock_of(path_)},
      secret_{filter::hash_secret::from_seed(block_.seed)},
      sequences_(disk::most_segments) {
    read_journal();
    load();
}

std::string opened_store::file_of(std::uint32_t number) const {
    return path_ + "/" + disk::segment_name(number);
}

void opened_store::read_journal() {
    const auto file = path_ + "/purges";
    std::error_code failed;
    if (!std::filesystem::exists(std::filesystem::symlink_status(file, failed))) {
        journal_trouble_ = file + ": is missing";
        return;
    }
    const auto bytes = all_of(file, disk::largest_journal);
    if (!bytes) {
        journal_trouble_ = file + ": can't be read, or is too long";
        return;
    }
    const auto contents = disk::read_journal(*bytes, block_.store_id);
    if (contents.damaged) {
        journal_trouble_ = file + ": is damaged";
    }
    for (const auto& entry : contents.entries) {
        says_.add(entry);
    }
    purges_.restore(says_.bans, says_.forgotten, says_.epoch);
}

disk::recovered_segment opened_store::recover(std::uint32_t number, bool by_footer) const {
    const store_file file{file_of(number)};
    return disk::recover(
        [&](std::uint64_t offset, std::span<char> into) { return file.read(offset, into); },
        {.store_id = block_.store_id,
         .number = number,
         .segment_bytes = block_.segment_bytes,
         .footer = by_footer,
         .bodies = !by_footer});
}

disk::recovered_segment opened_store::scan(std::uint32_t number) const {
    return recover(number, false);
}

void opened_store::load() {
    for (const auto& entry : std::filesystem::directory_iterator{path_}) {
        const auto number = disk::segment_number_in(entry.path().filename().string());
        if (number != disk::most_segments) {
            segments_.push_back({.number = number, .found = recover(number, true)});
        }
    }
    std::sort(segments_.begin(), segments_.end(), [](const auto& one, const auto& other) {
        return one.found.header.sequence > other.found.header.sequence;
    });
    for (auto& segment : segments_) {
        auto& entries = segment.found.entries;
        const auto sequence = segment.found.header.sequence;
        sequences_[segment.number] = sequence;
        segment.records = entries.size();
        for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
            segment.bytes += entry->bytes;
            const disk::record_place place{static_cast<std::uint16_t>(segment.number),
                                           entry->offset};
            if (!says_.is_dead(*entry, sequence) &&
                index_.put_if_absent(entry->key(),
                                     {.place = place,
                                      .bytes = entry->bytes,
                                      .kind = entry->kind,
                                      .uses = 0,
                                      .expiry = entry->expiry})) {
                ++segment.current;
                segment.current_bytes += entry->bytes;
            }
        }
        entries = {};
    }
}

std::optional<read_record> opened_store::read(std::uint32_t segment,
                                              std::uint64_t sequence,
                                              const disk::footer_entry& entry) const {
    read_record made{
        .bytes = std::vector<char>(entry.bytes), .header = {}, .entry = entry, .segment = segment};
    const store_file file{file_of(segment)};
    if (!file.read(entry.offset, made.bytes)) {
        return std::nullopt;
    }
    const auto header = disk::check_front(made.bytes, block_.store_id, sequence);
    if (header.has_error() || !disk::check_body(made.bytes, *header, block_.store_id)) {
        return std::nullopt;
    }
    made.header = *header;
    return made;
}

std::optional<read_record> opened_store::read(const filter::key_hash& key) const {
    const auto at = index_.find(key);
    if (!at) {
        return std::nullopt;
    }
    disk::footer_entry entry;
    entry.offset = at->place.offset;
    entry.bytes = at->bytes;
    auto record = read(at->place.segment, sequences_[at->place.segment], entry);
    if (record) {
        record->entry = disk::entry_of(record->header, entry.offset);
    }
    return record;
}

std::optional<stored_object> opened_store::object_of(read_record record) const {
    const auto view = disk::read_object(record.bytes);
    if (view.has_error()) {
        return std::nullopt;
    }
    stored_object made{.record = std::move(record), .view = *view, .refreshed = {}};
    const auto& header = made.record.header;
    made.refreshed = read(disk::refresh_key(header.primary, header.discriminator));
    if (made.refreshed && made.refreshed->header.subject != header.id) {
        made.refreshed.reset();
    }
    if (made.refreshed) {
        if (const auto newer = disk::read_object(made.refreshed->bytes); newer.has_value()) {
            made.view.head = newer->head;
            made.view.status = newer->status;
            made.view.freshness = newer->freshness;
            made.view.directives = newer->directives;
            made.view.purged_softly = newer->purged_softly;
            made.view.ban_epoch = newer->ban_epoch;
        }
    }
    std::vector<std::uint64_t> tags(made.view.tags.size() / sizeof(std::uint64_t));
    if (!tags.empty()) {
        std::memcpy(tags.data(), made.view.tags.data(), made.view.tags.size());
    }
    const auto judged = purges_.judge(made.view.url, tags, made.view.ban_epoch);
    made.purged = judged.hard;
    made.fresh_until = made.view.purged_softly
                           ? wall_time::min()
                           : proxy::http::reusable_until(made.view.directives, made.view.freshness);
    if (judged.soft) {
        made.fresh_until = std::min(made.fresh_until, *judged.soft);
    }
    const disk::log_position at{header.sequence, made.record.entry.offset};
    if (const auto mark = says_.expiries.find(header.primary);
        mark != says_.expiries.end() && at < mark->second.before) {
        made.fresh_until = std::min(made.fresh_until, mark->second.time);
    }
    for (std::uint32_t part = 0; part < made.view.extents && made.is_whole; ++part) {
        made.is_whole = index_.find(disk::extent_key(header.primary, header.id, part)).has_value();
    }
    return made;
}

void opened_store::for_each_object(const std::function<bool(const stored_object&)>& see) const {
    for (const auto& segment : segments_) {
        const auto found = recover(segment.number, true);
        const auto sequence = sequences_[segment.number];
        if (found.header.sequence != sequence) {
            continue;  // it was used anew meanwhile
        }
        for (const auto& entry : found.entries) {
            const auto at = is_head(entry.kind) ? index_.find(entry.key()) : std::nullopt;
            if (!at || at->place.segment != segment.number || at->place.offset != entry.offset) {
                continue;
            }
            auto record = read(segment.number, sequence, entry);
            auto object = record ? object_of(std::move(*record)) : std::nullopt;
            if (object && !see(*object)) {
                return;
            }
        }
    }
}

std::vector<stored_object> opened_store::find(std::string_view url) const {
    std::vector<stored_object> made;
    const auto primary = filter::hash_of(url, secret_);
    auto first = read(primary);
    if (!first || first->header.primary != primary) {
        return made;
    }
    const auto take = [&](std::optional<read_record> record) {
        auto object = record && is_head(record->header.kind) ? object_of(std::move(*record))
                                                             : std::nullopt;
        if (object && object->view.url == url) {
            made.push_back(std::move(*object));
        }
    };
    if (first->header.kind != disk::record_kind::variants) {
        take(std::move(first));
        return made;
    }
    const auto directory = disk::read_variants(first->bytes);
    if (directory.has_error() || directory->url != url) {
        return made;
    }
    for (auto one = directory->variants.rbegin(); one != directory->variants.rend(); ++one) {
        auto record = read(disk::index_key(disk::record_kind::object, primary, one->discriminator));
        if (record && record->header.id == one->id) {
            take(std::move(record));
        }
    }
    return made;
}

bool opened_store::write_body(const stored_object& object, std::ostream& to) const {
    const auto put = [&to](std::span<const char> bytes) {
        to.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    };
    const auto& header = object.record.header;
    put(object.record.body());
    std::uint64_t written = header.body_bytes;
    for (std::uint32_t part = 0; part < object.view.extents; ++part) {
        const auto extent = read(disk::extent_key(header.primary, header.id, part));
        if (!extent || extent->header.subject != header.id || extent->header.part != part) {
            return false;
        }
        put(extent->body());
        written += extent->header.body_bytes;
    }
    return written == object.view.length;
}

}  // namespace reprise::store
