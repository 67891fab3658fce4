// How a sibling is kept from being asked for what has gone stale: by deletion, as it is built, or by
// a digest that carries the time: the figures in results/2026-11-26-freshness.md.
//
//     judge_freshness TRACE... [--size 10%]
//
// Two nodes share a trace at random, each with an LRU store. One tells the other what it holds, once
// a second. What the other misses it looks up in what it was told; beside it is what the first one
// really had. The lifetimes of objects are drawn by their keys, evenly by logarithm. The forms:
//
//     never      a key stays listed until it leaves the store
//     deletion   a key leaves the list when it goes stale
//     times      each place has a number of B bits in place of one: until when it is fresh, in units
//                from now, the most of all keys there (Boldi and Vigna, "Mutable strings in Java:
//                design, implementation and lightweight text-search algorithms", 2005, whose compact
//                approximator has the join of a lattice's elements at each place). What a number says is
//                over needs no message. The largest number means "that or later": such a key is told
//                anew when it comes within reach.
//
// News are encoded as siblings send them (filter/news_wire); numbers go beside the places that changed.

#include "filter/bit_words.hpp"
#include "filter/digest.hpp"
#include "filter/key_places.hpp"
#include "filter/news_wire.hpp"
#include "filter/place_sum.hpp"
#include "tools/replay/trace.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <list>
#include <map>
#include <queue>
#include <random>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

using namespace reprise;
using replay::object_number;
using replay::request;

namespace {

constexpr double rate = 0.01;
constexpr std::uint32_t never = ~std::uint32_t{0};
constexpr std::uint32_t begins_at = 3'600;  // so that no number of a time is 0

/// An LRU store of objects that go stale.
class node {
public:
    struct held {
        object_number object = 0;
        std::uint64_t bytes = 0;
        std::uint32_t until = 0;
    };

    explicit node(std::uint64_t bytes) : capacity_{bytes} {}

    /// Fresh until then; 0: not held.
    [[nodiscard]] std::uint32_t until(object_number object) const {
        const auto found = places_.find(object);
        return found == places_.end() ? 0 : found->second->until;
    }
    [[nodiscard]] std::size_t count() const noexcept { return places_.size(); }
    void use(object_number object) { order_.splice(order_.begin(), order_, places_.at(object)); }
    /// `left`, of each object that leaves; the former of its own among them.
    template <class Left>
    void put(const held& fresh, Left&& left) {
        if (const auto found = places_.find(fresh.object); found != places_.end()) {
            drop(found->second, left);
        }
        if (fresh.bytes > capacity_) {
            return;
        }
        order_.push_front(fresh);
        places_[fresh.object] = order_.begin();
        used_ += fresh.bytes;
        while (used_ > capacity_) {
            drop(std::prev(order_.end()), left);
        }
    }

private:
    template <class Left>
    void drop(std::list<held>::iterator one, Left&& left) {
        left(*one);
        used_ -= one->bytes;
        places_.erase(one->object);
        order_.erase(one);
    }

    std::uint64_t capacity_, used_ = 0;
    std::list<held> order_;
    std::unordered_map<object_number, std::list<held>::iterator> places_;
};

/// What one node tells of itself. A key has a number, its time in units; forms of one bit have 1.
class form {
public:
    form(std::string name, filter::bloom_size size, unsigned bits, std::uint32_t unit, bool deletes)
        : name_{std::move(name)},
          bits_{bits},
          unit_{unit},
          deletes_{deletes},
          shape_{filter::digest_layout::standard, size.bits, size.probes},
          kept_(size.bits),
          told_(size.bits),
          words_(filter::words_for(size.bits)) {}

    void came(const filter::key_hash& key, std::uint32_t until, std::uint32_t now) {
        const auto number = number_of(until, now);
        listed_[key.low ^ key.high] = number;
        each_place(key, [&](std::uint64_t place) { ++kept_[place][number]; });
        if (unit_ != 0 && number == never) {
            retell_.push({until - most() * unit_, {key, until}});
        }
        if (deletes_) {
            retell_.push({until, {key, until}});
        }
    }
    void left(const filter::key_hash& key) {
        const auto found = listed_.find(key.low ^ key.high);
        if (found == listed_.end()) {
            return;
        }
        const auto number = found->second;
        listed_.erase(found);
        each_place(key, [&](std::uint64_t place) {
            auto& here = kept_[place];
            if (--here[number] == 0) {
                here.erase(number);
            }
        });
    }

