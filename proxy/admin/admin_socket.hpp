#pragma once
// The admin listener's Unix socket: found, bound, and gone with the program. Its file's permissions
// say who may come; a socket of a program that has ended is replaced, one that somebody listens on
// is not.

#include "config/options.hpp"
#include "proxy/base/descriptor.hpp"

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <string>
#include <string_view>
#include <sys/types.h>

namespace reprise::proxy::admin {

/// Where the socket is to be; empty: nowhere. "auto" is admin.sock in the first directory of
/// `runtime_directory` ($RUNTIME_DIRECTORY of systemd.exec(5); empty: there is none).
[[nodiscard]] std::string socket_path(const config::admin_options& options,
                                      std::string_view runtime_directory);

/// What keeps a socket from being bound there; none: nothing. `address_in_use`: a program listens
/// on it. `file_exists`: something else than a socket has that name. Binds nothing.
[[nodiscard]] boost::system::error_code why_not_bind(const std::string& path);

/// A listening socket, and its file.
class admin_socket {
public:
    /// Blocks on the file system. Errors: those of why_not_bind, and of the system.
    [[nodiscard]] static boost::system::result<admin_socket> listen(std::string path,
                                                                    config::socket_users who);
    /// One that listens already: another process made it, and its file is that process's until own().
    [[nodiscard]] static admin_socket adopt(descriptor listening);
    admin_socket(admin_socket&& other) noexcept;
    admin_socket& operator=(admin_socket&&) = delete;
    /// Closes it, where nobody took it, and removes the file, unless another one has its name now.
    ~admin_socket();

    /// The descriptor is the caller's from now on, the file stays ours.
    [[nodiscard]] int take_descriptor() noexcept;
    /// The file there is ours from now on, to be removed. False: there is none.
    [[nodiscard]] bool own(std::string path);
    /// The file is another process's from now on.
    void leave_file() noexcept { path_.clear(); }

private:
    admin_socket(std::string path, int descriptor) : path_{std::move(path)}, fd_{descriptor} {}

    std::string path_;  ///< empty: moved from
    int fd_ = -1;
    dev_t device_ = 0;  ///< of the file, by which we know it
    ino_t inode_ = 0;
};

}  // namespace reprise::proxy::admin
