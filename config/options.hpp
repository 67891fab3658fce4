#pragma once
// Everything an operator may say, as plain structs with their defaults.
// What each means, its unit and its bounds stand in settings.hpp's table (printed by --help-config
// and in REFERENCE.md); load.hpp turns a file into these or into every mistake in it. Values here
// are already checked: addresses are numeric, networks are masked, sizes are bytes.

#include "config/eviction.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reprise::config {

using byte_count = std::uint64_t;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// A numeric address and port ("127.0.0.1:3128", "[::1]:3128"); port 0 lets the system pick.
struct endpoint {
    std::string host;  ///< numeric, without brackets
    std::uint16_t port = 0;
    bool operator==(const endpoint&) const = default;
};

/// An IP network. IPv4 is held in its mapped form, so that one comparison serves both families.
struct network {
    std::array<std::uint8_t, 16> address{};
    unsigned prefix_bits = 128;  ///< of the 128 bits; an IPv4 /8 is 104
    bool operator==(const network&) const = default;
};

/// A destination named in an access list: a host, "*.host" (the host's subdomains), or a network;
/// and perhaps a port.
struct destination {
    std::string host;  ///< lower case, empty when `net` is set; starts with "*." for subdomains
    std::optional<network> net;
    std::optional<std::uint16_t> port;
    bool operator==(const destination&) const = default;
};

struct port_range {
    std::uint16_t first = 0, last = 0;
    bool operator==(const port_range&) const = default;
};

enum class admission_policy { second_hit, always, never, nth_hit, tinylfu, automatic };
struct admission_choice {
    admission_policy policy = admission_policy::second_hit;
    unsigned hits = 2;  ///< nth_hit only: stored at this request
    bool operator==(const admission_choice&) const = default;
};

/// Two PEM files.
struct tls_options {
    std::string certificate, key;
    bool operator==(const tls_options&) const = default;
};

enum class listener_mode { forward, accelerator };
struct listener {
    endpoint address{"127.0.0.1", 3128};
    listener_mode mode = listener_mode::forward;
    std::string upstream;  ///< accelerator: "http://host:port" or https, normalised, no path
    std::optional<admission_choice> admission;  ///< overrides admission.policy and its rules
    std::optional<tls_options> tls;             ///< none: plain HTTP
    bool proxy_protocol = false;                ///< a PROXY header comes before all else
    bool operator==(const listener&) const = default;
};

enum class socket_users { owner, group };
struct admin_options {
    std::optional<endpoint> address = endpoint{"127.0.0.1", 3180};  ///< none: "off"
    std::string socket = "auto";                                    ///< a path, "auto" or "off"
    socket_users socket_for = socket_users::owner;
    std::string token_file;  ///< empty: whatever changes something is refused
    std::vector<std::string>
        host_names;  ///< further Host names that it answers, beside its address and localhost
    unsigned connections_per_client = 32;  ///< by address; one more is closed at once
    bool operator==(const admin_options&) const = default;
};

/// Whether the file had a setting whose default depends on others (check_options). Options that differ
/// in that alone are the same.
struct written {
    bool is = false;
    explicit operator bool() const noexcept { return is; }
    bool operator==(const written& /*other*/) const noexcept { return true; }
};

/// The largest body that a store takes: a part of it, so that one object leaves room for others, or
/// less where `max_object` says so; 0: it says nothing. tools/replay has the same.
[[nodiscard]] constexpr byte_count largest_object(byte_count part, byte_count max_object) noexcept {
    return max_object == 0 || max_object > part ? part : max_object;
}

struct memory_options {
    byte_count size = 256ull << 20;
    byte_count max_object = 0;  ///< 0: not written
    eviction_kind policy = eviction_kind::sieve;
    written has_policy;
    /// A larger body never enters memory: a fifth, which is what one on its way may be promised
    /// (cache::reservation).
    [[nodiscard]] byte_count largest() const noexcept {
        return largest_object(size / 5, max_object);
    }
    bool operator==(const memory_options&) const = default;
};

