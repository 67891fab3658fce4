#pragma once
// Second-hit admission whose younger generation can be read, to be shared with siblings: what the
// proxy's gate is under "second-hit", over the same sights, the filter sized by "remember": "auto"
// or fixed.
//
// Keys are names' hashes under the fleet's secret, as seen filters have them.

#include "filter/admission.hpp"
#include "proxy/cache/admission/admission_sizing.hpp"
#include "proxy/cache/admission/resizable_admission.hpp"
#include "proxy/peer/secret.hpp"
#include "tools/replay/admission_rule.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

namespace reprise::fleet {

/// Threads  none.
class shared_rule final : public replay::admission_rule {
public:
    /// Follows the store's age of eviction, within what a memory tier of so many bytes allows.
    /// @pre `secret` outlives it
    shared_rule(const proxy::peer::fleet_secret& secret, std::uint64_t memory_bytes);
    /// A filter of these settings, which stays so. @pre `secret` outlives it
    shared_rule(const proxy::peer::fleet_secret& secret, const filter::admission_settings& fixed);

    [[nodiscard]] bool admits(const replay::request& wanted) override { return note(wanted) >= 1; }
    void hit(const replay::request& wanted) override;
    void evicted(const filter::key_hash& key, std::chrono::seconds unused) override;

    /// What siblings are sent.
    [[nodiscard]] std::unique_ptr<filter::digest> young(const filter::digest_stamp& stamp) const;

private:
    unsigned note(const replay::request& wanted);
    proxy::cache::resizable_admission& at(const replay::request& wanted);

    const proxy::peer::fleet_secret& secret_;
    filter::admission_settings settings_;
    proxy::cache::admission_bounds bounds_;
    bool follows_;
    std::unique_ptr<proxy::cache::resizable_admission> sights_;
    std::uint32_t second_ = 0;            // of the last housekeeping
    std::optional<double> eviction_age_;  // seconds
};

}  // namespace reprise::fleet
