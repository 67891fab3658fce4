// Eight worker threads of Varnish, while VCLs come and go that share a filter by name, its figures are shown and its state is saved:
// what they share is shared well. ThreadSanitizer's build is what this is for.

#include "filter/plugins/varnish/gates.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <reprise/admission.h>
#include <string>
#include <thread>
#include <vector>

extern "C" {
#include <VSC_reprise.h>
}

// ---- as much of Varnish as it takes ----

namespace {

std::atomic<int> ledgers_open{0};
std::atomic<int> failures_said{0};

}  // namespace

extern "C" {

// NOLINTNEXTLINE: its name is Varnish's
struct VSC_reprise* VSC_reprise_New(struct vsmw_cluster*,
                                    struct vsc_seg** segment,
                                    const char*,
                                    ...) {
    auto* const made = new VSC_reprise{};
    *segment = reinterpret_cast<vsc_seg*>(made);
    ++ledgers_open;
    return made;
}
// NOLINTNEXTLINE
void VSC_reprise_Destroy(struct vsc_seg** segment) {
    delete reinterpret_cast<VSC_reprise*>(*segment);
    *segment = nullptr;
    --ledgers_open;
}

}  // extern "C"

namespace reprise::varnish {

// That a state of other options is not used is as it should be, and said as often as they change.
void say(const std::string& what) {
    failures_said += what.find("made for another number of objects") == what.npos ? 1 : 0;
}

namespace test {

namespace {

constexpr unsigned workers = 8;

std::uint64_t read(const std::uint64_t& counter) {
    return std::atomic_ref{const_cast<std::uint64_t&>(counter)}.load();
}

reprise_key key_of(const gate& of, std::uint64_t i) {
    const auto text = std::to_string(i);
    return reprise_admission_key(of.filter(), text.data(), text.size());
}

}  // namespace

TEST_SUITE("filter/plugins/varnish/threads/shared") {
    TEST_CASE("requests go on while VCLs come and go, and what was seen is known and saved") {
        constexpr std::uint64_t rounds = 3'000;
        const tests::temp_dir folder;
        const gate_options wanted{.words = "objects=100k",
                                  .state = folder.file("seen"),
                                  .save = std::chrono::seconds{1},
                                  .name = "all"};
        std::uint64_t not_stored = 0, saves = 0;
        {
            // The VCL that is in use. Varnish keeps the one before for as long as a request has it.
            std::mutex guard;
            auto in_use = open_gate(wanted);
            const auto current = [&] {
                const std::scoped_lock hold{guard};
                return in_use;
            };
            std::atomic<unsigned> busy{workers};
            std::vector<std::thread> threads;
            for (unsigned which = 0; which < workers; ++which) {
                threads.emplace_back([&, which] {
                    for (std::uint64_t i = 0; i < rounds; ++i) {
                        const auto gate = current();
                        const auto key = key_of(*gate, which * rounds + i);
                        const auto before = reprise_admission_peek(gate->filter(), key);
                        (void)reprise_admission_note(gate->filter(), key, std::time(nullptr));
                        if (reprise_admission_wanted(gate->filter(), before) == 0) {
                            count(gate->counters().objects_not_stored);
                            count(gate->counters().bytes_not_stored, 100);
                        }
                        reprise_admission_refresh(
                            gate->filter(), key_of(*gate, 1), std::time(nullptr));
                    }
                    --busy;
                });
            }
            auto turn = 0U;
            do {  // however soon the others are done
                auto next = wanted;
                next.save = std::chrono::seconds{1 + turn % 2};
                const auto same = open_gate(next);
                CHECK(same == current());
                same->save();
                // Another name's, and another of options of its own, as a VCL has it that is thrown away again.
                next.name = "other";
                next.state = folder.file("other");
                const auto other = open_gate(next);
                next.words = turn % 2 == 0 ? "objects=20k" : "objects=30k";
                const auto larger = open_gate(next);
                CHECK(other->is_retired());
                (void)reprise_admission_note(
                    larger->filter(), key_of(*larger, turn), std::time(nullptr));
                ++turn;
            } while (busy > 0);
            for (auto& each : threads) {
                each.join();
            }
            const auto gate = current();
            gate->save();
            not_stored = read(gate->counters().objects_not_stored);
            CHECK(not_stored >
                  workers * rounds - 50);  // strangers taken for known: one in a thousand at most
            CHECK(read(gate->counters().bytes_not_stored) == 100 * not_stored);
            saves = read(gate->counters().saves);
            CHECK(saves > 0);
            CHECK(read(gate->counters().save_failures) == 0);
        }
        CHECK(ledgers_open == 0);
        const auto again = open_gate(wanted);
        std::uint64_t known = 0;
        for (std::uint64_t i = 0; i < workers * rounds; ++i) {
            known += reprise_admission_peek(again->filter(), key_of(*again, i));
        }
        CHECK(known == workers * rounds);
        CHECK(failures_said == 0);
    }

    TEST_CASE("VCLs that differ under one name hand ledger and state to and fro, on any threads") {
        const tests::temp_dir folder;
        const gate_options first{.words = "objects=10k",
                                 .state = folder.file("seen"),
                                 .save = std::chrono::seconds{1},
                                 .name = "shared"};
        const auto kept = open_gate(first);
        auto second = first;
        second.words = "objects=11k";
        const auto also_kept = open_gate(second);
        std::vector<std::thread> threads;
        for (unsigned which = 0; which < workers; ++which) {
            threads.emplace_back([&, which] {
                for (unsigned round = 0; round < 20; ++round) {
                    auto mine = first;
                    mine.words = "objects=" + std::to_string(10 + (which + round) % 3) + "k";
                    const auto gate = open_gate(mine);
                    for (std::uint64_t i = 0; i < 20; ++i) {
                        (void)reprise_admission_note(
                            gate->filter(), key_of(*gate, which * 100 + i), std::time(nullptr));
                        count(gate->counters().objects_admitted);
                    }
                }
            });
        }
        for (auto& each : threads) {
            each.join();
        }
        CHECK(read(kept->counters().objects_admitted) == workers * 20 * 20);
        CHECK(ledgers_open == 1);
        CHECK(kept->is_retired() != also_kept->is_retired());
        CHECK(open_gate(first) == kept);
        CHECK_FALSE(kept->is_retired());
        CHECK(also_kept->is_retired());
    }

    TEST_CASE("after a rollback, what a third VCL gives up goes to the gate before it") {
        const tests::temp_dir folder;
        gate_options wanted{.words = "objects=10k",
                            .state = folder.file("seen"),
                            .save = std::chrono::seconds{1},
                            .name = "rolled-back"};
        const auto open = [&wanted](const char* words) {
            wanted.words = words;
            return open_gate(wanted);
        };
        const auto first = open("objects=10k");
        const auto second = open("objects=11k");
        CHECK(open("objects=10k") == first);
        {
            const auto third = open("objects=12k");
            CHECK(first->is_retired());
        }
        CHECK_FALSE(first->is_retired());
        CHECK(second->is_retired());
    }
}

}  // namespace test

}  // namespace reprise::varnish
