#pragma once
// Whether a sanitizer stands in the heap's place, and must see each block come and go. GCC says so in
// one way, Clang in another.

namespace reprise::proxy {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool heap_is_watched = true;
#elif !defined(__has_feature)
inline constexpr bool heap_is_watched = false;
#elif __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                       \
    __has_feature(memory_sanitizer)
inline constexpr bool heap_is_watched = true;
#else
inline constexpr bool heap_is_watched = false;
#endif

}  // namespace reprise::proxy
