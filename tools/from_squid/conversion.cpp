#include "tools/from_squid/conversion.hpp"

#include "config/address.hpp"
#include "tools/from_squid/access.hpp"
#include "tools/from_squid/directives.hpp"
#include "tools/from_squid/draft.hpp"
#include "tools/from_squid/lost_lists.hpp"

#include <algorithm>
#include <map>
#include <set>

// What becomes of a directive by itself is the table's to say (directives.hpp). Those that make sense only together
// (ports and peers, rules, patterns) are gathered first.

namespace reprise::from_squid {

namespace {

ordered_json port_settings(const port_set& ports) {
    auto out = ordered_json::array();
    for (const auto& each : ports) {
        if (each.first == each.last) {
            out.push_back(each.first);
        } else {
            out.push_back(config::to_string(each));
        }
    }
    return out;
}

bool is_accelerator(const ordered_json& listener) {
    return listener.value("mode", "") == "accelerator";
}

// What Squid denies after it has asked a name server, and here nobody asks.
void say_what_is_not_looked_up(draft& into, const reduced_access& found) {
    // Whoever connects judges an address. A sibling needs none: it may have the thing stored.
    if (found.names_looked_up && into.settings.contains("peers")) {
        into.told.push_back(
            {fate::laxer,
             {},
             "",
             "where a name leads is not looked up before a peer is asked for it: of "
             "networks that are denied, addresses and names of the hosts file are refused "
             "here, and the rest is the peer's to judge",
             "access"});
    }
    if (found.addresses_looked_up) {
        into.told.push_back(
            {fate::laxer,
             {},
             "",
             "an address is not looked up for its name: http://192.0.2.1/ is not denied for a "
             "name of dstdomain, as Squid denies it unless the list has -n",
             "access.deny_destinations"});
    }
}

// Whether whoever is served must show a password.
bool convert_access(draft& into, const statements& rules, const std::string& users_file) {
    const bool has_users = !users_file.empty() && has_setting("access.users_file");
    const auto found = reduce(rules, into.acls, has_users, into.told);
    auto access = ordered_json::object();
    access["clients"] = as_settings(found.clients);
    if (found.needs_users) {
        access["users_file"] = users_file;
        into.told.push_back(
            {fate::approximated,
             {},
             "",
             "passwords of htpasswd must be of bcrypt, SHA-512 or yescrypt, and are taken on "
             "TLS listeners and this machine alone",
             "access.users_file"});
    }
    if (!found.purge_clients.empty()) {
        access["purge_clients"] = as_settings(found.purge_clients);
    }
    if (found.connect_bounded) {
        access["connect_ports"] = port_settings(found.connect_ports);
    } else {
        into.told.push_back(
            {fate::approximated,
             {},
             "",
             "no rule bounds the ports of tunnels: access.connect_ports is as ever, 443",
             "access"});
    }
    if (found.ports_bounded) {
        access["request_ports"] = port_settings(found.request_ports);
    } else {
        into.told.push_back(
            {fate::approximated,
             {},
             "",
             "no rule bounds the ports of requests: access.request_ports is as ever, "
             "80, 443 and those from 1024 on",
             "access"});
    }
    say_what_is_not_looked_up(into, found);
    if (!found.deny_destinations.empty()) {
        access["deny_destinations"] = found.deny_destinations;
        const auto& all = into.settings["listeners"];
        if (std::any_of(all.begin(), all.end(), is_accelerator)) {
            into.told.push_back(
                {fate::laxer,
                 {},
                 "",
                 "an accelerator serves whatever host is asked for: these are denied "
                 "on forward listeners alone",
                 "access.deny_destinations"});
        }
    }
    into.told.push_back({fate::approximated,
                         {},
                         "",
                         "what is on this machine or its links is refused, whatever the rules; "
                         "access.allow_destinations has the exceptions",
                         "access"});
    into.settings["access"] = std::move(access);
    return found.needs_users;
}

// The file of the only way to authenticate that has a counterpart; empty: none.
std::string convert_authentication(draft& into, const statements& lines) {
    std::string file;
    for (const auto* each : lines) {
        const bool program = word_at(*each, 1) == "basic" && word_at(*each, 2) == "program";
        const auto& helper = word_at(*each, 3);
        if (program) {
            file.clear();  // the last program is the one that is asked
        }
        if (program && helper.ends_with("basic_ncsa_auth") && each->words.size() == 5) {
            file = word_at(*each, 4);
        } else if (word_at(*each, 2) == "program" || word_at(*each, 1) != "basic") {
            into.say(fate::left_out,
                     *each,
                     "passwords are read from a file (htpasswd), no helper is asked",
                     "access");
        }
    }
    if (!file.empty() && !has_setting("access.users_file")) {
        into.told.push_back(
            {fate::left_out, {}, "", "this version asks for no passwords: " + file, "access"});
    }
    return file;
}

class conversion {
public:
    conversion(const squid_conf& from, const file_source& files) {
        for (const auto& each : from.problems) {
            draft_.told.push_back({each.hides ? fate::laxer : fate::left_out,
                                   each.where,
                                   "",
                                   each.what + (each.hides ? ": what it denies is lost" : ""),
                                   ""});
        }
        if (from.statements.empty()) {
            draft_.told.push_back({fate::left_out,
                                   {},
                                   "",
                                   "there is no statement in it: nobody is served, as by a Squid "
                                   "that is told nothing",
                                   "access"});
        }
        // In the order in which sections are written.
        for (const auto* section : {"listeners", "memory", "disk", "admission", "access", "log"}) {
            draft_.settings[section] = ordered_json::object();
        }
        for (const auto& each : from.statements) {
            if (each.name() == "acl") {
                draft_.acls.add(each, files);
            }
        }
        for (const auto& each : from.statements) {
            gather(each);
        }
    }

