#include "tests/support/sized_origin.hpp"

#include "tools/sized_body.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace reprise::tests {

sized_origin::sized_origin() {
    origin_.otherwise([this](origin_request& request, origin_connection& connection) {
        answer(request, connection);
    });
}

std::string sized_origin::url(std::uint64_t key, std::uint64_t size) const {
    std::array<char, 64> text;
    const int length = std::snprintf(text.data(),
                                     text.size(),
                                     "/k/%010llu/%012llu",
                                     static_cast<unsigned long long>(key),
                                     static_cast<unsigned long long>(size));
    return origin_.url({text.data(), static_cast<std::size_t>(length)});
}

void sized_origin::answer(const origin_request& request, origin_connection& connection) {
    unsigned long long key = 0, size = 0;
    int end = 0;
    if (request.method != "GET" ||
        std::sscanf(request.target.c_str(), "/k/%llu/%llu%n", &key, &size, &end) != 2 ||
        static_cast<std::size_t>(end) != request.target.size()) {
        connection.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    std::string out = "HTTP/1.1 200 OK\r\nCache-Control: max-age=31536000\r\nContent-Length: " +
                      std::to_string(size) + "\r\n\r\n";
    bytes_.fetch_add(size);
    std::uint64_t at = 0;
    do {
        const auto front = out.size();
        const auto more = static_cast<std::size_t>(std::min<std::uint64_t>(size - at, 64u << 10));
        out.resize(front + more);
        tools::fill_body(key, at, {out.data() + front, more});
        at += more;
        if (!connection.send(out)) {
            return connection.close();
        }
        out.clear();
    } while (at < size);
}

}  // namespace reprise::tests
