// reprise-store: what is in a store on disk. It only reads, beside a running proxy too.

#include "proxy/http/date.hpp"
#include "tools/store/opened_store.hpp"

#include <nlohmann/json.hpp>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

namespace {

using namespace reprise::store;
using reprise::proxy::wall_now;

struct command {
    std::string path, url, prefix, output;
    std::uint64_t most = 0;
    std::size_t variant = 0;
    bool json = false, with_head = false;
};

/// Bytes from outside as text that a terminal takes for nothing else.
std::string printable(std::string_view text) {
    std::string made;
    for (const char c : text) {
        if (c >= ' ' && c <= '~') {
            made += c;
        } else {
            std::array<char, 5> code{};
            std::snprintf(code.data(), code.size(), "\\x%02x", static_cast<unsigned char>(c));
            made += code.data();
        }
    }
    return made;
}

std::string date(wall_time when) {
    const auto text = reprise::proxy::http::format_date(when);
    return {text.begin(), text.end()};
}

std::string_view to_string(disk::segment_state state) {
    switch (state) {
    case disk::segment_state::unused: return "unused";
    case disk::segment_state::closed: return "closed";
    case disk::segment_state::scanned: return "open";
    case disk::segment_state::unreadable: return "unreadable";
    }
    return "unknown";
}

std::string freshness(const stored_object& object, wall_time now) {
    if (object.purged) {
        return "purged";
    }
    if (object.fresh_until <= now) {
        return "stale";
    }
    const auto left = std::chrono::floor<std::chrono::seconds>(object.fresh_until - now);
    return std::to_string(left.count()) + "s";
}

nlohmann::json as_json(const stored_object& object, wall_time now) {
    const auto& view = object.view;
    nlohmann::json made{{"url", printable(view.url)},
                        {"status", view.status},
                        {"bytes", view.length},
                        {"kind", disk::to_string(object.record.header.kind)},
                        {"stored", date(view.freshness.response_time)},
                        {"freshness", freshness(object, now)},
                        {"whole", object.is_whole},
                        {"carried", object.record.header.carried},
                        {"refreshed", object.refreshed.has_value()},
                        {"segment", object.record.segment},
                        {"offset", object.record.entry.offset}};
    if (view.header.wait.is_known()) {
        made["fetch_seconds"] = view.header.wait.seconds();
    }
    if (!view.vary_names.empty()) {
        made["vary"] = printable(view.vary_names);
        made["selecting"] = printable(view.selecting);
    }
    return made;
}

int list(const command& asked) {
    const opened_store store{asked.path};
    const auto now = wall_now();
    std::uint64_t seen = 0;
    store.for_each_object([&](const stored_object& object) {
        const auto& view = object.view;
        if (!view.url.starts_with(asked.prefix)) {
            return true;
        }
        if (asked.json) {
            std::cout << as_json(object, now).dump() << '\n';
        } else {
            std::cout << view.status << '\t' << view.length << '\t'
                      << date(view.freshness.response_time) << '\t' << freshness(object, now)
                      << '\t' << (object.is_whole ? "" : "incomplete ") << printable(view.url);
            if (!view.vary_names.empty()) {
                std::cout << '\t' << printable(view.vary_names) << ' ' << printable(view.selecting);
            }
            std::cout << '\n';
        }
        return ++seen != asked.most;
    });
    return 0;
}

int inspect(const command& asked) {
    const opened_store store{asked.path};
    const auto& block = store.block();
    std::cout << "made      " << date(block.made) << '\n'
              << "segments  " << store.segments().size() << " of " << block.segment_bytes
              << " bytes\n"
              << "records   " << store.records() << " that count\n"
              << "journal   "
              << (store.journal_trouble().empty() ? "sound" : store.journal_trouble()) << "\n\n"
              << "number\tsequence\tstate\trecords\tbytes\tcurrent\tbytes\tbegun\n";
    for (const auto& segment : store.segments()) {
        const auto& found = segment.found;
        std::cout << segment.number << '\t' << found.header.sequence << '\t'
                  << to_string(found.state) << '\t' << segment.records << '\t' << segment.bytes
                  << '\t' << segment.current << '\t' << segment.current_bytes << '\t'
                  << (found.header.sequence == 0 ? "" : date(found.header.begun)) << '\n';
    }
    return 0;
}

int verify(const command& asked) {
    const opened_store store{asked.path};
    std::uint64_t records = 0, damaged = 0, incomplete = 0;
    if (!store.journal_trouble().empty()) {
        std::cout << store.journal_trouble() << '\n';
        ++damaged;
    }
    for (const auto& segment : store.segments()) {
        const auto name = disk::segment_name(segment.number);
        const auto scanned = store.scan(segment.number);
        if (scanned.state == disk::segment_state::unreadable) {
            std::cout << name << ": can't be read\n";
            ++damaged;
            continue;
        }
        if (scanned.header.sequence != segment.found.header.sequence) {
            continue;  // the proxy began it anew meanwhile
        }
        records += scanned.entries.size();
        // What a footer lists and a scan does not find is damaged; an open segment grows meanwhile.
        const bool closed = segment.found.state == disk::segment_state::closed;
        const auto lost = closed && segment.records > scanned.entries.size()
                              ? segment.records - scanned.entries.size()
                              : scanned.damaged;
        if (lost != 0 || segment.found.bad_footer || scanned.unreadable_bytes != 0) {
            std::cout << name << ": " << lost << " damaged records"
                      << (segment.found.bad_footer ? ", damaged footer" : "") << ", "
                      << scanned.unreadable_bytes << " unreadable bytes\n";
            damaged += lost + (segment.found.bad_footer ? 1 : 0);
        }
    }
    store.for_each_object([&](const stored_object& object) {
        incomplete += object.is_whole ? 0 : 1;
        return true;
    });
    std::cout << records << " records are sound, " << damaged << " damaged, " << incomplete
              << " large objects incomplete\n";
    return damaged == 0 ? 0 : 1;
}

int export_one(const command& asked) {
    const opened_store store{asked.path};
    const auto variants = store.find(asked.url);
    if (asked.variant >= variants.size()) {
        std::cerr << "reprise-store: " << (variants.empty() ? "not stored: " : "no such variant: ")
                  << printable(asked.url) << '\n';
        return 1;
    }
    const auto& object = variants[asked.variant];
    if (object.purged) {
        std::cerr << "reprise-store: it is purged: " << printable(asked.url) << '\n';
        return 1;
    }
    std::ofstream file;
    if (!asked.output.empty()) {
        file.open(asked.output, std::ios::binary);
        if (!file) {
            std::cerr << "reprise-store: " << asked.output << ": can't be written\n";
            return 1;
        }
    }
    std::ostream& out = asked.output.empty() ? std::cout : file;
    if (asked.with_head) {
        out << object.view.head << "\r\n";
    }
    const bool whole = store.write_body(object, out);
    out.flush();
    if (!whole || !out) {
        std::cerr << "reprise-store: "
                  << (out ? "part of the body is damaged or gone: " : "can't write: ")
                  << printable(asked.url) << '\n';
        return 1;
    }
    return 0;
}

}  // namespace

