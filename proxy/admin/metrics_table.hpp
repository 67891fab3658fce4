#pragma once
// The shape of a row of the table of metrics, and of what a row draws its samples on.
// Internal to stats.cpp and metrics_table.cpp.

#include "proxy/admin/stats.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace reprise::proxy {

enum class metric_kind { counter, gauge, histogram, info };

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

/// Those of the store on disk.
[[nodiscard]] std::span<const metric> disk_metrics() noexcept;
/// Of probation and the eviction policies in memory.
[[nodiscard]] std::span<const metric> memory_metrics() noexcept;
/// What other settings would have done.
[[nodiscard]] std::span<const metric> what_if_metrics() noexcept;

/// Of peers and digests.
[[nodiscard]] std::span<const metric> peer_metrics() noexcept;

/// All metrics, in the order shown.
[[nodiscard]] std::span<const metric> metrics_table() noexcept;

}  // namespace reprise::proxy
