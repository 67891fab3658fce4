#include "filter/digest_union.hpp"

#include "filter/bit_words.hpp"

#include <algorithm>
#include <bit>
#include <exception>
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

}  // namespace

bool digest_union::fits(const digest& its) const noexcept {
    const auto& shape = its.shape();
    if (!may_repeat(shape)) {
        return false;
    }
    return members_.empty() || (its.stamp().seed == seed_ && shape.probes == shape_->probes &&
                                std::all_of(members_.begin(), members_.end(), [&](const auto& one) {
                                    return are_doublings(one.second.size(), shape.bits / 64);
                                }));
}

std::uint64_t digest_union::united(std::size_t word) const noexcept {
    std::uint64_t out = 0;
    for (const auto& [member, its] : members_) {
        out |= its[word % its.size()];
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

bool digest_union::put(unsigned member, const digest& its) {
    members_.erase(member);
    bool is_taken = fits(its);
    std::exception_ptr no_memory;
    if (is_taken) {
        try {
            const bool resizes = members_.empty() || its.words().size() > words_.size();
            word_list next(resizes ? its.words().size() : 0);
            members_.emplace(member, word_list{its.words().begin(), its.words().end()});
            if (resizes) {
                words_ = std::move(next);
                shape_ = its.shape();
                seed_ = its.stamp().seed;
                changes_ = {.all = true};
            }
        } catch (const std::bad_alloc&) {
            no_memory = std::current_exception();
        }
    }
    unite();
    if (no_memory) {
        std::rethrow_exception(no_memory);
    }
    return is_taken;
}

bool digest_union::flip(unsigned member, std::span<const std::uint64_t> places) noexcept {
    const auto known = members_.find(member);
    if (known == members_.end()) {
        return false;
    }
    auto& its = known->second;
    const auto bits = its.size() * 64;
    if (std::any_of(places.begin(), places.end(), [bits](auto place) { return place >= bits; })) {
        return false;
    }
    for (const auto place : places) {
        its[place / 64] ^= bit_at(place);
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
        unite();
    }
}

digest_union::changes digest_union::take_changes() noexcept {
    return std::exchange(changes_, {});
}

std::uint64_t digest_union::bytes() const noexcept {
    std::uint64_t words = words_.capacity() + changes_.turned.capacity() * 2;
    for (const auto& [member, its] : members_) {
        words += its.capacity();
    }
    return words * 8;
}

}  // namespace reprise::filter
