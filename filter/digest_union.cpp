// The union is one list of words, and each word of it the OR of what the members that are in it have there.
// Whoever comes, grows or goes may change who is in it, so that is judged anew each time (settle()); what
// a member turns changes only the words that those places lie in (flip()).

#include "filter/digest_union.hpp"

#include "filter/bit_words.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace reprise::filter {

namespace {

// Words repeat only as wholes, and the places of one are those of the other only where the sizes are
// a power of two apart.
bool may_repeat(const digest_shape& shape) noexcept {
    return shape.layout == digest_layout::standard && shape.bits % 64 == 0;
}

bool are_doublings(std::uint64_t a, std::uint64_t b) noexcept {
    const auto least = std::min(a, b);
    const auto most = std::max(a, b);
    return most % least == 0 && std::has_single_bit(most / least);
}

// Than the second largest, which no member makes alone, whatever size it takes: to leave out one that is
// honest takes two. By 64 times, since honest ones that hold as much are four times apart at most (a
// digest shrinks below a quarter of its capacity), and one that holds a 64th of what another does is
// missed little. None is left out for being large, though a liar may be that: where one node holds most, and
// others have begun empty, that one is what there is to tell of.
bool is_far_smaller(std::size_t size, std::size_t than) noexcept {
    return than / size > digest_union::most_apart;
}

}  // namespace

bool digest_union::fits(const digest& its) const noexcept {
    const auto& shape = its.shape();
    if (!may_repeat(shape)) {
        return false;
    }
    return members_.empty() || (its.stamp().seed == seed_ && shape.probes == shape_->probes &&
                                std::all_of(members_.begin(), members_.end(), [&](const auto& one) {
                                    return are_doublings(one.second.words.size(), shape.bits / 64);
                                }));
}

std::uint64_t digest_union::united(std::size_t word) const noexcept {
    std::uint64_t out = 0;
    for (const auto& [member, its] : members_) {
        if (its.is_in) {
            out |= its.words[word % its.words.size()];
        }
    }
    return out;
}

// More turned places than words are longer to name than to look at.
void digest_union::set(std::size_t word, std::uint64_t bits) noexcept {
    auto left = words_[word] ^ bits;
    words_[word] = bits;
    for (; left != 0 && !changes_.all; left &= left - 1) {
        const auto bit = static_cast<unsigned>(std::countr_zero(left));
        try {
            changes_.all = changes_.turned.size() >= words_.size();
            if (!changes_.all) {
                changes_.turned.push_back({word * 64 + bit, (bits >> bit & 1) != 0});
            }
        } catch (const std::bad_alloc&) {
            changes_.all = true;
        }
    }
    if (changes_.all) {
        changes_.turned.clear();
    }
}

void digest_union::unite() noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i) {
        set(i, united(i));
    }
}

std::size_t digest_union::second_largest() const noexcept {
    std::size_t largest = 0, second = 0;
    for (const auto& [member, its] : members_) {
        const auto size = its.words.size();
        second = std::max(second, std::min(size, largest));
        largest = std::max(largest, size);
    }
    return second;
}

// Who is in it, how large it is, and its bits. By the sizes of those that are there alone; but it may stay
// larger than it need be, so that readers need no new one each time that the largest goes and comes.
// False: there is no memory for all that are to be in it, and the larger ones are left out.
bool digest_union::settle() noexcept {
    const auto second = second_largest();
    std::size_t largest = 0;
    for (auto& [member, its] : members_) {
        const auto size = its.words.size();
        its.is_in = !is_far_smaller(size, second);
        largest = std::max(largest, size);
    }
    const bool is_too_large = largest != 0 && is_far_smaller(largest, words_.size());
    bool has_memory = true;
    if (words_.size() < largest || is_too_large) {
        try {
            words_ = word_list(largest);
            shape_->bits = largest * 64;
            changes_ = {.all = true};
        } catch (const std::bad_alloc&) {
            has_memory = largest <= words_.size();
            for (auto& [member, its] : members_) {
                its.is_in = its.is_in && its.words.size() <= words_.size();
            }
        }
    }
    unite();
    return has_memory;
}

bool digest_union::put(unsigned member, const digest& its) {
    members_.erase(member);
    const bool is_taken = fits(its);
    bool has_memory = true;
    if (is_taken) {
        try {
            word_list words{its.words().begin(), its.words().end()};
            if (members_.empty()) {
                words_ = word_list(words.size());
                shape_ = its.shape();
                seed_ = its.stamp().seed;
                changes_ = {.all = true};
            }
            members_.emplace(member, held{std::move(words)});
        } catch (const std::bad_alloc&) {
            has_memory = false;
        }
    }
    has_memory = settle() && has_memory;
    if (is_taken && !has_memory) {
        members_.erase(member);
        (void)settle();
        throw std::bad_alloc{};
    }
    return is_taken;
}

bool digest_union::flip(unsigned member, std::span<const std::uint64_t> places) noexcept {
    const auto known = members_.find(member);
    if (known == members_.end()) {
        return false;
    }
    auto& its = known->second.words;
    const auto bits = its.size() * 64;
    if (std::any_of(places.begin(), places.end(), [bits](auto place) { return place >= bits; })) {
        return false;
    }
    for (const auto place : places) {
        its[place / 64] ^= bit_at(place);
    }
    if (!known->second.is_in) {
        return true;
    }
    // The words of a small digest lie in the union again and again: to look at all of it once is less then.
    if (places.size() >= its.size()) {
        unite();
        return true;
    }
    for (const auto place : places) {
        for (auto word = place / 64; word < words_.size(); word += its.size()) {
            set(word, united(word));
        }
    }
    return true;
}

void digest_union::remove(unsigned member) noexcept {
    if (members_.erase(member) != 0) {
        (void)settle();
    }
}

bool digest_union::is_in(unsigned member) const noexcept {
    const auto known = members_.find(member);
    return known != members_.end() && known->second.is_in;
}

std::size_t digest_union::members() const noexcept {
    std::size_t in = 0;
    for (const auto& [member, its] : members_) {
        in += its.is_in ? 1 : 0;
    }
    return in;
}

digest_union::changes digest_union::take_changes() noexcept {
    return std::exchange(changes_, {});
}

std::uint64_t digest_union::bytes() const noexcept {
    std::uint64_t words = words_.capacity() + changes_.turned.capacity() * 2;
    for (const auto& [member, its] : members_) {
        words += its.words.capacity();
    }
    return words * 8;
}

}  // namespace reprise::filter