/// When an object goes to disk: as it is admitted, or as it leaves memory.
enum class disk_write : std::uint8_t { admission, eviction };
struct disk_options {
    std::string path;               ///< a directory; empty ("off"): no disk tier
    byte_count size = 20ull << 30;  ///< what all files in it take at most
    byte_count max_object = 0;      ///< 0: not written
    disk_write write = disk_write::admission;
    double carry = 0.25;     ///< of the bytes written, at most this share is carried forward
    bool selective = false;  ///< what is asked for less than what it pushes out is not written
    written has_write, has_carry, has_selective;
    /// A larger body is not stored there.
    [[nodiscard]] byte_count largest() const noexcept {
        return largest_object(size / 4, max_object);
    }
    bool operator==(const disk_options&) const = default;
};

struct collapsing_options {
    byte_count window = 8ull << 20;  ///< bytes of one response held for readers that are behind
    byte_count finish =
        512ull << 10;  ///< a fetch without clients goes on when at most this is missing
    bool operator==(const collapsing_options&) const = default;
};

struct remember_options {
    bool automatic = true;  ///< follows the store's age of eviction; objects and age mean nothing
    std::uint64_t objects = 1'000'000;
    seconds age = std::chrono::hours{50};
    bool operator==(const remember_options&) const = default;
};
struct admission_rule {
    std::string url;  ///< a URL in which * stands for any run of characters
    admission_choice choice;
    bool operator==(const admission_rule&) const = default;
};
struct admission_options {
    admission_choice choice;  ///< "policy" and "hits"
    double probation = 0;     ///< share of memory where first requests wait
    written has_probation;
    bool frozen = false;  ///< "auto" measures and tells, and changes nothing
    remember_options remember;
    double false_positive_rate = 0.001;
    std::vector<admission_rule> rules;  ///< first match wins
    std::string state;                  ///< file; empty: "off"
    seconds save_every = std::chrono::minutes{5};
    bool share = true;  ///< with siblings that have the same digest.secret_file
    written has_share;
    bool operator==(const admission_options&) const = default;
};

/// Loopback and the private networks: 127/8, 10/8, 172.16/12, 192.168/16, ::1, fc00::/7, fe80::/10.
[[nodiscard]] std::vector<network> private_networks();

struct access_options {
    std::vector<network> clients = private_networks();
    std::vector<network> purge_clients;  ///< may send PURGE; access.clients holds as well
    std::vector<network> fronts;  ///< speak for many clients: no share of one client bounds them
    std::vector<network> trusted_fronts;  ///< may say whose connections and requests they pass on
    std::vector<port_range> connect_ports{{443, 443}};
    std::vector<port_range> request_ports{{80, 80}, {443, 443}, {1024, 65535}};
    std::vector<destination> allow_destinations;
    std::vector<destination> deny_destinations;
    std::vector<destination> https_prefix;  ///< may be asked for as http://HTTPS///host/
    std::vector<std::string> block_lists;   ///< files of hosts that nobody is to reach
    std::string users_file, tokens_file;    ///< empty: "off"; both: no client is asked who it is
    bool plaintext_passwords = false;       ///< take them on unencrypted connections from afar
    /// Clients have to say who they are.
    [[nodiscard]] bool wants_users() const noexcept {
        return !users_file.empty() || !tokens_file.empty();
    }
    bool operator==(const access_options&) const = default;
};

enum class log_level { trace, debug, info, warn, error, off };
enum class log_format { json, squid, combined };
struct log_options {
    std::string access = "-";  ///< "-": standard output; "off"; or a file
    log_format format = log_format::json;
    unsigned sample = 1;  ///< one request in so many leaves a line; failures always do
    log_level level = log_level::info;
    bool query_values = false;  ///< true: query values are logged as they are
    bool operator==(const log_options&) const = default;
};

