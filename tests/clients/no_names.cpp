// A DNS server that knows no name: it answers NXDOMAIN to every question, over UDP.
// Browsers phone home through whatever proxy they are given. A proxy under test that resolves here
// can be reached by address alone, so such requests end at once and nothing leaves the machine.
//
// usage: no_names PORT_FILE    listens on a port of loopback that the system picks

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace {

constexpr std::size_t header_bytes = 12;  // RFC 1035 4.1.1
constexpr std::size_t plain_udp_bytes = 512;

// Turns a query into its own refusal. The question stays; whatever follows it (EDNS) may stay
// counted too, since a resolver skips what it did not ask for. False: not a query.
bool refuse(std::array<unsigned char, plain_udp_bytes>& message, std::size_t size) {
    if (size < header_bytes || (message[2] & 0x80) != 0) {
        return false;
    }
    message[2] |= 0x80;                             // QR: a response
    message[3] = static_cast<unsigned char>(0x83);  // RA, and NXDOMAIN
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fputs("usage: no_names PORT_FILE\n", stderr);
        return 2;
    }
    const int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t here_size = sizeof here;
    auto* here_address = reinterpret_cast<sockaddr*>(&here);
    if (udp < 0 || bind(udp, here_address, here_size) != 0 ||
        getsockname(udp, here_address, &here_size) != 0) {
        std::perror("no_names");
        return 1;
    }
    const auto unfinished = std::string{argv[1]} + ".new";
    std::ofstream{unfinished} << ntohs(here.sin_port) << '\n';
    std::filesystem::rename(unfinished, argv[1]);

    std::array<unsigned char, plain_udp_bytes> message{};
    for (;;) {
        sockaddr_storage who{};
        socklen_t who_size = sizeof who;
        auto* who_address = reinterpret_cast<sockaddr*>(&who);
        const auto size = recvfrom(udp, message.data(), message.size(), 0, who_address, &who_size);
        if (size < 0) {
            continue;
        }
        const auto used = static_cast<std::size_t>(size);
        if (refuse(message, used)) {
            (void)sendto(udp, message.data(), used, 0, who_address, who_size);
        }
    }
}
