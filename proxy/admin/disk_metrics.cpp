// What the store on disk does, as rows of the table of metrics. Without one they are zeros.

#include "proxy/admin/metrics_table.hpp"

namespace reprise::proxy {

namespace {

using in = const stats_inputs&;
using out = sample_sink&;

constexpr auto counter_kind = metric_kind::counter;
constexpr auto gauge = metric_kind::gauge;

cache::disk::tier_figures of(in from) {
    return from.disk.value_or(cache::disk::tier_figures{});
}

constexpr metric table[] = {
    {"reprise_disk_state",
     metric_kind::info,
     "disk.state",
     "state",
     "",
     "Of the store on disk: none, loading, ready, reading (writing fails) or off.",
     [](in from, out sink) { sink.text(from.disk ? to_string(from.disk->state) : "none"); }},
    {"reprise_disk_objects",
     gauge,
     "disk.objects",
     "",
     "",
     "Responses in the index.",
     [](in from, out sink) { sink.number(of(from).objects); }},
    {"reprise_disk_bytes",
     gauge,
     "disk.bytes",
     "",
     "",
     "Bytes of their records.",
     [](in from, out sink) { sink.number(of(from).bytes); }},
    {"reprise_disk_capacity_bytes",
     gauge,
     "disk.capacity_bytes",
     "",
     "",
     "Most that all files may take: disk.size.",
     [](in from, out sink) { sink.number(of(from).capacity); }},
    {"reprise_disk_segments",
     gauge,
     "disk.segments",
     "",
     "",
     "Segment files.",
     [](in from, out sink) { sink.number(of(from).segments); }},
    {"reprise_disk_index_bytes",
     gauge,
     "disk.index_bytes",
     "",
     "",
     "Memory of the index.",
     [](in from, out sink) { sink.number(of(from).index_bytes); }},
    {"reprise_disk_oldest_seconds",
     gauge,
     "disk.oldest_seconds",
     "",
     "",
     "Age of the oldest segment: about how long an object stays that nobody asks for.",
     [](in from, out sink) { sink.real(static_cast<double>(of(from).oldest.count())); }},
    {"reprise_disk_lookups_total",
     counter_kind,
     "disk.lookups",
     "result",
     "",
     "Look-ups on disk that found something, and that did not.",
     [](in from, out sink) {
         sink.number(of(from).hits, "hit");
         sink.number(of(from).misses, "miss");
     }},
    {"reprise_disk_reads_total",
     counter_kind,
     "disk.reads",
     "how",
     "",
     "Reads served by the page cache in place, by the pool, and refused because too many waited.",
     [](in from, out sink) {
         sink.number(of(from).in_place, "in-place");
         sink.number(of(from).pooled, "pooled");
         sink.number(of(from).refused, "refused");
     }},
    {"reprise_disk_puts_total",
     counter_kind,
     "disk.puts",
     "",
     "",
     "Responses taken for writing.",
     [](in from, out sink) { sink.number(of(from).puts); }},
    {"reprise_disk_put_bytes_total",
     counter_kind,
     "disk.put_bytes",
     "",
     "",
     "Their bytes.",
     [](in from, out sink) { sink.number(of(from).put_bytes); }},
    {"reprise_disk_skipped_total",
     counter_kind,
     "disk.skipped",
     "",
     "",
     "Responses not taken: the queue was full, or writing fails.",
     [](in from, out sink) { sink.number(of(from).skipped); }},
    {"reprise_disk_skipped_bytes_total",
     counter_kind,
     "disk.skipped_bytes",
     "",
     "",
     "Their bytes.",
     [](in from, out sink) { sink.number(of(from).skipped_bytes); }},
    {"reprise_disk_written_bytes_total",
     counter_kind,
     "disk.written_bytes",
     "",
     "",
     "Bytes written to files, of every kind.",
     [](in from, out sink) { sink.number(of(from).written_bytes); }},
    {"reprise_disk_carried_total",
     counter_kind,
     "disk.carried",
     "",
     "",
     "Objects written again because they were used since.",
     [](in from, out sink) { sink.number(of(from).carried); }},
    {"reprise_disk_carried_bytes_total",
     counter_kind,
     "disk.carried_bytes",
     "",
     "",
     "Their bytes.",
     [](in from, out sink) { sink.number(of(from).carried_bytes); }},
    {"reprise_disk_evicted_total",
     counter_kind,
     "disk.evicted",
     "",
     "",
     "Objects that left with their segment.",
     [](in from, out sink) { sink.number(of(from).evicted); }},
    {"reprise_disk_evicted_bytes_total",
     counter_kind,
     "disk.evicted_bytes",
     "",
     "",
     "Their bytes.",
     [](in from, out sink) { sink.number(of(from).evicted_bytes); }},
    {"reprise_disk_damaged_total",
     counter_kind,
     "disk.damaged",
     "",
     "",
     "Records whose checksums failed; dropped, never served.",
     [](in from, out sink) { sink.number(of(from).damaged); }},
    {"reprise_disk_invalidated_total",
     counter_kind,
     "disk.invalidated",
     "",
     "",
     "Objects dropped by purges and unsafe methods.",
     [](in from, out sink) { sink.number(of(from).invalidated); }},
    {"reprise_disk_errors_total",
     counter_kind,
     "disk.errors",
     "what",
     "",
     "Reads and writes that failed.",
     [](in from, out sink) {
         sink.number(of(from).read_errors, "read");
         sink.number(of(from).write_errors, "write");
     }},
    {"reprise_disk_loaded_seconds",
     gauge,
     "disk.loaded_seconds",
     "",
     "",
     "How long the index took to load; 0 while it does.",
     [](in from, out sink) { sink.real(static_cast<double>(of(from).loaded_in.count()) / 1e3); }},
};

}  // namespace

std::span<const metric> disk_metrics() noexcept {
    return table;
}

}  // namespace reprise::proxy
