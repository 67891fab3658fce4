#pragma once
// Who may use forward listeners: what access.users_file and access.tokens_file say.
//
// Lines of the first are name:hash, as htpasswd(1) writes them. Taken are hashes that libcrypt knows
// and that withstand guessing: bcrypt ($2y$, $2b$, $2a$), yescrypt ($y$) and SHA-512 ($6$); and of
// these such as cost a check at most about a second and 64 MiB. Anything else is a mistake, named by
// its line: whoever is in the file and can't sign in should not have to guess why.
// Lines of the second are name:token, or name:sha256:digest. Empty lines and those that begin with
// "#" are passed over in both.

#include "config/options.hpp"
#include "proxy/net/secret_name.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace reprise::proxy::net {

struct line_mistake {
    std::size_t line = 0;  ///< from 1; 0: of the whole file
    std::string why;       ///< what is wrong, and what would be right; never the secret
};

/// Most of either file.
inline constexpr std::size_t most_user_bytes = 8u << 20, most_user_lines = 100'000;

using password_hashes = std::unordered_map<std::string, std::string>;  ///< by name
struct read_passwords {
    password_hashes by_name;
    std::vector<line_mistake> mistakes;  ///< at most 20
};
/// Total; O(bytes).
[[nodiscard]] read_passwords read_password_lines(std::string_view text);

using token_digest = std::array<unsigned char, 32>;
struct token_digest_hash {
    std::size_t operator()(const token_digest& of) const noexcept;
};
using token_owners = std::unordered_map<token_digest, std::string, token_digest_hash>;
struct read_tokens {
    token_owners by_digest;
    std::vector<line_mistake> mistakes;  ///< at most 20
};
/// Total; O(bytes).
[[nodiscard]] read_tokens read_token_lines(std::string_view text);

/// Both files, as they were when they were read. Immutable.
class user_list {
public:
    struct reading;
    /// Null, and no mistakes, where no client is to be asked who it is. Blocks on files.
    [[nodiscard]] static reading read(const config::access_options& access);

    user_list(password_hashes passwords, token_owners tokens);
    user_list(const user_list&) = delete;
    user_list& operator=(const user_list&) = delete;

    /// Another one for each list that is read: what an earlier one said holds for it alone.
    [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }
    /// Whether `password` is the name's. Takes as long where there is no such name. For a thread that
    /// may take a second and 64 MiB.
    [[nodiscard]] bool has_password(const std::string& name, const std::string& password) const;
    /// The hash that has_password() tries for a name: its own, or for a name without one some user's. Which
    /// user's nobody can tell who does not know the hashes, and it is the same in a list that was read later,
    /// after a restart too, for as long as that user is in it with that hash and none is new who takes his
    /// place. So names without a hash take the times of those with one, in the same proportions, and keep
    /// them. Takes as long for all names: O(users), some 3 ns each.
    /// @pre somebody has a password
    [[nodiscard]] const std::string& hash_tried_for(const std::string& name) const;
    /// Stands for the name with the hash of a password that it has; nobody's: it has none. O(1).
    [[nodiscard]] secret_name password_mark(const std::string& name) const;
    /// Whose token it is; empty: nobody's.
    [[nodiscard]] std::string_view owner_of(std::string_view token) const;
    /// Stands for a token with the name whose it is; nobody's: there is no such token.
    [[nodiscard]] secret_name token_mark(std::string_view token) const;
    /// Whether what a mark of a list, maybe an earlier one, stands for is here still: that name, with that
    /// password or that token. O(1).
    [[nodiscard]] bool holds(secret_name mark) const noexcept { return marks_.contains(mark); }

private:
    struct password_place {
        std::uint64_t drawn_by;  // its hash
        const std::string* hash;
    };
    std::uint64_t generation_;
    password_hashes passwords_;
    token_owners tokens_;
    std::vector<password_place> places_;  // one for each of passwords_
    std::unordered_set<secret_name> marks_;
};

/// Who a client was found to be, and by what: a mark of the list that it was found by.
struct known_user {
    std::string name;
    secret_name mark;
};
using user_ptr = std::shared_ptr<const known_user>;  ///< null: nobody
using user_list_ptr = std::shared_ptr<const user_list>;

struct user_list::reading {
    user_list_ptr users{};
    std::vector<std::string> mistakes{};  ///< each with its setting, file and line
};

}  // namespace reprise::proxy::net
