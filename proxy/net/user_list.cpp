#include "proxy/net/user_list.hpp"

#include "proxy/base/file_content.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <crypt.h>
#include <cstring>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <utility>

// Reading goes on behind a mistake, so that several are told at once, and a list is made only where
// there are none. An unknown name costs a hash as well (has_password), and one of those in the list,
// whose kinds and costs differ: so that the time of an answer does not tell who is listed.

namespace reprise::proxy::net {

namespace {

constexpr std::size_t most_mistakes = 20;
constexpr std::size_t most_name = 128;
constexpr std::size_t least_token = 16, most_token = 1024;

// crypt(5)'s digits, of which salts and digests are made.
bool is_digits(std::string_view text) noexcept {
    return std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '/';
    });
}

// Calls `each(number, line)` until it says false.
template <class Each>
void for_each_line(std::string_view text, Each each) {
    for (std::size_t number = 1; !text.empty(); ++number) {
        const auto end = std::min(text.find('\n'), text.size());
        auto line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.ends_with('\r')) {
            line.remove_suffix(1);
        }
        if (!line.empty() && !line.starts_with('#') && !each(number, line)) {
            return;
        }
    }
}

// Empty: it can be a name.
std::string why_no_name(std::string_view name) {
    if (name.empty() || name.size() > most_name) {
        return "a name has 1 to " + std::to_string(most_name) + " bytes before the colon";
    }
    const bool plain = std::none_of(
        name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    return plain ? std::string{} : "a name has no control characters";
}

std::string why_no_bcrypt(std::string_view hash) {
    const auto rest = hash.substr(4);
    const bool shaped = rest.size() == 56 && rest[2] == '$' && rest[0] >= '0' && rest[0] <= '3' &&
                        rest[1] >= '0' && rest[1] <= '9' && is_digits(rest.substr(3));
    if (!shaped) {
        return "is no whole bcrypt hash (60 characters)";
    }
    const auto cost = (rest[0] - '0') * 10 + (rest[1] - '0');
    return cost < 4 || cost > 14
               ? "has a bcrypt cost that is not 4 to 14: a check would take seconds"
               : std::string{};
}

std::string why_no_yescrypt(std::string_view hash) {
    const auto rest = hash.substr(3);
    const auto salt_at = rest.find('$');
    const auto hash_at = salt_at == rest.npos ? rest.npos : rest.find('$', salt_at + 1);
    if (hash_at == rest.npos || !is_digits(rest.substr(salt_at + 1, hash_at - salt_at - 1)) ||
        rest.substr(hash_at + 1).size() != 43 || !is_digits(rest.substr(hash_at + 1)) ||
        hash_at - salt_at - 1 > 86) {
        return "is no whole yescrypt hash";
    }
    constexpr std::array<std::string_view, 7> taken{
        "j75", "j85", "j7T", "j8T", "j9T", "jAT", "jBT"};
    return std::find(taken.begin(), taken.end(), rest.substr(0, salt_at)) == taken.end()
               ? "has yescrypt parameters that are not those of a cost of 1 to 7"
               : std::string{};
}

std::string why_no_sha512(std::string_view hash) {
    auto rest = hash.substr(3);
    constexpr std::string_view rounds = "rounds=";
    if (rest.starts_with(rounds)) {
        rest.remove_prefix(rounds.size());
        unsigned count = 0;
        const auto [end, wrong] = std::from_chars(rest.data(), rest.data() + rest.size(), count);
        const auto length = static_cast<std::size_t>(end - rest.data());
        if (wrong != std::errc{} || count < 1000 || count > 1'000'000 || length == rest.size() ||
            *end != '$') {
            return "has SHA-512 rounds that are not 1000 to 1000000";
        }
        rest.remove_prefix(length + 1);
    }
    const auto salt = rest.find('$');
    const bool shaped = salt != rest.npos && salt <= 16 && is_digits(rest.substr(0, salt)) &&
                        rest.size() - salt - 1 == 86 && is_digits(rest.substr(salt + 1));
    return shaped ? std::string{} : "is no whole SHA-512 hash of crypt";
}

// Empty: it is taken.
std::string why_no_hash(std::string_view hash) {
    if (hash.starts_with("$2y$") || hash.starts_with("$2b$") || hash.starts_with("$2a$")) {
        return why_no_bcrypt(hash);
    }
    if (hash.starts_with("$y$")) {
        return why_no_yescrypt(hash);
    }
    if (hash.starts_with("$6$")) {
        return why_no_sha512(hash);
    }
    std::string_view why = "is plain text, or no hash that is taken (bcrypt, yescrypt, SHA-512)";
    if (hash.starts_with("$apr1$") || hash.starts_with("$1$")) {
        why = "is an MD5 hash, which is guessed too fast";
    } else if (hash.starts_with("{SHA}")) {
        why = "is a SHA-1 hash without a salt, which is guessed too fast";
    } else if (hash.starts_with("$5$")) {
        why = "is a SHA-256 hash, which is not taken";
    }
    return std::string{why}.append("; htpasswd -B makes one that is taken");
}

std::string at_line(std::string_view setting, const std::string& path, const line_mistake& one) {
    auto text = std::string{setting} + ": " + path;
    if (one.line != 0) {
        text += ":" + std::to_string(one.line);
    }
    return text + ": " + one.why;
}

token_digest digest_of(std::string_view token) {
    token_digest out{};
    SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), out.data());
    return out;
}

