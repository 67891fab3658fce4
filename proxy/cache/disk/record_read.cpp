#include "proxy/cache/disk/record_read.hpp"

#include <algorithm>
#include <utility>

namespace reprise::proxy::cache::disk {

namespace {
constexpr std::uint64_t usual_front = 4096;
}  // namespace

record_read::record_read(net::wakeup::signal sleeper,
                         segment_table::view from,
                         const index_entry& entry,
                         std::uint64_t store_id)
    : read_job{std::move(sleeper)},
      from_{std::move(from)},
      entry_{entry},
      store_id_{store_id},
      memory_{block::make(static_cast<std::size_t>(entry.bytes))} {}

bool record_read::try_at_once() noexcept {
    const std::span<char> into{memory_->data(), static_cast<std::size_t>(entry_.bytes)};
    const auto count = from_.from->read_cached(entry_.place.offset, std::as_writable_bytes(into));
    if (!count || *count < into.size()) {
        return false;
    }
    verify();
    return true;
}

void record_read::run() noexcept {
    const std::span<char> into{memory_->data(), static_cast<std::size_t>(entry_.bytes)};
    if (read_all(*from_.from, entry_.place.offset, std::as_writable_bytes(into))) {
        how_ = found::unreadable;
        return;
    }
    verify();
}

void record_read::verify() noexcept {
    how_ = found::damaged;
    const auto header = check_front(bytes(), store_id_, from_.sequence);
    if (header && header->record_bytes() == entry_.bytes &&
        check_body(bytes(), *header, store_id_)) {
        header_ = *header;
        how_ = found::good;
    }
}

body_ptr record_read::body() const {
    auto whole = std::make_shared<cache::body>();
    whole->size = header_.body_bytes;
    if (header_.body_bytes != 0) {
        whole->slices.push_back({memory_, header_.front_bytes, header_.body_bytes});
    }
    return whole;
}

std::optional<record_front> read_front(const core& from,
                                       const record_place& at,
                                       std::uint64_t bytes,
                                       std::vector<char>& into) {
    const auto view = from.segments.at(at.segment);
    if (!view.from || view.sequence == 0) {
        return std::nullopt;
    }
    const auto get = [&](std::uint64_t size) {
        into.resize(size);
        return !read_all(*view.from, at.offset, std::as_writable_bytes(std::span{into}));
    };
    if (!get(std::min(bytes, usual_front))) {
        return std::nullopt;
    }
    const auto told = read_header(into);
    if (!told) {
        return std::nullopt;
    }
    if (told->front_bytes > into.size() && (told->front_bytes > bytes || !get(told->front_bytes))) {
        return std::nullopt;
    }
    const auto good = check_front(into, from.super.store_id, view.sequence);
    return good ? std::optional{record_front{*good, view.sequence}} : std::nullopt;
}

}  // namespace reprise::proxy::cache::disk
