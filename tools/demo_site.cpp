#include "tools/demo_site.hpp"

#include <boost/beast/http/field.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <sys/stat.h>

namespace reprise::tools {
namespace {

std::optional<std::time_t> parse_date(const std::string& text) {
    std::tm parts{};
    const char* end = strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    if (end == nullptr || *end != '\0') {
        return std::nullopt;
    }
    return timegm(&parts);
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (bad != std::errc{} || end != text.data() + text.size() || text.empty()) {
        return std::nullopt;
    }
    return value;
}

// A range of a body, both ends inside it.
struct byte_range {
    std::uint64_t first = 0, last = 0;
};

// One "bytes=" range of RFC 9110 14.1.2. None: to be ignored. First past the end: not satisfiable.
std::optional<byte_range> parse_range(std::string_view value, std::uint64_t size) {
    constexpr std::string_view unit = "bytes=";
    if (!value.starts_with(unit) || size == 0) {
        return std::nullopt;
    }
    value.remove_prefix(unit.size());
    const auto dash = value.find('-');
    if (dash == std::string_view::npos) {
        return std::nullopt;
    }
    const auto first = parse_number(value.substr(0, dash));
    const auto last = parse_number(value.substr(dash + 1));
    if (dash == 0 && last) {
        return byte_range{size - std::min(*last, size), size - 1};
    }
    if (!first || (!last && dash + 1 != value.size()) || (last && *last < *first)) {
        return std::nullopt;
    }
    return byte_range{*first, std::min(last.value_or(size - 1), size - 1)};
}

std::string_view media_type(const std::filesystem::path& path) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 8> known{{
        {".html", "text/html; charset=utf-8"},
        {".txt", "text/plain; charset=utf-8"},
        {".css", "text/css"},
        {".js", "text/javascript"},
        {".json", "application/json"},
        {".png", "image/png"},
        {".svg", "image/svg+xml"},
        {".deb", "application/vnd.debian.binary-package"},
    }};
    const auto extension = path.extension().string();
    for (const auto& [ending, type] : known) {
        if (extension == ending) {
            return type;
        }
    }
    return "application/octet-stream";
}

// The file a target names below `root`; none when it has a segment that could lead out of it.
std::optional<std::filesystem::path> file_of(std::string_view target, const std::string& root) {
    target = target.substr(0, target.find_first_of("?#"));
    std::string decoded;
    for (std::size_t i = 0; i < target.size(); ++i) {
        if (target[i] == '%' && i + 2 < target.size()) {
            unsigned octet = 0;
            const char* digits = target.data() + i + 1;
            const auto [end, bad] = std::from_chars(digits, digits + 2, octet, 16);
            if (bad != std::errc{} || end != digits + 2 || octet == 0) {
                return std::nullopt;
            }
            decoded += static_cast<char>(octet);
            i += 2;
        } else {
            decoded += target[i];
        }
    }
    const std::filesystem::path below{decoded};
    if (std::find(below.begin(), below.end(), "..") != below.end()) {
        return std::nullopt;
    }
    auto path = std::filesystem::path{root} / below.relative_path();
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
        path /= "index.html";
    }
    return path;
}

std::string field_of(const request& asked, http::field name) {
    return std::string{asked[name]};
}

// RFC 9110 13.2.2: an ETag decides when the request names one, else the date.
bool is_unmodified(const request& asked, const std::string& etag, std::time_t modified) {
    if (const auto tags = field_of(asked, http::field::if_none_match); !tags.empty()) {
        return tags == "*" || tags.find(etag) != std::string::npos;
    }
    const auto since = parse_date(field_of(asked, http::field::if_modified_since));
    return since && modified <= *since;
}

answer serve_file(const request& asked, const site_options& site) {
    const auto path = file_of(asked.target(), site.root);
    struct stat about {};
    if (!path || stat(path->c_str(), &about) != 0 || !S_ISREG(about.st_mode)) {
        return plain(http::status::not_found, "There is no such file here.\n");
    }
    answer made;
    const auto size = static_cast<std::uint64_t>(about.st_size);
    const auto changed_ns = static_cast<std::uint64_t>(about.st_mtim.tv_nsec);
    const auto etag = "\"" + std::to_string(size) + "-" + std::to_string(about.st_mtim.tv_sec) +
                      "-" + std::to_string(changed_ns) + "\"";
    const auto modified = http_date(about.st_mtim.tv_sec);
    made.fields = "Content-Type: " + std::string{media_type(*path)} + "\r\nETag: " + etag +
                  "\r\nLast-Modified: " + modified + "\r\nAccept-Ranges: bytes\r\n" +
                  "Cache-Control: max-age=" + std::to_string(site.max_age) + "\r\n";
    if (is_unmodified(asked, etag, about.st_mtim.tv_sec)) {
        made.status = http::status::not_modified;
        return made;
    }
    made.file.open(*path, std::ios::binary);
    made.from_file = size;
    const auto if_range = field_of(asked, http::field::if_range);
    const auto range = parse_range(field_of(asked, http::field::range), size);
    if (range && (if_range.empty() || if_range == etag || if_range == modified)) {
        if (range->first > range->last) {
            made.status = http::status::range_not_satisfiable;
            made.fields += "Content-Range: bytes */" + std::to_string(size) + "\r\n";
            made.from_file = 0;
            return made;
        }
        made.status = http::status::partial_content;
        made.fields += "Content-Range: bytes " + std::to_string(range->first) + "-" +
                       std::to_string(range->last) + "/" + std::to_string(size) + "\r\n";
        made.file.seekg(static_cast<std::streamoff>(range->first));
        made.from_file = range->last - range->first + 1;
    }
    return made;
}

answer serve_page(const request& asked, const site_options& site) {
    constexpr std::string_view etag = "\"hello-1\"";
    constexpr std::string_view bytes = "/bytes/";
    const std::string_view target{asked.target().data(), asked.target().size()};
    const auto path = target.substr(0, target.find('?'));
    answer made;
    const auto lifetime = "Cache-Control: max-age=" + std::to_string(site.max_age) + "\r\n";
    if (path == "/hello") {
        made.fields = lifetime + "ETag: " + std::string{etag} + "\r\nContent-Type: text/plain\r\n";
        if (is_unmodified(asked, std::string{etag}, std::time(nullptr))) {
            made.status = http::status::not_modified;
        } else {
            made.text = "Hello from the origin.\n";
        }
        return made;
    }
    if (path == "/never") {
        return plain(http::status::ok, "Hello, and forget it.\n");
    }
    if (path.starts_with(bytes)) {
        if (const auto count = parse_number(path.substr(bytes.size()))) {
            made.fields = lifetime + "Content-Type: application/octet-stream\r\n";
            made.made_up = *count;
            return made;
        }
    }
    return plain(http::status::not_found, "Here are /hello, /never and /bytes/N.\n");
}

}  // namespace

std::string http_date(std::time_t when) {
    std::tm parts{};
    gmtime_r(&when, &parts);
    std::array<char, 40> out{};
    const auto size = std::strftime(out.data(), out.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    return {out.data(), size};
}

answer plain(http::status status, std::string text) {
    answer made;
    made.status = status;
    made.fields = "Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n";
    made.text = std::move(text);
    return made;
}

answer answer_to(const request& asked, const site_options& site) {
    return site.root.empty() ? serve_page(asked, site) : serve_file(asked, site);
}

}  // namespace reprise::tools
