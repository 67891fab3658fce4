#include "proxy/base/relaxed.hpp"
#include "proxy/cache/disk/contents_loader.hpp"
#include "proxy/cache/disk/large_body.hpp"
#include "proxy/cache/disk/record_read.hpp"
#include "proxy/cache/disk/variants.hpp"
#include "proxy/cache/disk/writer.hpp"

#include <utility>
#include <vector>

// What the writer writes for a task, at the end of the log. Whether it is to be written, and what goes then or if it
// is not, is in writer_drops.cpp.

namespace reprise::proxy::cache::disk {

std::uint64_t response_task::discriminator() const noexcept {
    const auto vary = response->vary();
    return vary.empty() ? 0 : variant_discriminator(primary, vary.names, response->selecting());
}

// Where the record goes is made before: so nothing that lacks memory comes between it and what is to become of it.
template <class Source>
std::optional<index_entry> writer::append(const Source& source,
                                          std::uint64_t id,
                                          publication then) {
    const auto bytes = sized(source);
    if (!bytes || *bytes > core_->shape.record_most || !make_room(*bytes)) {
        core_->counts.skipped.fetch_add(1, relaxed);
        return std::nullopt;
    }
    return tail_.append(
        *bytes,
        id,
        [&](std::span<char> into, const record_stamp& stamp) noexcept {
            return encode(source, stamp, core_->super.store_id, into);
        },
        std::move(then));
}

std::uint32_t writer::extents_of(const response_task& task) const noexcept {
    const auto extent = core_->shape.inline_most;
    return static_cast<std::uint32_t>((task.length + extent - 1) / extent);
}

void writer::perform(const response_task& task) {
    if (core_->invalidated.since(task.primary, task.asked) || dropped_ids_.contains(task.id)) {
        perform_dropped(task);
        return;
    }
    const auto discriminator = task.discriminator();
    if (discriminator != 0 && core_->loading.load(relaxed)) {
        // The directory may be in a segment that is not known yet: it would be begun anew.
        is_not_written(task);
        core_->counts.skipped.fetch_add(1, relaxed);
        return;
    }
    if (comes_late(task, discriminator)) {
        core_->counts.skipped.fetch_add(1, relaxed);
        if (core_->on_outdated) {
            core_->on_outdated(task.primary, task.url, task.response);
        }
        if (task.kind == record_kind::large) {
            perform(abandon_task{task.primary, task.id, extents_of(task)});
        }
        return;
    }
    if (task.kind == record_kind::large) {
        // The head is for when all of it is there: in the index, hence in the file.
        flush();
        const auto extent = static_cast<std::uint32_t>(core_->shape.inline_most);
        if (!has_extents(core_->index,
                         {task.primary, task.id, task.length, extent, extents_of(task)})) {
            is_not_written(task);
            core_->counts.skipped.fetch_add(1, relaxed);
            return;
        }
    }
    if (task.kind == record_kind::refresh) {
        const auto object = index_key(record_kind::object, task.primary, discriminator);
        if (tail_.awaits(object)) {
            flush();
        }
        // Another may have come in its place, or it was never written: then this is nobody's head.
        const auto there = core_->index.find(object);
        std::vector<char> front;
        const auto of = there ? read_front(*core_, there->place, there->bytes, front)
                              : std::nullopt;
        if (!of) {
            is_not_written(task);                   // it may still be loaded
            if (there && !task.outdates_older()) {  // nor can anybody else read it
                core_->note_unlisted(task.primary);
                (void)core_->erase(object, *there);
                if (discriminator != 0) {
                    tell_variants(*core_, task.primary);
                }
            }
            return;
        }
        if (of->header.id != task.subject) {
            return;
        }
    }
    write_response(task, discriminator);
    carry_what_is_due();
}

void writer::write_response(const response_task& task, std::uint64_t discriminator) {
    const bool is_large = task.kind == record_kind::large;
    const object_source source{
        .kind = task.kind,
        .primary = task.primary,
        .discriminator = discriminator,
        .url = task.url,
        .response = *task.response,
        .ban_epoch = task.ban_epoch,
        .subject = task.subject,
        .length = task.length,
        .extent_bytes = is_large ? static_cast<std::uint32_t>(core_->shape.inline_most) : 0,
        .carried = false};
    // Variants are not told one by one: their directory is.
    const bool told = core_->settings.told != nullptr && discriminator == 0;
    const auto& response = *task.response;
    const auto entry = append(
        source,
        task.id,
        {.key = index_key(task.kind, task.primary, discriminator),
         .entry = {},
         .primary = task.primary,
         .length = task.length,
         .asked = task.asked,
         .moved_from = {},
         .discriminator = discriminator,
         .outdates_older = task.outdates_older(),
         .url = told ? task.url : std::string{},
         .useful_until = useful_until(response.freshness(), response.directives())});
    if (!entry) {
        is_not_written(task);
        return;
    }
    if (task.kind == record_kind::refresh) {
        const auto object = index_key(record_kind::object, task.primary, discriminator);
        if (const auto found = core_->index.find(object)) {
            (void)core_->index.set_expiry(object, found->place, entry->expiry);
        }
        if (core_->settings.told != nullptr && discriminator != 0) {
            flush();  // so that the new head is what is read
            tell_variants(*core_, task.primary);
        }
    } else if (discriminator != 0) {
        list_variant(task, discriminator, entry->expiry);
    }
}

void writer::list_variant(const response_task& task,
                          std::uint64_t discriminator,
                          std::uint16_t expiry) {
    auto directory = directory_under(task.primary).value_or(variant_directory{});
    if (directory.url != task.url) {
        directory = {.url = task.url, .variants = {}};
    }
    std::erase_if(directory.variants, [&](const listed_variant& one) {
        const auto key = index_key(record_kind::object, task.primary, one.discriminator);
        return one.discriminator != discriminator && !core_->index.find(key);
    });
    const auto gone = directory.add({.names = std::string{task.response->vary().names},
                                     .discriminator = discriminator,
                                     .id = task.id,
                                     .response_time = task.response->freshness().response_time,
                                     .expiry = expiry});
    if (gone && gone->discriminator != discriminator) {
        (void)core_->erase(index_key(record_kind::object, task.primary, gone->discriminator));
    }
    const directory_source source{task.primary, directory};
    (void)append(source,
                 core_->next_id(),
                 {.key = task.primary,
                  .entry = {},
                  .primary = task.primary,
                  .asked = task.asked,
                  .moved_from = {}});
}

void writer::perform(const extent_task& task) {
    const extent_source source{
        .primary = task.primary, .object = task.object, .part = task.part, .bytes = task.bytes};
    if (append(source,
               core_->next_id(),
               {.key = extent_key(task.primary, task.object, task.part),
                .entry = {},
                .primary = task.primary,
                .asked = {},
                .moved_from = {}})) {
        carry_what_is_due();
    }
}

void writer::perform(const abandon_task& task) {
    flush();
    for (std::uint32_t part = 0; part < task.parts; ++part) {
        const auto key = extent_key(task.primary, task.object, part);
        if (const auto there = core_->index.find(key)) {
            (void)core_->erase(key, *there);
        }
    }
}

}  // namespace reprise::proxy::cache::disk
