#include "proxy/net/block_list.hpp"

#include "proxy/net/address.hpp"
#include "proxy/net/login.hpp"

#include <boost/system/error_code.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sys/stat.h>
#include <utility>

// The hashes lie sorted, with a table of where those begin that start alike: a look-up is one hash
// and a short binary search. How many labels the listed names have is kept as bits, so that no
// other parent of a host is hashed.

namespace reprise::proxy::net {

namespace {

constexpr unsigned last_label_bit = 63;
constexpr std::size_t least_of_block = 16;  // hashes that begin alike, on average

constexpr std::string_view between_words = " \t";

bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

// Whether somebody might read it as an address: its last label begins with a digit (0x7f.1), or
// it has a colon or a bracket.
bool may_be_address(std::string_view host) noexcept {
    if (host.ends_with('.')) {
        host.remove_suffix(1);
    }
    const auto label = host.substr(host.rfind('.') + 1);
    return (!label.empty() && is_digit(label.front())) || host.find(':') != host.npos;
}

std::size_t labels_in(std::string_view name) noexcept {
    return static_cast<std::size_t>(std::count(name.begin(), name.end(), '.')) + 1;
}

std::uint64_t label_bit(std::size_t labels) noexcept {
    return std::uint64_t{1} << std::min<std::size_t>(labels, last_label_bit);
}

// None: OpenSSL has no SipHash, or no random numbers.
std::optional<std::uint64_t> hash_of(std::string_view bytes) {
    thread_local login_hasher hasher;
    const auto both = hasher(bytes);
    return both ? std::optional{both->low} : std::nullopt;
}

bool is_name_character(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-' || c == '_';
}

// Empty: it can be a name.
std::string why_no_domain(std::string_view name) {
    if (name.ends_with('.')) {
        name.remove_suffix(1);
    }
    if (name.empty() || name.size() > host_key::most) {
        return "a name has 1 to " + std::to_string(host_key::most) + " characters";
    }
    if (name.starts_with("||") || name.find_first_of("^/$") != name.npos) {
        return "is a rule of a browser's filter or a URL: write the domain alone (ads.example)";
    }
    if (name.find('*') != name.npos) {
        return "has a \"*\" elsewhere than in a leading \"*.\"";
    }
    std::size_t in_label = 0;
    for (const char c : name) {
        if (c == '.' ? in_label == 0 : !is_name_character(c)) {
            return c == '.' ? "has two dots in a row, or begins with two"
                            : "has a character that is in no name (names of other scripts are "
                              "written xn--...)";
        }
        in_label = c == '.' ? 0 : in_label + 1;
        if (in_label > 63) {
            return "has a part of more than 63 characters between dots (RFC 1035 2.3.4)";
        }
    }
    return {};
}

// What hosts files call the machine itself, its networks and everybody.
bool names_machine(std::string_view name) noexcept {
    constexpr std::array<std::string_view, 12> known{"localhost",
                                                     "localhost.localdomain",
                                                     "local",
                                                     "broadcasthost",
                                                     "ip6-localhost",
                                                     "ip6-loopback",
                                                     "ip6-localnet",
                                                     "ip6-mcastprefix",
                                                     "ip6-allnodes",
                                                     "ip6-allrouters",
                                                     "ip6-allhosts",
                                                     "0.0.0.0"};
    return std::find(known.begin(), known.end(), name) != known.end();
}

// The next word of `text`, which loses it; empty: there is none.
std::string_view take_word(std::string_view& text) noexcept {
    text.remove_prefix(std::min(text.find_first_not_of(between_words), text.size()));
    const auto word = text.substr(0, text.find_first_of(between_words));
    text.remove_prefix(word.size());
    return word;
}

// Puts what `word` names into `names`. Empty: it could be read.
std::string read_word(std::string_view word, std::vector<host_key>& names) {
    if (word.starts_with("*.")) {
        word.remove_prefix(2);
    } else if (word.starts_with('.')) {
        word.remove_prefix(1);
    }
    if (!(may_be_address(word) && read_numeric_host(word))) {
        if (auto why = why_no_domain(word); !why.empty()) {
            return why;
        }
    }
    names.push_back(*host_key::of(word));
    return {};
}

}  // namespace

std::optional<host_key> host_key::of(std::string_view host) {
    host_key out;
    if (may_be_address(host)) {
        if (const auto address = read_numeric_host(host)) {
            const auto bytes = canonical(*address);
            out.bytes_[0] = '\0';
            std::memcpy(out.bytes_.data() + 1, bytes.data(), bytes.size());
            out.size_ = static_cast<std::uint8_t>(1 + bytes.size());
            return out;
        }
    }
    if (host.ends_with('.')) {
        host.remove_suffix(1);
    }
    if (host.empty() || host.size() > most) {
        return std::nullopt;
    }
    std::transform(host.begin(), host.end(), out.bytes_.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    out.size_ = static_cast<std::uint8_t>(host.size());
    return out;
}

std::string read_block_line(std::string_view line, std::vector<host_key>& names) {
    names.clear();
    if (line.size() > most_block_line) {
        return "is longer than " + std::to_string(most_block_line) + " bytes";
    }
    if (line.ends_with('\r')) {
        line.remove_suffix(1);
    }
    line = line.substr(0, line.find('#'));
    const auto first = take_word(line);
    if (first.empty()) {
        return {};
    }
    auto next = take_word(line);
    if (next.empty()) {
        return read_word(first, names);
    }
    // fe80::1%lo0
    if (!parse_numeric_host(first.substr(0, first.find('%')))) {
        return "has more than one word, and the first is no address, as in a hosts file";
    }
    for (; !next.empty(); next = take_word(line)) {
        if (names_machine(next)) {
            continue;
        }
        if (auto why = read_word(next, names); !why.empty()) {
            names.clear();
            return why;
        }
    }
    return {};
}

bool block_list::maker::add(const host_key& name) {
    const auto bytes = name.bytes();
    const auto hash = hash_of(bytes);
    if (!hash || made_.hashes_.size() == most_blocked) {
        return false;
    }
    made_.hashes_.push_back(*hash);
    if (name.is_address()) {
        made_.addresses_ = true;
    } else {
        made_.labels_ |= label_bit(labels_in(bytes));
    }
    return true;
}

block_list_ptr block_list::maker::make() && {
    auto& hashes = made_.hashes_;
    std::sort(hashes.begin(), hashes.end());
    hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
    hashes.shrink_to_fit();
    const auto blocks = std::max<std::size_t>(2, std::bit_floor(hashes.size() / least_of_block));
    made_.shift_ = 64u - static_cast<unsigned>(std::bit_width(blocks) - 1);
    made_.begins_.resize(blocks + 1);
    std::uint32_t at = 0;
    for (std::size_t block = 0; block < blocks; ++block) {
        made_.begins_[block] = at;
        while (at < hashes.size() && hashes[at] >> made_.shift_ == block) {
            ++at;
        }
    }
    made_.begins_[blocks] = at;
    return std::shared_ptr<const block_list>{new block_list{std::move(made_)}};
}

bool block_list::has(std::string_view bytes) const {
    const auto hash = hash_of(bytes);
    if (!hash) {
        return true;  // this thread can't tell: refused rather than let through
    }
    const auto block = *hash >> shift_;
    const auto* const all = hashes_.data();
    return std::binary_search(all + begins_[block], all + begins_[block + 1], *hash);
}

// Also by the way that an IPv4 address is reached in IPv6 (NAT64 and the like).
bool block_list::has_address(std::string_view key) const {
    address_bytes named{};
    std::memcpy(named.data(), key.data() + 1, named.size());
    const auto forms = forms_of(named);
    return std::any_of(forms.begin(), forms.end(), [&](const address_bytes& form) {
        std::array<char, 1 + sizeof form> bytes{};
        std::memcpy(bytes.data() + 1, form.data(), form.size());
        return has({bytes.data(), bytes.size()});
    });
}

bool block_list::holds(std::string_view host) const {
    const auto key = host_key::of(host);
    if (!key) {
        return false;
    }
    auto rest = key->bytes();
    if (key->is_address()) {
        return addresses_ && has_address(rest);
    }
    for (auto labels = labels_in(rest);; --labels) {
        if ((labels_ & label_bit(labels)) != 0 && has(rest)) {
            return true;
        }
        if (labels == 1) {
            return false;
        }
        rest.remove_prefix(rest.find('.') + 1);
    }
}

namespace {

// One list after another, into one table.
class lists_reader {
public:
    explicit lists_reader(std::vector<std::string>& mistakes) : mistakes_{mistakes} {}

    /// False: no more need be read.
    bool read(const std::string& setting, const std::string& path) {
        struct stat facts {};
        const auto unreadable = [&] {
            const boost::system::error_code why{errno, boost::system::system_category()};
            return tell(setting + ": " + path + ": cannot be read: " + why.message());
        };
        if (::stat(path.c_str(), &facts) != 0) {
            return unreadable();
        }
        if (!S_ISREG(facts.st_mode)) {
            return tell(setting + ": " + path + ": is no regular file");
        }
        std::ifstream file{path, std::ios::binary};
        if (!file.is_open()) {
            return unreadable();
        }
        const bool more = read_lines(file, setting + ": " + path + ":");
        return file.bad() ? tell(setting + ": " + path + ": cannot be read") : more;
    }
    [[nodiscard]] block_list_ptr make() && { return std::move(maker_).make(); }

private:
    bool tell(std::string what) {
        mistakes_.push_back(std::move(what));
        return mistakes_.size() < most_block_mistakes;
    }

    bool read_lines(std::ifstream& file, const std::string& at) {
        std::string held;  // a block, behind what the one before left of a line
        std::size_t number = 0;
        for (bool more = true; more;) {
            const auto left = held.size();
            held.resize(left + block_size);
            file.read(held.data() + left, static_cast<std::streamsize>(block_size));
            const auto got = static_cast<std::size_t>(file.gcount());
            held.resize(left + got);
            bytes_ += got;
            if (bytes_ > most_block_bytes) {
                (void)tell(at + " the lists are larger than " +
                           std::to_string(most_block_bytes >> 20) + " MiB together");
                return false;
            }
            more = got != 0;
            std::string_view text{held};
            if (number == 0 && text.starts_with("\xef\xbb\xbf")) {
                text.remove_prefix(3);  // a byte order mark
            }
            for (auto end = text.find('\n'); end != text.npos; end = text.find('\n')) {
                if (!read_line(text.substr(0, end), ++number, at)) {
                    return false;
                }
                text.remove_prefix(end + 1);
            }
            if (!text.empty() && (!more || text.size() > most_block_line)) {
                // The last one; or one that is too long, of which no more need be seen.
                (void)read_line(text, ++number, at);
                return more ? false : mistakes_.size() < most_block_mistakes;
            }
            held.erase(0, held.size() - text.size());
        }
        return true;
    }

    bool read_line(std::string_view line, std::size_t number, const std::string& at) {
        if (auto why = read_block_line(line, names_); !why.empty()) {
            return tell(at + std::to_string(number) + ": " + why);
        }
        for (const auto& name : names_) {
            if (!maker_.add(name)) {
                (void)tell(at + std::to_string(number) + ": is more than " +
                           std::to_string(most_blocked) +
                           " names in all lists together, or OpenSSL makes no hash");
                return false;
            }
        }
        return true;
    }

    static constexpr std::size_t block_size = std::size_t{256} << 10;

    std::vector<std::string>& mistakes_;
    block_list::maker maker_;
    std::vector<host_key> names_;
    std::uint64_t bytes_ = 0;
};

}  // namespace

block_list::reading block_list::read(const config::access_options& access) {
    reading out;
    const auto& paths = access.block_lists;
    lists_reader reader{out.mistakes};
    for (std::size_t i = 0; i < paths.size(); ++i) {
        if (!reader.read("access.block_lists[" + std::to_string(i) + "]", paths[i])) {
            break;
        }
    }
    if (!paths.empty() && out.mistakes.empty()) {
        out.list = std::move(reader).make();
    }
    return out;
}

}  // namespace reprise::proxy::net
