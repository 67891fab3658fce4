#include "tools/from_squid/conversion.hpp"

#include "config/address.hpp"
#include "config/eviction.hpp"
#include "config/quantity.hpp"
#include "tools/from_squid/access.hpp"
#include "tools/from_squid/draft.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

// One table says of each directive what becomes of it: a setting of the same meaning, or why not.
// Those that make sense only together (ports and peers, rules, patterns) are gathered first.

namespace reprise::from_squid {

namespace {

// ---- directives that have a setting of their own ----

using handler = std::function<void(draft&, const statement&)>;

void put(draft& into, std::string_view path, ordered_json value) {
    const auto dot = path.find('.');
    into.settings[std::string{path.substr(0, dot)}][std::string{path.substr(dot + 1)}] = std::move(
        value);
}

handler size_to(std::string path, std::uint64_t most = ~std::uint64_t{0}) {
    return [path = std::move(path), most](draft& into, const statement& from) {
        const auto bytes = bytes_at(from, 1);
        if (!bytes) {
            into.say(fate::left_out, from, "not a size", path);
            return;
        }
        if (*bytes > most) {
            into.say(fate::approximated, from, config::size_to_string(most) + " is the most", path);
        }
        put(into, path, config::size_to_string(std::min(*bytes, most)));
    };
}

handler time_to(std::string path) {
    return [path = std::move(path)](draft& into, const statement& from) {
        if (auto time = duration_at(from, 1)) {
            put(into, path, std::move(*time));
        } else {
            into.say(fate::left_out, from, "not a time", path);
        }
    };
}

handler count_to(std::string path) {
    return [path = std::move(path)](draft& into, const statement& from) {
        const auto number = config::parse_port(word_at(from, 1));
        if (number && *number > 0) {
            put(into, path, *number);
        } else {
            into.say(fate::left_out, from, "not a number that " + path + " has", path);
        }
    };
}

handler no_more(fate what, std::string why, std::string where = "") {
    return [what, why = std::move(why), where = std::move(where)](
               draft& into, const statement& from) { into.say(what, from, why, where); };
}

void replacement_policy(draft& into, const statement& from) {
    const auto& name = word_at(from, 1) == "heap" ? word_at(from, 2) : word_at(from, 1);
    const std::string_view policy = name == "GDSF" ? "gdsf" : name == "LFUDA" ? "lfu-da" : "lru";
    if (from.name() == "cache_replacement_policy") {
        into.say(fate::left_out,
                 from,
                 "the disk has one order of its own; memory.policy is memory's",
                 "disk");
        return;
    }
    put(into, "memory.policy", policy);
}

void forwarded_for(draft& into, const statement& from) {
    constexpr const char* path = "forwarding.client_address";
    const auto& how = word_at(from, 1);
    if (how == "on") {
        put(into, path, "x-forwarded-for");
        return;
    }
    put(into, path, "off");
    if (how == "truncate") {
        into.say(fate::approximated,
                 from,
                 "the client's address is not told, what came before stays",
                 path);
    } else if (how != "delete" && how != "transparent") {
        into.say(fate::changed, from, "no field is sent, rather than one that says unknown", path);
    }
}

void header_access(draft& into, const statement& from) {
    if (word_at(from, 2) == "allow") {
        return;
    }
    const bool denies_all = word_at(from, 2) == "deny" && word_at(from, 3) == "all";
    const auto& field = word_at(from, 1);
    if (denies_all && (field == "X-Forwarded-For" || field == "Forwarded")) {
        put(into, "forwarding.client_address", "off");
        into.say(fate::changed, from, "this proxy adds none", "forwarding.client_address");
        return;
    }
    into.say(fate::laxer,
             from,
             "fields are passed on as they came, but for those of one connection",
             "forwarding");
}

void pseudonym(draft& into, const statement& from) {
    put(into, "forwarding.pseudonym", word_at(from, 1));
    into.say(fate::changed,
             from,
             "is the name in Via and Cache-Status: no two proxies may share it",
             "forwarding.pseudonym");
}

void name_servers(draft& into, const statement& from) {
    auto& list = into.settings["dns"]["servers"];
    for (std::size_t i = 1; i < from.words.size(); ++i) {
        const auto& text = from.words[i].text;
        if (std::holds_alternative<config::endpoint>(config::parse_endpoint(text, 53))) {
            list.push_back(text);
        } else {
            into.say(fate::left_out, from, text + " is no address", "dns.servers");
        }
    }
    if (list.is_null()) {
        into.settings["dns"].erase("servers");
    }
}

void hosts_file(draft& into, const statement& from) {
    put(into, "dns.hosts_file", word_at(from, 1) == "none" ? "off" : word_at(from, 1));
}

void quick_abort(draft& into, const statement& from) {
    constexpr const char* path = "collapsing.finish";
    if (from.name() != "quick_abort_min") {
        into.say(fate::left_out, from, "what is missing decides: collapsing.finish", path);
        return;
    }
    if (word_at(from, 1) == "-1") {
        put(into, path, "1GiB");
        into.say(fate::approximated, from, "a fetch goes on when at most this is missing", path);
        return;
    }
    statement counted = from;  // KB, unless another unit is written
    if (word_at(from, 2).empty() && from.words.size() == 2) {
        counted.words.push_back({"KB", false});
    }
    const auto bytes = bytes_at(counted, 1);
    if (!bytes) {
        into.say(fate::left_out, from, "not a size", path);
        return;
    }
    put(into, path, config::size_to_string(std::min<std::uint64_t>(*bytes, 1u << 30)));
}

void workers(draft& into, const statement& from) {
    const auto number = config::parse_port(word_at(from, 1));
    if (number && *number > 0 && *number <= 256) {
        into.settings["threads"] = *number;
        into.say(fate::changed, from, "threads of one process, with one store", "threads");
    } else {
        into.say(fate::left_out, from, "not a number of threads", "threads");
    }
}

void origin_authorities(draft& into, const statement& from) {
    const auto file = option_of(from, "cafile");
    if (file) {
        put(into, "origins.ca_file", *file);
    }
    for (std::size_t i = 1; i < from.words.size(); ++i) {
        if (!from.words[i].text.starts_with("cafile=")) {
            into.say(fate::left_out,
                     from,
                     from.words[i].text + " has no counterpart: certificates are judged as ever",
                     "origins");
        }
    }
}

// Lines of a log's format that is known by name.
void access_log(draft& into, const statement& from) {
    constexpr const char* path = "log.access";
    if (into.settings.contains("log") && into.settings["log"].contains("access")) {
        into.say(fate::left_out, from, "there is one access log: the first", path);
        return;
    }
    auto place = word_at(from, 1);
    for (const std::string_view module : {"stdio:", "daemon:"}) {
        if (place.starts_with(module)) {
            place.erase(0, module.size());
        }
    }
    if (place == "none") {
        put(into, path, "off");
        return;
    }
    if (!place.starts_with('/')) {
        into.say(fate::left_out, from, "the log is a file, or standard output", path);
        return;
    }
    const std::string_view theirs = "/var/log/squid/";
    if (place.starts_with(theirs)) {
        place = "/var/log/reprise/" + place.substr(theirs.size());
        into.say(fate::changed, from, "Squid's directory is Squid's", path);
    }
    put(into, path, place);
    auto format = option_of(from, "logformat").value_or("");
    for (std::size_t i = 2; i < from.words.size(); ++i) {
        const auto& text = from.words[i].text;
        const bool option = text.find('=') != std::string::npos;
        if (i == 2 && !option) {
            format = text;
        } else if (!option) {
            into.say(fate::approximated,
                     from,
                     "all requests are logged, not those of some lists alone",
                     path);
            break;
        }
    }
    const bool combined = format == "combined" || format == "common";
    if (!format.empty() && format != "squid" && format != "combined") {
        into.say(fate::approximated, from, format + " is not among log.format's", "log.format");
    }
    put(into, "log.format", combined ? "combined" : "squid");
}

void strip_query_terms(draft& into, const statement& from) {
    put(into, "log.query_values", word_at(from, 1) == "off");
}

void cache_dir(draft& into, const statement& from) {
    constexpr const char* path = "disk.path";
    const auto& type = word_at(from, 1);
    const auto megabytes = config::parse_duration(word_at(from, 3) + "s");
    const auto* read = std::get_if<0>(&megabytes);
    if (type == "null" || read == nullptr) {
        into.say(fate::left_out, from, "not a directory with its size", path);
        return;
    }
    const auto size = static_cast<std::uint64_t>(
                          std::chrono::duration_cast<std::chrono::seconds>(*read).count()) %
                          (std::uint64_t{1} << 40)
                      << 20;
    auto& disk = into.settings["disk"];
    std::uint64_t before = 0;
    if (disk.contains("size")) {
        const auto parsed = config::parse_size(disk["size"].get<std::string>());
        before = std::get_if<0>(&parsed) != nullptr ? std::get<0>(parsed) : 0;
        into.say(fate::approximated, from, "there is one store: the sizes are added", "disk.size");
    } else {
        into.say(fate::changed, from, "Squid's files can't be read: a directory of its own", path);
    }
    disk["path"] = "/var/cache/reprise";
    disk["size"] = config::size_to_string(before + size);
}

// ---- the table ----

const std::map<std::string_view, handler>& directives() {
    const auto harmless = [](std::string why) { return no_more(fate::left_out, std::move(why)); };
    static const std::map<std::string_view, handler> table{
        {"cache_mem", size_to("memory.size")},
        {"maximum_object_size_in_memory", size_to("memory.max_object")},
        {"maximum_object_size", size_to("disk.max_object")},
        {"memory_replacement_policy", replacement_policy},
        {"cache_replacement_policy", replacement_policy},
        {"cache_dir", cache_dir},
        {"access_log", access_log},
        {"cache_access_log", access_log},
        {"strip_query_terms", strip_query_terms},
        {"forwarded_for", forwarded_for},
        {"request_header_access", header_access},
        {"reply_header_access",
         [](draft& into, const statement& from) {
             if (word_at(from, 2) != "allow") {
                 into.say(fate::laxer, from, "fields are passed on as they came", "forwarding");
             }
         }},
        {"request_header_replace", harmless("fields are passed on as they came")},
        {"request_header_add", harmless("no fields are added")},
        {"reply_header_add", harmless("no fields are added")},
        {"reply_header_replace", harmless("fields are passed on as they came")},
        {"visible_hostname", pseudonym},
        {"unique_hostname", pseudonym},
        {"dns_nameservers", name_servers},
        {"hosts_file", hosts_file},
        {"positive_dns_ttl", time_to("dns.max_ttl")},
        {"negative_dns_ttl", time_to("dns.negative_ttl")},
        {"dns_timeout", time_to("dns.timeout")},
        {"negative_ttl", time_to("freshness.negative")},
        {"shutdown_lifetime", time_to("timeouts.drain")},
        {"connect_timeout", time_to("timeouts.origin_connect")},
        {"read_timeout", time_to("timeouts.origin_body")},
        {"write_timeout", time_to("timeouts.origin_upload")},
        {"request_timeout", time_to("timeouts.client_head")},
        {"request_start_timeout", time_to("timeouts.client_head")},
        {"client_idle_pconn_timeout", time_to("timeouts.client_idle")},
        {"persistent_request_timeout", time_to("timeouts.client_idle")},
        {"server_idle_pconn_timeout", time_to("origins.idle_timeout")},
        {"pconn_timeout", time_to("origins.idle_timeout")},
        {"request_header_max_size", size_to("limits.head_size", 1u << 20)},
        {"reply_header_max_size", size_to("limits.head_size", 1u << 20)},
        {"client_ip_max_connections", count_to("limits.connections_per_client")},
        {"workers", workers},
        {"quick_abort_min", quick_abort},
        {"quick_abort_max", quick_abort},
        {"quick_abort_pct", quick_abort},
        {"tls_outgoing_options", origin_authorities},

        {"via",
         [](draft& into, const statement& from) {
             if (word_at(from, 1) == "off") {
                 into.say(fate::left_out,
                          from,
                          "Via is always sent: RFC 9110 7.6.3 wants it, and loops are found by it",
                          "forwarding");
             }
         }},
        {"collapsed_forwarding",
         [](draft& into, const statement& from) {
             if (word_at(from, 1) != "on") {
                 into.say(
                     fate::left_out,
                     from,
                     "requests for one thing always share a fetch, where the response allows it");
             }
         }},
        {"range_offset_limit",
         harmless("parts are stored as parts, and a range is asked for as it is")},
        {"cache_miss_revalidate",
         harmless("a client's condition is answered from what is fetched")},
        {"ssl_bump", harmless("intercept opens the tunnels of listed hosts; see REFERENCE.md")},
        {"sslcrtd_program", harmless("certificates are made within the program")},
        {"sslproxy_cert_error", no_more(fate::left_out, "a bad certificate is always refused")},
        {"delay_initial_bucket_level", harmless("a client's bucket is full at first")},
        {"client_delay_pools", no_more(fate::laxer, "what clients send is not bounded", "limits")},
        {"client_delay_parameters", harmless("belongs to client_delay_pools")},
        {"client_delay_access", harmless("belongs to client_delay_pools")},
        {"external_acl_type", harmless("no helper programs are asked")},
        {"url_rewrite_program", harmless("URLs are not rewritten")},
        {"url_rewrite_children", harmless("URLs are not rewritten")},
        {"url_rewrite_access", harmless("URLs are not rewritten")},
        {"redirect_program", harmless("URLs are not rewritten")},
        {"store_id_program", harmless("each URL is a thing of its own")},
        {"store_id_access", harmless("each URL is a thing of its own")},
        {"store_id_children", harmless("each URL is a thing of its own")},
        {"icap_enable", no_more(fate::laxer, "there is no content adaptation")},
        {"icap_service", harmless("there is no content adaptation")},
        {"adaptation_access", harmless("there is no content adaptation")},
        {"always_direct",
         harmless("what siblings and parents have is asked of them, whatever the request")},
        {"cache_peer_access", harmless("which requests a peer may be asked for can't be said")},
        {"cache_peer_domain", harmless("which requests a peer may be asked for can't be said")},
        {"http_reply_access",
         [](draft& into, const statement& from) {
             if (word_at(from, 1) == "deny") {
                 into.say(fate::laxer, from, "responses are not refused", "access");
             }
         }},
        {"reply_body_max_size", no_more(fate::laxer, "responses may be of any size", "limits")},
        {"request_body_max_size", no_more(fate::laxer, "requests may be of any size", "limits")},
        {"follow_x_forwarded_for", harmless("a client is who connects")},
        {"maxconn", harmless("see limits.connections_per_client")},
        {"tcp_outgoing_address", harmless("the system picks the address")},
        {"logformat", [](draft&, const statement&) {}},
        {"acl", [](draft&, const statement&) {}},
        {"icp_port",
         [](draft& into, const statement& from) {
             if (word_at(from, 1) != "0") {
                 into.say(fate::left_out, from, "ICP is not spoken");
             }
         }},
        {"htcp_port",
         [](draft& into, const statement& from) {
             if (word_at(from, 1) != "0") {
                 into.say(fate::left_out, from, "HTCP is not spoken");
             }
         }},
        {"icp_access", harmless("ICP is not spoken")},
        {"htcp_access", harmless("HTCP is not spoken")},
        {"snmp_port", harmless("figures are at /metrics of the admin listener")},
        {"snmp_access", harmless("figures are at /metrics of the admin listener")},
        {"cachemgr_passwd", harmless("admin.token_file guards what changes something")},
        {"cache_log", harmless("messages go to standard error")},
        {"cache_store_log", harmless("there is no such log")},
        {"debug_options", harmless("see log.level")},
        {"logfile_rotate",
         harmless("the log is opened anew on SIGUSR1; the package has logrotate do it")},
        {"buffered_logs", harmless("the log has a thread of its own")},
        {"pid_filename", harmless("the service manager knows the process")},
        {"coredump_dir", harmless("the service manager's business")},
        {"cache_effective_user", harmless("the service manager's business")},
        {"cache_effective_group", harmless("the service manager's business")},
        {"max_filedescriptors", harmless("the service manager's business")},
        {"cache_mgr", harmless("error pages name nobody")},
        {"error_directory", harmless("error pages are built in")},
        {"error_default_language", harmless("error pages are built in")},
        {"err_page_stylesheet", harmless("error pages are built in")},
        {"deny_info", harmless("error pages are built in")},
        {"httpd_suppress_version_string", harmless("no version is told")},
        {"minimum_object_size", harmless("small things are stored")},
        {"cache_swap_low", harmless("the store is filled to its size")},
        {"cache_swap_high", harmless("the store is filled to its size")},
        {"digest_generation", harmless("a digest is published where there are peers")},
        {"digest_bits_per_entry", harmless("see digest.false_positive_rate")},
        {"digest_rebuild_period", harmless("see digest.publish_after")},
        {"digest_rewrite_period", harmless("see digest.publish_after")},
        {"pipeline_prefetch", harmless("pipelined requests are answered in order")},
        {"half_closed_clients", harmless("a client that has closed its half is heard to the end")},
        {"client_persistent_connections", harmless("connections persist")},
        {"server_persistent_connections", harmless("connections persist")},
        {"memory_pools", harmless("memory is the program's own business")},
        {"dns_v4_first", harmless("addresses are tried in turn, both families")},
        {"ipcache_size", harmless("names are kept as their TTL says")},
        {"fqdncache_size", harmless("no address is looked up by name")},
    };
    return table;
}

// ---- what makes sense together ----

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
    if (!found.deny_destinations.empty()) {
        access["deny_destinations"] = found.deny_destinations;
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

void convert_never_direct(draft& into, const statements& rules) {
    for (const auto* each : rules) {
        const bool all = word_at(*each, 2) == "all" && each->words.size() == 3;
        if (word_at(*each, 1) == "deny") {
            if (all) {
                return;
            }
            into.say(fate::approximated, *each, "holds for all requests or for none", "peering");
        } else if (all) {
            into.settings["peering"]["never_direct"] = true;
            return;
        } else {
            into.say(
                fate::laxer, *each, "holds for all requests or for none: here for none", "peering");
        }
    }
}

// The file of the only way to authenticate that has a counterpart; empty: none.
std::string convert_authentication(draft& into, const statements& lines) {
    std::string file;
    for (const auto* each : lines) {
        const bool program = word_at(*each, 1) == "basic" && word_at(*each, 2) == "program";
        const auto& helper = word_at(*each, 3);
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
            draft_.told.push_back({fate::left_out, each.where, "", each.what, ""});
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
        convert_listeners(draft_, of("http_port", "https_port"), of("cache_peer"));
        convert_peers(draft_, of("cache_peer"));
        convert_never_direct(draft_, of("never_direct"));
        convert_refresh(draft_, of("refresh_pattern"));
        convert_delay_pools(
            draft_,
            {of("delay_pools"), of("delay_class"), of("delay_access"), of("delay_parameters")});
        needs_users_ = convert_access(
            draft_, of("http_access"), convert_authentication(draft_, of("auth_param")));
        // Squid stores what is asked for once.
        settings["admission"]["policy"] = "second-hit";
        settings["admission"]["probation"] = "100%";
        draft_.told.push_back(
            {fate::changed,
             {},
             "",
             "memory takes what is asked for once, as Squid's does; the disk takes it at "
             "its second request. \"policy\": \"always\" writes all of it to disk",
             "admission.policy"});
        convert_cache_rules(draft_, of("cache", "no_cache"));
        if (!settings["log"].contains("access")) {
            settings["log"]["access"] = "/var/log/reprise/access.log";
            settings["log"]["format"] = "squid";
        }
        if (!settings.contains("forwarding") ||
            !settings["forwarding"].contains("client_address")) {
            settings["forwarding"]["client_address"] = "x-forwarded-for";  // Squid's default
        }
        fit_sizes();
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
    // Without clients, or the passwords that were to be asked for, the defaults would serve more than
    // the configuration did.
    void serve_nobody_unless_said() {
        auto& access = draft_.settings["access"];
        const bool asks = !needs_users_ || access.contains("users_file");
        if (access.contains("clients") && asks) {
            return;
        }
        access["clients"] = ordered_json::array();
        draft_.told.push_back({fate::left_out,
                               {},
                               "",
                               "nobody is served, since what bounded that was refused",
                               "access.clients"});
    }

    // Ours wants bounds that lie within the store's size.
    void fit_sizes() {
        auto& settings = draft_.settings;
        const auto bytes = [&](const char* section,
                               const char* name) -> std::optional<std::uint64_t> {
            if (!settings[section].contains(name)) {
                return std::nullopt;
            }
            const auto parsed = config::parse_size(settings[section][name].get<std::string>());
            const auto* value = std::get_if<0>(&parsed);
            return value != nullptr ? std::optional{*value} : std::nullopt;
        };
        const auto bound = [&](const char* section, std::uint64_t most) {
            const auto size = bytes(section, "max_object");
            if (size && *size > most) {
                settings[section]["max_object"] = config::size_to_string(most);
                draft_.told.push_back({fate::approximated,
                                       {},
                                       "",
                                       "no larger part of the store than this",
                                       std::string{section} + ".max_object"});
            }
        };
        bound("memory", bytes("memory", "size").value_or(std::uint64_t{256} << 20));
        if (!settings["disk"].contains("path")) {
            settings["disk"].erase("max_object");  // memory alone, with its own bound
            return;
        }
        bound("disk", bytes("disk", "size").value_or(0) / 4);
    }

    void gather(const statement& each) {
        static const std::set<std::string_view> together{"http_port",
                                                         "https_port",
                                                         "cache_peer",
                                                         "never_direct",
                                                         "refresh_pattern",
                                                         "http_access",
                                                         "auth_param",
                                                         "cache",
                                                         "no_cache",
                                                         "delay_pools",
                                                         "delay_class",
                                                         "delay_access",
                                                         "delay_parameters"};
        if (together.contains(each.name())) {
            by_name_[each.name()].push_back(&each);
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