int main(int count, char** arguments) {
    command asked;
    CLI::App app{"What is in a store on disk. It only reads; the proxy may be running."};
    app.set_version_flag("--version", REPRISE_VERSION);
    app.require_subcommand(1);
    const auto with_path = [&](const char* name, const char* does) {
        auto* made = app.add_subcommand(name, does);
        made->add_option("path", asked.path, "the store's directory")->required();
        return made;
    };
    auto* lists = with_path(
        "list", "One line an object: status, bytes, when it arrived, how long it is fresh, URL");
    lists->add_option("--prefix", asked.prefix, "only URLs that begin so");
    lists->add_option("--most", asked.most, "at most so many");
    lists->add_flag("--json", asked.json, "an object of JSON a line");
    auto* inspects = with_path("inspect", "The store, its journal and its segments");
    auto* verifies = with_path("verify",
                               "Reads everything against its checksums; exits with 1 for damage");
    auto* exports = with_path("export", "Writes the body of a stored response");
    exports->add_option("url", asked.url, "as list prints it")->required();
    exports->add_option("--output,-o", asked.output, "a file, in place of standard output");
    exports->add_option("--variant", asked.variant, "which, 0 being the last stored");
    exports->add_flag("--head", asked.with_head, "its head too, as it is stored");
    CLI11_PARSE(app, count, arguments);
    try {
        const int status = lists->parsed()      ? list(asked)
                           : inspects->parsed() ? inspect(asked)
                           : verifies->parsed() ? verify(asked)
                                                : export_one(asked);
        if (!(std::cout << std::flush)) {
            std::cerr << "reprise-store: cannot write to standard output\n";
            return 1;
        }
        return status;
    } catch (const std::exception& wrong) {
        std::cerr << "reprise-store: " << wrong.what() << '\n';
        return 2;
    }
}
