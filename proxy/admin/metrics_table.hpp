#pragma once
// The shape of a row of the table of metrics, and what a row draws its samples on. The rows stand in metrics_table.cpp
// and in the files named *_metrics.cpp; stats.cpp draws them.
//
// To add a metric: one row (`plain` where it has no label), in the group where an operator looks for it; the figure itself
// in stats_inputs, and who counts it. unit_admin fails until README.md lists it (REPRISE_UPDATE_DOCS=1 writes it).

#include "proxy/admin/stats.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace reprise::proxy::admin {

enum class metric_kind { counter, gauge, histogram, info };
inline constexpr auto counter_kind = metric_kind::counter;
inline constexpr auto gauge = metric_kind::gauge;

/// Takes the samples of one row. Labels belong to the row's label names, in order; the views need
/// only live during the call.
class sample_sink {
public:
    virtual ~sample_sink() = default;
    virtual void number(std::uint64_t value,
                        std::string_view one = {},
                        std::string_view two = {}) = 0;
    /// None: a number that is not known, or a ratio of nothing.
    virtual void real(std::optional<double> value, std::string_view one = {}) = 0;
    virtual void truth(bool value) = 0;
    virtual void histogram(const histogram_totals& value, std::string_view one) = 0;
    /// The only sample of an info row: 1, with the text as its label.
    virtual void text(std::string_view value) = 0;
};

struct metric {
    std::string_view name;  ///< in Prometheus: base unit and _total included
    metric_kind kind;
    std::string_view
        json;  ///< where it stands in /stats, dots between names; labels follow as names
    std::string_view label_one, label_two;
    std::string_view help;  ///< one sentence, for HELP and README.md
    void (*draw)(const stats_inputs&, sample_sink&);
};

using in = const stats_inputs&;
using out = sample_sink&;

/// Counters end in _total (Prometheus' naming); whatever else has one number is a gauge.
consteval metric_kind kind_of(std::string_view name) {
    return name.ends_with("_total") ? metric_kind::counter : metric_kind::gauge;
}

/// A number of any kind, as the sink knows it: a truth, an integer, or a real that may be unknown.
template <class Value>
void draw(sample_sink& sink, const Value& value, std::string_view one = {}) {
    if constexpr (std::is_same_v<Value, bool>) {
        sink.truth(value);
    } else if constexpr (std::is_integral_v<Value>) {
        sink.number(value, one);
    } else {
        sink.real(value, one);
    }
}

/// One number without labels: `value` makes it of the inputs, and captures nothing.
template <class Value>
consteval metric plain(std::string_view name, std::string_view json, std::string_view help, Value) {
    return {name, kind_of(name), json, {}, {}, help, [](in from, out sink) {
                draw(sink, Value{}(from));
            }};
}

/// A number for each value of one label.
consteval metric by_label(std::string_view name,
                          std::string_view json,
                          std::string_view label,
                          std::string_view help,
                          void (*draw)(in, out)) {
    return {name, kind_of(name), json, label, {}, help, draw};
}

/// Those of the store on disk.
[[nodiscard]] std::span<const metric> disk_metrics() noexcept;
/// Those of probation and the eviction policies in memory.
[[nodiscard]] std::span<const metric> memory_metrics() noexcept;
/// What other settings would have done.
[[nodiscard]] std::span<const metric> what_if_metrics() noexcept;

/// Those of tunnels, opened and passed on.
[[nodiscard]] std::span<const metric> tunnel_metrics() noexcept;
/// Those of peers and digests.
[[nodiscard]] std::span<const metric> peer_metrics() noexcept;

/// Those of all nodes of the fleet, as this one knows them.
[[nodiscard]] std::span<const metric> fleet_metrics() noexcept;

/// All metrics, in the order shown.
[[nodiscard]] std::span<const metric> metrics_table() noexcept;

}  // namespace reprise::proxy::admin
