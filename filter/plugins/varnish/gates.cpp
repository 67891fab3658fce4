// See gates.hpp.

#include "filter/plugins/varnish/gates.hpp"

extern "C" {
#include <VSC_reprise.h>
}

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>
#include <vector>

namespace reprise::varnish {

namespace {

using std::chrono::seconds;

/// All that VCLs have open. Never destroyed: a child that ends still serves while its libraries are told so.
struct registry {
    std::mutex mutex;
    std::vector<std::weak_ptr<gate>> gates;  ///< of each name, what served last is last

    /// @pre the mutex is held
    std::vector<std::shared_ptr<gate>> open() {
        std::erase_if(gates, [](const auto& one) { return one.expired(); });
        std::vector<std::shared_ptr<gate>> out;
        for (const auto& one : gates) {
            if (auto held = one.lock()) {
                out.push_back(std::move(held));
            }
        }
        return out;
    }

    /// It serves now. @pre the mutex is held; it is among the gates
    void make_last(const std::shared_ptr<gate>& one) noexcept {
        const auto at = std::find_if(gates.begin(), gates.end(), [&one](const auto& each) {
            return !each.owner_before(one) && !one.owner_before(each);  // locks none: nor ends one
        });
        std::rotate(at, at + 1, gates.end());
    }
};

registry& all() {
    static auto* const one = new registry;
    return *one;
}

void set(std::uint64_t& gauge, double value) noexcept {
    std::atomic_ref{gauge}.store(static_cast<std::uint64_t>(std::llround(std::max(value, 0.0))),
                                 std::memory_order_relaxed);
}

constexpr double millionths = 1e6;

bool is_letter(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

reprise_admission_options judged(const gate_options& given) {
    reprise_admission_options options = REPRISE_ADMISSION_OPTIONS_INIT;
    reprise_error error = REPRISE_ERROR_INIT;
    if (reprise_admission_parse(&options, given.words.c_str(), &error) != REPRISE_OK) {
        throw bad_option{error.text};
    }
    constexpr std::size_t longest_name = 64;
    if (given.name.empty() || given.name.size() > longest_name ||
        !std::all_of(given.name.begin(), given.name.end(), is_letter)) {
        throw bad_option{"name='" + given.name.substr(0, longest_name) +
                         "': right would be 1 to 64 letters, digits, - and _"};
    }
    if (!given.state.empty() && given.state.front() != '/') {
        throw bad_option{"state='" + given.state +
                         "': right would be a path from the root, such as "
                         "/var/lib/varnish-reprise/" +
                         given.name};
    }
    constexpr seconds longest_period{1'000'000};
    if (given.save < seconds{1} || given.save > longest_period) {
        throw bad_option{"save is " + std::to_string(given.save.count()) +
                         " seconds: it must be 1 to 1,000,000"};
    }
    return options;
}

}  // namespace

ledger::ledger(const std::string& name)
    : counters_{VSC_reprise_New(nullptr, &segment_, "%s", name.c_str())} {
    if (counters_ == nullptr) {
        throw bad_option{"varnishstat has no room for the counters of " + name};
    }
}

ledger::~ledger() {
    VSC_reprise_Destroy(&segment_);
}

gate::gate(const gate_options& given,
           const reprise_admission_options& read,
           std::shared_ptr<ledger> account)
    : options_{read},
      name_{given.name},
      state_{given.state},
      ledger_{std::move(account)},
      period_{given.save} {
    options_.state = state_.empty() ? nullptr : state_.c_str();
    reprise_error error = REPRISE_ERROR_INIT;
    if (reprise_admission_open(&options_, std::time(nullptr), &filter_, &error) != REPRISE_OK) {
        throw bad_option{error.text};
    }
    if (error.code != REPRISE_OK) {
        say("admission " + given.name + ": " + error.text);
    }
    show_figures();
    try {
        thread_ = std::thread{[this] { keep(); }};
    } catch (...) {
        reprise_admission_close(filter_);
        throw;
    }
}

gate::~gate() {
    {
        const std::scoped_lock hold{waiting_};
        is_over_ = true;
    }
    wakes_.notify_one();
    thread_.join();
    try {
        save();
    } catch (...) {  // no memory for a sentence: the state is what was saved last
    }
    try {
        give_back();
    } catch (...) {  // no memory for a list: the next gate that is opened finds it
    }
    reprise_admission_close(filter_);
}

/// What served last of those that are left of this name has the state and the ledger again. Where one was opened since nobody could
/// have this any more, that one serves, and writes its state once more: this one's end may have written over it.
void gate::give_back() {
    if (is_retired_) {
        return;
    }
    std::vector<std::shared_ptr<gate>>
        open;  // the last of one may be among them: its end locks again
    const std::scoped_lock hold{all().mutex};
    open = all().open();
    const auto before = std::find_if(
        open.rbegin(), open.rend(), [this](const auto& one) { return one->name() == name_; });
    if (before != open.rend()) {
        (*before)->serve_again();
    }
}

bool gate::is_as(const reprise_admission_options& wanted, const std::string& state) const noexcept {
    return options_.objects == wanted.objects && options_.age == wanted.age &&
           options_.rate == wanted.rate && options_.hits == wanted.hits && state_ == state;
}

void gate::save_every(seconds period) noexcept {
    period_ = period;
}

void gate::save() {
    const std::scoped_lock hold{saving_};
    reprise_admission_figures read = REPRISE_ADMISSION_FIGURES_INIT;
    reprise_admission_read(filter_, std::time(nullptr), &read);
    const auto came = read.first_sights + read.repeats + read.refreshes;
    if (state_.empty() || is_retired_ || came == saved_at_) {
        return;
    }
    reprise_error error = REPRISE_ERROR_INIT;
    if (reprise_admission_save(filter_, nullptr, &error) == REPRISE_OK) {
        saved_at_ = came;
        last_failure_.clear();
        count(counters().saves);
        return;
    }
    count(counters().save_failures);
    if (last_failure_ != error.text) {
        last_failure_ = error.text;
        say("what was seen is not saved: " + last_failure_);
    }
}

void gate::retire() {
    save();
    is_retired_ = true;
}

void gate::serve_again() {
    {
        const std::scoped_lock hold{saving_};
        saved_at_ = never;
        is_retired_ = false;
    }
    save();
}

/// The thread: nobody but whoever ends it waits for anything that it does.
void gate::keep() {
    using clock = std::chrono::steady_clock;
    auto saved = clock::now();
    std::unique_lock hold{waiting_};
    while (!wakes_.wait_for(hold, seconds{1}, [this] { return is_over_; })) {
        hold.unlock();
        try {
            show_figures();
            if (clock::now() - saved >= period_.load()) {
                save();
                saved = clock::now();
            }
        } catch (...) {  // no memory for a sentence: the next turn tries again
        }
        hold.lock();
    }
}

void gate::show_figures() noexcept {
    if (is_retired_) {
        return;
    }
    reprise_admission_figures read = REPRISE_ADMISSION_FIGURES_INIT;
    reprise_admission_read(filter_, std::time(nullptr), &read);
    auto& shown = counters();
    set(shown.refreshes, static_cast<double>(read.refreshes));
    set(shown.first_sights, static_cast<double>(read.first_sights));
    set(shown.repeats, static_cast<double>(read.repeats));
    set(shown.young_fill, read.young_fill * millionths);
    set(shown.old_fill, read.old_fill * millionths);
    set(shown.strangers_known, read.strangers_known * millionths);
    set(shown.remembers_for, static_cast<double>(read.remembers_for));
    set(shown.memory, static_cast<double>(read.memory));
}

std::shared_ptr<gate> open_gate(const gate_options& given) {
    const auto wanted = judged(given);
    std::vector<std::shared_ptr<gate>> open;  // as above; and what follows is of these
    std::shared_ptr<gate> serves;
    std::shared_ptr<gate> same;
    std::shared_ptr<ledger> account;  // of any of the name: the one that serves may be at its end
    const std::scoped_lock hold{all().mutex};
    open = all().open();
    for (const auto& one : open) {
        if (one->name() == given.name) {
            account = one->account();
            serves = one->is_retired() ? serves : one;
            same = one->is_as(wanted, given.state) ? one : same;
        } else if (!given.state.empty() && one->state() == given.state) {
            throw bad_option{"state='" + given.state + "' is that of admission " + one->name() +
                             ": right would be a file of its own"};
        }
    }
    if (same) {
        if (same != serves) {
            if (serves) {  // none, where the one before could not be given back
                serves->retire();
            }
            all().make_last(same);
            same->serve_again();
        }
        same->save_every(given.save);
        return same;
    }
    all().gates.reserve(all().gates.size() + 1);
    if (serves) {
        serves->retire();
    }
    try {
        auto made = std::make_shared<gate>(
            given, wanted, account ? account : std::make_shared<ledger>(given.name));
        all().gates.push_back(made);  // there is room: the gate's end would lock the mutex again
        return made;
    } catch (...) {
        if (serves) {
            try {
                serves->serve_again();
            } catch (...) {  // it serves; only its save is for later
            }
        }
        throw;
    }
}

namespace {

/// A child that is stopped, or whose varnishd is gone, ends by exit(), while its threads still serve; VCL is told nothing.
[[gnu::destructor]] void save_at_the_end() noexcept {
    try {
        std::vector<std::shared_ptr<gate>> open;
        const std::scoped_lock hold{all().mutex};
        open = all().open();
        for (const auto& one : open) {
            one->save();
        }
    } catch (...) {  // what was saved last is what there is
    }
}

}  // namespace

}  // namespace reprise::varnish
