#include "config/settings.hpp"

#include "config/admission_settings.hpp"
#include "config/checks.hpp"
#include "config/connection_settings.hpp"
#include "config/disk_settings.hpp"
#include "config/freshness_settings.hpp"
#include "config/intercept_settings.hpp"
#include "config/peer_settings.hpp"
#include "config/units.hpp"
#include "config/unread.hpp"

#include <chrono>
#include <utility>

// The root of the table and its smaller objects, one row per setting: name, member, kind and
// bounds, whether it can change live, and the sentence for people. Larger objects: *_settings.cpp.

namespace reprise::config {
namespace {

using namespace std::chrono_literals;
using enum change;

object_table<listener> listener_table() {
    return {
        {
            value("address",
                  &listener::address,
                  listening_address(),
                  restart,
                  "Where clients connect; port 0 lets the system pick one. What is not "
                  "loopback can be reached by others: see access.clients."),
            value("mode",
                  &listener::mode,
                  one_of<listener_mode>({{"forward", listener_mode::forward},
                                         {"accelerator", listener_mode::accelerator}}),
                  restart,
                  "\"forward\" takes whole URLs and CONNECT, as clients send them to a proxy; "
                  "\"accelerator\" stands in front of one upstream."),
            by_default(
                "none",
                value("upstream",
                      &listener::upstream,
                      upstream(),
                      restart,
                      "The server behind an accelerator, which needs one; a forward listener has "
                      "none.")),
            by_default(
                "as at the top",
                optional_object("admission",
                                &listener::admission,
                                choice_table(),
                                "What this listener does instead of the top's admission.policy and "
                                "admission.rules. Text is short for its \"policy\".")),
            by_default("none",
                       optional_object("tls",
                                       &listener::tls,
                                       tls_table(),
                                       "TLS (1.2 or later) towards clients; siblings reach it by "
                                       "an https url, browsers as an HTTPS proxy. Both files "
                                       "are read anew on a reload.")),
            value(
                "proxy_protocol",
                &listener::proxy_protocol,
                yes_or_no(),
                restart,
                "Whether each connection begins with a PROXY header of version 2, by which a load "
                "balancer says whose it is: that address is the client's then, for "
                "access.clients, limits and log. From access.trusted_fronts alone; all others are "
                "closed, and so is what has no such header within timeouts.client_head."),
        },
        {},
        check_listener};
}

object_table<admin_options> admin_table() {
    return {{
        value("address",
              &admin_options::address,
              listening_address_or_off(),
              restart,
              "Where the admin listener answers /healthz, /stats, /metrics and the "
              "like. It tells what clients ask for: keep it to the machine."),
        value("socket",
              &admin_options::socket,
              socket_path(),
              restart,
              "A Unix socket where the admin listener answers too; \"reprise status\", \"reprise "
              "purge\" and the like speak to it. Whoever may open it may change things without "
              "the token. \"auto\": admin.sock in $RUNTIME_DIRECTORY, which systemd gives a "
              "service; none where there is none."),
        value(
            "socket_for",
            &admin_options::socket_for,
            one_of<socket_users>({{"owner", socket_users::owner}, {"group", socket_users::group}}),
            restart,
            "Who may open the socket: the user that the program runs as, and root; or that "
            "user's group as well."),
        value("token_file",
              &admin_options::token_file,
              path_or_off(),
              live,
              "The file with the bearer token for what changes something; \"off\": "
              "all of that is refused."),
        value("host_names",
              &admin_options::host_names,
              list_of(host_name(), 0, 100),
              live,
              "Further Host names that it answers to, beside its address and "
              "localhost. Others get 421, so that no web page can rebind to it."),
        value("connections_per_client",
              &admin_options::connections_per_client,
              small_count_between(1, 10'000, "connections"),
              live,
              "From one address to the admin listener. More serves several monitors behind one "
              "address, and one of them can keep the others out."),
    }};
}

object_table<memory_options> memory_table() {
    return {
        {
            value("size",
                  &memory_options::size,
                  size_between(1 * mib, 4 * tib),
                  live,
                  "What stored responses may take, heads and bookkeeping included. More holds "
                  "more hits; the process is larger by as much."),
            by_default(
                "a fifth of size",
                value("max_object",
                      &memory_options::max_object,
                      size_between(1 * kib, 1 * tib),
                      live,
                      "A larger body never enters memory: it goes to disk alone, where there "
                      "is one, and is not stored otherwise. More than a fifth of size means "
                      "a fifth. Less keeps a few large objects from pushing many small ones "
                      "out.")),
            by_default("sieve; with disk.path gdsf",
                       value("policy",
                             &memory_options::policy,
                             one_of<eviction_kind>({eviction_names.begin(), eviction_names.end()}),
                             restart,
                             "What leaves when there is no more room. \"gdsf\" keeps small objects "
                             "longer, which makes more hits of fewer bytes; \"lfu-da\" is the same "
                             "whatever the size. tools/replay measures them on a log; /stats says "
                             "what the others would have done here.")),
        },
        {},
        check_memory};
}

object_table<collapsing_options> collapsing_table() {
    return {{
        value("window",
              &collapsing_options::window,
              size_between(64 * kib, 1 * gib),
              live,
              "Bytes of one response held for readers that are behind. More "
              "lets later and slower clients share one fetch; each shared "
              "fetch may take as much memory."),
        value("finish",
              &collapsing_options::finish,
              size_between(0, 1 * gib),
              live,
              "A fetch that no client waits for any more goes on when at most "
              "this is missing and comes at 4 KiB a second in the mean. More stores more of what "
              "clients gave up, and "
              "loads origins for nobody."),
    }};
}

object_table<access_options> access_table() {
    object_table<access_options> out{{
        value("clients",
              &access_options::clients,
              list_of(network_kind(), 0, 10'000),
              live,
              "The networks whose clients are served. A proxy open to everybody is "
              "abused within hours."),
        value("purge_clients",
              &access_options::purge_clients,
              list_of(network_kind(), 0, 10'000),
              live,
              "The networks, among clients, that may send PURGE. Whoever can empties the cache of "
              "any site. The admin listener's /purge wants its token instead."),
        value("fronts",
              &access_options::fronts,
              list_of(network_kind(), 0, 10'000),
              live,
              "The networks whose addresses speak for many clients each (load balancers, address "
              "translation): limits.connections_per_client and origins.connections_per_client do "
              "not bound them, and a wrong password makes its user's name wait there, not the "
              "address. Peers are such without being named."),
        value(
            "trusted_fronts",
            &access_options::trusted_fronts,
            list_of(network_kind(), 0, 10'000),
            live,
            "The networks of the load balancers and proxies that say whose requests they pass on, "
            "and are believed: by a PROXY header at listeners with proxy_protocol, to which nobody "
            "else may connect, and by X-Forwarded-For with each request. The client is that "
            "field's last address that is none of theirs. Whoever can send from there can be any "
            "client: name none that passes that field on as clients wrote it. Their own addresses "
            "are such as speak for many."),
        value("connect_ports",
              &access_options::connect_ports,
              list_of(ports(), 0, 1'000),
              live,
              "The ports that CONNECT may reach. Port 25 sends mail for strangers."),
        value("request_ports",
              &access_options::request_ports,
              list_of(ports(), 0, 1'000),
              live,
              "The ports that requests other than CONNECT may reach."),
        value("allow_destinations",
              &access_options::allow_destinations,
              list_of(destination_kind(), 0, 10'000),
              live,
              "Exceptions to what is always refused (loopback, link-local, this machine, cloud "
              "metadata): host, *.host, network or address, each perhaps with :port."),
        value("deny_destinations",
              &access_options::deny_destinations,
              list_of(destination_kind(), 0, 10'000),
              live,
              "Further destinations that forward listeners refuse, written as in "
              "allow_destinations."),
        value("https_prefix",
              &access_options::https_prefix,
              list_of(destination_kind(), 0, 10'000),
              live,
              "Hosts that may be asked for as http://HTTPS///host/path, by programs that can't be "
              "told otherwise (apt, as from apt-cacher-ng): it means https://host/path, fetched "
              "over TLS and stored as that. The way from client to proxy is in the clear then. "
              "Written as in allow_destinations."),
        value("block_lists",
              &access_options::block_lists,
              list_of(path_kind(), 0, 32),
              live,
              "Files of hosts that forward listeners refuse, by whatever method and in opened "
              "tunnels "
              "too: a domain a line, or lines as in a hosts file (0.0.0.0 ads.example). Each means "
              "that "
              "host and all below it; \"*.\" or \".\" may stand before it. 5,000,000 names in all, "
              "at "
              "8.25 bytes each; read at the start and on a reload, beside the traffic. A line that "
              "can't "
              "be read ends the start, and at a reload leaves the lists that were there."),
        value("users_file",
              &access_options::users_file,
              path_or_off(),
              live,
              "Who may use forward listeners, by name and password (Proxy-Authorization: Basic): "
              "lines as htpasswd(1) writes them with -B (bcrypt), or with yescrypt or SHA-512 of "
              "crypt(5). With this or tokens_file everybody else gets 407, but siblings. An "
              "accelerator asks nobody. Read at the start and on a reload; nobody else should be "
              "able to read it."),
        value("tokens_file",
              &access_options::tokens_file,
              path_or_off(),
              live,
              "The same by token (Proxy-Authorization: Bearer): lines of name:token, tokens of 16 "
              "bytes or more; or name:sha256: and the token's SHA-256 in 64 hexadecimal digits."),
        value("plaintext_passwords",
              &access_options::plaintext_passwords,
              yes_or_no(),
              live,
              "Whether passwords and tokens are taken too where others can read them on their way: "
              "from elsewhere than this machine, by a listener without TLS."),
    }};
    out.check = check_access;
    return out;
}

object_table<log_options> log_table() {
    return {{
        value("access",
              &log_options::access,
              log_destination(),
              live,
              "Where each request leaves a line: \"-\" for standard output, "
              "\"off\", or a file, opened anew on SIGUSR1."),
        value("format",
              &log_options::format,
              one_of<log_format>({{"json", log_format::json},
                                  {"squid", log_format::squid},
                                  {"combined", log_format::combined}}),
              live,
              "What a line is: \"json\" has all there is to know; \"squid\" is Squid's native "
              "format with its result and hierarchy codes, \"combined\" that of Apache and nginx, "
              "for the programs that read those. Change it together with the file: few read two "
              "formats in one."),
        value("sample",
              &log_options::sample,
              small_count_between(1, 1'000'000, "requests"),
              live,
              "One request in so many leaves a line, and in JSON says so (\"sample\"); those that "
              "were refused or failed, and answers of 500 and above, always do. More spares the "
              "disk; counts made from the log are estimates then, those of /stats are not."),
        value("level",
              &log_options::level,
              one_of<log_level>({{"trace", log_level::trace},
                                 {"debug", log_level::debug},
                                 {"info", log_level::info},
                                 {"warn", log_level::warn},
                                 {"error", log_level::error},
                                 {"off", log_level::off}}),
              live,
              "How much the program says of itself on standard error."),
        value("query_values",
              &log_options::query_values,
              yes_or_no(),
              live,
              "Whether the values in a URL's query and in its path's parameters (;name=value) are "
              "logged as they are. Signed URLs are credentials, and a log is read by many."),
    }};
}

object_table<forwarding_options> forwarding_table() {
    return {{
        value("pseudonym",
              &forwarding_options::pseudonym,
              pseudonym(),
              restart,
              "This instance's name in Via, by which it knows a loop, and in Cache-Status: no two "
              "may "
              "share one. Empty: \"reprise-\" and random letters, new at each start, and in "
              "Cache-Status \"reprise\"."),
        value(
            "client_address",
            &forwarding_options::client_address,
            one_of<forwarded_field>({{"off", forwarded_field::off},
                                     {"forwarded", forwarded_field::forwarded},
                                     {"x-forwarded-for", forwarded_field::x_forwarded_for},
                                     {"both", forwarded_field::both}}),
            live,
            "Which fields tell origins a client's address: Forwarded (RFC 7239), X-Forwarded-For, "
            "both, or none of them. What an origin varies by such a field is not stored."),
    }};
}

object_table<caching_options> caching_table() {
    return {{
        value("set_cookie",
              &caching_options::set_cookie,
              one_of<cookie_storing>({{"never", cookie_storing::never},
                                      {"explicit", cookie_storing::explicit_lifetime}}),
              live,
              "Which responses with Set-Cookie may be stored: \"explicit\", those whose origin "
              "states a lifetime (RFC 9111 7.3); \"never\", none. An origin that states one "
              "by habit hands one client's cookie to all. What a sibling answers with it is never "
              "stored. A reload to \"never\" leaves what is stored already: purge that."),
        value("objective",
              &caching_options::objective,
              one_of<caching_objective>({{"requests", caching_objective::requests},
                                         {"bytes", caching_objective::bytes},
                                         {"seconds", caching_objective::seconds}}),
              restart,
              "What memory.policy \"gdsf\", the disk, advice and admission.policy \"auto\" are "
              "for: how many requests are hits, or how many bytes are, which links feel, or the "
              "seconds that hits spare clients, by what the fetch of each object took (at most 10 "
              "of each): where some origins are slower than others, that is what clients feel."),
    }};
}

object_table<options> make_table() {
    return {
        {
            objects("listeners",
                    &options::listeners,
                    listener_table(),
                    1,
                    64,
                    restart,
                    "Where clients are served. Without any written there is one, forward, on "
                    "127.0.0.1:3128."),
            object("admin",
                   &options::admin,
                   admin_table(),
                   "The listener for whoever runs the proxy."),
            value("threads",
                  &options::threads,
                  small_count_between(0, 256, "threads"),
                  restart,
                  "Event loops, each with connections of its own; 0: one per processor. "
                  "More than processors gains nothing."),
            object("memory", &options::memory, memory_table(), "The store in memory."),
            object("disk",
                   &options::disk,
                   disk_table(),
                   "The store on disk, which outlives a restart. What is admitted is written there "
                   "once; memory holds what is asked for again."),
            object("collapsing",
                   &options::collapsing,
                   collapsing_table(),
                   "How requests for one object that come together share one fetch."),
            object("admission",
                   &options::admission,
                   admission_table(),
                   "Whether an object that is absent may enter the store. Text is short for "
                   "its \"policy\"."),
            object("access",
                   &options::access,
                   access_table(),
                   "Who is served, and what may be reached."),
            object("log", &options::log, log_table(), "What is written, and where."),
            object(
                "limits", &options::limits, limits_table(), "What one message or client may take."),
            object(
                "timeouts", &options::timeouts, timeouts_table(), "How long each wait may last."),
            object("origins",
                   &options::origins,
                   origins_table(),
                   "Connections to origins and upstreams."),
            object("dns", &options::dns, dns_table(), "How names are resolved."),
            object("forwarding",
                   &options::forwarding,
                   forwarding_table(),
                   "What origins are told of the proxy and its clients."),
            object(
                "freshness",
                &options::freshness,
                freshness_table(),
                "For how long a response is fresh that does not say so, which is judged when it "
                "comes. What a reload changes of that holds for what is stored or validated from "
                "then on, but stale_on_error and stale_on_error_status hold at once."),
            object("caching",
                   &options::caching,
                   caching_table(),
                   "What may be stored, beyond what the origin forbids."),
            object("digest",
                   &options::digest,
                   digest_table(),
                   "What siblings are told of what is stored here: a Bloom filter of its URLs, at "
                   "/.well-known/reprise/digest of each forward listener."),
            peers_row(),
            object("peering", &options::peering, peering_table(), "How peers are asked."),
            by_default(
                "none: every CONNECT is passed on",
                optional_object(
                    "intercept",
                    &options::intercept,
                    intercept_table(),
                    "Interception: TLS of the hosts named here ends at the proxy, which answers "
                    "in their place with a certificate of its own CA and reads what is asked, so "
                    "that it can be stored. Only clients that were given the CA's certificate take "
                    "part. Intercept your own machines, or with their users' knowledge and "
                    "consent and where the law allows it, for caching what many of them download. "
                    "For these hosts a client sees our certificate, not the server's: its own "
                    "checks of transparency, revocation and pinning are lost, and the proxy's of "
                    "the server stand in their place. Off unless written.")),
            value("targeted",
                  &options::targeted,
                  list_of(field_name(), 0, 16),
                  live,
                  "Fields that speak to this cache in place of Cache-Control and Expires (RFC "
                  "9213), as \"CDN-Cache-Control\"; the first that is there and valid counts. "
                  "For a cache that the sites' owners run: others they do not mean."),
        },
        {},
        check_options};
}

}  // namespace

const object_table<options>& settings_table() {
    static const auto table = make_table();
    return table;
}

const std::vector<setting>& all_settings() {
    static const auto settings = [] {
        std::vector<setting> all;
        describe_object(settings_table(), options{}, "", all);
        return all;
    }();
    return settings;
}

}  // namespace reprise::config
