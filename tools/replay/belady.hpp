#pragma once
// Belady's rule with sizes, a yardstick: what leaves is what takes most room for longest, its size
// times the requests until its next. It knows the whole trace, which no cache does. With equal
// sizes it is the best there is (Belady 1966); with others finding the best is NP-hard, and this
// comes close (Song et al., NSDI 2020).

#include "tools/replay/model.hpp"
#include "tools/replay/object_pool.hpp"
#include "tools/replay/run.hpp"

#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace reprise::replay {

/// When each request's object is asked for next, by the request's place in the trace; `never` where
/// it is not. 4 bytes a request.
class next_uses {
public:
    static constexpr std::uint32_t never = ~std::uint32_t{0};
    /// @pre fewer than 2^32 - 1 requests
    explicit next_uses(const recorded_trace& requests);
    [[nodiscard]] std::uint32_t operator[](std::size_t place) const { return next_[place]; }

private:
    std::vector<std::uint32_t> next_;
};

/// One tier, an object at a time. What is never asked for again is not stored.
///
/// Sizes are compared exactly between classes of sizes, of which an octave has 16; within a class
/// only the next use counts.
///
/// Cost  O(log n) a request, and for each that leaves a look at every class.
class belady final : public model {
public:
    belady(std::shared_ptr<const next_uses> next, std::uint64_t capacity_bytes);

    void feed(std::span<const request> requests, std::size_t objects) override;
    [[nodiscard]] tally figures() const override { return tally_; }

private:
    struct entry {
        std::uint64_t bytes = 0;
        std::uint32_t next = 0;
    };
    using size_class = std::set<std::pair<std::uint32_t, object_number>>;

    void ask(const request& wanted);
    void put(const request& wanted, std::uint32_t next);
    void take(object_number object);
    void evict();
    [[nodiscard]] size_class& class_of(std::uint64_t bytes);

    std::shared_ptr<const next_uses> next_;
    std::uint64_t capacity_;
    std::uint64_t used_ = 0;
    std::uint32_t now_ = 0;  // requests
    std::vector<size_class> classes_;
    object_pool<entry> entries_;
    tally tally_;
};

}  // namespace reprise::replay
