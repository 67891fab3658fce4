#include "proxy/peer/fleet_wire.hpp"

#include "filter/little_endian.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

// figures_in_order is the order of a record's figures, for writing and reading alike. A reader
// gives zeros past its end and is asked once whether it ran short. What a record has behind the
// figures known here is passed over: it is a later release's.

namespace reprise::proxy::peer {
namespace {

constexpr std::uint32_t fleet_magic = 0x47465052;  // "RPFG"
constexpr std::uint16_t fleet_version = 1;
constexpr std::size_t set_header_bytes = 8;
constexpr std::size_t most_record_bytes = 512;

constexpr std::uint64_t node_figures::*figures_in_order[] = {
    &node_figures::up_ms,
    &node_figures::requests,
    &node_figures::hits,
    &node_figures::siblings,
    &node_figures::joined,
    &node_figures::bytes,
    &node_figures::bytes_from_store,
    &node_figures::bytes_from_siblings,
    &node_figures::bytes_joined,
    &node_figures::objects,
    &node_figures::listed,
    &node_figures::sights_told,
};
static_assert(sizeof(node_figures) == std::size(figures_in_order) * sizeof(std::uint64_t));
constexpr std::size_t numbers_bytes = 8 + 8 + 4 + sizeof(node_figures);
static_assert(most_fleet_bytes_written ==
              set_header_bytes + most_fleet_nodes * (2 + 1 + longest_node_name + numbers_bytes));
static_assert(set_header_bytes + most_fleet_nodes * (2 + most_record_bytes) <= most_fleet_bytes);

bool is_letter(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_of_name(char c) noexcept {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

class set_writer {
public:
    explicit set_writer(std::size_t bytes) { out_.reserve(bytes); }
    template <class Unsigned>
    void put(Unsigned value) {
        const auto at = out_.size();
        out_.resize(at + sizeof value);
        filter::put_little_endian(out_.data() + at, value);
    }
    void put(std::string_view text) {
        const auto bytes = std::as_bytes(std::span{text});
        out_.insert(out_.end(), bytes.begin(), bytes.end());
    }
    [[nodiscard]] std::vector<std::byte> take() noexcept { return std::move(out_); }

private:
    std::vector<std::byte> out_;
};

/// Past its end it reads zeros, and has run short.
class set_reader {
public:
    explicit set_reader(std::span<const std::byte> from) : left_{from} {}
    [[nodiscard]] std::span<const std::byte> take(std::size_t bytes) noexcept {
        if (left_.size() < bytes) {
            short_ = true;
            left_ = {};
            return {};
        }
        const auto taken = left_.first(bytes);
        left_ = left_.subspan(bytes);
        return taken;
    }
    template <class Unsigned>
    [[nodiscard]] Unsigned take() noexcept {
        const auto bytes = take(sizeof(Unsigned));
        return bytes.empty() ? 0 : filter::get_little_endian<Unsigned>(bytes.data());
    }
    [[nodiscard]] bool ran_short() const noexcept { return short_; }
    [[nodiscard]] bool is_empty() const noexcept { return left_.empty(); }

private:
    std::span<const std::byte> left_;
    bool short_ = false;
};

std::optional<fleet_fault> read_record(std::span<const std::byte> bytes, node_record& into) {
    set_reader in{bytes};
    const auto name = in.take(in.take<std::uint8_t>());
    into.epoch = in.take<std::uint64_t>();
    into.sequence = in.take<std::uint64_t>();
    into.age = std::chrono::milliseconds{in.take<std::uint32_t>()};
    for (const auto member : figures_in_order) {
        into.figures.*member = in.take<std::uint64_t>();
    }
    if (in.ran_short()) {
        return fleet_fault::bad_record;
    }
    const std::string_view text{reinterpret_cast<const char*>(name.data()), name.size()};
    if (!is_node_name(text)) {
        return fleet_fault::bad_name;
    }
    into.name = text;
    return std::nullopt;
}

}  // namespace

bool is_node_name(std::string_view name) noexcept {
    return !name.empty() && name.size() <= longest_node_name && is_letter(name.front()) &&
           std::all_of(name.begin(), name.end(), is_of_name);
}

std::string_view to_string(fleet_fault fault) noexcept {
    switch (fault) {
    case fleet_fault::truncated: return "truncated";
    case fleet_fault::not_figures: return "not_figures";
    case fleet_fault::other_version: return "other_version";
    case fleet_fault::too_many: return "too_many";
    case fleet_fault::bad_record: return "bad_record";
    case fleet_fault::bad_name: return "bad_name";
    case fleet_fault::out_of_order: return "out_of_order";
    case fleet_fault::trailing: return "trailing";
    }
    return "?";
}

std::vector<std::byte> encode_fleet(std::span<const node_record> records) {
    assert(records.size() <= most_fleet_nodes);
    std::size_t bytes = set_header_bytes;
    for (const auto& one : records) {
        bytes += 2 + 1 + one.name.size() + numbers_bytes;
    }
    set_writer out{bytes};
    out.put(fleet_magic);
    out.put(fleet_version);
    out.put(static_cast<std::uint16_t>(records.size()));
    for (const auto& one : records) {
        assert(is_node_name(one.name));
        constexpr auto most_age = std::numeric_limits<std::uint32_t>::max();
        out.put(static_cast<std::uint16_t>(1 + one.name.size() + numbers_bytes));
        out.put(static_cast<std::uint8_t>(one.name.size()));
        out.put(std::string_view{one.name});
        out.put(one.epoch);
        out.put(one.sequence);
        out.put(static_cast<std::uint32_t>(
            std::clamp<std::chrono::milliseconds::rep>(one.age.count(), 0, most_age)));
        for (const auto member : figures_in_order) {
            out.put(one.figures.*member);
        }
    }
    return out.take();
}

boost::system::result<std::vector<node_record>, fleet_fault> decode_fleet(
    std::span<const std::byte> wire) {
    set_reader in{wire};
    const auto magic = in.take<std::uint32_t>();
    const auto version = in.take<std::uint16_t>();
    const auto count = in.take<std::uint16_t>();
    if (in.ran_short()) {
        return fleet_fault::truncated;
    }
    if (magic != fleet_magic) {
        return fleet_fault::not_figures;
    }
    if (version != fleet_version) {
        return fleet_fault::other_version;
    }
    if (count > most_fleet_nodes) {
        return fleet_fault::too_many;
    }
    std::vector<node_record> out;
    out.reserve(std::min<std::size_t>(count, wire.size() / (2 + 1 + 1 + numbers_bytes)));
    for (unsigned i = 0; i < count; ++i) {
        const auto length = in.take<std::uint16_t>();
        const auto bytes = in.take(length);
        if (in.ran_short()) {
            return fleet_fault::truncated;
        }
        node_record next;
        if (length > most_record_bytes) {
            return fleet_fault::bad_record;
        }
        if (const auto fault = read_record(bytes, next)) {
            return *fault;
        }
        if (!out.empty() && next.name <= out.back().name) {
            return fleet_fault::out_of_order;
        }
        out.push_back(std::move(next));
    }
    if (!in.is_empty()) {
        return fleet_fault::trailing;
    }
    return out;
}

}  // namespace reprise::proxy::peer
