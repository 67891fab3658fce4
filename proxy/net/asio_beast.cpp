// Asio and Beast in one translation unit, so that no other has to compile them.

#include "proxy/net/look.hpp"

#include <algorithm>
#include <sys/epoll.h>

namespace {

// In place of epoll_wait in Asio's reactor, which has no setting for how many events it takes.
int take_some_events(int poll, epoll_event* events, int most, int timeout) {
    return ::epoll_wait(
        poll, events, std::min(most, reprise::proxy::net::most_events_a_look), timeout);
}

}  // namespace

#define epoll_wait take_some_events
#include <boost/asio/impl/src.hpp>
#undef epoll_wait
#include <boost/beast/src.hpp>