    /// What is due at `now`, and the news of all that changed since the last call.
    template <class Until>
    void tell(std::uint32_t now, Until&& until_of) {
        while (!retell_.empty() && retell_.top().first <= now) {
            const auto [key, until] = retell_.top().second;
            retell_.pop();
            if (until_of(key) != until) {
                continue;  // it left, or was fetched anew
            }
            left(key);
            ++retold_;
            if (!deletes_) {
                came(key, until, now);
            }
        }
        std::vector<std::uint64_t> flipped;
        std::uint64_t numbers = 0;
        for (const auto place : changed_) {
            const auto& here = kept_[place];
            const auto number = here.empty() ? 0 : here.rbegin()->first;
            const bool is_over = unit_ != 0 && told_[place] != never && told_[place] * unit_ <= now;
            // That a number is over the reader sees by itself.
            if (number == told_[place] || (number == 0 && is_over)) {
                continue;
            }
            told_[place] = number;
            words_[place / 64] ^= filter::bit_at(place);
            flipped.push_back(place);
            numbers += number == 0 ? 0 : 1;
        }
        changed_.clear();
        if (flipped.empty()) {
            return;
        }
        std::sort(flipped.begin(), flipped.end());
        filter::digest_stamp stamp;
        stamp.generation.counter = ++counter_;
        const auto wire = filter::encode_news({.shape = shape_,
                                               .stamp = stamp,
                                               .sum = 0,
                                               .base_counter = counter_ - 1,
                                               .base_sum = 0},
                                              {.places = flipped, .names = {}},
                                              words_,
                                              [](std::uint64_t) { return filter::key_hash{}; });
        ++pieces_;
        bytes_ += (wire ? wire->size() : shape_.bits / 8) + (bits_ > 1 ? numbers * bits_ / 8 : 0);
    }

    /// Whether a reader would ask for it.
    [[nodiscard]] bool lists(const filter::key_hash& key, std::uint32_t now) const {
        std::uint32_t least = never;
        filter::for_each_place(
            shape_, key, [&](std::uint64_t place) { least = std::min(least, told_[place]); });
        return least != 0 && (unit_ == 0 || least == never || least * unit_ > now);
    }

    void note(bool asks, bool has) noexcept {
        asked_ += asks ? 1 : 0;
        in_vain_ += asks && !has ? 1 : 0;
        lost_ += has && !asks ? 1 : 0;
        served_ += has && asks ? 1 : 0;
    }
    void print(const std::string& trace, const std::string& lifetimes) const {
        std::printf("| %s | %s | %s | %.1f | %llu | %.2f | %llu | %llu | %llu | %llu |\n",
                    trace.c_str(),
                    lifetimes.c_str(),
                    name_.c_str(),
                    static_cast<double>(shape_.bits) * bits_ / 8 / 1024,
                    static_cast<unsigned long long>(pieces_),
                    static_cast<double>(bytes_) / (1 << 20),
                    static_cast<unsigned long long>(retold_),
                    static_cast<unsigned long long>(served_),
                    static_cast<unsigned long long>(in_vain_),
                    static_cast<unsigned long long>(lost_));
    }

private:
    [[nodiscard]] std::uint32_t most() const noexcept { return (1u << bits_) - 2; }
    // Rounded down: what is about to go stale is not asked for.
    [[nodiscard]] std::uint32_t number_of(std::uint32_t until, std::uint32_t now) const noexcept {
        if (unit_ == 0) {
            return 1;
        }
        const auto number = until / unit_;
        return number > now / unit_ + most() ? never : number;
    }
    template <class Visit>
    void each_place(const filter::key_hash& key, Visit&& visit) {
        filter::for_each_place(shape_, key, [&](std::uint64_t place) {
            visit(place);
            changed_.insert(place);
        });
    }

    struct due {
        filter::key_hash key;
        std::uint32_t until = 0;
    };
    struct later {
        bool operator()(const std::pair<std::uint32_t, due>& a,
                        const std::pair<std::uint32_t, due>& b) const noexcept {
            return a.first > b.first;
        }
    };

