#include "proxy/server/obstacles.hpp"

#include "config/json.hpp"
#include "config/quantity.hpp"
#include "filter/admission.hpp"
#include "proxy/admin/admin_gate.hpp"
#include "proxy/admin/admin_socket.hpp"
#include "proxy/admin/summary.hpp"
#include "proxy/cache/admission/admission_gate.hpp"
#include "proxy/cache/disk/examine.hpp"
#include "proxy/cache/disk/format.hpp"
#include "proxy/net/block_list.hpp"
#include "proxy/net/leaf_authority.hpp"
#include "proxy/net/listening.hpp"
#include "proxy/net/resolver.hpp"
#include "proxy/net/tls_context.hpp"
#include "proxy/net/tls_trust.hpp"
#include "proxy/net/user_list.hpp"
#include "proxy/peer/credentials.hpp"
#include "proxy/peer/discovery.hpp"
#include "proxy/peer/peering.hpp"
#include "proxy/peer/secret.hpp"
#include "proxy/server/disk_room.hpp"
#include "proxy/server/most_memory.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

// Each check looks at one kind of thing that settings name, and appends what it finds. All of them are
// made, whatever those before have found, so that no mistake hides another.

namespace reprise::proxy::server {

namespace {

using weight = obstacle_weight;

std::string reason(int error) {
    return boost::system::error_code{error, boost::system::system_category()}.message();
}

/// Empty: it may be read, and is a file.
std::string why_unreadable(const std::string& path) {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) {
        return "cannot be read: " + reason(errno);
    }
    if (!S_ISREG(facts.st_mode)) {
        return "is no regular file";
    }
    if (::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0) {
        return "cannot be read: " + reason(errno);
    }
    return {};
}

/// Empty: files can be made in it.
std::string why_unwritable_directory(const std::string& path) {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) {
        return path + ": " + reason(errno);
    }
    if (!S_ISDIR(facts.st_mode)) {
        return path + " is no directory";
    }
    if (::faccessat(AT_FDCWD, path.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
        return "nothing can be made in " + path + ": " + reason(errno);
    }
    return {};
}

bool is_same_place(const std::string& one, const std::string& other) {
    struct stat a {
    }, b{};
    return ::stat(one.c_str(), &a) == 0 && ::stat(other.c_str(), &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

std::string parent_of(const std::string& path) {
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

/// Empty: a file can be appended to, or made there. One that is there is not opened: whoever reads
/// a pipe would take that for its end.
std::string why_unwritable(const std::string& path) {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) {
        return errno == ENOENT ? why_unwritable_directory(parent_of(path))
                               : "cannot be opened: " + reason(errno);
    }
    if (S_ISDIR(facts.st_mode)) {
        return "is a directory";
    }
    if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) {
        return "cannot be written: " + reason(errno);
    }
    return {};
}

class search {
public:
    /// `in_force`: what a program that runs has, and will have let go of by the next start; null: none.
    explicit search(bool files_alone, const config::options* in_force = nullptr)
        : files_alone_{files_alone},
          in_force_{in_force} {}

    /// What is read at a start and at no reload, and what the system has for it; and what would do nothing beside
    /// the rest of the settings.
    std::vector<obstacle> run_at_start_alone(const config::options& options) && {
        look_at_listeners(options);
        look_at_descriptors(options);
        look_at_memory(options);
        look_at_admin_places(options.admin);
        look_at_disk(options.disk);
        look_at_state(options.admission.state);
        look_at_hosts(options.dns.hosts_file);
        look_at_secret(options);
        look_at_who_is_asked(options);
        look_at_squids(options);
        return std::move(found_);
    }

    std::vector<obstacle> run(const config::options& options) && {
        look_at_listeners(options);
        look_at_descriptors(options);
        look_at_memory(options);
        look_at_admin(options.admin);
        look_at_disk(options.disk);
        look_at_state(options.admission.state);
        const auto& log = options.log.access;
        if (log != "-" && log != "off") {
            add("log.access", log, why_unwritable(log));
        }
        look_at_hosts(options.dns.hosts_file);
        look_at_secret(options);
        look_at_credentials(options.peers);
        look_at_users(options.access);
        look_at_who_is_asked(options);
        look_at_squids(options);
        look_at_block_lists(options.access);
        look_at_trust(options.origins);
        look_at_authority(options.intercept);
        return std::move(found_);
    }

private:
    /// Nothing where `why` is empty.
    void add(std::string setting,
             std::string_view value,
             std::string why,
             weight of = weight::ends_start) {
        if (!why.empty()) {
            found_.push_back(
                {{std::move(setting), config::in_quotes(value, 4096), std::move(why)}, of});
        }
    }

    void look_at_listeners(const config::options& options) {
        for (std::size_t i = 0; i < options.listeners.size(); ++i) {
            const auto setting = "listeners[" + std::to_string(i) + "]";
            look_at_address(setting + ".address", options.listeners[i].address);
            if (const auto& tls = options.listeners[i].tls) {
                look_at_pair(setting + ".tls", *tls);
            }
        }
    }

    // That of the system need not be there.
    void look_at_hosts(const std::string& path) {
        if (!path.empty() && path != config::dns_options{}.hosts_file) {
            add("dns.hosts_file", path, why_unreadable(path), weight::harms);
        }
    }

    // A program's own sockets end with it.
    [[nodiscard]] bool is_held(const config::endpoint& where) const {
        if (in_force_ == nullptr) {
            return false;
        }
        const auto& all = in_force_->listeners;
        return std::any_of(all.begin(),
                           all.end(),
                           [&](const auto& one) { return net::overlap(one.address, where); }) ||
               (in_force_->admin.address && net::overlap(*in_force_->admin.address, where));
    }

    void look_at_address(const std::string& setting,
                         const config::endpoint& where,
                         bool for_both = false) {
        if (files_alone_ || is_held(where)) {
            return;
        }
        const auto failed = net::why_not_listen(io_, where, for_both);
        if (failed == boost::system::errc::address_in_use) {
            add(setting, net::to_text(where), "somebody listens there already", weight::in_use);
        } else if (failed) {
            add(setting, net::to_text(where), "cannot be listened on: " + failed.message());
        }
    }

    /// For files that only we may read.
    void look_at_mode(const std::string& setting, const std::string& path) {
        struct stat facts {};
        // Of what is no file, or another's, the mode is no mistake of this setting's to mend.
        if (::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) &&
            (facts.st_mode & (S_IROTH | S_IWOTH)) != 0) {
            add(setting,
                path,
                "every user of this machine may read or write it; this program's user alone should",
                weight::harms);
        }
    }

    void look_at_pair(const std::string& setting, const config::tls_options& tls) {
        if (tls.certificate.empty() || tls.key.empty()) {
            return;
        }
        try {
            (void)net::tls_identity::read(tls, setting);
        } catch (const std::runtime_error& unusable) {
            found_.push_back({{"", "", unusable.what()}, weight::ends_start});  // names the member
            if (!why_unreadable(tls.certificate).empty()) {                     // which came first
                add(setting + ".key", tls.key, why_unreadable(tls.key));
            }
        }
        look_at_mode(setting + ".key", tls.key);
    }

    void look_at_admin_places(const config::admin_options& admin) {
        if (admin.address) {
            look_at_address("admin.address", *admin.address, true);
        }
        look_at_socket(admin);
    }

    void look_at_admin(const config::admin_options& admin) {
        look_at_admin_places(admin);
        if (!admin.token_file.empty()) {
            add("admin.token_file",
                admin.token_file,
                admin::admin_gate{admin}.file_problem(),
                weight::harms);
            look_at_mode("admin.token_file", admin.token_file);
        }
    }

    void look_at_socket(const config::admin_options& admin) {
        const char* const given = std::getenv("RUNTIME_DIRECTORY");
        const auto path_of = [&](const config::admin_options& one) {
            return admin::socket_path(one, given == nullptr ? "" : given);
        };
        const auto path = path_of(admin);
        if (path.empty() || (in_force_ != nullptr && path == path_of(in_force_->admin))) {
            return;
        }
        if (const auto error = admin::why_not_bind(path);
            error == boost::system::errc::address_in_use) {
            add("admin.socket", path, "somebody listens there already", weight::in_use);
        } else if (error == boost::system::errc::file_exists) {
            add("admin.socket", path, "is there already, and no socket: it is left alone");
        } else if (error) {
            add("admin.socket", path, "cannot be made: " + error.message());
        }
    }

    // Each client's connection is one, each segment of the store on disk is one, and connections to origins want some
    // too: how many hangs on what is asked for. The hard limit is what counts: the start takes all that it allows.
    void look_at_descriptors(const config::options& options) {
        rlimit most{};
        const auto clients = static_cast<rlim_t>(options.limits.client_connections);
        const rlim_t files = options.disk.path.empty()
                                 ? 0
                                 : cache::disk::plan(options.disk.size, 0).segments;
        if (files_alone_ || ::getrlimit(RLIMIT_NOFILE, &most) != 0 ||
            clients + files <= most.rlim_max) {
            return;
        }
        const auto with_files = files < 1000 ? std::string{}
                                             : ", with the " + std::to_string(files) +
                                                   " files of disk.path,";
        found_.push_back(
            {{"limits.client_connections",
              std::to_string(clients),
              "is" + with_files + " more than the " + std::to_string(most.rlim_max) +
                  " file descriptors that this program may have here (LimitNOFILE= of a service, "
                  "ulimit -Hn), of which connections to origins want some too: once they are used "
                  "up clients wait to be let in, and origins can't be asked"},
             weight::harms});
    }

    // What is larger than memory is no mistake until it is used: the system would end the program then.
    void look_at_memory(const config::options& options) {
        const auto most = files_alone_ ? std::nullopt : most_memory();
        const auto filter = filter::admission_filter::memory_for(cache::filter_settings(options));
        if (most && (options.memory.size > *most || filter > *most - options.memory.size)) {
            add("memory.size",
                config::size_to_string(options.memory.size),
                "is, with the " + admin::bytes_in_words(filter) +
                    " of the admission filter, more than the " + admin::bytes_in_words(*most) +
                    " of memory that this program may have here: it would be slow by swapping, or "
                    "ended by the system",
                weight::harms);
        }
    }

    void look_at_disk(const config::disk_options& disk) {
        if (disk.path.empty()) {
            return;
        }
        // The start makes it and what is missing above.
        auto there = disk.path;
        while (::access(there.c_str(), F_OK) != 0 && errno == ENOENT && there != "/" &&
               there != ".") {
            there = parent_of(there);
        }
        if (auto why = why_unwritable_directory(there); !why.empty()) {
            add("disk.path", disk.path, std::move(why));
            return;
        }
        const auto seen = cache::disk::examine(*cache::disk::system_files(), disk.path);
        if (seen.in_use && in_force_ != nullptr && is_same_place(disk.path, in_force_->disk.path)) {
            return;
        }
        add("disk.path",
            disk.path,
            seen.trouble,
            seen.in_use ? weight::in_use : weight::ends_start);
        look_at_room(disk, there);
    }

    // What a store is going to take of the file system, less what it has already: it grows to its size
    // over days, and a full disk turns it off.
    void look_at_room(const config::disk_options& disk, const std::string& there) {
        const auto room = files_alone_ ? std::nullopt : room_on_disk(disk, there);
        if (!room) {
            return;
        }
        const auto [path, wanted, held, free] = *room;
        if (room->is_short()) {
            add("disk.size",
                config::size_to_string(disk.size),
                "is more than there is room for: " + admin::bytes_in_words(free) + " are free in " +
                    there + ", and the store has " + admin::bytes_in_words(held) +
                    " already; once nothing is free it stays as large as it is then, and gives up "
                    "old objects for new ones",
                weight::harms);
        }
    }

    void look_at_state(const std::string& path) {
        if (path.empty()) {
            return;
        }
        // It is replaced by another file, not written.
        auto why = why_unwritable_directory(parent_of(path));
        if (why.empty() && ::access(path.c_str(), F_OK) == 0) {
            why = why_unreadable(path);
        }
        add("admission.state", path, std::move(why), weight::harms);
    }

    void look_at_secret(const config::options& options) {
        const auto& path = options.digest.secret_file;
        if (path.empty()) {
            return;
        }
        // Without peers nobody reads it.
        const auto of = peer::peering::is_wanted(options) ? weight::ends_start : weight::harms;
        auto why = why_unreadable(path);
        if (why.empty()) {
            if (const auto loaded = peer::load_secret(path); !loaded) {
                why = loaded.error().message();
            }
        }
        add("digest.secret_file", path, std::move(why), of);
        look_at_mode("digest.secret_file", path);
    }

    void look_at_credentials(const std::vector<config::peer_options>& peers) {
        for (std::size_t i = 0; i < peers.size(); ++i) {
            const auto& path = peers[i].credentials_file;
            if (path.empty()) {
                continue;
            }
            const auto setting = "peers[" + std::to_string(i) + "].credentials_file";
            add(setting, path, peer::load_credentials(path).wrong);
            look_at_mode(setting, path);
        }
    }

    void look_at_users(const config::access_options& access) {
        for (auto& mistake : net::user_list::read(access).mistakes) {
            found_.push_back({{"", "", std::move(mistake)}, weight::ends_start});  // names the line
        }
        for (const auto& [setting, path] : {std::pair{"access.users_file", access.users_file},
                                            std::pair{"access.tokens_file", access.tokens_file}}) {
            if (!path.empty()) {
                look_at_mode(setting, path);
            }
        }
    }

    // Whoever moves a site's passwords here from a server in front of it may take them for asked.
    void look_at_who_is_asked(const config::options& options) {
        const auto& access = options.access;
        for (std::size_t i = 0; access.wants_users() && i < options.listeners.size(); ++i) {
            const auto& one = options.listeners[i];
            const auto setting = "listeners[" + std::to_string(i) + "]";
            if (one.mode == config::listener_mode::accelerator) {
                add(setting + ".mode",
                    "accelerator",
                    "asks nobody for a password or token: access.users_file and "
                    "access.tokens_file are for forward listeners, and all of access.clients are "
                    "served here",
                    weight::harms);
                continue;
            }
            boost::system::error_code no_address;
            const auto at = asio::ip::make_address(one.address.host, no_address);
            if (!access.plaintext_passwords && !one.tls && !no_address && !at.is_loopback()) {
                add(setting + ".address",
                    net::to_text(one.address),
                    "passwords would pass in the clear: clients from elsewhere are refused here "
                    "without \"tls\", or access.plaintext_passwords",
                    weight::harms);
            }
        }
    }

    // No mistake, since a reload may bring one.
    void look_at_squids(const config::options& options) {
        const auto& peers = options.peers;
        if (options.digest.squid &&
            std::none_of(peers.begin(), peers.end(), [](const config::peer_options& one) {
                return one.protocol == config::peer_protocol::squid;
            })) {
            found_.push_back({{"digest.squid",
                               "true",
                               "makes a digest for nobody: no peer has \"protocol\": \"squid\""},
                              weight::harms});
        }
    }

    void look_at_block_lists(const config::access_options& access) {
        for (auto& mistake : net::block_list::read(access).mistakes) {
            found_.push_back({{"", "", std::move(mistake)}, weight::ends_start});  // names the line
        }
    }

    void look_at_trust(const config::origin_options& origins) {
        try {
            net::tls_trust::check(origins);
        } catch (const std::runtime_error& unusable) {
            found_.push_back({{"", "", unusable.what()}, weight::ends_start});  // names the member
        }
    }

    void look_at_authority(const std::optional<config::intercept_options>& intercept) {
        if (!intercept || intercept->ca_certificate.empty() || intercept->ca_key.empty()) {
            return;
        }
        for (auto& mistake : net::leaf_authority::read(*intercept, wall_now()).mistakes) {
            found_.push_back(
                {{"", "", std::move(mistake)}, weight::ends_start});  // names the member
        }
    }

    const bool files_alone_;
    const config::options* const in_force_;
    asio::io_context io_{1};
    std::vector<obstacle> found_;
};

awaitable<void> look_up(net::resolver& names, std::string host, std::string& why) {
    auto found = co_await names.resolve(std::move(host), steady_now() + std::chrono::seconds{5});
    if (!found) {
        why = "resolves to nothing now: " + found.error().detail;
    }
}

}  // namespace

