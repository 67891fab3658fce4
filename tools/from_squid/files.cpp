#include "tools/from_squid/files.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <glob.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace reprise::from_squid {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_of_file = 16 << 20;

std::vector<std::string> files_like(const std::string& pattern) {
    std::vector<std::string> out;
    ::glob_t found{};
    if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
        out.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    }
    ::globfree(&found);
    return out;
}

[[noreturn]] void cannot(const std::string& what, const std::string& path) {
    throw std::system_error{errno, std::generic_category(), "cannot " + what + ' ' + path};
}

/// A file that is written to; of a temporary one the name is gone with it, unless it was kept.
class written_file {
public:
    written_file(std::string path, int flags, bool is_temporary)
        : path_{std::move(path)},
          is_temporary_{is_temporary} {
        // The mode is what the umask leaves of this; of a file that takes another's place it is set.
        descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666);
        if (descriptor_ < 0) {
            cannot("write", path_);
        }
    }
    ~written_file() {
        if (descriptor_ >= 0) {
            ::close(descriptor_);
        }
        if (is_temporary_) {
            ::unlink(path_.c_str());
        }
    }
    written_file(const written_file&) = delete;
    written_file& operator=(const written_file&) = delete;

    void write(std::string_view text) const {
        while (!text.empty()) {
            const auto count = ::write(descriptor_, text.data(), text.size());
            if (count < 0 && errno != EINTR) {
                cannot("write", path_);
            }
            text.remove_prefix(count > 0 ? static_cast<std::size_t>(count) : 0);
        }
    }
    /// The owner first: giving a file away takes bits of its mode.
    void take_after(const struct ::stat& other) const {
        struct ::stat mine {};
        if (::fstat(descriptor_, &mine) != 0) {
            cannot("look at", path_);
        }
        const bool is_theirs = mine.st_uid == other.st_uid && mine.st_gid == other.st_gid;
        if (!is_theirs && ::fchown(descriptor_, other.st_uid, other.st_gid) != 0) {
            cannot("keep the owner and group of what is replaced, for", path_);
        }
        if (::fchmod(descriptor_, other.st_mode & 07777u) != 0) {
            cannot("keep the mode of what is replaced, for", path_);
        }
    }
    void sync() const {
        if (::fsync(descriptor_) != 0) {
            cannot("write", path_);
        }
    }
    void close() {
        if (::close(std::exchange(descriptor_, -1)) != 0) {
            cannot("write", path_);
        }
    }
    void move_to(const std::string& place) {
        if (::rename(path_.c_str(), place.c_str()) != 0) {
            cannot("put what was written in the place of", place);
        }
        is_temporary_ = false;
    }

private:
    std::string path_;
    bool is_temporary_;
    int descriptor_ = -1;
};

// The folder's own entry: a rename that is not on disk may be lost with the machine's power.
void sync_folder_of(const fs::path& path) {
    const auto folder = path.has_parent_path() ? path.parent_path().string() : std::string{"."};
    const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened >= 0) {
        (void)::fsync(opened);  // some file systems have none of that
        ::close(opened);
    }
}

}  // namespace

std::optional<std::string> contents_of(const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    if (!file) {
        return std::nullopt;
    }
    std::string text, piece(64 << 10, '\0');
    while (file && text.size() <= most_of_file) {
        file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
        text.append(piece, 0, static_cast<std::size_t>(file.gcount()));
    }
    if (file.bad() || (text.empty() && !file.eof()) || text.size() > most_of_file) {
        return std::nullopt;
    }
    return text;
}

file_source files_beside(std::string path, std::string text) {
    return {[path = std::move(path), text = std::move(text)](const std::string& wanted) {
                return wanted == path ? std::optional{text} : contents_of(wanted);
            },
            files_like};
}

bool is_one_file(const std::string& path, const std::string& other) {
    std::error_code unknown;
    return fs::equivalent(path, other, unknown) && !unknown;
}

void replace_file(const std::string& path, std::string_view text) {
    struct ::stat before {};
    const bool is_there = ::stat(path.c_str(), &before) == 0;
    if (!is_there && errno != ENOENT) {
        cannot("write", path);
    }
    if (is_there && !S_ISREG(before.st_mode)) {
        written_file as_it_is{path, 0, false};
        as_it_is.write(text);
        as_it_is.close();
        return;
    }
    const auto place = is_there ? fs::canonical(path).string() : path;
    // Two that write at once have a name each; what one of this number has left is of no use.
    const auto beside = place + ".new-" + std::to_string(::getpid());
    ::unlink(beside.c_str());
    written_file made{beside, O_CREAT | O_EXCL | O_NOFOLLOW, true};
    if (is_there) {
        made.take_after(before);
    }
    made.write(text);
    made.sync();
    made.close();
    made.move_to(place);
    sync_folder_of(place);
}

}  // namespace reprise::from_squid