secret_name mark_of(std::string_view owner, const token_digest& digest) {
    return {owner, {reinterpret_cast<const char*>(digest.data()), digest.size()}};
}

bool read_hex(std::string_view text, token_digest& into) {
    if (text.size() != into.size() * 2) {
        return false;
    }
    for (std::size_t i = 0; i < into.size(); ++i) {
        const char* const begin = text.data() + i * 2;
        const auto [end, wrong] = std::from_chars(begin, begin + 2, into[i], 16);
        if (wrong != std::errc{} || end != begin + 2) {
            return false;
        }
    }
    return true;
}

line_mistake too_many_lines() {
    return {0, "has more than " + std::to_string(most_user_lines) + " users"};
}

}  // namespace

read_passwords read_password_lines(std::string_view text) {
    read_passwords out;
    for_each_line(text, [&](std::size_t number, std::string_view line) {
        const auto colon = line.find(':');
        std::string why;
        if (colon == line.npos) {
            why = "has no colon between name and hash";
        } else {
            why = why_no_name(line.substr(0, colon));
        }
        if (why.empty()) {
            // What follows another colon is somebody's comment.
            auto hash = line.substr(colon + 1);
            hash = hash.substr(0, hash.find(':'));
            why = why_no_hash(hash);
            if (why.empty() && !out.by_name.emplace(line.substr(0, colon), hash).second) {
                why = "names a user who was named before";
            }
        }
        if (!why.empty()) {
            out.mistakes.push_back({number, std::move(why)});
        } else if (out.by_name.size() > most_user_lines) {
            out.mistakes.push_back(too_many_lines());
            return false;
        }
        return out.mistakes.size() < most_mistakes;
    });
    return out;
}

read_tokens read_token_lines(std::string_view text) {
    read_tokens out;
    for_each_line(text, [&](std::size_t number, std::string_view line) {
        constexpr std::string_view hashed = "sha256:";
        const auto colon = line.find(':');
        const auto name = line.substr(0, colon);
        auto token = colon == line.npos ? std::string_view{} : line.substr(colon + 1);
        auto why = colon == line.npos ? "has no colon between name and token" : why_no_name(name);
        token_digest digest{};
        if (why.empty() && token.starts_with(hashed)) {
            token.remove_prefix(hashed.size());
            if (!read_hex(token, digest)) {
                why = "sha256: is followed by 64 hexadecimal digits";
            }
        } else if (why.empty() && (token.size() < least_token || token.size() > most_token)) {
            why = "a token has " + std::to_string(least_token) + " to " +
                  std::to_string(most_token) + " bytes";
        } else if (why.empty() &&
                   token.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                           "0123456789-._~+/=") != token.npos) {
            why = "a token has letters, digits and -._~+/= alone (RFC 6750 2.1)";
        } else if (why.empty()) {
            digest = digest_of(token);
        }
        if (why.empty() && !out.by_digest.emplace(digest, name).second) {
            why = "has a token that was there before";
        }
        if (!why.empty()) {
            out.mistakes.push_back({number, std::move(why)});
        } else if (out.by_digest.size() > most_user_lines) {
            out.mistakes.push_back(too_many_lines());
            return false;
        }
        return out.mistakes.size() < most_mistakes;
    });
    return out;
}

