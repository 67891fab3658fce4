// The store against a model of its rules, over operations made from seeds.
//
// The model is a map from URL to the variants in the order they were stored. With ample capacity
// the two agree on every answer and on the account; with a small one the store may have forgotten,
// but whatever it finds is what was put there last.

#include "proxy/cache/memory/memory_tier.hpp"
#include "tests/support/must.hpp"
#include "tests/unit/cache/responses.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace reprise::proxy::cache::test::of_store {

namespace {

constexpr std::array<std::string_view, 3> varies{"", "Cookie", "Cookie, Accept"};

/// A request with one of few cookies and one of few Accept fields.
struct request {
    std::string cookie, accept;

    [[nodiscard]] std::array<http::field, 2> fields() const {
        return {http::field{http::field_id::cookie, "Cookie", cookie},
                http::field{http::field_id::accept, "Accept", accept}};
    }
    /// What a response with this Vary is keyed by.
    [[nodiscard]] std::string selected_by(std::string_view vary) const {
        std::string text{vary};
        text += vary.empty() ? "" : ":" + cookie;
        text += vary == varies[2] ? ":" + accept : "";
        return text;
    }
};

class model {
public:
    struct variant {
        std::string_view vary;
        std::string selected;
        std::int64_t arrived;
        stored_ptr response;
    };

    void put(const std::string& url, variant added) {
        auto& all = resources_[url];
        std::erase_if(all, [&](const variant& old) { return old.selected == added.selected; });
        if (all.size() == memory_tier::most_variants) {
            all.erase(all.begin());
        }
        all.push_back(std::move(added));
    }

    /// The newest variant that `asked` selects, of equally new ones the one stored last.
    [[nodiscard]] variant* find(const std::string& url, const request& asked) {
        variant* newest = nullptr;
        for (auto& one : resources_[url]) {
            if (one.selected == asked.selected_by(one.vary) &&
                (newest == nullptr || one.arrived >= newest->arrived)) {
                newest = &one;
            }
        }
        return newest;
    }

    /// The variant that this response is.
    [[nodiscard]] variant* find(const std::string& url, const stored_ptr& response) {
        auto& all = resources_[url];
        const auto it = std::find_if(
            all.begin(), all.end(), [&](const variant& one) { return one.response == response; });
        return it == all.end() ? nullptr : &*it;
    }

