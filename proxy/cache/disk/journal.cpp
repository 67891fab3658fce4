#include "proxy/cache/disk/journal.hpp"

#include <algorithm>
#include <string>
#include <type_traits>

// The number of a kind of entry on disk is its place in journal_fact, so that variant's order is
// part of the format. replace() writes another file, syncs it and renames it: a crash leaves the
// old journal or the new one.

namespace reprise::proxy::cache::disk {

namespace {

// Header: magic, version, store, checksum of what is before it.
constexpr std::uint64_t magic = 0x316772'7570'7072;  // "rppurg1"
constexpr std::uint64_t version = 1;

// Entry: checksum of all behind it (8), bytes (4), kind (1), flags (1), 0 (2), synced (8), sequence
// (8), offset (8), then what the kind says.
constexpr std::size_t entry_header_bytes = 40;
constexpr std::size_t most_entry_bytes = std::size_t{1} << 21;  // a ban's text is at most 1 MiB
constexpr std::size_t step = 16;

constexpr std::uint8_t soft_flag = 1, tag_flag = 2;

// The kinds are the places in journal_fact, from 1 on.
template <class Fact, std::size_t I = 0>
constexpr std::uint8_t kind_of() {
    if constexpr (std::is_same_v<Fact, std::variant_alternative_t<I, journal_fact>>) {
        return static_cast<std::uint8_t>(I + 1);
    } else {
        return kind_of<Fact, I + 1>();
    }
}

class entry_writer {
public:
    explicit entry_writer(std::vector<char>& to) : to_{to} {}
    template <class Value>
    void put(Value value) {
        const auto at = to_.size();
        to_.resize(at + sizeof value);
        store_at(to_.data() + at, value);
    }
    void put(const filter::key_hash& key) {
        put(key.low);
        put(key.high);
    }
    void put(wall_time time) { put(std::int64_t{time.time_since_epoch().count()}); }
    void put(const std::string& text) { to_.insert(to_.end(), text.begin(), text.end()); }

private:
    std::vector<char>& to_;
};

/// Reads values in turn; past the end they are zero, and ran_short() says so.
class entry_reader {
public:
    explicit entry_reader(std::span<const char> from) : from_{from} {}
    template <class Value>
    Value get() {
        if (from_.size() < sizeof(Value)) {
            short_ = true;
            return {};
        }
        const auto value = load_at<Value>(from_.data());
        from_ = from_.subspan(sizeof(Value));
        return value;
    }
    filter::key_hash key() {
        const auto low = get<std::uint64_t>();
        return {low, get<std::uint64_t>()};
    }
    wall_time time() { return wall_time{std::chrono::milliseconds{get<std::int64_t>()}}; }
    std::string text(std::size_t size) {
        if (from_.size() < size) {
            short_ = true;
            return {};
        }
        std::string out{from_.data(), size};
        from_ = from_.subspan(size);
        return out;
    }
    [[nodiscard]] bool ran_short() const { return short_; }

private:
    std::span<const char> from_;
    bool short_ = false;
};

struct payload {
    entry_writer& out;
    void operator()(const dropped_url& fact) const { out.put(fact.primary); }
    void operator()(const dropped_variant& fact) const {
        out.put(fact.primary);
        out.put(fact.discriminator);
    }
    void operator()(const expired_url& fact) const {
        out.put(fact.primary);
        out.put(fact.time);
    }
    void operator()(const dropped_all&) const {}
    void operator()(const sealed&) const {}
    void operator()(const epochs_begin& fact) const { out.put(fact.epoch); }
    void operator()(const kept_ban& fact) const {
        out.put(fact.epoch);
        out.put(fact.time);
        out.put(fact.tag);
        out.put(static_cast<std::uint32_t>(fact.prefix.size()));
        out.put(static_cast<std::uint32_t>(fact.space.size()));
        out.put(fact.prefix);
        out.put(fact.space);
    }
    void operator()(const forgotten_bans& fact) const {
        out.put(fact.hard);
        out.put(fact.soft);
        out.put(fact.soft_time);
    }
};

std::uint8_t flags_of(const journal_fact& fact) noexcept {
    const auto* ban = std::get_if<kept_ban>(&fact);
    return ban == nullptr
               ? std::uint8_t{0}
               : static_cast<std::uint8_t>((ban->mode == purge_mode::soft ? soft_flag : 0) |
                                           (ban->by_tag ? tag_flag : 0));
}

std::optional<journal_fact> read_fact(std::uint8_t kind, std::uint8_t flags, entry_reader& in) {
    switch (kind) {
    case kind_of<dropped_url>(): return dropped_url{in.key()};
    case kind_of<dropped_variant>(): {
        const auto primary = in.key();
        return dropped_variant{primary, in.get<std::uint64_t>()};
    }
    case kind_of<expired_url>(): {
        const auto primary = in.key();
        return expired_url{primary, in.time()};
    }
    case kind_of<dropped_all>(): return dropped_all{};
    case kind_of<sealed>(): return sealed{};
    case kind_of<epochs_begin>(): return epochs_begin{in.get<std::uint64_t>()};
    case kind_of<kept_ban>(): {
        kept_ban ban;
        ban.mode = (flags & soft_flag) != 0 ? purge_mode::soft : purge_mode::hard;
        ban.by_tag = (flags & tag_flag) != 0;
        ban.epoch = in.get<std::uint64_t>();
        ban.time = in.time();
        ban.tag = in.get<std::uint64_t>();
        const auto prefix = in.get<std::uint32_t>();
        const auto space = in.get<std::uint32_t>();
        ban.prefix = in.text(prefix);
        ban.space = in.text(space);
        return ban;
    }
    case kind_of<forgotten_bans>(): {
        forgotten_bans bans;
        bans.hard = in.get<std::uint64_t>();
        bans.soft = in.get<std::uint64_t>();
        bans.soft_time = in.time();
        return bans;
    }
    default: return std::nullopt;
    }
}

struct read_entry {
    journal_entry entry;
    std::uint64_t bytes = 0;
    std::uint64_t synced = 0;
};

std::optional<read_entry> journal_entry_at(std::span<const char> bytes, std::uint64_t store_id) {
    if (bytes.size() < entry_header_bytes) {
        return std::nullopt;
    }
    const std::uint64_t size = load_at<std::uint32_t>(bytes.data() + 8);
    if (size < entry_header_bytes || size % step != 0 || size > most_entry_bytes ||
        size > bytes.size() ||
        load_at<std::uint64_t>(bytes.data()) != checksum(bytes.subspan(8, size - 8), store_id)) {
        return std::nullopt;
    }
    entry_reader in{bytes.subspan(12, size - 12)};
    const auto kind = in.get<std::uint8_t>();
    const auto flags = in.get<std::uint8_t>();
    (void)in.get<std::uint16_t>();
    read_entry out;
    out.bytes = size;
    out.synced = in.get<std::uint64_t>();
    out.entry.at.sequence = in.get<std::uint64_t>();
    out.entry.at.offset = in.get<std::uint64_t>();
    auto fact = read_fact(kind, flags, in);
    if (!fact || in.ran_short()) {
        return std::nullopt;
    }
    out.entry.fact = std::move(*fact);
    return out;
}

}  // namespace

void append_entry(std::vector<char>& to,
                  const journal_entry& entry,
                  std::uint64_t synced,
                  std::uint64_t store_id) {
    const auto begin = to.size();
    entry_writer out{to};
    out.put(std::uint64_t{0});
    out.put(std::uint32_t{0});
    out.put(static_cast<std::uint8_t>(entry.fact.index() + 1));
    out.put(flags_of(entry.fact));
    out.put(std::uint16_t{0});
    out.put(synced);
    out.put(entry.at.sequence);
    out.put(entry.at.offset);
    std::visit(payload{out}, entry.fact);
    to.resize(begin + round_up(to.size() - begin, step));
    const std::span<char> all{to.data() + begin, to.size() - begin};
    store_at(all.data() + 8, static_cast<std::uint32_t>(all.size()));
    store_at(all.data(), checksum(all.subspan(8), store_id));
}

std::vector<char> journal_header(std::uint64_t store_id) {
    std::vector<char> bytes;
    entry_writer out{bytes};
    out.put(magic);
    out.put(version);
    out.put(store_id);
    out.put(checksum(bytes, store_id));
    return bytes;
}

journal_contents read_journal(std::span<const char> bytes, std::uint64_t store_id) {
    journal_contents out;
    const auto wanted = journal_header(store_id);
    if (bytes.size() < wanted.size() || !std::equal(wanted.begin(), wanted.end(), bytes.begin())) {
        out.damaged = true;
        return out;
    }
    std::uint64_t at = wanted.size();
    std::uint64_t synced = 0;
    while (auto read = journal_entry_at(bytes.subspan(at), store_id)) {
        at += read->bytes;
        synced = std::max(synced, read->synced);
        out.entries.push_back(std::move(read->entry));
    }
    out.end = at;
    // Behind the first bad entry there may be good ones. If one of them knows that the place was
    // synced, it was good once.
    for (auto next = at + step; next < bytes.size() && !out.damaged; next += step) {
        if (const auto read = journal_entry_at(bytes.subspan(next), store_id)) {
            out.damaged = read->synced > at;
            next += read->bytes - step;
        }
    }
    out.damaged = out.damaged || synced > at;
    return out;
}

void verdicts::add(const journal_entry& entry) {
    last = std::max(last, entry.at);
    const auto later = [&entry](log_position& place) { place = std::max(place, entry.at); };
    struct gather {
        verdicts& into;
        const log_position& at;
        decltype(later)& raise;
        void operator()(const dropped_url& fact) const { raise(into.urls[fact.primary]); }
        void operator()(const dropped_variant& fact) const {
            auto& one =
                into.variants[index_key(record_kind::object, fact.primary, fact.discriminator)];
            one.which = fact;
            raise(one.before);
        }
        void operator()(const expired_url& fact) const {
            const auto [it, added] = into.expiries.try_emplace(fact.primary,
                                                               soft_expiries::mark{at, fact.time});
            if (!added) {
                raise(it->second.before);
            }
        }
        void operator()(const dropped_all&) const { raise(into.all); }
        void operator()(const sealed&) const {}
        void operator()(const epochs_begin& fact) const {
            into.epoch = std::max(into.epoch, fact.epoch);
        }
        void operator()(const kept_ban& fact) const {
            // An entry written again after a failure is there twice.
            if (into.bans.empty() || into.bans.back().epoch < fact.epoch) {
                into.bans.push_back(fact);
            }
            into.epoch = std::max(into.epoch, fact.epoch);
        }
        void operator()(const forgotten_bans& fact) const { into.forgotten = fact; }
    };
    std::visit(gather{*this, entry.at, later}, entry.fact);
}

bool verdicts::is_dead(const footer_entry& record, std::uint64_t sequence) const {
    const log_position at{sequence, record.offset};
    if (at < all) {
        return true;
    }
    if (const auto it = urls.find(record.primary); it != urls.end() && at < it->second) {
        return true;
    }
    if (variants.empty()) {
        return false;
    }
    const auto it = variants.find(
        index_key(record_kind::object, record.primary, record.discriminator));
    return it != variants.end() && at < it->second.before;
}

std::vector<journal_entry> verdicts::entries(const log_position& oldest) const {
    std::vector<journal_entry> out;
    const auto add = [&](const log_position& at, journal_fact fact) {
        if (at > oldest) {
            out.emplace_back(at, std::move(fact));
        }
    };
    out.push_back({last, epochs_begin{epoch}});
    out.push_back({last, forgotten});
    for (const auto& ban : bans) {
        out.emplace_back(last, ban);
    }
    add(all, dropped_all{});
    for (const auto& [primary, before] : urls) {
        add(before, dropped_url{primary});
    }
    for (const auto& [key, one] : variants) {
        add(one.before, one.which);
    }
    for (const auto& [primary, mark] : expiries) {
        add(mark.before, expired_url{primary, mark.time});
    }
    return out;
}

journal::journal(std::string path, std::shared_ptr<filesystem> files, std::uint64_t store_id)
    : path_{std::move(path)},
      files_{std::move(files)},
      store_id_{store_id} {}

journal::loaded journal::load() {
    loaded out;
    auto opened = files_->open(path_, open_mode::update);
    if (!opened && opened.error() != boost::system::errc::no_such_file_or_directory) {
        opened = files_->open(path_, open_mode::read);  // perhaps all that is allowed
    }
    if (!opened) {
        out.missing = opened.error() == boost::system::errc::no_such_file_or_directory;
        out.failed = out.missing ? error_code{} : opened.error();
        return out;
    }
    const auto size = (*opened)->size();
    if (!size) {
        out.failed = size.error();
        return out;
    }
    if (*size > largest_journal) {
        out.damaged = true;  // nobody wrote that
        return out;
    }
    std::vector<char> bytes(*size);
    if (const auto failed = read_all(**opened, 0, std::as_writable_bytes(std::span{bytes}))) {
        out.failed = failed;
        return out;
    }
    auto contents = read_journal(bytes, store_id_);
    out.damaged = contents.damaged;
    for (const auto& entry : contents.entries) {
        out.says.add(entry);
    }
    if (!contents.damaged) {
        file_ = *opened;
        end_ = contents.end;
        // What was read may be in the page cache alone. Where it can't be synced nothing is
        // appended either.
        if (!file_->sync()) {
            synced_ = end_;
        }
    }
    return out;
}

error_code journal::write(std::span<const char> bytes) noexcept {
    if (const auto failed = write_all(*file_, end_, as_bytes_of(bytes))) {
        return failed;
    }
    end_ += bytes.size();
    return {};
}

error_code journal::append(std::span<const journal_entry> entries, bool lasting) {
    if (!file_) {
        return boost::system::errc::make_error_code(boost::system::errc::bad_file_descriptor);
    }
    std::vector<char> bytes;
    for (const auto& entry : entries) {
        append_entry(bytes, entry, synced_, store_id_);
    }
    // What it will say when the entries are synced.
    std::vector<char> seal;
    if (lasting) {
        const auto at = entries.empty() ? log_position{} : entries.back().at;
        append_entry(seal, {at, sealed{}}, end_ + bytes.size(), store_id_);
    }
    if (const auto failed = write(bytes)) {
        file_.reset();
        return failed;
    }
    if (!lasting || synced_ == end_) {
        return {};
    }
    if (const auto failed = file_->sync()) {
        file_.reset();
        return failed;
    }
    synced_ = end_;
    if (write(seal)) {
        file_.reset();  // for what comes next; what was to be kept is
    }
    return {};
}

error_code journal::replace(std::span<const journal_entry> entries) {
    std::vector<char> bytes = journal_header(store_id_);
    for (const auto& entry : entries) {
        append_entry(bytes, entry, 0, store_id_);
    }
    const auto temporary = path_ + ".new";
    const auto directory = path_.substr(0, path_.rfind('/'));
    const auto made = files_->open(temporary, open_mode::make);
    if (!made) {
        return made.error();
    }
    auto failed = (*made)->resize(0);
    if (!failed) {
        failed = write_all(**made, 0, as_bytes_of(bytes));
    }
    if (!failed) {
        failed = (*made)->sync();
    }
    if (!failed) {
        failed = files_->rename(temporary, path_);
    }
    if (!failed) {
        failed = files_->sync_directory(directory);
    }
    if (failed) {
        return failed;
    }
    file_ = *made;
    end_ = bytes.size();
    synced_ = end_;
    return {};
}

}  // namespace reprise::proxy::cache::disk