    converted finish() {
        auto& settings = draft_.settings;
        convert_pseudonym(draft_, of("unique_hostname"), of("visible_hostname"));
        convert_listeners(draft_, of("http_port", "https_port"), of("cache_peer"));
        convert_peers(draft_, of("cache_peer"));
        convert_ways_out(draft_,
                         {of("always_direct"),
                          of("never_direct"),
                          of("prefer_direct"),
                          of("nonhierarchical_direct"),
                          of("cache_peer_access"),
                          of("cache_peer_domain"),
                          of("neighbor_type_domain"),
                          of("hierarchy_stoplist")},
                         of("cache_peer"));
        convert_refresh(draft_, of("refresh_pattern"));
        convert_delay_pools(
            draft_,
            {of("delay_pools"), of("delay_class"), of("delay_access"), of("delay_parameters")});
        needs_users_ = convert_access(
            draft_, of("http_access"), convert_authentication(draft_, of("auth_param")));
        if (needs_users_) {
            drop_accelerators();
        }
        convert_cache_rules(draft_, of("cache"));
        if (!settings["log"].contains("access")) {
            settings["log"]["access"] = rotated_log;
            settings["log"]["format"] = "squid";
        }
        convert_client_address(draft_, of("forwarded_for"), of("request_header_access"));
        convert_lost_lists(draft_, by_name_);
        convert_client_head(draft_, of("request_timeout"), of("request_start_timeout"));
        convert_head_size(draft_, of("request_header_max_size"), of("reply_header_max_size"));
        convert_stores(draft_, of("cache_dir"), of("maximum_object_size"));
        std::vector<std::string> unused;
        for (const auto& [name, value] : settings.items()) {
            if (value.is_object() && value.empty()) {
                unused.push_back(name);
            }
        }
        for (const auto& name : unused) {
            settings.erase(name);
        }
        drop_refused(settings, draft_.told);
        serve_nobody_unless_said();
        return {text_of(settings, draft_.told), std::move(draft_.told)};
    }

private:
    // Who comes by one is asked for no password here (access.users_file is of forward listeners).
    void drop_accelerators() {
        auto& settings = draft_.settings;
        auto& all = settings["listeners"];
        auto kept = ordered_json::array();
        for (const auto& each : all) {
            if (!is_accelerator(each)) {
                kept.push_back(each);
                continue;
            }
            draft_.told.push_back({fate::left_out,
                                   {},
                                   "",
                                   "an accelerator asks for no passwords, so there is none on " +
                                       each.at("address").get<std::string>(),
                                   "listeners"});
        }
        if (kept.empty()) {
            settings.erase("listeners");
        } else {
            all = std::move(kept);
        }
    }

    // Without clients, or the passwords that were to be asked for, the defaults would serve more than
    // the configuration did; so would the listener that there is without any.
    void serve_nobody_unless_said() {
        auto& access = draft_.settings["access"];
        const bool asks = !needs_users_ || access.contains("users_file");
        const bool had_ports = !of("http_port", "https_port").empty();
        const bool no_way_in = had_ports && !draft_.settings.contains("listeners");
        if (access.contains("clients") && asks && !no_way_in) {
            return;
        }
        access["clients"] = ordered_json::array();
        if (no_way_in) {
            draft_.told.push_back(
                {fate::left_out,
                 {},
                 "",
                 "nobody is served, since none of Squid's ports is a listener here, and "
                 "without any there is one on 127.0.0.1:3128",
                 "access.clients"});
            return;
        }
        draft_.told.push_back({fate::left_out,
                               {},
                               "",
                               "nobody is served, since what bounded that was refused",
                               "access.clients"});
    }

    void gather(const statement& each) {
        static const std::set<std::string_view> together{"http_port",
                                                         "https_port",
                                                         "cache_peer",
                                                         "cache_peer_access",
                                                         "cache_peer_domain",
                                                         "neighbor_type_domain",
                                                         "hierarchy_stoplist",
                                                         "always_direct",
                                                         "never_direct",
                                                         "prefer_direct",
                                                         "nonhierarchical_direct",
                                                         "refresh_pattern",
                                                         "http_access",
                                                         "auth_param",
                                                         "forwarded_for",
                                                         "request_header_access",
                                                         "unique_hostname",
                                                         "visible_hostname",
                                                         "request_timeout",
                                                         "request_start_timeout",
                                                         "request_header_max_size",
                                                         "reply_header_max_size",
                                                         "cache",
                                                         "cache_dir",
                                                         "maximum_object_size",
                                                         "delay_pools",
                                                         "delay_class",
                                                         "delay_access",
                                                         "delay_parameters"};
        // Of a directive with two names the lines are one list, in their order.
        static const std::map<std::string_view, std::string_view> other_names{
            {"no_cache", "cache"}, {"header_access", "request_header_access"}};
        const auto other = other_names.find(each.name());
        const std::string name{other != other_names.end() ? other->second : each.name()};
        if (together.contains(name) || is_lost_list(name)) {
            by_name_[name].push_back(&each);
            return;
        }
        const auto& table = directives();
        const auto found = table.find(each.name());
        if (found != table.end()) {
            found->second(draft_, each);
        } else {
            draft_.say(fate::left_out, each, "this tool knows no counterpart");
        }
    }

    statements of(const std::string& name, const std::string& other = "") {
        auto out = by_name_[name];
        const auto& more = by_name_[other];
        out.insert(out.end(), more.begin(), more.end());
        return out;
    }

    draft draft_;
    std::map<std::string, statements> by_name_;
    bool needs_users_ = false;
};

}  // namespace

converted convert(const squid_conf& from, const file_source& files) {
    return conversion{from, files}.finish();
}

}  // namespace reprise::from_squid
