#include "tools/from_squid/directives.hpp"

#include "config/address.hpp"
#include "config/eviction.hpp"
#include "config/quantity.hpp"
#include "tools/from_squid/access.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

namespace reprise::from_squid {

namespace {

void put(draft& into, std::string_view path, ordered_json value) {
    const auto dot = path.find('.');
    into.settings[std::string{path.substr(0, dot)}][std::string{path.substr(dot + 1)}] = std::move(
        value);
}

directive_handler size_to(std::string path) {
    return [path = std::move(path)](draft& into, const statement& from) {
        const auto bytes = bytes_at(from, 1);
        if (!bytes) {
            into.say(fate::left_out, from, "not a size", path);
            return;
        }
        put(into, path, config::size_to_string(*bytes));
    };
}

directive_handler time_to(std::string path) {
    return [path = std::move(path)](draft& into, const statement& from) {
        if (auto time = duration_at(from, 1)) {
            put(into, path, std::move(*time));
        } else {
            into.say(fate::left_out, from, "not a time", path);
        }
    };
}

directive_handler count_to(std::string path) {
    return [path = std::move(path)](draft& into, const statement& from) {
        const auto number = config::parse_port(word_at(from, 1));
        if (number && *number > 0) {
            put(into, path, *number);
        } else {
            into.say(fate::left_out, from, "not a number that " + path + " has", path);
        }
    };
}

directive_handler no_more(fate what, std::string why, std::string where = "") {
    return [what, why = std::move(why), where = std::move(where)](
               draft& into, const statement& from) { into.say(what, from, why, where); };
}

// Nothing comes of any of its lines; those that say something else than `no_bound` restrained something.
directive_handler laxer_unless(std::vector<std::string> no_bound,
                               std::string why,
                               std::string where) {
    return [no_bound = std::move(no_bound), why = std::move(why), where = std::move(where)](
               draft& into, const statement& from) {
        if (std::find(no_bound.begin(), no_bound.end(), word_at(from, 1)) == no_bound.end()) {
            into.say(fate::laxer, from, why, where);
        }
    };
}

// Nothing comes of any of its lines; those that have `word` at `index` restrained something.
directive_handler laxer_when(std::size_t index,
                             std::string word,
                             std::string why,
                             std::string where = "") {
    return [index, word = std::move(word), why = std::move(why), where = std::move(where)](
               draft& into, const statement& from) {
        if (word_at(from, index) == word) {
            into.say(fate::laxer, from, why, where);
        }
    };
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

void name_servers(draft& into, const statement& from) {
    auto& list = into.settings["dns"]["servers"];
    for (std::size_t i = 1; i < from.words.size(); ++i) {
        const auto& text = from.words[i].text;
        // As dns.servers has them: an IPv6 address without a port needs no brackets.
        if (config::parse_ip(text) ||
            std::holds_alternative<config::endpoint>(config::parse_endpoint(text, 53))) {
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

// tls_outgoing_options, and the older sslproxy_flags, which is its flags= alone.
void origin_authorities(draft& into, const statement& from) {
    const auto file = option_of(from, "cafile");
    if (file) {
        put(into, "origins.ca_file", *file);
    }
    const bool flags_alone = from.name() == "sslproxy_flags";
    for (std::size_t i = 1; i < from.words.size(); ++i) {
        const auto& text = from.words[i].text;
        const bool flags = flags_alone || text.starts_with("flags=");
        if (text == "default-ca=off" || text == "no-default-ca" ||
            (flags && text.find("NO_DEFAULT_CA") != std::string::npos)) {
            into.say(fate::laxer,
                     from,
                     text + ": the system's authorities are trusted in any case",
                     "origins");
        } else if (text.starts_with("crlfile=")) {
            // The last one is Squid's.
            put(into, "origins.crl_file", text.substr(text.find('=') + 1));
            into.say(
                fate::laxer,
                from,
                "crlfile: is origins.crl_file, by which a certificate is taken whose authority "
                "has no list there; Squid refuses that one",
                "origins.crl_file");
        } else if (!text.starts_with("cafile=")) {
            into.say(fate::left_out,
                     from,
                     text + " has no counterpart: certificates are judged as ever",
                     "origins");
        }
    }
}

// Squid's one bound on a server's silence: until the response begins, between pieces of its body, and in
// a tunnel.
void read_timeout(draft& into, const statement& from) {
    // Of all three. What lies beyond config::load refuses, and the default takes its place.
    constexpr std::chrono::milliseconds least{10}, most{std::chrono::hours{24}};
    const auto written = duration_at(from, 1);
    const auto parsed = config::parse_duration(written.value_or(""));
    const auto* time = config::value_of(parsed);
    if (time == nullptr) {
        into.say(fate::left_out, from, "not a time", "timeouts");
        return;
    }
    const auto fitting = std::clamp(*time, least, most);
    if (fitting != *time) {
        into.say(fate::approximated,
                 from,
                 config::duration_to_string(fitting) + " is the " +
                     (fitting == most ? "most" : "least"),
                 "timeouts");
    }
    for (const auto* path :
         {"timeouts.origin_head", "timeouts.origin_body", "timeouts.tunnel_idle"}) {
        put(into, path, config::duration_to_string(fitting));
    }
}

// Squid keeps what was found so long at least, too.
void negative_dns_ttl(draft& into, const statement& from) {
    time_to("dns.negative_ttl")(into, from);
    if (auto time = duration_at(from, 1)) {
        put(into, "dns.min_ttl", std::move(*time));
    }
}

void write_timeout(draft& into, const statement& from) {
    constexpr const char* setting = "timeouts.origin_upload";
    time_to(setting)(into, from);
    into.say(fate::approximated,
             from,
             "is for what origins take; how slow a client may be is timeouts.client_body's to say",
             setting);
}

void ssl_bump(draft& into, const statement& from) {
    if (word_at(from, 1) == "terminate") {
        into.say(fate::laxer,
                 from,
                 "no connection is ended for what its tunnel shows: name its hosts in "
                 "access.deny_destinations or access.block_lists",
                 "access");
    } else {
        into.say(
            fate::left_out, from, "intercept opens the tunnels of listed hosts; see REFERENCE.md");
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
        const bool of_all = from.words.size() == 2 ||
                            (from.words.size() == 3 && word_at(from, 2) == "all");
        if (of_all) {
            put(into, path, "off");
        } else {
            into.say(fate::approximated, from, "all requests are logged: those are too", path);
        }
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
    if (place != rotated_log) {
        into.say(fate::approximated,
                 from,
                 std::string{"the package's logrotate moves "} + rotated_log +
                     " alone: name this one in /etc/logrotate.d/reprise",
                 path);
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

}  // namespace

const std::map<std::string_view, directive_handler>& directives() {
    const auto harmless = [](std::string why) { return no_more(fate::left_out, std::move(why)); };
    static const std::map<std::string_view, directive_handler> table{
        {"cache_mem", size_to("memory.size")},
        {"maximum_object_size_in_memory", size_to("memory.max_object")},
        {"memory_replacement_policy", replacement_policy},
        {"cache_replacement_policy", replacement_policy},
        {"access_log", access_log},
        {"cache_access_log", access_log},
        {"strip_query_terms", strip_query_terms},
        {"request_header_replace", harmless("fields are passed on as they came")},
        {"request_header_add", harmless("no fields are added")},
        {"reply_header_add", harmless("no fields are added")},
        {"reply_header_replace", harmless("fields are passed on as they came")},
        {"dns_nameservers", name_servers},
        {"hosts_file", hosts_file},
        {"positive_dns_ttl", time_to("dns.max_ttl")},
        {"negative_dns_ttl", negative_dns_ttl},
        {"dns_timeout", time_to("dns.timeout")},
        {"negative_ttl", time_to("freshness.negative")},
        {"shutdown_lifetime", time_to("timeouts.drain")},
        {"connect_timeout", time_to("timeouts.origin_connect")},
        {"read_timeout", read_timeout},
        {"write_timeout", write_timeout},
        {"client_idle_pconn_timeout", time_to("timeouts.client_idle")},
        {"persistent_request_timeout", time_to("timeouts.client_idle")},
        {"server_idle_pconn_timeout", time_to("origins.idle_timeout")},
        {"pconn_timeout", time_to("origins.idle_timeout")},
        {"client_ip_max_connections", count_to("limits.connections_per_client")},
        {"workers", workers},
        {"quick_abort_min", quick_abort},
        {"quick_abort_max", quick_abort},
        {"quick_abort_pct", quick_abort},
        {"tls_outgoing_options", origin_authorities},
        {"sslproxy_flags", origin_authorities},

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
        {"ssl_bump", ssl_bump},
        {"sslcrtd_program", harmless("certificates are made within the program")},
        {"sslproxy_cert_error", no_more(fate::left_out, "a bad certificate is always refused")},
        {"delay_initial_bucket_level", harmless("a client's bucket is full at first")},
        {"client_delay_pools", laxer_unless({"0"}, "what clients send is not bounded", "limits")},
        {"client_delay_parameters", harmless("belongs to client_delay_pools")},
        {"client_delay_access", harmless("belongs to client_delay_pools")},
        {"response_delay_pool",
         no_more(fate::laxer, "what one response may take is not bounded", "limits")},
        {"response_delay_pool_access", harmless("belongs to response_delay_pool")},
        {"client_netmask",
         laxer_unless({"255.255.255.255"}, "addresses of clients are logged whole", "log")},
        {"host_verify_strict",
         laxer_when(1, "on", "a Host that is not the URL's is replaced, not refused", "access")},
        {"sslcrtvalidator_program",
         no_more(fate::laxer, "no program is asked whether a certificate is good", "origins")},
        {"sslcrtvalidator_children", harmless("no helper programs are asked")},
        {"external_acl_type", harmless("no helper programs are asked")},
        // Filters are such programs, as often as not.
        {"url_rewrite_program",
         no_more(fate::laxer, "URLs are not rewritten, and no program is asked which to refuse")},
        {"url_rewrite_children", harmless("URLs are not rewritten")},
        {"url_rewrite_access", harmless("URLs are not rewritten")},
        {"redirect_program",
         no_more(fate::laxer, "URLs are not rewritten, and no program is asked which to refuse")},
        {"store_id_program", harmless("each URL is a thing of its own")},
        {"store_id_access", harmless("each URL is a thing of its own")},
        {"store_id_children", harmless("each URL is a thing of its own")},
        {"icap_enable", laxer_when(1, "on", "there is no content adaptation")},
        {"icap_service", harmless("there is no content adaptation")},
        {"ecap_enable", laxer_when(1, "on", "there is no content adaptation")},
        {"adaptation_access", harmless("there is no content adaptation")},
        {"reply_body_max_size",
         laxer_unless({"none", "-1"}, "responses may be of any size", "limits")},
        {"request_body_max_size", laxer_unless({"0"}, "requests may be of any size", "limits")},
        {"proxy_protocol_access", harmless("see access.trusted_fronts")},
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
         harmless(std::string{"the log is opened anew on SIGUSR1; the package has logrotate do it "
                              "for "} +
                  rotated_log)},
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

}  // namespace reprise::from_squid