std::size_t token_digest_hash::operator()(const token_digest& of) const noexcept {
    std::size_t out = 0;
    std::memcpy(&out, of.data(), sizeof out);
    return out;
}

user_list::reading user_list::read(const config::access_options& access) {
    reading out;
    read_passwords passwords;
    read_tokens tokens;
    const auto take =
        [&](std::string_view setting, const std::string& path, auto& into, auto parse) {
            if (path.empty()) {
                return;
            }
            auto file = read_regular_file(path, most_user_bytes);
            if (file.wrong.empty()) {
                into = parse(file.bytes);
            } else {
                into.mistakes.push_back({0, std::move(file.wrong)});
            }
            OPENSSL_cleanse(file.bytes.data(), file.bytes.size());
            for (const auto& one : into.mistakes) {
                out.mistakes.push_back(at_line(setting, path, one));
            }
        };
    take("access.users_file", access.users_file, passwords, read_password_lines);
    take("access.tokens_file", access.tokens_file, tokens, read_token_lines);
    if (access.wants_users() && out.mistakes.empty()) {
        out.users = std::make_shared<const user_list>(std::move(passwords.by_name),
                                                      std::move(tokens.by_digest));
    }
    return out;
}

user_list::user_list(password_hashes passwords, token_owners tokens)
    : generation_{[] {
          static std::atomic<std::uint64_t> last{0};
          return ++last;
      }()},
      passwords_{std::move(passwords)},
      tokens_{std::move(tokens)} {
    places_.reserve(passwords_.size());
    marks_.reserve(passwords_.size() + tokens_.size());
    for (const auto& [name, hash] : passwords_) {
        places_.push_back({XXH3_64bits(hash.data(), hash.size()), &hash});
        marks_.insert(secret_name{name, hash});
    }
    for (const auto& [digest, owner] : tokens_) {
        marks_.insert(mark_of(owner, digest));
    }
}

// Each user draws for the name, by his hash, and the highest draw has it (Thaler and Ravishankar 1998). A
// choice by a secret of this process would be another one after each restart, and by a place in the
// list after each change: names whose time changes then are not listed.
const std::string& user_list::hash_tried_for(const std::string& name) const {
    const auto drawn_for = XXH3_64bits(name.data(), name.size());
    const auto draw = [drawn_for](const password_place& one) {
        const std::uint64_t both[] = {drawn_for, one.drawn_by};
        return XXH3_64bits(both, sizeof both);
    };
    const auto* highest = &places_.front();
    auto most = draw(*highest);
    for (const auto& one : places_) {
        if (const auto drawn = draw(one); drawn > most) {
            most = drawn;
            highest = &one;
        }
    }
    const auto found = passwords_.find(name);
    return found == passwords_.end() ? *highest->hash : found->second;
}

bool user_list::has_password(const std::string& name, const std::string& password) const {
    if (passwords_.empty()) {
        return false;
    }
    const auto& hash = hash_tried_for(name);
    const bool known = passwords_.contains(name);
    const auto work = std::make_unique<crypt_data>();
    const char* const made = ::crypt_r(password.c_str(), hash.c_str(), work.get());
    const bool right = made != nullptr && std::strlen(made) == hash.size() &&
                       CRYPTO_memcmp(made, hash.data(), hash.size()) == 0;
    OPENSSL_cleanse(work.get(), sizeof *work);
    return known && right;
}

secret_name user_list::password_mark(const std::string& name) const {
    const auto found = passwords_.find(name);
    return found == passwords_.end() ? secret_name{} : secret_name{name, found->second};
}

std::string_view user_list::owner_of(std::string_view token) const {
    const auto found = tokens_.find(digest_of(token));
    return found == tokens_.end() ? std::string_view{} : found->second;
}

secret_name user_list::token_mark(std::string_view token) const {
    const auto digest = digest_of(token);
    const auto found = tokens_.find(digest);
    return found == tokens_.end() ? secret_name{} : mark_of(found->second, digest);
}

}  // namespace reprise::proxy::net
