#include "proxy/base/recycled.hpp"

namespace reprise::proxy {

spare_blocks::~spare_blocks() {
    while (void* const one = take()) {
        ::operator delete(one);
    }
    count_ = static_cast<std::size_t>(-1);  // what ends on this thread after this is freed
}

}  // namespace reprise::proxy
