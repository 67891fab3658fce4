#include "proxy/net/socket_read.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace reprise::proxy::net {

socket_read read_socket(int descriptor, void* into, std::size_t most) noexcept {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> beside;
    iovec room{into, most};
    msghdr wanted{};
    wanted.msg_iov = &room;
    wanted.msg_iovlen = 1;
    wanted.msg_control = beside.data();
    wanted.msg_controllen = beside.size();
    socket_read out;
    do {
        out.got = ::recvmsg(descriptor, &wanted, MSG_DONTWAIT);
    } while (out.got < 0 && errno == EINTR);
    if (out.got < 0) {
        out.saw_all = errno == EAGAIN || errno == EWOULDBLOCK;
    } else if (const auto* const told = CMSG_FIRSTHDR(&wanted); out.got > 0 && told != nullptr &&
                                                                told->cmsg_level == SOL_TCP &&
                                                                told->cmsg_type == TCP_CM_INQ) {
        int more = 0;
        std::memcpy(&more, CMSG_DATA(told), sizeof more);
        out.saw_all = more == 0;
    }
    return out;
}

}  // namespace reprise::proxy::net
