#include "filter/bit_changes.hpp"

#include "filter/bit_words.hpp"

#include <algorithm>

namespace reprise::filter {

bit_changes::bit_changes(bloom_size size, std::pmr::memory_resource* memory)
    : bit_changes{standard_bloom{size}, memory} {}

bit_changes::bit_changes(const standard_bloom& now, std::pmr::memory_resource* memory)
    : size_{now.size()},
      changed_{now.bits_on()},
      now_{now.words().size(), memory},
      published_{now_.size(), memory} {
    std::copy(now.words().begin(), now.words().end(), now_.begin());
}

bit_changes::bit_changes(bloom_size size,
                         std::span<std::uint64_t> now,
                         std::span<std::uint64_t> published) noexcept
    : size_{size},
      now_{now},
      published_{published} {
    assert(now.size() == words_for(size.bits) && published.size() == now.size());
}

standard_bloom bit_changes::publish() {
    standard_bloom copy{size_, {now_.begin(), now_.end()}};
    mark_published();
    return copy;
}

void bit_changes::mark_published() noexcept {
    std::copy(now_.begin(), now_.end(), published_.begin());
    changed_ = 0;
}

}  // namespace reprise::filter
