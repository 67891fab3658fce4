#pragma once
// Several digests asked as one: does any of them hold a key? For what siblings saw lately, which is
// asked of all of them on every miss.
//
// One after the other, each would be waited for: its object, then its words, both cold, 16 siblings
// 3 us. Here places and sizes of all stand side by side, and every blocked digest's line is asked
// for before the first is looked at, so that the waits overlap. (sibling_index asks once for all by
// slicing; it needs digests of one size, and tells which of them it was, which nobody wants here.)

#include "filter/digest.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace reprise::filter {

/// Memory    16 bytes per digest, which is shared, not copied.
/// Threads   immutable: any number. Bits of blocked digests may turn meanwhile, each word written as
///           an atomic (digest_replica): a look-up then sees some of them.
class digest_set {
public:
    digest_set() = default;
    /// @pre none is null @throws std::bad_alloc
    explicit digest_set(std::vector<std::shared_ptr<const digest>> digests);

    /// The OR of all digests' may_contain; false for none.
    [[nodiscard]] bool may_contain(key_hash key) const noexcept;

private:
    struct blocked {
        const std::uint64_t* words;
        std::uint64_t blocks;
    };

    std::vector<std::shared_ptr<const digest>> digests_;  // those of another layout come first
    std::vector<blocked> blocked_;                        // the rest of them
};

}  // namespace reprise::filter
