// See source_region.hpp.

#include "filter/c/source_region.hpp"

#include <cerrno>
#include <system_error>

namespace reprise::filter::c {

region_lock::region_lock(source_region& region) noexcept : guard_{region.guard} {
    if (pthread_mutex_lock(&guard_) == EOWNERDEAD) {
        pthread_mutex_consistent(&guard_);
        is_left_ = true;
    }
}

void make_lock(source_region& region, bool shared) {
    pthread_mutexattr_t how;
    pthread_mutexattr_init(&how);
    int code = 0;
    if (shared) {
        code = pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
        code = code != 0 ? code : pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
    }
    code = code != 0 ? code : pthread_mutex_init(&region.guard, &how);
    pthread_mutexattr_destroy(&how);
    if (code != 0) {
        throw std::system_error{code, std::generic_category(), "a lock over processes"};
    }
}

}  // namespace reprise::filter::c
