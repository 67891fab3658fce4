#include "proxy/net/spare_descriptors.hpp"

#include <fcntl.h>
#include <new>
#include <unistd.h>

namespace reprise::proxy::net {

spare_descriptors::~spare_descriptors() {
    while (give()) {
    }
}

bool spare_descriptors::give() noexcept {
    if (held_.empty()) {
        return false;
    }
    ::close(held_.back());
    held_.pop_back();
    return true;
}

void spare_descriptors::refill() noexcept {
    while (held_.size() < most_) {
        const int one = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (one < 0) {
            return;
        }
        try {
            held_.push_back(one);
        } catch (const std::bad_alloc&) {
            ::close(one);
            return;
        }
    }
}

}  // namespace reprise::proxy::net
