// cache_dir and maximum_object_size: the store on disk, of which there is one; and what both stores take at most.
// Bounds are written within those that config::load takes, for what it refuses the default takes the place of.

#include "config/quantity.hpp"
#include "tools/from_squid/draft.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace reprise::from_squid {

namespace {

constexpr std::uint64_t least_disk = std::uint64_t{16} << 20, most_disk = std::uint64_t{16} << 40;
constexpr std::uint64_t least_object = 1024;
// Squid's own bounds where none is written: maximum_object_size_in_memory and maximum_object_size.
constexpr std::uint64_t usual_in_memory = std::uint64_t{512} << 10,
                        usual_on_disk = std::uint64_t{4} << 20;

// A directory that is stored to.
struct store_dir {
    const statement* from = nullptr;
    std::uint64_t bytes = 0;
    std::optional<std::uint64_t> largest;  // its own max-size
};

// "max-size=n" and "min-size=n", of bytes.
std::optional<std::uint64_t> size_option(draft& into,
                                         const statement& from,
                                         std::string_view name) {
    const auto text = option_of(from, name);
    if (!text) {
        return std::nullopt;
    }
    std::uint64_t out = 0;
    const auto* end = text->data() + text->size();
    const auto read = std::from_chars(text->data(), end, out);
    if (read.ec != std::errc{} || read.ptr != end) {
        into.say(fate::left_out, from, std::string{name} + " is no number of bytes", "disk");
        return std::nullopt;
    }
    return out;
}

// None: nothing is stored there, as is said.
std::optional<store_dir> read_dir(draft& into, const statement& from) {
    const auto megabytes = config::parse_duration(word_at(from, 3) + "s");
    const auto* read = std::get_if<0>(&megabytes);
    if (word_at(from, 1) == "null" || read == nullptr) {
        into.say(fate::left_out, from, "not a directory with its size", "disk.path");
        return std::nullopt;
    }
    if (has_word(from, "no-store")) {
        into.say(fate::left_out, from, "no-store: nothing new was stored there", "disk.size");
        return std::nullopt;
    }
    if (size_option(into, from, "min-size").value_or(0) > 0) {
        into.say(fate::left_out, from, "min-size: small things are stored", "disk.size");
    }
    const auto bytes = static_cast<std::uint64_t>(
                           std::chrono::duration_cast<std::chrono::seconds>(*read).count()) %
                           (std::uint64_t{1} << 40)
                       << 20;
    return store_dir{&from, bytes, size_option(into, from, "max-size")};
}

// The largest of what one of the directories takes.
std::uint64_t largest_of(const std::vector<store_dir>& dirs, std::uint64_t otherwise) {
    std::uint64_t out = 0;
    for (const auto& each : dirs) {
        out = std::max(out, each.largest.value_or(otherwise));
    }
    return out;
}

void say_bound_is_squids_own(draft& into, const std::string& section) {
    into.told.push_back(
        {fate::changed,
         {},
         "",
         "Squid's own bound, since none is written: what is larger is stored here without it",
         section + ".max_object"});
}

// maximum_object_size, which is for directories without a max-size of their own.
std::optional<std::uint64_t> largest_written(draft& into, const statements& largest, bool disk) {
    std::optional<std::uint64_t> out;
    for (const auto* each : largest) {
        const auto bytes = bytes_at(*each, 1);
        if (!bytes) {
            into.say(fate::left_out, *each, "not a size", "disk.max_object");
        } else if (!disk) {
            into.say(fate::left_out,
                     *each,
                     "is of a store on disk, and there is none; memory.max_object is memory's",
                     "memory");
        } else {
            out = bytes;  // the last one is Squid's
        }
    }
    return out;
}

std::optional<std::uint64_t> bytes_of(const ordered_json& section, const char* name) {
    if (!section.contains(name)) {
        return std::nullopt;
    }
    const auto parsed = config::parse_size(section[name].get<std::string>());
    const auto* value = config::value_of(parsed);
    return value != nullptr ? std::optional{*value} : std::nullopt;
}

// A store's max_object within what it takes in any case.
void bound_object(draft& into, const std::string& section, std::uint64_t most) {
    auto& store = into.settings[section];
    const auto written = bytes_of(store, "max_object");
    if (!written) {
        return;
    }
    const auto fitting = std::clamp(*written, least_object, std::max(most, least_object));
    if (fitting == *written) {
        return;
    }
    store["max_object"] = config::size_to_string(fitting);
    into.told.push_back(
        {fate::approximated,
         {},
         "",
         fitting > *written ? "no less than this" : "no larger part of the store than this",
         section + ".max_object"});
}

}  // namespace

void convert_stores(draft& into, const statements& cache_dirs, const statements& largest) {
    std::vector<store_dir> dirs;
    for (const auto* each : cache_dirs) {
        if (auto one = read_dir(into, *each)) {
            dirs.push_back(*one);
        }
    }
    // A fifth is what memory takes of one object at most (config::memory_options).
    const auto memory =
        bytes_of(into.settings["memory"], "size").value_or(std::uint64_t{256} << 20);
    if (auto& section = into.settings["memory"]; !section.contains("max_object")) {
        section["max_object"] = config::size_to_string(usual_in_memory);
        say_bound_is_squids_own(into, "memory");
    }
    bound_object(into, "memory", memory / 5);
    const auto otherwise = largest_written(into, largest, !dirs.empty());
    if (dirs.empty()) {
        return;
    }
    std::uint64_t bytes = 0;
    for (const auto& each : dirs) {
        bytes = std::min(bytes + each.bytes, 2 * most_disk);
        if (&each == &dirs.front()) {
            into.say(fate::changed,
                     *each.from,
                     "Squid's files can't be read: a directory of its own",
                     "disk.path");
        } else {
            into.say(fate::approximated,
                     *each.from,
                     "there is one store: the sizes are added",
                     "disk.size");
        }
    }
    auto& disk = into.settings["disk"];
    const auto fitting = std::clamp(bytes, least_disk, most_disk);
    disk["path"] = "/var/cache/reprise";
    disk["size"] = config::size_to_string(fitting);
    if (fitting != bytes) {
        into.told.push_back({fate::approximated,
                             {},
                             "",
                             "cache_dir: a store on disk has from 16 MiB to 16 TiB",
                             "disk.size"});
    }
    const auto object = largest_of(dirs, otherwise.value_or(usual_on_disk));
    disk["max_object"] = config::size_to_string(object);
    if (!otherwise &&
        std::any_of(dirs.begin(), dirs.end(), [](const store_dir& one) { return !one.largest; })) {
        say_bound_is_squids_own(into, "disk");
    }
    for (const auto& each : dirs) {
        if (each.largest && each.largest != object) {
            into.say(
                fate::approximated,
                *each.from,
                "max-size: one bound is for all of the store, that of the directory that takes "
                "the largest",
                "disk.max_object");
        }
    }
    bound_object(into, "disk", fitting / 4);
}

}  // namespace reprise::from_squid
