#include "tests/crash/checker.hpp"

#include <algorithm>
#include <atomic>
#include <span>
#include <thread>
#include <vector>

namespace reprise::tests::crash {

namespace {

struct one_check {
    std::uint32_t url;
    unsigned flavour;
};

constexpr unsigned at_once = 4;        // connections
constexpr std::size_t pipelined = 16;  // requests on each
constexpr std::size_t share = 512;     // what a thread takes of them all, and a connection carries

class check {
public:
    check(const proxy_process& started,
          const catalogue& what,
          sightings& seen,
          const std::string& authority)
        : program_{started},
          catalogue_{what},
          seen_{seen},
          authority_{authority} {}

    /// Asks for these; returns those that were not there.
    std::vector<one_check> ask(std::span<const one_check> all) {
        std::vector<std::vector<one_check>> absent(at_once);
        std::vector<std::thread> threads;
        std::atomic<std::size_t> next{0};
        for (unsigned i = 0; i < at_once; ++i) {
            threads.emplace_back([&, i] {
                try {
                    for (;;) {
                        const auto from = next.fetch_add(share);
                        if (from >= all.size()) {
                            return;
                        }
                        ask_some(all.subspan(from, std::min(share, all.size() - from)), absent[i]);
                    }
                } catch (const std::exception& what) {
                    seen_.failure(std::string{"while checking: "} + what.what());
                }
            });
        }
        std::vector<one_check> out;
        for (unsigned i = 0; i < at_once; ++i) {
            threads[i].join();
            out.insert(out.end(), absent[i].begin(), absent[i].end());
        }
        return out;
    }

    [[nodiscard]] std::uint64_t ranges() const { return ranges_.load(); }

private:
    [[nodiscard]] std::string request(const one_check& one, std::string_view fields) const {
        auto lines = "Cache-Control: only-if-cached\r\n" + std::string{fields};
        if (catalogue_.kind_of(one.url) == kind::varied) {
            lines += "X-Flavour: " + std::to_string(one.flavour) + "\r\n";
        }
        return absolute_request("GET", "http://" + authority_ + catalogue_.path_of(one.url), lines);
    }

    // A body that breaks off ends the connection: what was asked behind it is asked again.
    void ask_some(std::span<const one_check> some, std::vector<one_check>& absent) {
        while (!some.empty()) {
            auto by = program_.connect();
            const auto answered = ask_on(by, some, absent);
            some = some.subspan(answered);
        }
    }

    // How many were answered, one that broke off included.
    std::size_t ask_on(client& by,
                       std::span<const one_check> some,
                       std::vector<one_check>& absent) {
        for (std::size_t i = 0; i < some.size(); i += pipelined) {
            const auto batch = some.subspan(i, std::min(pipelined, some.size() - i));
            std::string raw;
            for (const auto& one : batch) {
                raw += request(one, "");
            }
            by.send(raw);
            for (std::size_t j = 0; j < batch.size(); ++j) {
                if (!take(batch[j], by.read(), &absent)) {
                    return i + j + 1;
                }
            }
            for (std::size_t j = 0; j < batch.size(); ++j) {
                if (!ask_part(by, batch[j])) {
                    return i + batch.size();
                }
            }
        }
        return some.size();
    }

    // Of what is large, a part as well: it is read without what lies before it.
    bool ask_part(client& by, const one_check& one) {
        const auto what = catalogue_.kind_of(one.url);
        if (what != kind::large && what != kind::chunked) {
            return true;
        }
        const auto dice = mix(one.url + seen_.replies.load());
        const auto from = dice % 290'000;
        const auto to = from + dice / 7 % 300'000;
        ranges_.fetch_add(1);
        const auto fields = "Range: bytes=" + std::to_string(from) + "-" + std::to_string(to) +
                            "\r\n";
        return take(one, by.ask(request(one, fields)), nullptr);
    }

