#include "filter/plugins/trafficserver/gates.hpp"

#include "filter/plugins/trafficserver/server.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <stdexcept>

// While a configuration is read, the gates that it names are opened beside those in force.
// after_reload() then lets one side go: the ones it no longer names if it was good, the ones born
// for it if it was not (pinned ones stay).

namespace reprise::trafficserver {

namespace {

constexpr std::array<const char*, counted_count> counted_names{"objects_not_stored",
                                                               "bytes_not_stored",
                                                               "objects_admitted",
                                                               "bytes_admitted",
                                                               "hits_lost",
                                                               "saves",
                                                               "failed_saves"};
constexpr std::array<const char*, told_count> told_names{"first_sights",
                                                         "repeats",
                                                         "refreshes",
                                                         "young_fill",
                                                         "old_fill",
                                                         "strangers_known",
                                                         "remembers_for",
                                                         "memory"};

/// Statistics are whole numbers: shares in millionths.
std::int64_t millionths(double share) noexcept {
    return std::isfinite(share) ? std::llround(share * 1e6) : 0;
}

}  // namespace

// ---- one ----

gate::gate(const rule_options& options, unsigned load)
    : options_(options),
      born_(load),
      said_(load) {
    const auto now = std::time(nullptr);
    const auto opened = options_.opened();
    reprise_error error = REPRISE_ERROR_INIT;
    if (reprise_admission_open(&opened, now, &filter_, &error) != REPRISE_OK) {
        throw std::runtime_error{error.text};
    }
    if (error.code != REPRISE_OK) {
        TSWarning("reprise_admission: %s begins empty: %s", options_.name.c_str(), error.text);
    }
    next_save_ = std::chrono::steady_clock::now() + options_.save;
    const auto prefix = "plugin.reprise_admission." + options_.name + ".";
    bool has_room = true;
    for (std::size_t i = 0; i < counted_count; ++i) {
        counters_[i] = figure_for(prefix + counted_names[i]);
        has_room = has_room && counters_[i] >= 0;
    }
    for (std::size_t i = 0; i < told_count; ++i) {
        gauges_[i] = figure_for(prefix + told_names[i]);
        has_room = has_room && gauges_[i] >= 0;
    }
    if (!has_room) {
        TSWarning("reprise_admission: %s has no statistics, or not all: raise "
                  "proxy.config.stat_api.max_stats_allowed",
                  options_.name.c_str());
    }
}

gate::~gate() {
    reprise_admission_close(filter_);
}

void gate::show(std::int64_t now) const noexcept {
    reprise_admission_figures read = REPRISE_ADMISSION_FIGURES_INIT;
    if (reprise_admission_read(filter_, now, &read) != REPRISE_OK) {
        return;
    }
    const std::array<std::int64_t, told_count> values{static_cast<std::int64_t>(read.first_sights),
                                                      static_cast<std::int64_t>(read.repeats),
                                                      static_cast<std::int64_t>(read.refreshes),
                                                      millionths(read.young_fill),
                                                      millionths(read.old_fill),
                                                      millionths(read.strangers_known),
                                                      read.remembers_for,
                                                      static_cast<std::int64_t>(read.memory)};
    for (std::size_t i = 0; i < told_count; ++i) {
        if (gauges_[i] >= 0) {
            TSStatIntSet(gauges_[i], values[i]);
        }
    }
}

void gate::save() noexcept {
    if (options_.state.empty()) {
        return;
    }
    const std::lock_guard alone{saving_};
    next_save_ = std::chrono::steady_clock::now() + options_.save;
    reprise_error error = REPRISE_ERROR_INIT;
    if (reprise_admission_save(filter_, nullptr, &error) == REPRISE_OK) {
        failed_ = false;
        count(counted::saves, 1);
        return;
    }
    count(counted::failed_saves, 1);
    if (!failed_) {
        failed_ = true;
        TSError("reprise_admission: %s is not saved: %s", options_.name.c_str(), error.text);
    }
}

// ---- all ----

gates& gates::here() {
    static auto* const only = new gates;
    return *only;
}

std::shared_ptr<gate> gates::open(const rule_options& options, bool is_pinned) {
    const std::lock_guard alone{names_};
    const auto is_of_now = [&](const gate& one) { return one.said_ == load_ || one.is_pinned_; };
    const auto is_it = [&](const auto& one) { return one->options_.name == options.name; };
    // What is refused, by the configuration that is read alone: a reload takes what a start takes.
    for (const auto& one : open_) {
        if (!is_of_now(*one)) {
            continue;
        }
        if (is_it(one)) {
            if (!options.says_more_than_a_name || same_filter(options, one->options_)) {
                one->said_ = load_;
                one->is_pinned_ = one->is_pinned_ || is_pinned;
                return one;
            }
            throw std::invalid_argument{
                "name=" + options.name +
                " has other objects, age, rate, hits, state or save in another rule: say them "
                "in the first rule of that name alone, or the same in each"};
        }
        if (!options.state.empty() && one->options_.state == options.state) {
            throw std::invalid_argument{"state=" + options.state + " is that of name=" +
                                        one->options_.name + ": each name needs a file of its own"};
        }
    }
    // The first rule of its name in this configuration, so that its words and the defaults are the options. What the one before it
    // remembers is kept where that has the same ones.
    const auto before = std::find_if(open_.rbegin(), open_.rend(), [&](const auto& one) {
        return is_it(one) && same_filter(options, one->options_);
    });
    if (before != open_.rend()) {
        (*before)->said_ = load_;
        (*before)->is_pinned_ = is_pinned;
        return *before;
    }
    auto made = std::make_shared<gate>(options, load_);
    made->is_pinned_ = is_pinned;
    open_.push_back(made);
    return made;
}

std::vector<std::shared_ptr<gate>> gates::settled() const {
    const std::lock_guard alone{names_};
    return is_loading_ ? std::vector<std::shared_ptr<gate>>{} : open_;
}

void gates::before_reload() {
    save_all();
    const std::lock_guard alone{names_};
    ++load_;
    is_loading_ = true;
}

void gates::after_reload(bool is_good, bool is_used) {
    const std::lock_guard alone{names_};
    is_loading_ = false;
    std::erase_if(open_, [&](const auto& one) {
        const bool has_lost = is_good ? !is_used || one->said_ != load_ : one->born_ == load_;
        return has_lost && !one->is_pinned_;
    });
}

void gates::tick() noexcept {
    try {
        const auto wall = std::time(nullptr);
        const auto now = std::chrono::steady_clock::now();
        for (const auto& one : settled()) {
            one->show(wall);
            bool is_due = false;
            {
                const std::lock_guard alone{one->saving_};
                is_due = now >= one->next_save_;
            }
            if (is_due) {
                one->save();
            }
        }
    } catch (const std::bad_alloc&) {
        // The next second comes.
    }
}

void gates::save_all() noexcept {
    try {
        for (const auto& one : settled()) {
            one->save();
        }
    } catch (const std::bad_alloc&) {
        TSError("reprise_admission: what is remembered is not saved: no memory");
    }
}

void start_keeping() {
    keep_house([]() noexcept { gates::here().tick(); },
               []() noexcept { gates::here().save_all(); });
}

}  // namespace reprise::trafficserver
