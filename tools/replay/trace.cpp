#include "tools/replay/trace.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace reprise::replay {

using proxy::cache::packed_wait;

namespace {

// Any will do; a fixed one, so that every run gives the same figures.
const filter::hash_secret& secret() {
    static const auto fixed = [] {
        filter::hash_seed seed;
        seed.fill(std::byte{0x52});
        return filter::hash_secret::from_seed(seed);
    }();
    return fixed;
}

// What a format is found out from: a file may be one line without an end.
std::vector<std::string> lines_to_judge_by(line_source& source) {
    constexpr std::size_t most_lines = 100, most_bytes = 1u << 20;
    std::vector<std::string> out;
    std::size_t bytes = 0;
    std::string_view line;
    while (out.size() < most_lines && bytes < most_bytes && source.next(line)) {
        bytes += line.size();
        out.emplace_back(line);
    }
    return out;
}

}  // namespace

trace::trace(std::vector<std::string> paths, std::optional<log_format> format)
    : paths_{std::move(paths)},
      asked_{format} {}

bool trace::open_next() {
    source_.reset();
    if (opened_ == paths_.size()) {
        return false;
    }
    const auto& path = paths_[opened_++];
    source_.emplace(path);
    format_ = asked_;
    first_lines_.clear();
    first_taken_ = 0;
    if (is_behind_) {
        begins_ = true;
        last_began_ = {figures_.requests, objects_.size()};
    }
    if (format_) {
        formats_.push_back(format_);
        return true;
    }
    first_lines_ = lines_to_judge_by(*source_);
    const std::vector<std::string_view> views(first_lines_.begin(), first_lines_.end());
    format_ = detect_format(views);
    if (!format_ && !views.empty()) {
        throw std::runtime_error{path + ": no format that is known; name one with --format"};
    }
    formats_.push_back(format_);
    return true;
}

packed_wait trace::drawn_wait(std::string_view key) const {
    const auto scheme = key.find("://");
    if (scheme != std::string_view::npos) {
        key.remove_prefix(scheme + 3);
        key = key.substr(0, key.find('/'));
    }
    return origins_[filter::hash_of(key, secret()).low % origins_.size()];
}

void trace::take(std::string_view line, std::vector<request>& into) {
    ++figures_.lines;
    const auto read = parse_line(*format_, line);
    switch (read.kind) {
    case line_kind::request: break;
    case line_kind::other_method: ++figures_.other_method; return;
    case line_kind::other_status: ++figures_.other_status; return;
    case line_kind::malformed: ++figures_.malformed; return;
    }
    figures_.query_hidden += hides_query(*format_, read.key) ? 1 : 0;
    const auto key = is_behind_ && opened_ > 1
                         ? filter::hash_of(std::to_string(opened_).append("\n").append(read.key),
                                           secret())
                         : filter::hash_of(read.key, secret());
    const auto number = objects_.note(key, read.whole ? read.bytes : 0);
    if (read.wait) {
        objects_.note_wait(number, packed_wait{std::chrono::microseconds{*read.wait}});
    } else if (!origins_.empty() && !objects_[number].wait.is_known()) {
        objects_.note_wait(number, drawn_wait(read.key));
    }
    auto bytes = objects_[number].bytes;
    if (!read.whole && bytes == 0) {
        ++figures_.size_unknown;
        bytes = read.bytes;
    }
    if (std::exchange(begins_, false)) {
        later_ = figures_.requests == 0 ? 0 : figures_.last_second + 1 - read.seconds;
    }
    const auto seconds = std::clamp<std::int64_t>(
        read.seconds + later_, 0, std::numeric_limits<std::uint32_t>::max());
    if (figures_.requests == 0) {
        figures_.first_second = seconds;
    }
    figures_.last_second = seconds;
    ++figures_.requests;
    figures_.bytes += bytes;
    if (keeps_clients_) {
        clients_.push_back(client_numbers_.note(filter::hash_of(read.client, secret()), 0));
    }
    request told{.key = key, .object = number, .seconds = static_cast<std::uint32_t>(seconds)};
    told.bytes = std::min(bytes, request::most_bytes) & request::most_bytes;
    told.wait_code = objects_[number].wait.code() & packed_wait::most_code;
    into.push_back(told);
}

void trace::next(std::vector<request>& into, std::size_t most) {
    into.clear();
    if (!source_ && !open_next()) {
        return;
    }
    std::string_view line;
    while (into.size() < most) {
        if (first_taken_ < first_lines_.size()) {
            take(first_lines_[first_taken_++], into);
        } else if (source_->next(line)) {
            take(line, into);
        } else if (!open_next()) {
            return;
        }
    }
}

std::vector<std::string> by_first_request(std::vector<std::string> paths,
                                          std::optional<log_format> format) {
    constexpr auto last = std::numeric_limits<std::int64_t>::max();
    std::vector<std::pair<std::int64_t, std::string>> timed;
    for (const auto& path : paths) {
        std::error_code ignored;
        if (paths.size() < 2 || !std::filesystem::is_regular_file(path, ignored)) {
            return paths;
        }
        line_source source{path};
        const auto lines = lines_to_judge_by(source);
        const std::vector<std::string_view> views(lines.begin(), lines.end());
        const auto is = format ? format : detect_format(views);
        const auto first = std::find_if(views.begin(), views.end(), [&is](auto one) {
            return is && parse_line(*is, one).kind != line_kind::malformed;
        });
        timed.emplace_back(first == views.end() ? last : parse_line(*is, *first).seconds, path);
    }
    std::stable_sort(
        timed.begin(), timed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::transform(
        timed.begin(), timed.end(), paths.begin(), [](const auto& one) { return one.second; });
    return paths;
}

double trace::share_read() const noexcept {
    const auto files = static_cast<double>(paths_.size());
    const auto before = static_cast<double>(opened_ - (source_ ? 1 : 0));
    if (!source_) {
        return before / files;
    }
    const auto all = source_->bytes_in_all();
    const auto of_this =
        all == 0 ? 0 : static_cast<double>(source_->bytes_read()) / static_cast<double>(all);
    return (before + of_this) / files;
}

}  // namespace reprise::replay