    // False when the connection is of no more use.
    bool take(const one_check& one, const response& answer, std::vector<one_check>* absent) {
        const auto path = catalogue_.path_of(one.url);
        if (answer.status != 200 && answer.status != 206) {
            if (absent != nullptr) {
                absent->push_back(one);
            }
            if (answer.status == 0 && answer.was_reset) {
                seen_.broke_off(path + " before its head");  // a reset takes what was not read yet
            } else if (answer.status != 504) {
                seen_.failure(path + ", only if cached: status " + std::to_string(answer.status) +
                              ", " + std::string{to_string(answer.end)});
            }
            return answer.complete();
        }
        const auto judged = catalogue_.judge(
            one.url, one.flavour, answer, catalogue_.floor(one.url));
        seen_.fault(judged.what, path + ", only if cached: " + judged.why);
        if (answer.complete()) {
            return true;
        }
        seen_.broke_off(path + " after " + std::to_string(answer.body.size()) + " bytes");
        if (absent != nullptr) {
            absent->push_back(one);
        }
        return false;
    }

    const proxy_process& program_;
    const catalogue& catalogue_;
    sightings& seen_;
    const std::string& authority_;
    std::atomic<std::uint64_t> ranges_{0};
};

}  // namespace

check_figures& check_figures::operator+=(const check_figures& other) noexcept {
    asked += other.asked;
    found += other.found;
    owed += other.owed;
    owed_found += other.owed_found;
    freshened += other.freshened;
    freshened_found += other.freshened_found;
    large += other.large;
    large_found += other.large_found;
    oldest_lost = std::max(oldest_lost, other.oldest_lost);
    ranges += other.ranges;
    return *this;
}

check_figures check_all(const proxy_process& started,
                        const catalogue& what,
                        ledger& owed,
                        sightings& seen,
                        const std::string& authority,
                        const ledger::moment& at) {
    std::vector<one_check> all;
    check_figures out;
    std::vector<bool> is_owed(std::size_t{what.urls()} * flavours);
    for (std::uint32_t url = 0; url < what.urls(); ++url) {
        for (unsigned flavour = 0; flavour < flavours; ++flavour) {
            if (owed.was_stored(url, flavour)) {
                all.push_back({url, flavour});
                is_owed[std::size_t{url} * flavours + flavour] = owed.is_owed(url, flavour, at);
            }
        }
    }
    check asks{started, what, seen, authority};
    auto absent = asks.ask(all);
    if (!wait_until_loaded(started)) {
        seen.failure("the store did not load");
    }
    absent = asks.ask(absent);

    const auto add = [&](const one_check& one,
                         std::uint64_t& any,
                         std::uint64_t& refreshed,
                         std::uint64_t& big) {
        if (!is_owed[std::size_t{one.url} * flavours + one.flavour]) {
            return;
        }
        switch (what.kind_of(one.url)) {
        case kind::freshened: ++refreshed; return;
        case kind::large:
        case kind::chunked: ++big; break;
        case kind::small:
        case kind::varied: break;
        }
        ++any;
    };
    for (const auto& one : all) {
        add(one, out.owed, out.freshened, out.large);
    }
    check_figures missing;
    for (const auto& one : absent) {
        add(one, missing.owed, missing.freshened, missing.large);
        if (is_owed[std::size_t{one.url} * flavours + one.flavour]) {
            out.oldest_lost = std::max(out.oldest_lost,
                                       std::chrono::duration_cast<std::chrono::milliseconds>(
                                           owed.age(one.url, one.flavour, at)));
        }
        owed.lost(one.url, one.flavour);
    }
    out.asked = all.size();
    out.found = all.size() - absent.size();
    out.owed_found = out.owed - missing.owed;
    out.freshened_found = out.freshened - missing.freshened;
    out.large_found = out.large - missing.large;
    out.ranges = asks.ranges();
    return out;
}

}  // namespace reprise::tests::crash
