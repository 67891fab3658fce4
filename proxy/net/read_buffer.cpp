#include "proxy/net/read_buffer.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace reprise::proxy::net {

read_buffer::read_buffer(read_buffer&& other) noexcept
    : bytes_(std::move(other.bytes_)),
      capacity_(std::exchange(other.capacity_, 0)),
      begin_(std::exchange(other.begin_, 0)),
      end_(std::exchange(other.end_, 0)) {}

read_buffer& read_buffer::operator=(read_buffer&& other) noexcept {
    if (this != &other) {
        bytes_ = std::move(other.bytes_);
        capacity_ = std::exchange(other.capacity_, 0);
        begin_ = std::exchange(other.begin_, 0);
        end_ = std::exchange(other.end_, 0);
    }
    return *this;
}

std::span<char> read_buffer::prepare(std::size_t least) {
    if (capacity_ - end_ < least) {
        const auto held = size();
        if (capacity_ >= held + least) {
            std::memmove(bytes_.get(), bytes_.get() + begin_, held);
        } else {
            const auto larger = std::max(held + least, 2 * capacity_);
            auto grown = std::make_unique_for_overwrite<char[]>(larger);
            if (held > 0) {
                std::memcpy(grown.get(), bytes_.get() + begin_, held);
            }
            bytes_ = std::move(grown);
            capacity_ = larger;
        }
        begin_ = 0;
        end_ = held;
    }
    return {bytes_.get() + end_, capacity_ - end_};
}

void read_buffer::consume(std::size_t bytes) noexcept {
    assert(bytes <= size());
    begin_ += bytes;
    if (begin_ == end_) {
        clear();  // the next bytes start at the front again: nothing to move later
    }
}

void read_buffer::trim() {
    const auto held = size();
    if (held == 0) {
        release();
    } else if (held < capacity_) {
        auto exact = std::make_unique_for_overwrite<char[]>(held);
        std::memcpy(exact.get(), bytes_.get() + begin_, held);
        bytes_ = std::move(exact);
        capacity_ = end_ = held;
        begin_ = 0;
    }
}

void read_buffer::release(std::size_t keep) noexcept {
    assert(empty());
    clear();
    if (capacity_ > keep) {
        bytes_.reset();
        capacity_ = 0;
    }
}

}  // namespace reprise::proxy::net
