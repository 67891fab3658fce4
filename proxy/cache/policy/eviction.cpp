#include "proxy/cache/policy/eviction.hpp"

#include "proxy/cache/policy/gdsf.hpp"
#include "proxy/cache/policy/lru.hpp"
#include "proxy/cache/policy/s3_fifo.hpp"
#include "proxy/cache/policy/sieve.hpp"
#include "proxy/cache/policy/w_tinylfu.hpp"

namespace reprise::proxy::cache {

std::unique_ptr<eviction_policy> make_policy(eviction_kind kind,
                                             std::uint64_t capacity_bytes,
                                             const policy_tuning& tuning) {
    switch (kind) {
    case eviction_kind::lru: return std::make_unique<lru_policy>();
    case eviction_kind::sieve: return std::make_unique<sieve_policy>();
    case eviction_kind::s3_fifo: return std::make_unique<s3_fifo_policy>(capacity_bytes);
    case eviction_kind::w_tinylfu: return std::make_unique<w_tinylfu_policy>(capacity_bytes);
    case eviction_kind::gdsf:
        return std::make_unique<gdsf_policy>(tuning.exponent, tuning.frequencies, tuning.by_wait);
    case eviction_kind::lfu_da:
        return std::make_unique<gdsf_policy>(0, tuning.frequencies, tuning.by_wait);
    }
    return nullptr;
}

}  // namespace reprise::proxy::cache