    [[nodiscard]] std::size_t count(const std::string& url) { return resources_[url].size(); }
    std::size_t drop(const std::string& url) {
        const auto dropped = count(url);
        resources_.erase(url);
        return dropped;
    }
    [[nodiscard]] std::uint64_t objects() const {
        std::uint64_t all = 0;
        for (const auto& [url, variants] : resources_) {
            all += variants.size();
        }
        return all;
    }
    [[nodiscard]] std::uint64_t footprints() const {
        std::uint64_t all = 0;
        for (const auto& [url, variants] : resources_) {
            for (const auto& one : variants) {
                all += one.response->footprint();
            }
        }
        return all;
    }

private:
    std::map<std::string, std::vector<variant>> resources_;
};

/// One index charge for URLs of this length.
std::uint64_t index_charge_of(const std::string& url) {
    memory_tier store{1u << 30};
    const stored_ptr one = response({});
    store.put(test::key_of(url), url, one);
    return store.figures().bytes - one->footprint();
}

void run(std::uint64_t seed, bool ample) {
    std::mt19937_64 random{seed};
    const auto below = [&](std::uint64_t limit) { return random() % limit; };
    const auto url_of = [](std::uint64_t n) { return "http://a.test/" + std::to_string(100 + n); };
    const auto urls = 1 + below(30);
    // In a small store never more variants than a resource keeps: which of them the bound drops
    // depends on which were evicted.
    const auto cookies = 1 + below(ample ? 60 : 7);
    const auto capacity = ample ? 1u << 30 : 2'000 + below(60'000);
    const auto index = index_charge_of(url_of(0));
    memory_tier store{capacity};
    model expected;
    for (int step = 0; step < 1'500; ++step) {
        CAPTURE(step);
        const auto url = url_of(below(urls));
        const auto key = test::key_of(url);
        const request asked{std::string{"c"}.append(std::to_string(below(cookies))),
                            std::string{"a"}.append(std::to_string(below(3)))};
        const auto fields = asked.fields();
        const auto make = [&](std::string_view vary, std::int64_t arrived) {
            const std::string content(below(3'000), 'x');
            return response({.content = content,
                             .vary = vary,
                             .request = fields,
                             .arrived = std::chrono::seconds{arrived}});
        };
        const auto arrived = static_cast<std::int64_t>(step - static_cast<int>(below(5)));
        switch (below(10)) {
        case 0:
        case 1:
        case 2:
        case 3: {
            const auto vary = varies[below(varies.size())];
            const stored_ptr added = make(vary, arrived);
            const auto kept = store.variant_of(key, url, *added);
            if (kept && kept->freshness().response_time > added->freshness().response_time) {
                REQUIRE_FALSE(store.put(key, url, added));  // the more recent stays
                break;
            }
            const bool fits = added->footprint() + index <= capacity;
            MUST(store.put(key, url, added) == fits);
            if (fits) {
                expected.put(url, {vary, asked.selected_by(vary), arrived, added});
            } else {
                // The variant that it was to replace is outdated and gone; so is the rest now.
                store.invalidate(key, url);
                expected.drop(url);
            }
            break;
        }
        case 4: {
            const auto seen = store.peek(key, url, fields).response;
            if (seen != nullptr) {
                auto* known = expected.find(url, seen);
                REQUIRE(known != nullptr);
                const stored_ptr updated = make(known->vary, arrived);
                REQUIRE(store.freshen(key, url, seen, updated));
                known->arrived = arrived;
                known->response = updated;
            }
            break;
        }
        case 5:
            if (below(4) == 0) {
                const auto dropped = store.invalidate(key, url);
                const auto known = expected.drop(url);
                REQUIRE((ample ? dropped == known : dropped <= known));
            }
            break;
        default: {
            const auto* known = expected.find(url, asked);
            const auto seen = below(2) == 0 ? store.find(key, url, fields)
                                            : store.peek(key, url, fields);
            if (ample) {
                MUST(seen.what == (known != nullptr           ? lookup::present
                                   : expected.count(url) != 0 ? lookup::other_variant
                                                              : lookup::absent));
                MUST(seen.response == (known == nullptr ? nullptr : known->response));
            } else if (seen.response) {
                // The newest may have been evicted before an older one that is selected too.
                const auto* one = expected.find(url, seen.response);
                MUST(one != nullptr);
                MUST(one->selected == asked.selected_by(one->vary));
                MUST(one->arrived <= known->arrived);
            }
        }
        }
        const auto account = store.figures();
        MUST(account.bytes <= capacity);
        if (ample) {
            MUST(account.objects == expected.objects());
            if (step % 50 == 0) {
                REQUIRE(account.bytes == expected.footprints() + index * expected.objects());
            }
        } else {
            MUST(account.objects <= expected.objects());
        }
    }
    for (std::uint64_t n = 0; n < urls; ++n) {
        store.invalidate(test::key_of(url_of(n)), url_of(n));
    }
    CHECK(store.figures().objects == 0);
    CHECK(store.figures().bytes == 0);
}

}  // namespace

TEST_SUITE("property/store") {
    TEST_CASE("with room for everything the store answers and charges as the model does") {
        for (std::uint64_t seed = 1; seed <= 60; ++seed) {
            CAPTURE(seed);
            run(seed, true);
        }
    }

    TEST_CASE("with little room the store finds nothing but what was put last, within its budget") {
        for (std::uint64_t seed = 1; seed <= 60; ++seed) {
            CAPTURE(seed);
            run(seed, false);
        }
    }
}

}  // namespace reprise::proxy::cache::test::of_store
