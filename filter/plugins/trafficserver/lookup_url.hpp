#pragma once
// The URL that the cache goes by, as text: what plug-ins like cachekey made of it, if they did.

#include <memory>
#include <string_view>
// (This order: remap.h includes nothing of what it needs.)
#include <ts/ts.h>

namespace reprise::trafficserver {

/// Room for a URL's text; longer ones take memory of their own.
class lookup_url {
public:
    /// The text of the URL that this transaction's look-up went by; empty where there is none, or no memory.
    /// Valid until the next call.
    [[nodiscard]] std::string_view read(TSHttpTxn txn) noexcept;

private:
    static constexpr std::size_t usual = 2048;

    char text_[usual];
    std::unique_ptr<char[]> longer_;
};

}  // namespace reprise::trafficserver
