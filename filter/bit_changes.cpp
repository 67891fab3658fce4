#include "filter/bit_changes.hpp"

namespace reprise::filter {

bit_changes::bit_changes(bloom_size size, std::pmr::memory_resource* memory)
    : bit_changes{standard_bloom{size}, memory} {}

bit_changes::bit_changes(const standard_bloom& now, std::pmr::memory_resource* memory)
    : size_{now.size()},
      changed_{now.bits_on()},
      now_(now.words().begin(), now.words().end(), memory),
      published_(now_.size(), memory) {}

standard_bloom bit_changes::publish() {
    standard_bloom copy{size_, {now_.begin(), now_.end()}};
    published_ = now_;  // of equal size: nothing is allocated
    changed_ = 0;
    return copy;
}

}  // namespace reprise::filter
