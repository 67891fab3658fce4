#include "proxy/net/hosts.hpp"

#include "proxy/base/descriptor.hpp"
#include "proxy/net/address.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace reprise::proxy::net {
namespace {

constexpr std::string_view blanks = " \t\r\v\f";

std::string_view next_word(std::string_view& line) {
    const auto begin = std::min(line.find_first_not_of(blanks), line.size());
    line.remove_prefix(begin);
    const auto word = line.substr(0, line.find_first_of(blanks));
    line.remove_prefix(word.size());
    return word;
}

std::string host_key(std::string_view name) {
    if (name.size() > 1 && name.back() == '.') {
        name.remove_suffix(1);
    }
    std::string key{name};
    std::transform(key.begin(), key.end(), key.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return key;
}

void read_line(std::string_view line, host_table& into) {
    line = line.substr(0, line.find('#'));
    auto word = next_word(line);
    // A scope ("fe80::1%lo") says which interface; the guard refuses link-local ones anyway.
    const auto address = parse_numeric_host(word.substr(0, word.find('%')));
    if (!address) {
        return;
    }
    while (!(word = next_word(line)).empty()) {
        auto& known = into[host_key(word)];
        if (known.size() < most_addresses_of_name &&
            std::find(known.begin(), known.end(), *address) == known.end()) {
            known.push_back(*address);
        }
    }
}

// O_NONBLOCK: a pipe by that name is not waited for.
descriptor open_to_read(const std::string& path) {
    return descriptor{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
}

// Whether the reason lies in the file as it is, or in what we may do with it, and not in what this
// machine lacks just now.
bool says_what_the_file_is(int why) noexcept {
    return why == ENOENT || why == ENOTDIR || why == EACCES || why == EPERM || why == ELOOP ||
           why == ENAMETOOLONG;
}

// None: it could not be read to its end.
std::optional<std::string> read_most(const descriptor& file, std::size_t bytes) {
    std::string text(bytes, '\0');
    std::size_t got = 0;
    while (got < bytes) {
        const auto count = ::read(file.get(), text.data() + got, bytes - got);
        if (count < 0 && errno != EINTR) {
            return std::nullopt;
        }
        if (count == 0) {
            break;
        }
        got += static_cast<std::size_t>(count < 0 ? 0 : count);
    }
    text.resize(got);
    return text;
}

}  // namespace

host_table parse_hosts(std::string_view text) {
    host_table table;
    while (!text.empty()) {
        const auto end = std::min(text.find('\n'), text.size());
        read_line(text.substr(0, end), table);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return table;
}

hosts_file::hosts_file(std::string path) : path_(std::move(path)) {}

const std::vector<asio::ip::address>* hosts_file::find(std::string_view name, steady_time now) {
    if (path_.empty()) {
        return nullptr;
    }
    if (now >= look_again_) {
        look(now);
    }
    const auto found = table_.find(name);
    return found == table_.end() ? nullptr : &found->second;
}

void hosts_file::look(steady_time now) {
    look_again_ = now + check_every;
    struct ::stat facts {};
    if (::stat(path_.c_str(), &facts) != 0) {
        have_none(errno);
    } else if (!S_ISREG(facts.st_mode)) {
        have_none(ENOENT);
    } else if (stamp_of(facts) != read_at_) {
        read();
    }
}

void hosts_file::read() {
    const auto file = open_to_read(path_);
    struct ::stat facts {};
    if (!file || ::fstat(file.get(), &facts) != 0) {
        have_none(errno);
        return;
    }
    const auto size = static_cast<std::size_t>(facts.st_size);
    if (const auto text = read_most(file, std::min(size, most_bytes))) {
        table_ = parse_hosts(*text);
        read_at_ = stamp_of(facts);  // not before: what was not read is tried again
    }
}

void hosts_file::have_none(int why) noexcept {
    if (says_what_the_file_is(why)) {
        table_.clear();
        read_at_ = {};
    }
}

hosts_file::stamp hosts_file::stamp_of(const struct ::stat& facts) noexcept {
    return {facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec, facts.st_size, facts.st_ino};
}

}  // namespace reprise::proxy::net
