#include "proxy/cache/disk/record_read.hpp"

#include <utility>

namespace reprise::proxy::cache::disk {

record_read::record_read(wakeup::signal sleeper,
                         segment_table::view from,
                         const index_entry& entry,
                         std::uint64_t store)
    : read_job{std::move(sleeper)},
      from_{std::move(from)},
      entry_{entry},
      store_{store},
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
        how_ = outcome::unreadable;
        return;
    }
    verify();
}

void record_read::verify() noexcept {
    how_ = outcome::damaged;
    const auto header = check_front(bytes(), store_, from_.sequence);
    if (header && header->record_bytes() == entry_.bytes && check_body(bytes(), *header, store_)) {
        header_ = *header;
        how_ = outcome::good;
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

}  // namespace reprise::proxy::cache::disk
