#include "proxy/net/hosts.hpp"

#include "proxy/net/address.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sys/stat.h>

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
        if (std::find(known.begin(), known.end(), *address) == known.end()) {
            known.push_back(*address);
        }
    }
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
    stamp found;
    const bool readable = ::stat(path_.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
    if (readable) {
        found = {facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec, facts.st_size, facts.st_ino};
    }
    if (found == read_at_) {
        return;
    }
    read_at_ = found;
    table_.clear();
    if (!readable) {
        return;
    }
    std::string text(std::min(static_cast<std::size_t>(facts.st_size), most_bytes), '\0');
    std::ifstream file{path_, std::ios::binary};
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
    table_ = parse_hosts(text);
}

}  // namespace reprise::proxy::net
