// What the store on disk does, as rows of the table of metrics. Without one they are zeros.

#include "proxy/admin/metrics_table.hpp"

#include <chrono>

namespace reprise::proxy::admin {

namespace {

cache::disk::tier_figures disk_of(in from) {
    return from.disk.value_or(cache::disk::tier_figures{});
}

constexpr metric disk_rows[] = {
    {"reprise_disk_state",
     metric_kind::info,
     "disk.state",
     "state",
     "",
     "Of the store on disk: none, loading, ready, reading (writing fails) or off.",
     [](in from, out sink) { sink.text(from.disk ? to_string(from.disk->state) : "none"); }},
    plain("reprise_disk_objects",
          "disk.objects",
          "Responses in the index.",
          [](in from) { return disk_of(from).objects; }),
    plain("reprise_disk_bytes",
          "disk.bytes",
          "Bytes of their records.",
          [](in from) { return disk_of(from).bytes; }),
    plain("reprise_disk_capacity_bytes",
          "disk.capacity_bytes",
          "Most that its segments may take: somewhat less than disk.size, which holds bookkeeping "
          "too.",
          [](in from) { return disk_of(from).capacity; }),
    plain("reprise_disk_free_bytes",
          "disk.free_bytes",
          "What the file system has left, looked at every ten seconds.",
          [](in from) {
              return from.room ? std::optional{static_cast<double>(from.room->free)} : std::nullopt;
          }),
    plain("reprise_disk_room_is_short",
          "disk.room_is_short",
          "Whether that is less than the store is yet to take.",
          [](in from) { return from.room.has_value() && from.room->is_short(); }),
    plain("reprise_disk_segments",
          "disk.segments",
          "Segment files.",
          [](in from) { return disk_of(from).segments; }),
    plain("reprise_disk_index_bytes",
          "disk.index_bytes",
          "Memory of the index.",
          [](in from) { return disk_of(from).index_bytes; }),
    plain("reprise_disk_queued_purges",
          "disk.queued_purges",
          "Purges that wait for the disk to keep them; of unsafe methods those that may end "
          "something on it.",
          [](in from) { return disk_of(from).queued_purges; }),
    plain("reprise_disk_purge_overflows_total",
          "disk.purge_overflows",
          "How often they were too many to wait one by one: a restart then finds an empty store.",
          [](in from) { return disk_of(from).purge_overflows; }),
    plain("reprise_disk_oldest_seconds",
          "disk.oldest_seconds",
          "Age of the oldest segment: about how long an object stays that nobody asks for.",
          [](in from) { return static_cast<double>(disk_of(from).oldest.count()); }),
    by_label("reprise_disk_lookups_total",
             "disk.lookups",
             "result",
             "Look-ups on disk that found something, and that did not.",
             [](in from, out sink) {
                 sink.number(disk_of(from).hits, "hit");
                 sink.number(disk_of(from).misses, "miss");
             }),
    by_label("reprise_disk_reads_total",
             "disk.reads",
             "how",
             "Reads served by the page cache in place, by the pool, and refused because too many "
             "waited.",
             [](in from, out sink) {
                 sink.number(disk_of(from).in_place, "in-place");
                 sink.number(disk_of(from).pooled, "pooled");
                 sink.number(disk_of(from).refused, "refused");
             }),
    plain("reprise_disk_puts_total",
          "disk.puts",
          "Responses taken for writing.",
          [](in from) { return disk_of(from).puts; }),
    plain("reprise_disk_put_bytes_total",
          "disk.put_bytes",
          "Their bytes.",
          [](in from) { return disk_of(from).put_bytes; }),
    plain("reprise_disk_queued_bytes",
          "disk.queued_bytes",
          "Bytes that wait to be written; when there are too many, what comes is skipped.",
          [](in from) { return disk_of(from).queued_bytes; }),
    plain("reprise_disk_behind_seconds",
          "disk.behind_seconds",
          "How long the writer's oldest task has waited: of what was stored since then a kill "
          "loses some.",
          [](in from) { return std::chrono::duration<double>{disk_of(from).behind}.count(); }),
    plain("reprise_disk_skipped_total",
          "disk.skipped",
          "Responses not written: not worth what would go for them (disk.selective), too large, "
          "overtaken by a purge, or the queue was full, or writing fails.",
          [](in from) { return disk_of(from).skipped; }),
    plain("reprise_disk_skipped_bytes_total",
          "disk.skipped_bytes",
          "Their bytes.",
          [](in from) { return disk_of(from).skipped_bytes; }),
    plain("reprise_disk_overrun_total",
          "disk.overrun",
          "Of those, and of newer heads, what the queue had no room for: the disk did not keep up.",
          [](in from) { return disk_of(from).overrun; }),
    plain("reprise_disk_written_bytes_total",
          "disk.written_bytes",
          "Bytes written to files, of every kind.",
          [](in from) { return disk_of(from).written_bytes; }),
    plain("reprise_disk_carried_total",
          "disk.carried",
          "Objects written again because they were used since.",
          [](in from) { return disk_of(from).carried; }),
    plain("reprise_disk_carried_bytes_total",
          "disk.carried_bytes",
          "Their bytes.",
          [](in from) { return disk_of(from).carried_bytes; }),
    plain("reprise_disk_evicted_total",
          "disk.evicted",
          "Objects that left with their segment.",
          [](in from) { return disk_of(from).evicted; }),
    plain("reprise_disk_evicted_bytes_total",
          "disk.evicted_bytes",
          "Their bytes.",
          [](in from) { return disk_of(from).evicted_bytes; }),
    plain("reprise_disk_damaged_total",
          "disk.damaged",
          "Records whose checksums failed; dropped, never served.",
          [](in from) { return disk_of(from).damaged; }),
    plain("reprise_disk_invalidated_total",
          "disk.invalidated",
          "Objects dropped by purges and unsafe methods.",
          [](in from) { return disk_of(from).invalidated; }),
    plain("reprise_disk_read_errors_total",
          "disk.read_errors",
          "Reads that failed.",
          [](in from) { return disk_of(from).read_errors; }),
    plain("reprise_disk_write_errors_total",
          "disk.write_errors",
          "Writes that failed.",
          [](in from) { return disk_of(from).write_errors; }),
    plain("reprise_disk_loaded_seconds",
          "disk.loaded_seconds",
          "How long the index took to load; 0 while it does.",
          [](in from) { return static_cast<double>(disk_of(from).loaded_in.count()) / 1e3; }),
};

}  // namespace

std::span<const metric> disk_metrics() noexcept {
    return disk_rows;
}

}  // namespace reprise::proxy::admin
