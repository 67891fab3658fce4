#pragma once
// The access lists that a squid.conf defines, by name.

#include "config/options.hpp"
#include "tools/from_squid/networks.hpp"
#include "tools/from_squid/notes.hpp"
#include "tools/from_squid/squid_conf.hpp"

#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace reprise::from_squid {

struct acl {
    std::string type;  ///< "src", "dstdomain", "url_regex"...
    std::vector<std::string> values;
    bool no_case = false;    ///< -i
    bool no_lookup = false;  ///< -n: no name server is asked
    position where;          ///< of its first line
    std::string unread;      ///< what of it could not be read; empty: nothing
};

/// As names of lists and of protocols are compared: A to Z are a to z.
[[nodiscard]] std::string lower_case(std::string text);

class acl_table {
public:
    /// With those that Squid defines itself: all, localhost, to_localhost, to_linklocal, manager and
    /// CONNECT.
    acl_table();

    /// One `acl` statement; values of a file that it names are read.
    void add(const statement& from, const file_source& files);

    /// Null: there is none of this name, in whatever case.
    [[nodiscard]] const acl* find(const std::string& name) const;

private:
    struct entry : acl {
        std::unordered_set<std::string> written{};  // values that lines have, and not files
    };
    std::map<std::string, entry> by_name_;  // in lower case
    // Of the files that lists name, together; one that is named twice counts twice.
    std::size_t bytes_left_ = std::size_t{64} << 20, files_left_ = 10'000;
};

/// Whether it is a list of protocols of which none is spoken here: FTP, URN, the cache manager's.
[[nodiscard]] bool is_of_unspoken_protocols(const acl& from);

/// The addresses of a src. What is none (a name) is added to `unread`; "this network", 0.0.0.0/8,
/// which no client has, is left out.
[[nodiscard]] network_set networks_of(const acl& from, std::vector<std::string>& unread);

/// The hosts of a dstdomain or the networks of a dst, as deny_destinations has them. What is none
/// of these is added to `unread`.
[[nodiscard]] std::vector<std::string> destinations_of(const acl& from,
                                                       std::vector<std::string>& unread);

/// The ports of a port acl, in order and without overlaps. What is none is added to `unread`; port 0,
/// which no URL has, is left out.
[[nodiscard]] std::vector<config::port_range> ports_of(const acl& from,
                                                       std::vector<std::string>& unread);

using port_set = std::vector<config::port_range>;
[[nodiscard]] port_set every_port();  ///< 1 to 65535
[[nodiscard]] port_set intersection(const port_set& a, const port_set& b);
[[nodiscard]] port_set difference(const port_set& a, const port_set& b);

}  // namespace reprise::from_squid
