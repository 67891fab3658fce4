#pragma once
// What both C faces are made with: structures whose size says which release their caller was
// compiled with, errors as codes and sentences, and exceptions that end here.

#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <new>
#include <reprise/common.h>
#include <span>

namespace reprise::filter::c {

/// Larger than any structure of ours will be: what says more was never initialised.
inline constexpr std::size_t most_struct_bytes = std::size_t{64} << 10;

/// Says nothing went wrong, where there is room for that.
inline void clear(reprise_error* error) noexcept {
    constexpr auto least = offsetof(reprise_error, text);
    if (error != nullptr && error->size >= least && error->size <= most_struct_bytes) {
        const auto room = std::min(error->size, sizeof(reprise_error)) - sizeof error->size;
        std::memset(reinterpret_cast<char*>(error) + sizeof error->size, 0, room);
    }
}

/// Fills in an error as far as the caller has room for it, and returns its code.
[[gnu::format(printf, 4, 5)]] inline int fail(
    reprise_error* error, reprise_code code, int system, const char* format, ...) noexcept {
    constexpr auto text = offsetof(reprise_error, text);
    if (error == nullptr || error->size < text || error->size > most_struct_bytes) {
        return code;
    }
    error->code = code;
    error->system = system;
    if (const auto room = std::min(error->size, sizeof *error) - text; room > 0) {
        std::va_list arguments;
        va_start(arguments, format);
        std::vsnprintf(error->text, room, format, arguments);
        va_end(arguments);
    }
    return code;
}

/// A caller's structure as this release knows it: what the caller does not know as `ours` has it.
/// False when its size can't be, or it says something that this release does not know.
template <class Struct>
bool take(const Struct* given, std::size_t first_release, Struct& ours) noexcept {
    const auto size = given->size;
    if (size < first_release || size > most_struct_bytes) {
        return false;
    }
    const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
    const auto beyond = std::span{bytes, size}.subspan(std::min(size, sizeof ours));
    if (std::any_of(beyond.begin(), beyond.end(), [](auto byte) { return byte != 0; })) {
        return false;
    }
    std::memcpy(&ours, given, std::min(size, sizeof ours));
    ours.size = sizeof ours;
    return true;
}

/// Gives the caller as much of `ours` as it has room for, and zeroes beyond. False as take.
template <class Struct>
bool give(const Struct& ours, std::size_t first_release, Struct* to) noexcept {
    const auto size = to->size;
    if (size < first_release || size > most_struct_bytes) {
        return false;
    }
    std::memset(static_cast<void*>(to), 0, size);
    std::memcpy(to, &ours, std::min(size, sizeof ours));
    to->size = size;
    return true;
}

/// REPRISE_BAD_SIZE, and which structure's.
inline int bad_size(reprise_error* error,
                    const char* what,
                    std::size_t size,
                    std::size_t right) noexcept {
    return fail(error,
                REPRISE_BAD_SIZE,
                0,
                "%s->size is %zu: set it by its initialiser (this library's is %zu), and what this "
                "library does not know to zero",
                what,
                size,
                right);
}

/// `work()`, whatever it throws.
template <class Work>
int guarded(reprise_error* error, Work&& work) noexcept {
    try {
        clear(error);
        return work();
    } catch (const std::bad_alloc&) {
        return fail(error, REPRISE_NO_MEMORY, 0, "there is not enough memory");
    } catch (const std::exception& defect) {
        return fail(error, REPRISE_INTERNAL, 0, "a defect of libreprise: %s", defect.what());
    } catch (...) {
        return fail(error, REPRISE_INTERNAL, 0, "a defect of libreprise");
    }
}

}  // namespace reprise::filter::c
