#include "proxy/cache/memory/store_entry.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

namespace reprise::proxy::cache {

// What a hit reads of one lies in two cache lines; a word more is a word more for every object.
static_assert(sizeof(store_entry) == 64);
static_assert(sizeof(void*) == 8 && __STDCPP_DEFAULT_NEW_ALIGNMENT__ >= 16);

store_entry::store_entry(const filter::key_hash& of, std::string_view url) noexcept
    : url_size{static_cast<std::uint32_t>(url.size())},
      next_{0},
      checked_low_{0},
      response_{0},
      checked_high_{0},
      found_{0} {
    key = of;
    if (!url.empty()) {
        std::memcpy(reinterpret_cast<char*>(this + 1), url.data(), url.size());
    }
}

std::uint64_t store_entry::packed(const void* there) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(there);
    assert(address % 16 == 0 && address >> 4 >> address_bits == 0);
    return address >> 4;
}

stored_ptr store_entry::exchange(stored_ptr response) noexcept {
    stored_ptr before{unpacked<const stored_response>(response_), false};
    response_ = packed(response.detach());
    return before;
}

void store_entry::note_checked(std::uint64_t epoch) noexcept {
    epoch = std::min(epoch, most_checked);
    checked_low_ = epoch & 0xfffff;
    checked_high_ = (epoch >> 20) & (most_checked >> 20);
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
