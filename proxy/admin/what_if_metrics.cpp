// What other settings would have done, as rows of the table of metrics. The advice itself, a
// sentence, stands in /stats alone: a label has few values.

#include "proxy/admin/metrics_table.hpp"

#include <string>

namespace reprise::proxy::admin {

namespace {

std::string label_of(const cache::what_if_row& row) {
    switch (row.of) {
    case cache::what_if_row::group::admission: return row.name;
    case cache::what_if_row::group::size: return "size " + row.name;
    case cache::what_if_row::group::policy: return "policy " + row.name;
    case cache::what_if_row::group::exponent: return "exponent " + row.name;
    }
    return row.name;
}

constexpr metric what_if_rows[] = {
    plain("reprise_what_if_span_seconds",
          "what_if.span_seconds",
          "What the ghosts' figures cover: the last hour, or less since a start or a change of "
          "settings.",
          [](in from) { return static_cast<double>(from.what_if.span.count()); }),
    plain("reprise_what_if_requests",
          "what_if.requests",
          "Requests of it that were in the sample.",
          [](in from) { return from.what_if.requests; }),
    plain("reprise_what_if_dropped",
          "what_if.dropped",
          "Requests that were in the sample too, but left out because another thread was at the "
          "ghosts just then.",
          [](in from) { return from.what_if.dropped; }),
    plain(
        "reprise_what_if_set_aside",
        "what_if.set_aside",
        "Requests that were in the sample too, but left out because one client asked for more than "
        "all others together.",
        [](in from) { return from.what_if.set_aside; }),
    plain(
        "reprise_what_if_exponent",
        "what_if.exponent",
        "Of size, in what an object is worth, as it is in force; none but with memory.policy gdsf.",
        [](in from) { return from.what_if.exponent; }),
    plain("reprise_what_if_sample",
          "what_if.sample",
          "Share of all keys in the sample.",
          [](in from) { return from.what_if.sample; }),
    plain("reprise_what_if_keys",
          "what_if.keys",
          "Keys that ghosts hold.",
          [](in from) { return from.what_if.keys; }),
    plain("reprise_what_if_memory_bytes",
          "what_if.memory_bytes",
          "Memory that the ghosts take, on the heap.",
          [](in from) { return from.what_if.memory_bytes; }),
    {"reprise_what_if_in_force",
     metric_kind::info,
     "what_if.in_force",
     "setting",
     "",
     "The admission that is in force, as the ghosts' rows name it.",
     [](in from, out sink) {
         for (const auto& row : from.what_if.rows) {
             if (row.in_force) {
                 sink.text(label_of(row));
             }
         }
     }},
    by_label("reprise_what_if_hit_ratio",
             "what_if.hit_ratio",
             "setting",
             "Requests that would have been hits, of those that a stored response may answer.",
             [](in from, out sink) {
                 for (const auto& row : from.what_if.rows) {
                     sink.real(row.hit_ratio, label_of(row));
                 }
             }),
    by_label("reprise_what_if_byte_hit_ratio",
             "what_if.byte_hit_ratio",
             "setting",
             "The same of bytes.",
             [](in from, out sink) {
                 for (const auto& row : from.what_if.rows) {
                     sink.real(row.byte_hit_ratio, label_of(row));
                 }
             }),
    by_label("reprise_what_if_wait_hit_ratio",
             "what_if.wait_hit_ratio",
             "setting",
             "The same of the seconds that their fetches take.",
             [](in from, out sink) {
                 for (const auto& row : from.what_if.rows) {
                     sink.real(row.wait_hit_ratio, label_of(row));
                 }
             }),
    by_label("reprise_what_if_written_bytes",
             "what_if.written_bytes",
             "setting",
             "Bytes that would have been admitted, as far as the sample tells.",
             [](in from, out sink) {
                 for (const auto& row : from.what_if.rows) {
                     sink.number(row.written_bytes, label_of(row));
                 }
             }),
    plain("reprise_what_if_lost_to_admission",
          "what_if.lost_to_admission",
          "Requests missed that would have been hits if everything were admitted; a share of all.",
          [](in from) { return from.what_if.lost_to_admission; }),
    plain("reprise_what_if_won_by_admission",
          "what_if.won_by_admission",
          "Hits that would have been missed if everything were admitted; a share of all.",
          [](in from) { return from.what_if.won_by_admission; }),
    plain("reprise_what_if_gain",
          "what_if.gain",
          "What following the advice would have gained, in the objective's hit ratio; none without "
          "advice.",
          [](in from) {
              const auto& advice = from.what_if.advice;
              return advice ? std::optional{advice->gain} : std::nullopt;
          }),
};

}  // namespace

std::span<const metric> what_if_metrics() noexcept {
    return what_if_rows;
}

}  // namespace reprise::proxy::admin
