#include "proxy/cache/memory/store_entry.hpp"

#include <cstring>
#include <new>

namespace reprise::proxy::cache {

// What a hit reads of one lies in two cache lines; a word more is a word more for every object.
static_assert(sizeof(store_entry) == 72);

store_entry::store_entry(const filter::key_hash& of, std::string_view url) noexcept
    : url_size{static_cast<std::uint32_t>(url.size())},
      checked{0},
      found_since{0} {
    key = of;
    if (!url.empty()) {
        std::memcpy(reinterpret_cast<char*>(this + 1), url.data(), url.size());
    }
}

store_entry_ptr store_entry::make(const filter::key_hash& key, std::string_view url) {
    void* const memory = ::operator new(sizeof(store_entry) + url.size());
    return store_entry_ptr{new (memory) store_entry{key, url}};
}

void end_store_entry::operator()(store_entry* one) const noexcept {
    one->~store_entry();
    ::operator delete(one);
}

std::size_t store_entry::footprint(std::string_view url) noexcept {
    return heap_cost(sizeof(store_entry) + url.size());
}

}  // namespace reprise::proxy::cache
