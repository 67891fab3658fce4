#pragma once
// One or more logs as one stream of requests, decoded once, in batches.

#include "tools/replay/line_source.hpp"
#include "tools/replay/log_line.hpp"
#include "tools/replay/object_table.hpp"
#include "tools/replay/request.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::replay {

/// What a trace held, and what of it did not count.
struct trace_figures {
    std::uint64_t lines = 0;
    std::uint64_t requests = 0;
    std::uint64_t bytes = 0;  ///< requested: each request's whole object
    std::uint64_t other_method = 0, other_status = 0, malformed = 0;
    std::uint64_t size_unknown = 0;  ///< 206 or 304 of an object not seen whole before
    std::uint64_t query_hidden = 0;  ///< of URLs that hides_query()
    std::int64_t first_second = 0, last_second = 0;
};

/// Threads  one.
class trace {
public:
    /// The files are read one after the other. Without a format each file's is found from its first
    /// lines. Sizes are those of the objects: each the largest seen so far.
    trace(std::vector<std::string> paths, std::optional<log_format> format);

    /// The next requests, at most `most`. Empty at the end.
    /// @throws std::runtime_error when a file can't be opened or read, or its format is not known
    void next(std::vector<request>& into, std::size_t most);

    /// What origins take, drawn for objects of which the trace tells nothing: one of these, by the
    /// hash of the URL's host, or of the key where that is none. Before the first.
    void draw_waits(std::vector<proxy::cache::packed_wait> origins) {
        origins_ = std::move(origins);
    }

    /// Each file is other traffic, which begins when the one before it has ended: nothing in it is an
    /// object of those before. Before the first.
    void one_behind_another() noexcept { is_behind_ = true; }
    /// Then: how many requests and objects there were before the file that was opened last.
    struct beginning {
        std::uint64_t requests = 0;
        std::size_t objects = 0;
    };
    [[nodiscard]] const beginning& last_began() const noexcept { return last_began_; }

    /// From now on clients() grows with each request: 4 bytes each. Before the first.
    void keep_clients() noexcept { keeps_clients_ = true; }
    /// Each request's client, numbered by first appearance; all one in a trace that knows of none.
    [[nodiscard]] const std::vector<std::uint32_t>& clients() const noexcept { return clients_; }
    [[nodiscard]] std::size_t different_clients() const noexcept { return client_numbers_.size(); }

    [[nodiscard]] const trace_figures& figures() const noexcept { return figures_; }
    [[nodiscard]] const object_table& objects() const noexcept { return objects_; }
    [[nodiscard]] std::optional<log_format> format() const noexcept { return format_; }
    /// The formats of all files that were opened, in their order, asked for or found; none of an
    /// empty one.
    [[nodiscard]] const std::vector<std::optional<log_format>>& formats() const noexcept {
        return formats_;
    }

    /// The share of the files that is read, as they lie on disk; 0 for one of unknown length.
    [[nodiscard]] double share_read() const noexcept;

private:
    bool open_next();
    [[nodiscard]] proxy::cache::packed_wait drawn_wait(std::string_view key) const;
    void take(std::string_view line, std::vector<request>& into);

    std::vector<std::string> paths_;
    std::size_t opened_ = 0;
    std::optional<log_format> asked_;
    std::optional<log_format> format_;  // of the file in hand
    std::vector<std::optional<log_format>> formats_;
    std::optional<line_source> source_;
    std::vector<std::string> first_lines_;  // read to find the format
    std::size_t first_taken_ = 0;
    object_table objects_;
    trace_figures figures_;
    std::vector<proxy::cache::packed_wait> origins_;
    bool is_behind_ = false, begins_ = false;
    std::int64_t later_ = 0;  // seconds, than the file in hand says
    beginning last_began_;
    bool keeps_clients_ = false;
    object_table client_numbers_;
    std::vector<std::uint32_t> clients_;
};

/// The files in the order of their first requests, whatever became of those: rotated logs are named
/// from the newest to the oldest. One that has none among its first lines comes behind all others.
/// What begins at the same time, or has no time, stays as it is named; so do all where one is no
/// regular file, which can be read only once.
/// @throws std::runtime_error when a file can't be opened or read
[[nodiscard]] std::vector<std::string> by_first_request(std::vector<std::string> paths,
                                                        std::optional<log_format> format);

}  // namespace reprise::replay
