#include "tools/replay/reference.hpp"

#include "proxy/cache/policy/eviction.hpp"
#include "tools/replay/admission_rule.hpp"
#include "tools/replay/number.hpp"
#include "tools/replay/one_tier.hpp"
#include "tools/replay/run.hpp"
#include "tools/replay/trace.hpp"

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <map>
#include <memory>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace reprise::replay {

namespace {

constexpr double points_allowed = 0.2;
constexpr double percent_allowed = 2;
constexpr double bytes_a_key_allowed = 2;

template <class T>
T field(std::string_view& line) {
    const auto comma = std::min(line.find(','), line.size());
    const auto text = line.substr(0, comma);
    line.remove_prefix(std::min(comma + 1, line.size()));
    if constexpr (std::is_same_v<T, std::string>) {
        return std::string{text};
    } else {
        const auto value = number_in<T>(text);
        if (!value) {
            throw std::runtime_error{"\"" + std::string{text} + "\" is no number"};
        }
        return *value;
    }
}

admission_choice choice_of(const reference_row& row) {
    using kind = admission_choice::kind;
    if (row.rule == "none") {
        return {.what = kind::always};
    }
    if (row.rule == "second") {
        return {.what = kind::exact_second};
    }
    if (row.rule == "window") {
        return {.what = kind::exact_window, .keys = row.window};
    }
    throw std::runtime_error{"a rule that is not known: " + row.rule};
}

std::unique_ptr<model> plain_lru(const admission_choice& admission,
                                 std::uint64_t capacity,
                                 std::uint64_t objects) {
    using namespace proxy::cache;
    return std::make_unique<one_tier>(proxy::cache::make_policy(eviction_kind::lru, capacity),
                                      make_rule(admission, objects, {.objects = objects}),
                                      capacity,
                                      0);
}

}  // namespace

std::vector<reference_row> read_reference(std::istream& in) {
    std::vector<reference_row> rows;
    std::string line;
    std::getline(in, line);  // the header
    for (std::size_t number = 2; std::getline(in, line); ++number) {
        try {
            std::string_view left{line};
            reference_row row;
            row.trace = field<std::string>(left);
            row.capacity = field<std::uint64_t>(left);
            row.rule = field<std::string>(left);
            row.window = field<std::uint64_t>(left);
            row.requests = field<std::uint64_t>(left);
            row.misses = field<std::uint64_t>(left);
            (void)field<double>(left);
            row.byte_miss_ratio = field<double>(left);
            row.inserts = field<std::uint64_t>(left);
            row.insert_bytes = field<std::uint64_t>(left);
            rows.push_back(std::move(row));
        } catch (const std::runtime_error& error) {
            throw std::runtime_error{"line " + std::to_string(number) + ": " + error.what()};
        }
    }
    return rows;
}

bool reference_check::is_exact() const noexcept {
    return requests == row.requests && misses == row.misses && inserts == row.inserts &&
           insert_bytes == row.insert_bytes &&
           std::abs(byte_miss_ratio - row.byte_miss_ratio) < 0.6e-6;
}

double reference_check::filter_miss_points() const noexcept {
    const auto more = static_cast<double>(filter_misses) - static_cast<double>(row.misses);
    return 100 * more / static_cast<double>(row.requests);
}

double reference_check::filter_bytes_percent() const noexcept {
    const auto exact = static_cast<double>(row.insert_bytes);
    return 100 * (static_cast<double>(filter_insert_bytes) - exact) / exact;
}

bool reference_check::filter_is_close() const noexcept {
    return row.rule != "second" || (std::abs(filter_miss_points()) <= points_allowed &&
                                    std::abs(filter_bytes_percent()) <= percent_allowed &&
                                    filter_bytes_a_key <= bytes_a_key_allowed);
}

std::vector<reference_check> check_reference(const std::vector<reference_row>& rows,
                                             const std::string& path,
                                             unsigned threads) {
    trace source{{path}, log_format::trace};
    const recorded_trace requests{source};
    const auto objects = source.objects().size();

    std::vector<std::unique_ptr<model>> models;
    std::vector<const model*> filtered(rows.size());
    for (const auto& row : rows) {
        models.push_back(plain_lru(choice_of(row), row.capacity, objects));
    }
    const admission_choice by_filter{.what = admission_choice::kind::nth_hit};
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].rule == "second") {
            models.push_back(plain_lru(by_filter, rows[i].capacity, objects));
            filtered[i] = models.back().get();
        }
    }
    (void)run(requests, models, threads);

    std::vector<reference_check> checks;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto counted = models[i]->figures();
        reference_check check{.row = rows[i]};
        check.requests = counted.requests;
        check.misses = counted.misses();
        check.inserts = counted.written;
        check.insert_bytes = counted.written_bytes;
        check.byte_miss_ratio = 1 - counted.byte_hit_ratio();
        if (filtered[i] != nullptr) {
            const auto with_filter = filtered[i]->figures();
            check.filter_misses = with_filter.misses();
            check.filter_insert_bytes = with_filter.written_bytes;
            check.filter_bytes_a_key = static_cast<double>(with_filter.memory_bytes) / 2 /
                                       static_cast<double>(objects);
        }
        checks.push_back(check);
    }
    return checks;
}

bool print_reference_check(const std::string& reference,
                           const std::string& directory,
                           unsigned threads,
                           std::ostream& out) {
    std::ifstream in{reference};
    if (!in) {
        throw std::runtime_error{reference + ": can't be read"};
    }
    std::map<std::string, std::vector<reference_row>> by_trace;
    for (auto& row : read_reference(in)) {
        by_trace[row.trace].push_back(std::move(row));
    }

    out << "trace        capacity bytes  rule          N      misses     inserts     insert bytes"
           "  exact   filter: points      % bytes   B/key\n";
    std::size_t checked = 0, exact = 0, close = 0, with_filter = 0;
    for (const auto& [name, rows] : by_trace) {
        auto path = directory + "/" + name + ".csv.zst";
        if (!std::filesystem::exists(path)) {
            path = directory + "/" + name + ".csv";
        }
        if (!std::filesystem::exists(path)) {
            out << name << ": no such trace in " << directory << ", skipped\n";
            continue;
        }
        for (const auto& check : check_reference(rows, path, threads)) {
            const auto& row = check.row;
            out << std::left << std::setw(10) << row.trace << std::right << std::setw(17)
                << row.capacity << "  " << std::left << std::setw(7) << row.rule << std::right
                << std::setw(8) << row.window << std::setw(12) << check.misses << std::setw(12)
                << check.inserts << std::setw(17) << check.insert_bytes << std::setw(7)
                << (check.is_exact() ? "yes" : "NO");
            if (row.rule == "second") {
                out << std::fixed << std::showpos << std::setprecision(4) << std::setw(17)
                    << check.filter_miss_points() << std::setw(13) << check.filter_bytes_percent()
                    << std::noshowpos << std::setprecision(3) << std::setw(8)
                    << check.filter_bytes_a_key << (check.filter_is_close() ? "" : "  TOO FAR");
                ++with_filter;
                close += check.filter_is_close() ? 1 : 0;
            }
            out << '\n';
            ++checked;
            exact += check.is_exact() ? 1 : 0;
        }
        out.flush();
    }
    out << exact << " of " << checked << " rows to the request and the byte; " << close << " of "
        << with_filter << " with the real filter within " << std::setprecision(1) << points_allowed
        << " points of misses and " << percent_allowed << " % of inserted bytes\n";
    return checked != 0 && exact == checked && close == with_filter;
}

}  // namespace reprise::replay
