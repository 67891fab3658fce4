#include "proxy/base/recycled.hpp"

#include <array>

namespace reprise::proxy {

spare_blocks::~spare_blocks() {
    while (void* const one = take()) {
        ::operator delete(one);
    }
    count_ = static_cast<std::size_t>(-1);  // what ends on this thread after this is freed
}

namespace {

struct spare_texts {
    std::array<std::string, recycled_text::most_spare> all;
    std::size_t count = 0;
    ~spare_texts() { count = all.size() + 1; }  // what comes on this thread later finds none
};

spare_texts& texts() noexcept {
    static thread_local spare_texts of_this_thread;
    return of_this_thread;
}

}  // namespace

recycled_text::recycled_text() noexcept {
    auto& spare = texts();
    if (spare.count != 0 && spare.count <= spare.all.size()) {
        text_.swap(spare.all[--spare.count]);
    }
}

recycled_text::~recycled_text() {
#ifndef __SANITIZE_ADDRESS__
    auto& spare = texts();
    if (text_.capacity() > sizeof text_ && text_.capacity() <= most_kept &&
        spare.count < spare.all.size()) {
        text_.clear();
        spare.all[spare.count++].swap(text_);
    }
#endif
}

}  // namespace reprise::proxy
