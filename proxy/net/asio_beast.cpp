// Asio and Beast in one translation unit, so that no other has to compile them.

#include "proxy/net/look.hpp"
#include "proxy/net/watched.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <sys/epoll.h>
#include <type_traits>
#include <vector>

namespace {

// In place of epoll_wait in Asio's reactor, which has no setting for how many events it takes.
int take_some_events(int poll, epoll_event* events, int most, int timeout) {
    return ::epoll_wait(
        poll, events, std::min(most, reprise::proxy::net::most_events_a_look), timeout);
}

}  // namespace

#if REPRISE_KNOWS_THE_REACTOR
namespace {

// The reactor has a record for each descriptor that it watches, and keeps it for the next one, for ever.
// Made one at a time they lie between what connections take and give back, and each holds its page: of
// 38 MiB that 8,000 half heads took, 33 could not be given back to the system. So many are made at once.
class spare_records {
public:
    static constexpr std::size_t block = 16384;

    // Threads: any. @throws std::bad_alloc
    template <class T>
    void* take() {
        static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__ && sizeof(T) >= sizeof(link));
        const std::lock_guard lock{mutex_};
        if (free_ == nullptr) {
            auto& made = blocks_.emplace_back(std::make_unique_for_overwrite<std::byte[]>(block));
            for (std::size_t at = block / sizeof(T); at-- > 0;) {
                free_ = new (made.get() + at * sizeof(T)) link{free_};
            }
        }
        auto* const one = free_;
        free_ = one->next;
        return one;
    }
    void give(void* record) noexcept {
        const std::lock_guard lock{mutex_};
        free_ = new (record) link{free_};
    }

private:
    struct link {
        link* next;
    };
    std::mutex mutex_;
    std::vector<std::unique_ptr<std::byte[]>> blocks_;
    link* free_ = nullptr;
};

spare_records& records() {
    static auto* const all = new spare_records;  // never destroyed: a loop may end after it
    return *all;
}

}  // namespace

namespace boost::asio::detail {

template <>
epoll_reactor::descriptor_state* object_pool_access::create<epoll_reactor::descriptor_state, bool>(
    bool locking) {
    using record = std::remove_pointer_t<epoll_reactor::per_descriptor_data>;
    return new (records().take<record>()) record{locking};
}

template <>
void object_pool_access::destroy<epoll_reactor::descriptor_state>(
    epoll_reactor::descriptor_state* one) {
    std::destroy_at(one);
    records().give(one);
}

}  // namespace boost::asio::detail
#endif

#define epoll_wait take_some_events
#include <boost/asio/impl/src.hpp>
#undef epoll_wait
#include <boost/beast/src.hpp>
