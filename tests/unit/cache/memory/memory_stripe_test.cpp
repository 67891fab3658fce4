// One stripe of the memory tier where its policy has no memory.

#include "proxy/cache/memory/memory_stripe.hpp"
#include "tests/unit/cache/responses.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace reprise::proxy::cache::test::of_store_stripe {
namespace {

/// First in, first out, and takes nothing in while it fails.
class failing_policy final : public eviction_policy {
public:
    void set_capacity(std::uint64_t) override {}
    void missed(const filter::key_hash&) noexcept override {}
    void inserted(evictable& entry) override {
        if (fails) {
            throw std::bad_alloc{};
        }
        in.push_back(&entry);
    }
    void used(evictable& entry) noexcept override { knew_used &= knows(entry); }
    void removed(evictable& entry) noexcept override { knew_used &= std::erase(in, &entry) == 1; }
    [[nodiscard]] evictable* evict() noexcept override {
        if (in.empty()) {
            return nullptr;
        }
        auto* first = in.front();
        in.erase(in.begin());
        return first;
    }
    [[nodiscard]] bool knows(const evictable& entry) const {
        return std::find(in.begin(), in.end(), &entry) != in.end();
    }

    std::vector<evictable*> in;
    bool fails = false, knew_used = true;
};

}  // namespace

TEST_SUITE("cache/memory/memory_stripe") {
    TEST_CASE("what is replaced while the policy has no memory waits in a line, and leaves first") {
        for (const double probation : {0.1, 1.0}) {
            for (const auto as : {standing::admitted, standing::probation}) {
                CAPTURE(probation);
                CAPTURE(as == standing::probation);
                auto* policy = new failing_policy;
                memory_stripe stripe{std::unique_ptr<eviction_policy>{policy}, 1u << 20, probation};
                memory_stripe::released gone;
                const auto put = [&](const std::string& url, standing one) {
                    return stripe
                        .put(key_of(url), url, response({}), 0, 1u << 20, 8, one, 1, 0, gone)
                        .fits;
                };
                REQUIRE(put("http://a.example/older", standing::admitted));
                const std::string url = "http://a.example/1";
                REQUIRE(put(url, as));
                policy->fails = true;
                auto& entry = stripe.resource_of(key_of(url), url).front();
                (void)stripe.replace(entry, response({.content = "longer than it was before"}));
                CHECK(stripe.waiting == 1);
                CHECK(stripe.held.count() == 2);
                CHECK(stripe.held.probation_bytes() == entry.charge);
                policy->fails = false;
                const auto evicted = stripe.evict(stripe.held.line_bytes() > 0, {});
                REQUIRE(evicted.one);
                CHECK(evicted.one->url() == url);
                CHECK_FALSE(evicted.was_admitted);
                CHECK(stripe.waiting == 0);
                CHECK(stripe.evict(false, {}).one);
                CHECK_FALSE(stripe.evict(false, {}).one);
                CHECK(stripe.held.bytes() == 0);
                CHECK(policy->knew_used);
            }
        }
    }
}

}  // namespace reprise::proxy::cache::test::of_store_stripe
