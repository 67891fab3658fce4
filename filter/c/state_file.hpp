#pragma once
// A state as a file: read whole, written beside and renamed. All of it blocks.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <reprise/common.h>
#include <span>
#include <string>
#include <vector>

namespace reprise::filter::c {

/// Why the system would not.
struct file_failure {
    int system = 0;         ///< errno; 0 where `what` says all
    const char* what = "";  ///< what was being done
};

/// Why a state that is there is not used.
struct refusal {
    reprise_code code;
    int system;
    std::string why;
};
[[nodiscard]] refusal refused_by(const file_failure& failure);
/// What another version of the format wrote is kept as PATH.other-version; says so.
[[nodiscard]] std::string put_aside(const std::string& path);
/// What an open that began empty has to say.
void tell(reprise_error* error, const char* path, const refusal& refused) noexcept;
/// What a save that failed has to say, and its code.
[[nodiscard]] int not_saved(reprise_error* error,
                            const std::string& path,
                            const file_failure& failure) noexcept;

/// The file's bytes, at most `most` of them; none when there is no such file. A pipe or a device is
/// refused, not waited for. @throws file_failure, std::bad_alloc
[[nodiscard]] std::optional<std::vector<std::byte>> read_file(const std::string& path,
                                                              std::uint64_t most);

/// Hands pieces to whoever writes them; false where that failed.
using piece_sink = std::function<bool(std::span<const std::byte>)>;

/// What `write` hands to its sink, in a file of mode 0600 that takes path's place once it is on
/// disk, and is gone where that fails; where the file system has files without a name, a process
/// that is killed while it writes leaves none either. May call `write` twice, where such a file
/// gets no name. @throws file_failure, std::bad_alloc
void write_file(const std::string& path, const std::function<bool(const piece_sink&)>& write);

}  // namespace reprise::filter::c
