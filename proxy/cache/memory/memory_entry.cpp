#include "proxy/cache/memory/memory_entry.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

namespace reprise::proxy::cache {

// What a hit reads of one lies in two cache lines; a word more is a word more for every object.
static_assert(sizeof(memory_entry) == 64);
static_assert(sizeof(void*) == 8 && __STDCPP_DEFAULT_NEW_ALIGNMENT__ >= 16);

memory_entry::memory_entry(const filter::key_hash& of, std::string_view url) noexcept
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

std::uint64_t memory_entry::packed(const void* there) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(there);
    assert(address % 16 == 0 && address >> 4 >> address_bits == 0);
    return address >> 4;
}

stored_ptr memory_entry::exchange(stored_ptr response) noexcept {
    stored_ptr before{unpacked<const stored_response>(response_), false};
    response_ = packed(response.detach());
    return before;
}

void memory_entry::note_checked(std::uint64_t epoch) noexcept {
    epoch = std::min(epoch, most_checked);
    checked_low_ = epoch & 0xfffff;
    checked_high_ = (epoch >> 20) & (most_checked >> 20);
}

memory_entry_ptr memory_entry::make(const filter::key_hash& key, std::string_view url) {
    void* const memory = ::operator new(sizeof(memory_entry) + url.size());
    return memory_entry_ptr{new (memory) memory_entry{key, url}};
}

void end_memory_entry::operator()(memory_entry* one) const noexcept {
    one->~memory_entry();
    ::operator delete(one);
}

std::size_t memory_entry::footprint(std::string_view url) noexcept {
    return heap_cost(sizeof(memory_entry) + url.size());
}

}  // namespace reprise::proxy::cache
