#pragma once
// Admission filters by name, which VCLs share: a VCL that is loaded anew finds what the one before it remembers.
//
// A gate lives as long as a VCL has it, and has a thread of its own, which copies its figures to varnishstat each second and
// saves its state now and then, so that no request does. What the last VCL gives up is saved and ended; a child that ends
// in good order saves all of them once more. The ledger is the name's: a gate of other options takes it over, and the state;
// the one that served before it, which VCLs may still have, has both again when that ends. So of a name one gate serves, the
// last to be opened or asked for anew.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <reprise/admission.h>
#include <stdexcept>
#include <string>
#include <thread>

struct VSC_reprise;
struct vsc_seg;

namespace reprise::varnish {

/// A line for the operator: to varnishd's log, by way of the child's stderr, and to varnishlog. Any thread of Varnish.
void say(const std::string& line);

/// Adds to a counter that varnishstat reads.
inline void count(std::uint64_t& counter, std::uint64_t by = 1) noexcept {
    std::atomic_ref{counter}.fetch_add(by, std::memory_order_relaxed);
}

/// What a constructor in VCL was given.
struct gate_options {
    std::string words;  ///< reprise_admission_parse's
    std::string state;  ///< a path from the root, or empty
    std::chrono::seconds save{300};
    std::string name;
};

/// What can't be opened, and what would be right: a sentence without an end of line.
struct bad_option : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A name's counters in varnishstat, REPRISE.name.*.
class ledger {
public:
    explicit ledger(const std::string& name);
    ~ledger();
    ledger(const ledger&) = delete;
    ledger& operator=(const ledger&) = delete;

    VSC_reprise& counters() const noexcept { return *counters_; }

private:
    vsc_seg* segment_ = nullptr;
    VSC_reprise* counters_;
};

class gate {
public:
    /// @throws bad_option
    gate(const gate_options& given,
         const reprise_admission_options& read,
         std::shared_ptr<ledger> account);
    ~gate();
    gate(const gate&) = delete;
    gate& operator=(const gate&) = delete;

    reprise_admission* filter() const noexcept { return filter_; }
    VSC_reprise& counters() const noexcept { return ledger_->counters(); }
    const std::shared_ptr<ledger>& account() const noexcept { return ledger_; }
    const std::string& name() const noexcept { return name_; }
    const std::string& state() const noexcept { return state_; }
    bool is_as(const reprise_admission_options& wanted, const std::string& state) const noexcept;

    void save_every(std::chrono::seconds period) noexcept;
    /// Writes the state, where there is one and anything came since. What fails is said once.
    void save();
    /// Another gate of this name has the state from now on.
    void retire();
    /// The state is this one's again: what another wrote there is overwritten at once.
    void serve_again();
    bool is_retired() const noexcept { return is_retired_; }

private:
    static constexpr std::uint64_t never = ~std::uint64_t{0};

    void keep();
    void give_back();
    void show_figures() noexcept;

    reprise_admission_options options_;
    std::string name_;
    std::string state_;
    std::shared_ptr<ledger> ledger_;
    reprise_admission* filter_ = nullptr;
    std::atomic<std::chrono::seconds> period_;
    std::atomic<bool> is_retired_ = false;
    std::mutex saving_;
    std::string last_failure_;    // under saving_
    std::uint64_t saved_at_ = 0;  // under saving_: how much had come, or never
    std::mutex waiting_;
    std::condition_variable wakes_;
    bool is_over_ = false;  // under waiting_
    std::thread thread_;
};

/// Threads: any, here and where the last of a gate is given up; Varnish's is the one that loads and discards VCLs.
/// The gate of this name with these options, opened where there is none. One whose options are others gives its state over.
/// @throws bad_option
std::shared_ptr<gate> open_gate(const gate_options& given);

}  // namespace reprise::varnish