struct limit_options {
    byte_count head_size = 64ull << 10;  ///< of a request's or response's head
    unsigned fields = 200;               ///< field lines in one head
    byte_count url_length = 16ull << 10;
    unsigned client_connections = 10'000;
    unsigned connections_per_client = 1'000;  ///< by client address
    byte_count body_rate =
        100;  ///< bytes per second that a client must keep up, over each timeouts.client_body
    byte_count client_rate = 0;  ///< bytes per second that a client may receive; 0: any number
    bool operator==(const limit_options&) const = default;
};

struct timeout_options {
    milliseconds client_head{15'000};  ///< from a request's first byte to the end of its head
    milliseconds client_idle{60'000};  ///< between requests
    milliseconds client_body{
        30'000};  ///< without enough progress on a request's body, or reading our answer
    milliseconds origin_connect{10'000};
    milliseconds origin_upload{60'000};  ///< without the origin taking any of a request's body
    milliseconds origin_head{
        60'000};  ///< from the request sent, body and all, to the response's head
    milliseconds origin_body{60'000};  ///< between two pieces of a response's body
    milliseconds tunnel_idle{300'000};
    milliseconds drain{10'000};       ///< after SIGTERM
    milliseconds hand_over{600'000};  ///< after SIGUSR2
    bool operator==(const timeout_options&) const = default;
};

struct origin_options {
    unsigned connections = 1'024;           ///< to one host and port, from one thread
    unsigned connections_per_client = 128;  ///< of those, for one client address
    unsigned idle = 32;                     ///< of those, kept open unused
    milliseconds idle_timeout{30'000};
    std::string ca_file{};   ///< believed beside the system's trust store; empty: none
    std::string crl_file{};  ///< of revoked certificates; empty: none
    bool operator==(const origin_options&) const = default;
};

struct dns_options {
    std::vector<endpoint> servers;          ///< empty: the system's (resolv.conf)
    std::string hosts_file = "/etc/hosts";  ///< empty: "off"
    seconds min_ttl{1};
    seconds max_ttl = std::chrono::hours{1};
    seconds negative_ttl{10};
    milliseconds timeout{5'000};
    bool operator==(const dns_options&) const = default;
};

enum class forwarded_field { off, forwarded, x_forwarded_for, both };
struct forwarding_options {
    std::string pseudonym;  ///< in Via and Cache-Status; empty: "reprise-" and random letters, new
                            ///< at each start
    forwarded_field client_address = forwarded_field::off;
    bool operator==(const forwarding_options&) const = default;
};

/// What an origin says of lifetime and storing that a freshness rule may set aside.
enum class overridden {
    expires,
    max_age,
    s_maxage,
    no_store,
    no_cache,
    private_response,
    must_revalidate,
};
enum class reload_answer { obey, ignore };
struct freshness_rule {
    std::string url;  ///< a URL in which * stands for any run of characters
    seconds at_least{0};
    std::optional<seconds> at_most;
    std::optional<double> heuristic_fraction;  ///< none: that of freshness_options
    std::optional<seconds> heuristic_most;     ///< the same
    std::vector<overridden> overrides;
    reload_answer reload = reload_answer::obey;
    bool operator==(const freshness_rule&) const = default;
};

struct freshness_options {
    double heuristic_fraction = 0.1;  ///< of the time since Last-Modified (RFC 9111 4.2.2)
    seconds heuristic_most = std::chrono::hours{24};
    bool heuristic_errors = true;                    ///< of 404, 405, 414 and 501 too
    seconds negative{0};                             ///< of 404, 410 and 5xx that do not say
    seconds stale_on_error = std::chrono::hours{1};  ///< past its end, when nobody answers
    bool stale_on_error_status = false;              ///< and when a 500, 502, 503 or 504 answers
    std::vector<freshness_rule> rules;               ///< first match wins
    bool operator==(const freshness_options&) const = default;
};

enum class cookie_storing { explicit_lifetime, never };
enum class caching_objective { requests, bytes, seconds };
struct caching_options {
    cookie_storing set_cookie = cookie_storing::never;
    caching_objective objective = caching_objective::requests;
    bool operator==(const caching_options&) const = default;
};

inline constexpr unsigned most_site_nodes = 16;
struct digest_options {
    double false_positive_rate = 0.01;
    double publish_after_change = 0.01;  ///< of what the digest lists
    seconds publish_after{30};
    std::string secret_file;  ///< empty: "off"
    bool squid = false;       ///< serve Squid's format too
    unsigned site_nodes = 1;  ///< of how many nodes a gateway makes one digest
    bool operator==(const digest_options&) const = default;
};

enum class peer_kind { sibling, parent, site };
enum class peer_protocol { reprise, squid };
/// One of `url` and `dns` is set.
struct peer_options {
    std::string name;           ///< never empty once loaded: that of dns where none was written
    std::string url;            ///< "http://host:port" or https, normalised, the port always there
    std::string dns;            ///< every address of this name is a sibling
    std::uint16_t port = 3128;  ///< dns only
    peer_kind kind = peer_kind::sibling;
    peer_protocol protocol = peer_protocol::reprise;
    bool proxy_only = false;  ///< what it answers is never stored here
    std::optional<seconds>
        max_age;  ///< siblings: no older, and fresh for no longer; none: as they say
    std::string credentials_file;  ///< parents: "user:password"; empty: "off"
    milliseconds refresh{10'000};
    milliseconds timeout{300};
    bool operator==(const peer_options&) const = default;
};
inline constexpr std::size_t most_siblings = 256;

struct peering_options {
    milliseconds budget{100};  ///< for all siblings of one request, before the origin is asked too
    milliseconds hit_worth{20};  ///< of a sibling's hit, beside the time it saves
    bool never_direct = false;   ///< the only way out are the parents
    bool homes = false;          ///< each URL belongs to one node of the fleet
    /// Within which siblings that follow by news hear of a change; 0: nobody does.
    milliseconds news{200};
    /// Nodes of other sites, for which this one speaks and asks its siblings; none: it is no gateway.
    std::vector<network> gateway_for;
    bool operator==(const peering_options&) const = default;
};

enum class refusal_answer { tunnel, fail };
/// Which tunnels are opened for caching, and with whose certificates.
struct intercept_options {
    std::vector<std::string> hosts;   ///< lower case; "*.host" for its subdomains
    std::vector<std::string> except;  ///< the same; of `hosts`, what is not opened
    std::vector<network> clients = private_networks();
    std::vector<std::uint16_t> ports{443};
    std::string ca_certificate, ca_key;  ///< PEM files
    bool unconstrained = false;          ///< the CA may be one that can sign for any host
    seconds leaf_lifetime = std::chrono::hours{7 * 24};
    unsigned leaves = 1'024;  ///< certificates of hosts that are kept
    refusal_answer on_refusal = refusal_answer::tunnel;
    seconds refusal_memory = std::chrono::hours{1};
    bool operator==(const intercept_options&) const = default;
};

struct options {
    std::vector<listener> listeners{listener{}};
    admin_options admin;
    unsigned threads = 0;  ///< 0: one per processor
    memory_options memory;
    disk_options disk;
    collapsing_options collapsing;
    admission_options admission;
    access_options access;
    log_options log;
    limit_options limits;
    timeout_options timeouts;
    origin_options origins;
    dns_options dns;
    forwarding_options forwarding;
    freshness_options freshness;
    caching_options caching;
    digest_options digest;
    std::vector<peer_options> peers;
    peering_options peering;
    std::optional<intercept_options> intercept;  ///< none: no tunnel is opened
    std::vector<std::string> targeted;  ///< field names in place of Cache-Control (RFC 9213)
    bool operator==(const options&) const = default;
};

}  // namespace reprise::config
