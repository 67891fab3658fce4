#pragma once
// What a resolver was answered, for as long as it holds.
// Two generations, each half of what is kept at most: when the young one is full it becomes the old
// one, whose place is given up, and what is asked for there comes back among the young. So much is
// bounded without a list of uses.

#include "proxy/base/clock.hpp"
#include "proxy/base/failure.hpp"
#include "proxy/net/resolver.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <string>

namespace reprise::proxy::net {

/// One thread's.
///
/// Memory   at most resolver::most_names answers, with most_addresses addresses in all of them
///          together: some 2 MiB, where as many names with as many addresses as one may have would
///          be 160.
class kept_answers {
public:
    static constexpr std::size_t most_addresses = 65'536;

    struct kept {
        attempt<resolved> answer;
        steady_time valid_until;
        /// Both families were heard: it is all that there is to say of the name.
        bool is_whole = true;
    };

    /// Null: none that still holds. Valid until the next call.
    /// @throws std::bad_alloc
    [[nodiscard]] const kept* find(const std::string& name, steady_time now);

    /// In the place of what was kept of that name.
    /// @throws std::bad_alloc
    void keep(const std::string& name, kept answer);

    void clear() noexcept;

private:
    using generation = std::map<std::string, kept, std::less<>>;
    generation young_, old_;
    std::size_t young_addresses_ = 0;
};

}  // namespace reprise::proxy::net
