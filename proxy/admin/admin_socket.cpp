#include "proxy/admin/admin_socket.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace reprise::proxy::admin {

namespace {

using boost::system::error_code;
namespace errc = boost::system::errc;

error_code last_error() {
    return {errno, boost::system::system_category()};
}

/// @pre path has room in it: config::socket_path's kind, and why_not_bind
sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof address.sun_path - 1));
    return address;
}

/// Whether a program listens there: none is `connection_refused`.
error_code try_to_connect(const std::string& path) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return last_error();
    }
    const auto address = address_of(path);
    const bool done = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
                      0;
    const auto why = done ? error_code{} : last_error();
    ::close(fd);
    return why;
}

}  // namespace

std::string socket_path(const config::admin_options& options, std::string_view runtime_directory) {
    if (options.socket == "off") {
        return {};
    }
    if (options.socket != "auto") {
        return options.socket;
    }
    const auto first = runtime_directory.substr(0, runtime_directory.find(':'));
    return first.empty() ? std::string{} : std::string{first} + "/admin.sock";
}

error_code why_not_bind(const std::string& path) {
    if (path.size() >= sizeof sockaddr_un::sun_path) {
        return errc::make_error_code(errc::filename_too_long);
    }
    struct stat facts {};
    if (::lstat(path.c_str(), &facts) != 0) {
        if (errno != ENOENT) {
            return last_error();
        }
        const auto slash = path.rfind('/');
        const auto directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
        return ::access(directory.c_str(), W_OK | X_OK) == 0 ? error_code{} : last_error();
    }
    if (!S_ISSOCK(facts.st_mode)) {
        return errc::make_error_code(errc::file_exists);
    }
    const auto answer = try_to_connect(path);
    if (answer == errc::connection_refused) {
        return {};
    }
    // Not to be reached, by a full queue or its mode: it is somebody's all the same.
    return answer == errc::permission_denied ? answer : errc::make_error_code(errc::address_in_use);
}

boost::system::result<admin_socket> admin_socket::listen(std::string path,
                                                         config::socket_users who) {
    if (const auto error = why_not_bind(path)) {
        return error;
    }
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
        return last_error();
    }
    admin_socket made{
        {}, ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};  // no file yet
    const auto address = address_of(path);
    // The mode of the file to be: at no moment may others open it.
    if (made.fd_ < 0 || ::fchmod(made.fd_, S_IRUSR | S_IWUSR) != 0 ||
        ::bind(made.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        return last_error();
    }
    if (!made.own(std::move(path)) ||
        (who == config::socket_users::group &&
         ::chmod(made.path_.c_str(), S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP) != 0) ||
        ::listen(made.fd_, SOMAXCONN) != 0) {
        return last_error();
    }
    return made;
}

admin_socket admin_socket::adopt(descriptor listening) {
    return {{}, listening.release()};
}

bool admin_socket::own(std::string path) {
    struct stat facts {};
    const bool is_there = ::lstat(path.c_str(), &facts) == 0;
    path_ = is_there ? std::move(path) : std::string{};
    device_ = facts.st_dev;
    inode_ = facts.st_ino;
    return is_there;
}

admin_socket::admin_socket(admin_socket&& other) noexcept
    : path_{std::exchange(other.path_, {})},
      fd_{std::exchange(other.fd_, -1)},
      device_{other.device_},
      inode_{other.inode_} {}

admin_socket::~admin_socket() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
    struct stat facts {};
    if (!path_.empty() && ::lstat(path_.c_str(), &facts) == 0 && facts.st_dev == device_ &&
        facts.st_ino == inode_) {
        ::unlink(path_.c_str());
    }
}

int admin_socket::take_descriptor() noexcept {
    return std::exchange(fd_, -1);
}

}  // namespace reprise::proxy::admin
