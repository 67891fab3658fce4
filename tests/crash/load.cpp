#include "tests/crash/load.hpp"

#include "tests/support/message.hpp"

#include <algorithm>
#include <chrono>

namespace reprise::tests::crash {

namespace {

constexpr std::uint64_t popular = 300;  // small URLs that are asked for again and again
// How many others are first asked for between the two requests for one that is freshened: at the
// usual rate one and a half second, where it is fresh for one.
constexpr std::uint64_t freshened_later = 50;

std::uint64_t below(std::mt19937_64& dice, std::uint64_t limit) {
    return std::uniform_int_distribution<std::uint64_t>{0, limit - 1}(dice);
}

// A beat of so many a second; one that falls behind catches up for a tenth of a second, no more.
class beat {
public:
    explicit beat(double rate)
        : step_{std::chrono::duration_cast<steady::duration>(
              std::chrono::duration<double>{1 / rate})} {}
    void wait() {
        const auto now = steady::now();
        next_ = std::max(next_ + step_, now - std::chrono::milliseconds{100});
        if (next_ > now) {
            std::this_thread::sleep_until(next_);
        }
    }

private:
    steady::duration step_;
    steady::time_point next_ = steady::now();
};

}  // namespace

void sightings::keep(const std::string& in_words) {
    constexpr std::size_t enough = 20;
    const std::lock_guard lock{guard_};
    if (words_.size() < enough) {
        words_.push_back(in_words);
    }
}

void sightings::fault(ruling what, const std::string& in_words) {
    switch (what) {
    case ruling::right: return;
    case ruling::stale: stale.fetch_add(1); break;
    case ruling::wrong: wrong.fetch_add(1); break;
    }
    keep((what == ruling::stale ? "stale: " : "wrong: ") + in_words);
}

void sightings::broke_off(const std::string& in_words) {
    broken.fetch_add(1);
    keep("broke off: " + in_words);
}

void sightings::failure(const std::string& in_words) {
    failed.fetch_add(1);
    keep("failed: " + in_words);
}

std::vector<std::string> sightings::words() const {
    const std::lock_guard lock{guard_};
    return words_;
}

// One thread's connection, made anew when it broke.
struct load::asking {
    const proxy_process& of;
    std::optional<client> connection = {};

