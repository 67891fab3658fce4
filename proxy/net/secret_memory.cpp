#include "proxy/net/secret_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <openssl/crypto.h>

// OpenSSL's memory functions can be replaced once, for the whole process; what is added to malloc and
// free is one look at a thread's own flag.

namespace reprise::proxy::net {
namespace {

// A key of P-256 takes 32 bytes, one of RSA some 2 KiB, and a signature a few hundred for its time.
constexpr std::size_t secure_heap_bytes = 256 << 10, secure_heap_least = 32;

thread_local bool wipes = false;

void* take(std::size_t size, const char*, int) {
    return std::malloc(size);
}

void give(void* memory, const char*, int) {
    if (wipes && memory != nullptr) {
        OPENSSL_cleanse(memory, ::malloc_usable_size(memory));
    }
    std::free(memory);
}

void* resize(void* memory, std::size_t size, const char* file, int line) {
    if (!wipes || memory == nullptr) {
        return std::realloc(memory, size);
    }
    auto* const next = std::malloc(size);
    if (next != nullptr) {
        std::memcpy(next, memory, std::min(size, ::malloc_usable_size(memory)));
        give(memory, file, line);
    }
    return next;
}

}  // namespace

void prepare_secret_memory() noexcept {
    static_cast<void>(CRYPTO_set_mem_functions(take, resize, give));
    static_cast<void>(CRYPTO_secure_malloc_init(secure_heap_bytes, secure_heap_least));
}

wiping_what_is_freed::wiping_what_is_freed() noexcept : before_{wipes} {
    wipes = true;
}

wiping_what_is_freed::~wiping_what_is_freed() {
    wipes = before_;
}

}  // namespace reprise::proxy::net
