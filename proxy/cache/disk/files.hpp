#pragma once
// What the operating system does for the disk tier, as an interface, so that tests can make it
// fail, hang, and lose what was not synced.
//
// The members that end in _some are what the system calls are: they may do less than they were
// asked. read_all and write_all go on until it is done.
//
// Threads   one file may be read and written by any number of threads at once (pread, pwrite).
// Errors    values: what errno said (is_no_room knows those of a full disk). What is done to a file takes no
//           memory of ours and throws nothing, so that no exception comes between two writes that belong
//           together. Those that make a file, a list or a directory's name throw std::bad_alloc: then
//           nothing is open that was not (a file may have been made), and nothing was said of the disk.

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

namespace reprise::proxy::cache::disk {

using boost::system::error_code;

class file {
public:
    file() = default;
    virtual ~file() = default;
    file(const file&) = delete;
    file& operator=(const file&) = delete;

    /// As pread: 0 bytes at the end of the file. May block.
    [[nodiscard]] virtual boost::system::result<std::size_t> read_some(
        std::uint64_t at, std::span<std::byte> into) noexcept = 0;
    /// Only what is there without waiting for a disk (preadv2, RWF_NOWAIT): perhaps fewer bytes;
    /// errc::resource_unavailable_try_again when not one, or when the system can't tell.
    [[nodiscard]] virtual boost::system::result<std::size_t> read_cached(
        std::uint64_t at, std::span<std::byte> into) noexcept = 0;
    /// The same in one call into several places, which are filled one after the other (preadv).
    /// @pre into.size() <= most_places
    static constexpr std::size_t most_places = 8;
    using places = std::span<const std::span<std::byte>>;
    [[nodiscard]] virtual boost::system::result<std::size_t> scatter_some(std::uint64_t at,
                                                                          places into) noexcept = 0;
    [[nodiscard]] virtual boost::system::result<std::size_t> scatter_cached(
        std::uint64_t at, places into) noexcept = 0;
    /// As pwrite. May block.
    [[nodiscard]] virtual boost::system::result<std::size_t> write_some(
        std::uint64_t at, std::span<const std::byte> bytes) noexcept = 0;
    /// As fdatasync. May block.
    [[nodiscard]] virtual error_code sync() noexcept = 0;
    /// Begins to write these bytes out, and waits until what is further behind than 64 MiB is:
    /// dirty pages stay few.
    virtual void write_out(std::uint64_t at, std::uint64_t size) noexcept = 0;
    /// Takes room on the disk for `size` bytes in all, so that writing them cannot fill it. Where
    /// the file system can't, the file just has that size.
    [[nodiscard]] virtual error_code reserve(std::uint64_t size) noexcept = 0;
    [[nodiscard]] virtual error_code resize(std::uint64_t size) noexcept = 0;
    [[nodiscard]] virtual boost::system::result<std::uint64_t> size() noexcept = 0;
    /// A lock that lasts until this file is closed; errc::operation_would_block when another open
    /// file has it.
    [[nodiscard]] virtual error_code try_lock() noexcept = 0;
    /// The same, but any number of open files may have it: not beside one that has the other kind.
    [[nodiscard]] virtual error_code try_lock_shared() noexcept = 0;
};

/// Nothing more can be written: the file system is full, or a quota used up.
[[nodiscard]] bool is_no_room(const error_code& error) noexcept;

/// Fills `into`. errc::no_message_available when the file ends before.
[[nodiscard]] error_code read_all(file& from, std::uint64_t at, std::span<std::byte> into) noexcept;
[[nodiscard]] error_code read_all(file& from, std::uint64_t at, file::places into) noexcept;
[[nodiscard]] error_code write_all(file& to,
                                   std::uint64_t at,
                                   std::span<const std::byte> bytes) noexcept;

/// What is written is mostly made as characters.
[[nodiscard]] inline std::span<const std::byte> as_bytes_of(std::span<const char> text) noexcept {
    return std::as_bytes(text);
}

enum class open_mode : std::uint8_t {
    read,    ///< errc::no_such_file_or_directory when there is none
    update,  ///< to read and write; likewise
    make,    ///< as update, made (mode 0600) where there is none
};

/// What there was no memory for: says nothing of the disk, and is worth trying again.
[[nodiscard]] inline error_code no_memory() noexcept {
    return boost::system::errc::make_error_code(boost::system::errc::not_enough_memory);
}
/// Whether it is that, of whichever category: the system lacks memory too.
[[nodiscard]] inline bool is_no_memory(const error_code& failed) noexcept {
    return failed == boost::system::errc::not_enough_memory;
}
/// For whoever would take what failed for the disk's: as if we had lacked it ourselves.
inline void throw_if_no_memory(const error_code& failed) {
    if (is_no_memory(failed)) {
        throw std::bad_alloc{};
    }
}

class filesystem {
public:
    filesystem() = default;
    virtual ~filesystem() = default;
    filesystem(const filesystem&) = delete;
    filesystem& operator=(const filesystem&) = delete;

    /// Close-on-exec. May block, as all below. @throws std::bad_alloc, as below where not noexcept
    [[nodiscard]] virtual boost::system::result<std::shared_ptr<file>> open(const std::string& path,
                                                                            open_mode mode) = 0;
    /// With its parents (mode 0700); nothing when it is there.
    [[nodiscard]] virtual error_code make_directory(const std::string& path) = 0;
    /// Names in a directory, without "." and "..", in no order.
    [[nodiscard]] virtual boost::system::result<std::vector<std::string>> list(
        const std::string& path) = 0;
    [[nodiscard]] virtual error_code rename(const std::string& from,
                                            const std::string& to) noexcept = 0;
    [[nodiscard]] virtual error_code remove(const std::string& path) noexcept = 0;
    /// Syncs a directory: names made, renamed or removed in it stay so.
    [[nodiscard]] virtual error_code sync_directory(const std::string& path) noexcept = 0;

    /// Bytes that the system took from write_some, of all files since this was made.
    [[nodiscard]] std::uint64_t written_bytes() const noexcept {
        return written_.load(std::memory_order_relaxed);
    }

protected:
    std::atomic<std::uint64_t> written_{0};
};

/// The system's own.
/// Lives as long as any file it opened.
[[nodiscard]] std::shared_ptr<filesystem> system_files();

}  // namespace reprise::proxy::cache::disk
