#include "proxy/net/secret_memory.hpp"

#include "proxy/base/heap_use.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <malloc.h>
#include <openssl/crypto.h>

// OpenSSL's memory functions can be replaced once, for the whole process; what they take is
// counted like the program's own (base/heap_use), and beside that there is one look at a flag of the thread.

namespace reprise::proxy::net {
namespace {

// A key of P-256 takes 32 bytes, one of RSA some 2 KiB, and a signature a few hundred for its time.
// OpenSSL 3 takes from here what connections hold as well, and has nothing else where it is full: 128 bytes for each TLS
// 1.2 client without an AEAD cipher and for a handshake by P-521, 32 for one by TLS 1.3 (CRYPTO_secure_used(), 3.0). It is room for three
// times as many as limits.client_connections lets in by default.
constexpr std::size_t secure_heap_bytes = 4 << 20, secure_heap_least = 32;

thread_local bool wipes = false;

void* take(std::size_t size, const char*, int) {
    return heap::take(size);
}

void give(void* memory, const char*, int) {
    if (wipes && memory != nullptr) {
        OPENSSL_cleanse(memory, ::malloc_usable_size(memory));
    }
    heap::give(memory);
}

void* resize(void* memory, std::size_t size, const char* file, int line) {
    if (!wipes || memory == nullptr) {
        return heap::resize(memory, size);
    }
    auto* const next = heap::take(size);
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