std::vector<obstacle> find_unknown_peers(const config::options& options) {
    asio::io_context io{1};
    net::deadlines timer{io};
    net::resolver names{timer, options.dns};
    std::vector<std::string> why(options.peers.size());
    for (std::size_t i = 0; i < why.size(); ++i) {
        const auto& one = options.peers[i];
        asio::co_spawn(
            io,
            look_up(names, one.dns.empty() ? peer::place_of(one.url).host : one.dns, why[i]),
            asio::detached);
    }
    io.run();
    std::vector<obstacle> found;
    for (std::size_t i = 0; i < why.size(); ++i) {
        const auto& one = options.peers[i];
        if (!why[i].empty()) {
            found.push_back(
                {{"peers[" + std::to_string(i) + "]." + (one.dns.empty() ? "url" : "dns"),
                  config::in_quotes(one.dns.empty() ? one.url : one.dns, 4096),
                  std::move(why[i])},
                 weight::harms});
        }
    }
    return found;
}

std::vector<obstacle> find_obstacles(const config::options& options) {
    return search{false}.run(options);
}

std::vector<obstacle> find_obstacles_of_next_start(const config::options& in_force,
                                                   const config::options& next) {
    return search{false, &in_force}.run_at_start_alone(next);
}

std::vector<obstacle> find_file_obstacles(const config::options& options) {
    return search{true}.run(options);
}

}  // namespace reprise::proxy::server
