#include "proxy/server/signals.hpp"

#include <cerrno>
#include <csignal>
#include <sys/signalfd.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace reprise::proxy::server {

signals::signals(boost::asio::io_context& io, std::initializer_list<int> which) : from_{io} {
    sigset_t ours;
    sigemptyset(&ours);
    for (const int one : which) {
        sigaddset(&ours, one);
    }
    const int failed = ::pthread_sigmask(SIG_BLOCK, &ours, nullptr);
    const int from = failed == 0 ? ::signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK) : -1;
    if (from < 0) {
        throw std::system_error{failed == 0 ? errno : failed, std::system_category(), "signalfd"};
    }
    from_.assign(from);
}

void signals::tell(told who) {
    if (!std::exchange(who_, std::move(who))) {
        wait();
    }
}

void signals::wait() {
    from_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                     [this](boost::system::error_code error) {
                         if (error) {
                             return;  // it is destroyed
                         }
                         wait();  // first: in what this wait has left
                         signalfd_siginfo one{};
                         if (::read(from_.native_handle(), &one, sizeof one) == sizeof one) {
                             const auto who = who_;  // who may tell somebody else from now on
                             who(static_cast<int>(one.ssi_signo));
                         }
                     });
}

}  // namespace reprise::proxy::server