    std::string name_;
    unsigned bits_;
    std::uint32_t unit_;  // seconds; 0: a bit says nothing of time
    bool deletes_;
    filter::digest_shape shape_;
    std::vector<std::map<std::uint32_t, std::uint32_t>> kept_;  // keys at a place, by their numbers
    std::vector<std::uint32_t> told_;
    std::vector<std::uint64_t>
        words_;  // for the encoding, which looks at them for its choice alone
    std::unordered_map<std::uint64_t, std::uint32_t> listed_;
    std::unordered_set<std::uint64_t> changed_;
    std::priority_queue<std::pair<std::uint32_t, due>,
                        std::vector<std::pair<std::uint32_t, due>>,
                        later>
        retell_;
    std::uint64_t counter_ = 0, pieces_ = 0, bytes_ = 0, retold_ = 0;
    std::uint64_t asked_ = 0, in_vain_ = 0, lost_ = 0, served_ = 0;
};

struct lifetimes {
    const char* name;
    double least, most;  // seconds
    [[nodiscard]] std::uint32_t of(const filter::key_hash& key) const {
        const auto drawn = static_cast<double>(key.high >> 11) / 9007199254740992.0;
        return static_cast<std::uint32_t>(least * std::pow(most / least, drawn));
    }
};

void judge(const std::string& name,
           const std::vector<request>& all,
           std::uint64_t bytes,
           const lifetimes& fresh) {
    std::mt19937 random{18};
    // As large as its most entries need, which a first pass tells.
    std::size_t most = 1;
    {
        node one{bytes};
        for (const auto& wanted : all) {
            if (random() % 2 == 0) {
                one.put({wanted.object, wanted.bytes, 1}, [](const node::held&) {});
                most = std::max(most, one.count());
            }
        }
    }
    const auto size = filter::digest_size(most, rate);
    std::vector<form> forms;
    forms.emplace_back("never", size, 1, 0, false);
    forms.emplace_back("deletion", size, 1, 0, true);
    forms.emplace_back("times, 4 bits of 60 s", size, 4, 60, false);
    forms.emplace_back("times, 8 bits of 10 s", size, 8, 10, false);
    forms.emplace_back("times, 8 bits of 60 s", size, 8, 60, false);

    node source{bytes}, reader{bytes};
    std::unordered_map<object_number, filter::key_hash> keys;
    std::unordered_map<std::uint64_t, object_number> objects;
    random.seed(18);
    std::uint32_t told_at = begins_at;
    for (const auto& wanted : all) {
        const auto now = wanted.seconds + begins_at;
        for (; told_at < now; ++told_at) {
            for (auto& one : forms) {
                one.tell(told_at, [&](const filter::key_hash& key) {
                    const auto found = objects.find(key.low ^ key.high);
                    return found == objects.end() ? 0 : source.until(found->second);
                });
            }
        }
        keys[wanted.object] = wanted.key;
        objects[wanted.key.low ^ wanted.key.high] = wanted.object;
        auto& asked = random() % 2 == 0 ? source : reader;
        if (asked.until(wanted.object) > now) {
            asked.use(wanted.object);
            continue;
        }
        const auto until = now + fresh.of(wanted.key);
        if (&asked == &reader) {
            const bool has = source.until(wanted.object) > now;
            for (auto& one : forms) {
                one.note(one.lists(wanted.key, now), has);
            }
            reader.put({wanted.object, wanted.bytes, until}, [](const node::held&) {});
            continue;
        }
        source.put({wanted.object, wanted.bytes, until}, [&](const node::held& gone) {
            for (auto& one : forms) {
                one.left(keys.at(gone.object));
            }
        });
        if (source.until(wanted.object) != 0) {
            for (auto& one : forms) {
                one.came(wanted.key, until, now);
            }
        }
    }
    for (const auto& one : forms) {
        one.print(name, fresh.name);
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> paths;
    double share = 10;
    CLI::App app{"What keeps a sibling from being asked for what has gone stale"};
    app.add_option("traces", paths)->required();
    app.add_option("--size", share, "of each store, in percent of the unique bytes");
    CLI11_PARSE(app, argc, argv);
    try {
        std::printf(
            "| trace | lifetimes | form | KiB | pieces | news, MiB | due | served | in vain "
            "| lost |\n|---|---|---|---:|---:|---:|---:|---:|---:|---:|\n");
        for (const auto& path : paths) {
            replay::trace from{{path}, std::nullopt};
            std::vector<request> all;
            for (std::vector<request> some; from.next(some, 65'536), !some.empty();) {
                all.insert(all.end(), some.begin(), some.end());
            }
            const auto began = all.empty() ? 0 : all.front().seconds;
            std::unordered_map<object_number, std::uint64_t> sizes;
            for (auto& one : all) {
                one.seconds -= std::min(one.seconds, began);
                sizes[one.object] = one.bytes;
            }
            double unique = 0;
            for (const auto& [object, bytes] : sizes) {
                unique += static_cast<double>(bytes);
            }
            const auto bytes = static_cast<std::uint64_t>(unique * share / 100);
            auto name = path.substr(path.find_last_of('/') + 1);
            name = name.substr(0, name.find('.'));
            for (const auto& fresh :
                 {lifetimes{"10 s to 10 min", 10, 600}, lifetimes{"1 min to 1 day", 60, 86'400}}) {
                judge(name, all, bytes, fresh);
            }
        }
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "judge_freshness: %s\n", failed.what());
        return 1;
    }
}
