#include "tools/from_squid/acls.hpp"

#include "config/address.hpp"

#include <algorithm>
#include <iterator>

namespace reprise::from_squid {

namespace {

// One value of a src or dst: with Squid's words for many addresses at once. Empty: it is none.
network_set addresses_of(const std::string& value) {
    for (const auto* all : {"all",
                            "0/0",
                            "0.0.0.0/0",
                            "0.0.0.0/0.0.0.0",
                            "0.0.0.0-255.255.255.255",
                            "0.0.0.0-0.0.0.0/0"}) {
        if (value == all) {
            return everybody();  // IPv6 as well
        }
    }
    if (value == "ipv4") {
        return {everybody().front()};
    }
    if (value == "ipv6") {
        network_set out;  // without what is within one machine
        for (const auto* part : {"1000::/4",
                                 "2000::/3",
                                 "4000::/2",
                                 "8000::/2",
                                 "c000::/3",
                                 "e000::/4",
                                 "fc00::/7",
                                 "fe80::/10"}) {
            out.push_back(parse_addresses(part).front());
        }
        return out;
    }
    auto out = parse_addresses(value);
    for (const auto& whole : everybody()) {
        // Written otherwise than above, /0 is a mask that Squid finds no client with.
        if (std::find(out.begin(), out.end(), whole) != out.end()) {
            return {};
        }
    }
    if (std::any_of(out.begin(), out.end(), reaches_over_ipv4)) {
        out.push_back(everybody().front());
    }
    return out;
}

}  // namespace

std::string lower_case(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return text;
}

acl_table::acl_table() {
    const auto define =
        [this](const char* name, const char* type, std::vector<std::string> values) {
            auto& into = by_name_[lower_case(name)];
            into.written.insert(values.begin(), values.end());
            into.type = type;
            into.values = std::move(values);
        };
    define("all", "src", {"all"});
    define("localhost", "src", {"127.0.0.1", "::1"});
    define("to_localhost", "to_self", {});
    define("to_linklocal", "to_self", {});
    define("manager", "manager", {});
    define("CONNECT", "method", {"CONNECT"});
}

void acl_table::add(const statement& from, const file_source& files) {
    if (from.words.size() < 3) {
        return;
    }
    auto& into = by_name_[lower_case(from.words[1].text)];
    const auto& type = from.words[2].text;
    if (into.type != type) {
        // Squid refuses a second type; its own names may be defined anew.
        into = entry{{type, {}, false, false, from.where, ""}};
    }
    // Configurations define again what Squid has by itself (CONNECT, all).
    const auto take = [&into](const std::string& value) {
        if (into.written.insert(value).second) {
            into.values.push_back(value);
        }
    };
    // Between expressions -i and +i may stand as well, and in their files.
    const bool of_expressions = type.ends_with("_regex");
    const auto is_of_case = [&](const std::string& text) {
        const bool is = of_expressions && (text == "-i" || text == "+i");
        into.no_case = into.no_case || (is && text == "-i");
        return is;
    };
    bool options = true;
    for (std::size_t i = 3; i < from.words.size(); ++i) {
        const auto& [text, quoted] = from.words[i];
        options = options && !quoted && text.size() > 1 && text.front() == '-';
        if (options) {
            into.no_case = into.no_case || text == "-i";
            into.no_lookup = into.no_lookup || text == "-n";
            if (text == "--") {
                options = false;
            }
            continue;
        }
        if (!quoted) {
            if (!is_of_case(text)) {
                take(text);
            }
            continue;
        }
        const auto file = files_left_ > 0 ? files.read(text) : std::nullopt;
        if (!file || file->size() > bytes_left_) {
            into.unread = (file || files_left_ == 0 ? "there is too much in lists to read "
                                                    : "cannot read ") +
                          text;
            continue;
        }
        --files_left_;
        bytes_left_ -= file->size();
        // Long lists are lists of different values already.
        auto more = values_of(*file);
        std::erase_if(more, is_of_case);
        into.values.insert(into.values.end(),
                           std::make_move_iterator(more.begin()),
                           std::make_move_iterator(more.end()));
    }
}

const acl* acl_table::find(const std::string& name) const {
    const auto found = by_name_.find(lower_case(name));
    return found == by_name_.end() ? nullptr : &found->second;
}

bool is_of_unspoken_protocols(const acl& from) {
    // NONE, among others, is what a CONNECT has.
    const auto unspoken = [](const std::string& value) {
        constexpr std::string_view names[]{"cache_object",
                                           "ftp",
                                           "gopher",
                                           "wais",
                                           "whois",
                                           "urn",
                                           "icp",
                                           "htcp",
                                           "coap",
                                           "coaps"};
        return std::find(std::begin(names), std::end(names), lower_case(value)) != std::end(names);
    };
    return from.type == "proto" && std::all_of(from.values.begin(), from.values.end(), unspoken);
}

network_set networks_of(const acl& from, std::vector<std::string>& unread) {
    network_set out;
    for (const auto& each : from.values) {
        if (each == "0.0.0.1-0.255.255.255") {
            continue;  // "this network", of RFC 1122: no client's source
        }
        const auto found = addresses_of(each);
        if (found.empty()) {
            unread.push_back(each);
        }
        out.insert(out.end(), found.begin(), found.end());
    }
    return tidied(out);
}

std::vector<std::string> destinations_of(const acl& from, std::vector<std::string>& unread) {
    std::vector<std::string> out;
    const auto take = [&](const std::string& text, const std::string& whole) {
        if (std::holds_alternative<config::destination>(config::parse_destination(text))) {
            out.push_back(text);
        } else {
            unread.push_back(whole);
        }
    };
    for (const auto& each : from.values) {
        if (from.type == "dst") {
            const auto found = addresses_of(each);
            for (const auto& net : found) {
                out.push_back(config::to_string(net));
            }
            if (found.empty()) {
                unread.push_back(each);
            }
        } else if (each.starts_with('.')) {
            take(each.substr(1), each);
            take("*" + each, each);
        } else {
            take(each, each);
        }
    }
    return out;
}

port_set ports_of(const acl& from, std::vector<std::string>& unread) {
    port_set out;
    for (const auto& each : from.values) {
        if (each == "0" || each == "0-0") {
            continue;
        }
        const auto read = config::parse_port_range(each.starts_with("0-") ? '1' + each.substr(1)
                                                                          : each);
        if (const auto* range = std::get_if<config::port_range>(&read)) {
            out.push_back(*range);
        } else {
            unread.push_back(each);
        }
    }
    std::sort(
        out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    port_set merged;
    for (const auto& each : out) {
        if (!merged.empty() && each.first <= merged.back().last) {
            merged.back().last = std::max(merged.back().last, each.last);
        } else {
            merged.push_back(each);
        }
    }
    return merged;
}

port_set every_port() {
    return {{1, 65535}};
}

port_set intersection(const port_set& a, const port_set& b) {
    port_set out;
    for (const auto& one : a) {
        for (const auto& other : b) {
            const auto first = std::max(one.first, other.first);
            const auto last = std::min(one.last, other.last);
            if (first <= last) {
                out.push_back({first, last});
            }
        }
    }
    return out;
}

port_set difference(const port_set& a, const port_set& b) {
    auto left = a;
    for (const auto& hole : b) {
        port_set next;
        for (const auto& one : left) {
            if (hole.last < one.first || one.last < hole.first) {
                next.push_back(one);
                continue;
            }
            if (one.first < hole.first) {
                next.push_back({one.first, static_cast<std::uint16_t>(hole.first - 1)});
            }
            if (hole.last < one.last) {
                next.push_back({static_cast<std::uint16_t>(hole.last + 1), one.last});
            }
        }
        left = std::move(next);
    }
    return left;
}

}  // namespace reprise::from_squid
