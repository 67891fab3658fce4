#include "proxy/cache/disk/arriving_object.hpp"

#include "proxy/base/relaxed.hpp"

#include <algorithm>
#include <utility>

namespace reprise::proxy::cache::disk {

std::optional<std::uint64_t> held_against_purges(const core& by,
                                                 const filter::key_hash& primary,
                                                 std::string_view url,
                                                 const stored_response& response,
                                                 const invalidation_mark& asked) {
    const auto said = by.purges.judge(url, response.tags(), asked.purges);
    if (!said.none() || by.invalidated.since(primary, asked.count)) {
        return std::nullopt;
    }
    return said.checked;
}

arriving_object::arriving_object(std::shared_ptr<core> into,
                                 std::shared_ptr<writer> by,
                                 const filter::key_hash& primary,
                                 std::string_view url,
                                 std::string_view strong_etag,
                                 const invalidation_mark& asked)
    : core_{std::move(into)},
      writer_{std::move(by)},
      primary_{primary},
      url_{url},
      representation_{representation_of(primary, strong_etag)},
      asked_{asked},
      id_{core_->next_id()} {}

arriving_object::~arriving_object() {
    try {
        give_up();
    } catch (const std::bad_alloc&) {
        // What came of it lies there until the log has turned.
    }
}

bool arriving_object::give_up() {
    writer_->release(std::exchange(promised_, 0));
    if (!over_) {
        over_ = true;
        gathered_.clear();
        core_->counts.skipped.fetch_add(1, relaxed);
        core_->counts.skipped_bytes.fetch_add(length_, relaxed);
        if (parts_ != 0 && !core_->closed.load(std::memory_order_acquire)) {
            (void)writer_->offer(abandon_task{primary_, id_, parts_}, 0);
        }
    }
    return false;
}

bool arriving_object::append(const slice& bytes) {
    if (over_) {
        return false;
    }
    length_ += bytes.size;
    if (length_ > core_->settings.max_object || !core_->takes_puts()) {
        return give_up();
    }
    auto rest = bytes;
    while (rest.size != 0) {
        // A full extent waits until more comes: without that this is a small object.
        if (gathered_bytes_ == core_->shape.inline_most && !offer_extent()) {
            return give_up();
        }
        const auto part = static_cast<std::size_t>(
            std::min<std::uint64_t>(rest.size, core_->shape.inline_most - gathered_bytes_));
        gathered_.push_back({rest.memory, rest.begin, part});
        gathered_bytes_ += part;
        rest.begin += part;
        rest.size -= part;
    }
    return true;
}

bool arriving_object::wants_a_pause(std::function<void()> go_on) const {
    return !over_ && writer_->wants_a_pause(id_, std::move(go_on));
}

bool arriving_object::ask_room_for(std::uint64_t bytes, std::uint64_t head) {
    const auto tasks = bytes / core_->shape.inline_most + 2;
    const auto all = bytes + head + tasks * task_bytes;
    if (!writer_->promise(all)) {
        return give_up();
    }
    promised_ = all;
    return true;
}

bool arriving_object::offer(write_task task, std::uint64_t bytes) {
    const auto promised = std::min(promised_, bytes);
    promised_ -= promised;
    return writer_->offer(std::move(task), bytes, promised);
}

bool arriving_object::offer_extent() {
    if (core_->closed.load(std::memory_order_acquire)) {
        return false;
    }
    const auto bytes = std::exchange(gathered_bytes_, 0);
    return offer(extent_task{primary_, id_, parts_++, std::exchange(gathered_, {})},
                 bytes + task_bytes);
}

bool arriving_object::finish(const stored_response& response) {
    if (over_ || response.vary().any || response.parts()) {
        return give_up();
    }
    const auto epoch = held_against_purges(*core_, primary_, url_, response, asked_);
    if (!epoch) {
        return give_up();
    }
    auto copy = response.draft_without_content();
    copy.on_disk = nullptr;
    response_task task{.kind = record_kind::object,
                       .primary = primary_,
                       .url = url_,
                       .response = nullptr,
                       .id = id_,
                       .asked = asked_.count,
                       .ban_epoch = *epoch,
                       .subject = 0,
                       .length = length_,
                       .representation = representation_};
    auto bytes = task_bytes + response.head().size();
    if (parts_ == 0) {
        auto whole = std::make_shared<body>();
        whole->size = length_;
        whole->slices = std::move(gathered_);
        copy.content = std::move(whole);
        bytes += length_;
    } else {
        if (gathered_bytes_ != 0 && !offer_extent()) {
            return give_up();
        }
        task.kind = record_kind::large;
    }
    task.response = stored_response::make(copy);
    if (core_->closed.load(std::memory_order_acquire) || !offer(std::move(task), bytes)) {
        return give_up();
    }
    over_ = true;
    writer_->release(std::exchange(promised_, 0));
    response.disk_record = id_;
    core_->counts.puts.fetch_add(1, relaxed);
    core_->counts.put_bytes.fetch_add(length_, relaxed);
    return true;
}

}  // namespace reprise::proxy::cache::disk
