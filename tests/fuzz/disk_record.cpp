// Whatever bytes a segment has where a record should be, they make one or a reason, and nothing
// outside them is read. The checksums would keep a fuzzer out of everything behind them, so each
// input is tried as it is and once more with all of them made right. What comes through can be used
// as a response, and is the same once it is written anew.

#include "proxy/cache/disk/record.hpp"
#include "proxy/cache/disk/variants.hpp"
#include "tests/fuzz/require.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

namespace {

using namespace reprise::fuzz;
namespace cache = reprise::proxy::cache;
namespace disk = reprise::proxy::cache::disk;

constexpr std::uint64_t store_id = 1;
constexpr std::size_t magic_at = 8;
constexpr std::uint32_t magic = 0x63527052;

template <class Result>
void require_named(const Result& refused) {
    require(refused.error().category() == disk::format_category());
    require(refused.error().message() != "unknown error");
}

template <class Source>
std::vector<char> written(const Source& what, const disk::record_header& as) {
    const auto bytes = disk::sized(what);
    require(bytes.has_value());
    std::vector<char> record(*bytes);
    const auto header = disk::encode(
        what, {.sequence = as.sequence, .id = as.id, .now = as.written}, store_id, record);
    require(header.record_bytes() == record.size());
    const auto again = disk::check_front(record, store_id, as.sequence);
    require(again.has_value() && disk::check_body(record, *again, store_id));
    return record;
}

cache::body_ptr body_of(std::span<const char> bytes) {
    auto made = std::make_shared<cache::body>();
    if (!bytes.empty()) {
        auto memory = cache::block::make(bytes.size());
        std::copy(bytes.begin(), bytes.end(), memory->data());
        made->slices.push_back({std::move(memory), 0, bytes.size()});
    }
    made->size = bytes.size();
    return made;
}

void use_object(std::span<const char> record, const disk::record_header& header) {
    const auto view = disk::read_object(record);
    if (view.has_error()) {
        require_named(view);
        return;
    }
    auto draft = disk::make_response(*view);
    require(draft.status_line_size <= draft.head.size());
    require(draft.length_at <= draft.head.size());
    draft.content = body_of(record.subspan(header.front_bytes, header.body_bytes));
    const auto response = cache::stored_response::make(draft);
    (void)response->fields();
    (void)response->footprint();
    const disk::object_source source{.kind = header.kind,
                                     .primary = header.primary,
                                     .discriminator = header.discriminator,
                                     .url = view->url,
                                     .response = *response,
                                     .ban_epoch = view->ban_epoch,
                                     .subject = header.subject,
                                     .length = view->length,
                                     .extent_bytes = view->extent_bytes,
                                     .carried = header.carried};
    if (disk::sized(source).has_error()) {
        return;  // more tags than are ever kept
    }
    const auto copy = written(source, header);
    const auto again = disk::read_object(copy);
    require(again.has_value());
    require(again->url == view->url && again->head == view->head && again->tags == view->tags);
    require(again->vary_names == view->vary_names && again->selecting == view->selecting);
    require(again->freshness == view->freshness && again->directives == view->directives);
    require(again->length == view->length && again->extents == view->extents);
    require(again->status == view->status && again->purged_softly == view->purged_softly);
    require(again->header.wait == view->header.wait);
}

void use_variants(std::span<const char> record, const disk::record_header& header) {
    const auto directory = disk::read_variants(record);
    if (directory.has_error()) {
        require_named(directory);
        return;
    }
    require(*disk::read_variants_url(record) == directory->url);
    (void)disk::select(*directory, header.primary, {});
    const auto copy = written(
        disk::directory_source{.primary = header.primary, .directory = *directory}, header);
    require(disk::read_variants(copy)->variants == directory->variants);
}

void try_record(std::span<const char> record) {
    const auto header = disk::read_header(record);
    if (header.has_error()) {
        require_named(header);
        require(disk::check_front(record, store_id, 1).has_error());
        return;
    }
    const auto front = disk::check_front(record, store_id, header->sequence);
    if (front.has_error()) {
        require_named(front);
        return;
    }
    (void)disk::index_key(front->kind, front->primary, front->discriminator);
    if (!disk::check_body(record, *front, store_id)) {
        return;
    }
    switch (front->kind) {
    case disk::record_kind::object:
    case disk::record_kind::large:
    case disk::record_kind::refresh: use_object(record, *front); break;
    case disk::record_kind::variants: use_variants(record, *front); break;
    case disk::record_kind::extent: break;
    }
    std::vector<char> moved(record.begin(), record.end());
    disk::restamp(moved, store_id, front->sequence + 1);
    require(disk::check_front(moved, store_id, front->sequence + 1).has_value());
}

/// All checksums made right, as far as the lengths allow.
void sum(std::vector<char>& record) {
    disk::store_at(record.data() + magic_at, magic);
    const auto header = disk::read_header(record);
    if (header.has_error() ||
        std::uint64_t{header->front_bytes} + header->body_bytes > record.size()) {
        return;
    }
    const auto body = std::span<const char>{record}.subspan(header->front_bytes,
                                                            header->body_bytes);
    for (std::uint32_t i = 0; i < disk::blocks_of(*header); ++i) {
        const auto begin = i * disk::block_bytes;
        const auto piece = body.subspan(begin, std::min(disk::block_bytes, body.size() - begin));
        disk::store_at(record.data() + disk::record_header_bytes + 8 * i,
                       disk::checksum(piece, store_id));
    }
    const auto summed = std::span<const char>{record}.first(header->front_bytes).subspan(magic_at);
    disk::store_at(record.data(), disk::checksum(summed, store_id));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::vector<char> record(size);
    std::copy_n(data, size, record.begin());
    try_record(record);
    if (size >= disk::record_header_bytes) {
        sum(record);
        try_record(record);
    }
    return 0;
}