    /// Nothing when nobody listens.
    response ask(const std::string& raw) {
        try {
            if (!connection) {
                connection.emplace(of.port());
            }
            auto out = connection->ask(raw);
            if (!out.complete() || lower(out.get("Connection")) == "close") {
                connection.reset();
            }
            return out;
        } catch (const std::runtime_error&) {
            connection.reset();
            return {};
        }
    }
};

load::load(const proxy_process& on,
           catalogue& what,
           ledger& owed,
           sightings& seen,
           cursors& at,
           const load_options& options,
           std::uint64_t seed)
    : program_{on},
      catalogue_{what},
      ledger_{owed},
      seen_{seen},
      at_{at},
      options_{options},
      log_before_{owed.log()} {
    for (unsigned i = 0; i < options.threads; ++i) {
        threads_.emplace_back([this, seed, i] { ask_all(mix(seed + i)); });
    }
    if (options.large_rate > 0) {
        threads_.emplace_back([this, seed] { ask_large(mix(seed + 100)); });
    }
    for (unsigned i = 0; i < 2 && options.change_rate > 0; ++i) {
        threads_.emplace_back([this, seed, i] { change_all(mix(seed + 200 + i)); });
    }
    threads_.emplace_back([this] { watch(); });
}

load::~load() {
    join();
}

void load::join() {
    ending_ = true;
    stop_ = true;
    for (auto& one : threads_) {
        if (one.joinable()) {
            one.join();
        }
    }
}

// What the store says, ten times a second.
void load::watch() {
    while (!stop_) {
        try {
            const auto asked = steady::now();
            auto figures = figures_of(program_);
            ledger_.log_at(log_before_ + figures.written);
            ledger_.written_until(asked - std::chrono::duration_cast<steady::duration>(
                                              std::chrono::duration<double>{figures.behind}));
            if (figures.skipped != skipped_) {
                ledger_.skipped(looked_, steady::now());
            }
            skipped_ = figures.skipped;
            looked_ = asked;
            const std::lock_guard lock{guard_};
            samples_.push_back({steady::now(), std::move(figures)});
            if (samples_.size() > 12) {
                samples_.pop_front();
            }
        } catch (const std::exception& what) {
            if (!ending_) {
                seen_.failure(what.what());
            }
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{100});
    }
}

void load::settle(std::optional<steady::time_point> killed) {
    for (const auto& one : told_) {
        auto& changed = catalogue_.own(one.url);
        if (!killed || one.when + std::chrono::seconds{1} <= *killed) {
            changed.acknowledge(one.number);
        } else {
            seen_.withdrawn.fetch_add(1);
        }
        changed.told = 0;
    }
    told_.clear();
}

double load::pace() const {
    const std::lock_guard lock{guard_};
    if (samples_.size() < 2) {
        return 0;
    }
    const auto& first = samples_.front();
    const auto& last = samples_.back();
    const std::chrono::duration<double> took = last.when - first.when;
    return static_cast<double>(last.figures.puts - first.figures.puts) / took.count();
}

store_figures load::last() const {
    const std::lock_guard lock{guard_};
    return samples_.empty() ? store_figures{} : samples_.back().figures;
}

std::pair<std::uint32_t, unsigned> load::next_url(engine& dice) {
    const auto pick = [&](kind what, std::uint64_t number) {
        return catalogue_.first_of(what) +
               static_cast<std::uint32_t>(number % catalogue_.count_of(what));
    };
    const auto roll = below(dice, 100);
    if (roll < 4) {
        const auto number = at_.varied.fetch_add(1);
        return {pick(kind::varied, number / flavours), static_cast<unsigned>(number % flavours)};
    }
    if (roll < 8) {
        const auto number = at_.freshened.fetch_add(1);
        const auto late = number % 2 == 0 || number / 2 < freshened_later ? 0 : freshened_later;
        return {pick(kind::freshened, number / 2 - late), 0};
    }
    if (roll < 14) {
        return {pick(kind::small, below(dice, popular)), 0};
    }
    if (roll < 18) {
        return {recent_url(dice), 0};
    }
    return {pick(kind::small, at_.small.fetch_add(1)), 0};
}

// A small URL that was asked for within the last seconds.
std::uint32_t load::recent_url(engine& dice) const {
    const auto made = at_.small.load();
    const auto back = below(dice, std::clamp<std::uint64_t>(made, 1, 3'000));
    const auto number = made - std::min(made, back + 1);
    return catalogue_.first_of(kind::small) +
           static_cast<std::uint32_t>(number % catalogue_.count_of(kind::small));
}

void load::ask_all(std::uint64_t seed) {
    engine dice{seed};
    asking by{program_};
    beat pace{options_.rate / options_.threads};
    while (!stop_) {
        const auto [url, flavour] = next_url(dice);
        const bool varied = catalogue_.kind_of(url) == kind::varied;
        ask(by, url, flavour, varied ? "X-Flavour: " + std::to_string(flavour) + "\r\n" : "");
        pace.wait();
    }
}

void load::ask_large(std::uint64_t seed) {
    engine dice{seed};
    asking by{program_};
    beat pace{options_.large_rate};
    const auto first = catalogue_.first_of(kind::large);
    const auto all = catalogue_.count_of(kind::large) + catalogue_.count_of(kind::chunked);
    while (!stop_) {
        const auto number = at_.large.fetch_add(1);
        // 7 goes through all of them when `all` is no multiple of it: both kinds alternate.
        const auto at = static_cast<std::uint32_t>(number * 7 % all);
        ask(by, first + at, 0, "");
        seen_.large.fetch_add(1);
        if (below(dice, 3) == 0 && !stop_) {
            const auto from = below(dice, 250'000);
            ask(by,
                first + at,
                0,
                "Range: bytes=" + std::to_string(from) + "-" +
                    std::to_string(from + below(dice, 200'000)) + "\r\n");
        }
        pace.wait();
    }
}

void load::ask(asking& by, std::uint32_t url, unsigned flavour, std::string_view fields) {
    const auto floor = catalogue_.floor(url);
    const auto begun = ledger_.log();
    const auto path = catalogue_.path_of(url);
    const auto answer = by.ask(
        absolute_request("GET", "http://" + options_.authority + path, fields));
    if (answer.status == 200 || answer.status == 206) {
        const auto judged = catalogue_.judge(url, flavour, answer, floor);
        seen_.fault(judged.what, path + ": " + judged.why);
        if (!answer.complete()) {
            if (!ending_) {
                seen_.failure(path + ": " + std::string{to_string(answer.end)} + " after " +
                              std::to_string(answer.body.size()) + " bytes");
            }
            return;
        }
        seen_.replies.fetch_add(1, std::memory_order_relaxed);
        const auto how = cache_status_of(answer);
        if (how.hit && how.fwd.empty()) {
            seen_.hits.fetch_add(1, std::memory_order_relaxed);
        } else {
            seen_.from_origin.fetch_add(1, std::memory_order_relaxed);
        }
        // Asked for while a change was on its way to the proxy, it may be met by that change.
        const bool settled = judged.seen == floor;
        if (how.fwd_status == "304") {
            seen_.validated.fetch_add(1, std::memory_order_relaxed);
            if (settled && catalogue_.kind_of(url) == kind::freshened) {
                ledger_.freshened(url, judged.seen);
            }
        } else if ((how.stored || how.detail == "to-disk") && answer.status == 200) {
            ledger_.admitted(url, flavour, judged.seen, settled, begun);
        }
    } else if (!ending_) {
        seen_.failure(path + ": status " + std::to_string(answer.status) + " " + answer.body);
    }
}

void load::change_all(std::uint64_t seed) {
    engine dice{seed};
    asking by{program_};
    beat pace{options_.change_rate / 2};
    while (!stop_) {
        pace.wait();
        if (!change(by, dice) && ending_) {
            return;
        }
    }
}

int load::tell(asking& by,
               std::string_view method,
               std::string_view path,
               std::string_view fields) {
    if (options_.wrong == sabotage::stale) {
        return 200;
    }
    const auto answer = by.ask(
        absolute_request(method, "http://" + options_.authority + std::string{path}, fields));
    if (answer.complete() && answer.status == 504 && method == "PURGE") {
        seen_.unkept.fetch_add(1);  // it holds, but the disk was too slow to keep it in time
    } else if (answer.status != 200 && answer.status != 204 && answer.status != 404 && !ending_) {
        seen_.failure(std::string{method} + " " + std::string{path} + ": status " +
                      std::to_string(answer.status) + " " + answer.body);
    }
    return answer.complete() ? answer.status : 0;
}

// The origin changes first; the floor rises when the proxy has said that it knows.
bool load::change(asking& by, engine& dice) {
    const auto roll = below(dice, 100);
    const bool large = below(dice, 40) == 0;
    const auto url = large ? catalogue_.first_of(kind::large) +
                                 static_cast<std::uint32_t>(
                                     below(dice, catalogue_.count_of(kind::large)))
                           : recent_url(dice);
    const auto carry_out = [&](count& changed,
                               std::atomic<std::uint64_t>& counter,
                               std::string_view method,
                               const std::string& path,
                               const std::string& fields) {
        const auto number = changed.change();
        const auto status = tell(by, method, path, fields);
        if (status != 200 && status != 204 && status != 404) {
            return false;
        }
        if (&counter == &seen_.unsafe) {
            changed.tell(number);
            const std::lock_guard lock{guard_};
            told_.push_back({url, number, steady::now()});
        } else {
            changed.acknowledge(number);
        }
        counter.fetch_add(1, std::memory_order_relaxed);
        return true;
    };
    const auto path = catalogue_.path_of(url);
    if (roll < 45) {
        return carry_out(catalogue_.own(url), seen_.hard, "PURGE", path, "");
    }
    if (roll < 60) {
        return carry_out(catalogue_.own(url), seen_.soft, "PURGE", path, "Purge: soft\r\n");
    }
    if (roll < 80) {
        return carry_out(catalogue_.own(url), seen_.unsafe, "POST", path, "Content-Length: 0\r\n");
    }
    const std::string softly = below(dice, 3) == 0 ? ", soft" : "";
    if (roll < 90) {
        const auto group = catalogue::group_of(url);
        return carry_out(catalogue_.group(group),
                         seen_.prefix,
                         "PURGE",
                         "/g" + std::to_string(group) + "/",
                         "Purge: prefix" + softly + "\r\n");
    }
    const auto tag = catalogue::tag_of(url);
    return carry_out(catalogue_.tag(tag),
                     seen_.tag,
                     "PURGE",
                     "/",
                     "Surrogate-Key: t" + std::to_string(tag) +
                         (softly.empty() ? "\r\n" : "\r\nPurge: soft\r\n"));
}

}  // namespace reprise::tests::crash
