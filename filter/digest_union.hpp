#pragma once
// The union of several caches' digests, kept true while each of them changes: what a gateway tells
// another site of its members (the second level of an attenuated Bloom filter: Rhea and Kubiatowicz,
// "Probabilistic Location and Routing", INFOCOM 2002, sections 3 and 4).
//
// A place modulo m is, taken modulo m/2, the place in a filter half as large (indices.hpp). So a
// smaller digest is spread over a larger union by repeating its words, and no key is lost. What is
// lost is precision, which "attenuated" says: the bits of two members may together name a key that
// neither has. With n like members of which each has a share f of its bits on, the union errs with
// (1 - (1 - f)^n)^probes, however many bits it has. Members' digests with n times the bits for their
// keys bring that back to the rate of one.
//
// A bit that a member turns off stays on while another has it: the others are asked. There are no
// counters, and what a member held is a copy of its own, so that none can leave anything behind.
//
// A place of a digest that is r times smaller than the union is r places of it: what that member tells in
// one byte readers of the union are told in r. So one that is far smaller than two others is held, and
// left out of the union until it is so no more.

#include "filter/digest.hpp"
#include "filter/seed_id.hpp"
#include "filter/sizing.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace reprise::filter {

/// Memory    the bits of each member's digest, and of the largest that is in it once more.
/// Threads   one.
class digest_union {
public:
    /// A digest more than so many times smaller than the second largest is left out (why:
    /// digest_union.cpp).
    static constexpr std::size_t most_apart = 64;

    /// The digest of `member`, in place of the one it had. False: its bits say nothing of the others',
    /// for it has another seed or rate, or a layout or size that can't be repeated; then it is no
    /// member. A larger one than any before makes the union as large.
    /// O(bits * members / 64). @throws std::bad_alloc, and then it is no member
    bool put(unsigned member, const digest& its);

    /// Whether it would be one, if it is none yet.
    [[nodiscard]] bool fits(const digest& its) const noexcept;

    /// The bits of its digest at `places` turn over. False: it has no digest that has these places, and
    /// nothing has changed. O(places * members) where its digest is as large as the union, as often
    /// more as it lies in that else, and never more than put().
    bool flip(unsigned member, std::span<const std::uint64_t> places) noexcept;

    /// What it alone had goes. The union keeps its size, if the largest that is left is not far smaller.
    /// O(bits * members / 64).
    void remove(unsigned member) noexcept;

    /// Whether what the member has is in the union. By the sizes of all, whoever came first; so it may
    /// change with each put and remove.
    [[nodiscard]] bool is_in(unsigned member) const noexcept;

    /// A place of the union that has turned, and whether it is on now.
    struct turn {
        std::uint64_t place = 0;
        bool is_on = false;
        bool operator==(const turn&) const = default;
    };
    struct changes {
        /// Look at all of words(): it has another size, or more has turned than is worth naming.
        bool all = false;
        std::vector<turn> turned{};  ///< in the order in which they did
    };
    /// What has changed since it was asked last.
    [[nodiscard]] changes take_changes() noexcept;

    /// None before the first member.
    [[nodiscard]] const std::optional<digest_shape>& shape() const noexcept { return shape_; }
    /// The one that all members' digests have.
    [[nodiscard]] seed_id seed() const noexcept { return seed_; }
    [[nodiscard]] std::span<const std::uint64_t> words() const noexcept { return words_; }
    /// Those that are in it, and those that are held and left out.
    [[nodiscard]] std::size_t members() const noexcept;
    [[nodiscard]] std::size_t left_out() const noexcept { return members_.size() - members(); }
    [[nodiscard]] std::uint64_t bytes() const noexcept;

private:
    using word_list = std::vector<std::uint64_t>;
    struct held {
        word_list words;
        bool is_in = true;
    };

    [[nodiscard]] std::uint64_t united(std::size_t word) const noexcept;
    void set(std::size_t word, std::uint64_t bits) noexcept;
    void unite() noexcept;
    [[nodiscard]] std::size_t second_largest() const noexcept;
    [[nodiscard]] bool settle() noexcept;

    std::optional<digest_shape> shape_;
    seed_id seed_{};
    word_list words_;
    std::map<unsigned, held> members_;
    changes changes_;
};

}  // namespace reprise::filter
