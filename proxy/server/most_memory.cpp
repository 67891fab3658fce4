#include "proxy/server/most_memory.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace reprise::proxy::server {

namespace {

// "max", or nothing that can be read: no limit.
std::optional<std::uint64_t> limit_in(const std::string& path) {
    std::ifstream file{path};
    std::string text;
    std::getline(file, text);
    std::uint64_t bytes = 0;
    const auto* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, bytes);
    return read.ec == std::errc{} && read.ptr == end ? std::optional{bytes} : std::nullopt;
}

// What follows `controller` in its line, "4:memory:/a/b"; version 2 has one without a name.
std::string own_group(std::string_view lines, std::string_view controller) {
    while (!lines.empty()) {
        const auto line = lines.substr(0, lines.find('\n'));
        lines.remove_prefix(std::min(line.size() + 1, lines.size()));
        const auto rest = line.substr(std::min(line.find(':'), line.size()));
        if (rest.starts_with(controller)) {
            return std::string{rest.substr(controller.size())};
        }
    }
    return {};
}

// Some of them may not be seen from here, as the host's from within a container.
std::optional<std::uint64_t> least_limit(std::string group,
                                         const std::string& root,
                                         const std::string& file) {
    std::optional<std::uint64_t> least;
    for (;;) {
        if (const auto here = limit_in(root + group + file)) {
            least = std::min(least.value_or(*here), *here);
        }
        if (group.empty()) {
            return least;
        }
        group.resize(group.find_last_of('/') == group.npos ? 0 : group.find_last_of('/'));
    }
}

}  // namespace

std::optional<std::uint64_t> least_group_limit(std::string_view own, const std::string& root) {
    const auto one = least_limit(own_group(own, "::"), root, "/memory.max");
    const auto other = least_limit(
        own_group(own, ":memory:"), root + "/memory", "/memory.limit_in_bytes");
    return one && other ? std::min(*one, *other) : one ? one : other;
}

std::optional<std::uint64_t> most_memory() {
    const auto pages = ::sysconf(_SC_PHYS_PAGES);
    const auto page = ::sysconf(_SC_PAGESIZE);
    std::optional<std::uint64_t> most;
    if (pages > 0 && page > 0) {
        most = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
    }
    std::ifstream own{"/proc/self/cgroup"};
    const std::string lines{std::istreambuf_iterator<char>{own}, {}};
    if (const auto limit = least_group_limit(lines, "/sys/fs/cgroup")) {
        most = std::min(most.value_or(*limit), *limit);
    }
    return most;
}

}  // namespace reprise::proxy::server
