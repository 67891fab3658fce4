#include "config/connection_settings.hpp"

#include "config/checks.hpp"
#include "config/units.hpp"

#include <chrono>

// A row is all there is of a setting: the parser, the bounds, what a reload may change and the
// reference are made of it. Its last text is what REFERENCE.md and --help-config print.

namespace reprise::config {
namespace {

using namespace std::chrono_literals;
using enum change;

}  // namespace

object_table<limit_options> limits_table() {
    return {
        {
            value("head_size",
                  &limit_options::head_size,
                  size_between(1 * kib, 1 * mib),
                  live,
                  "The head of a request or response. More takes larger cookies; each "
                  "connection may hold as much."),
            value("fields",
                  &limit_options::fields,
                  small_count_between(10, 10'000, "field lines"),
                  live,
                  "Field lines in one head. More costs time for each message that uses "
                  "it."),
            value("url_length",
                  &limit_options::url_length,
                  size_between(256, 1 * mib),
                  live,
                  "A request's URL; a longer one gets 414. Not above head_size, of "
                  "which it is a part."),
            value("client_connections",
                  &limit_options::client_connections,
                  small_count_between(1, 1'000'000, "connections"),
                  live,
                  "From all clients together. Each costs a file descriptor and buffers, and "
                  "connections to origins want descriptors too (LimitNOFILE= of the unit, "
                  "65536): the check warns where there are not even as many as clients. Those whom "
                  "access.clients does not serve have a sixteenth of them together."),
            value("connections_per_client",
                  &limit_options::connections_per_client,
                  small_count_between(1, 1'000'000, "connections"),
                  live,
                  "From one client address, or IPv6 network of 64 bits. More serves many "
                  "people behind one "
                  "address, and one of them can take as much from the others."),
            value("body_rate",
                  &limit_options::body_rate,
                  size_between(0, 1 * gib, "bytes a second"),
                  live,
                  "What a client must keep up, over each timeouts.client_body, sending "
                  "a body or reading one. More drops slow clients sooner; 0 waits for "
                  "any progress."),
            value("client_rate",
                  &limit_options::client_rate,
                  size_between(0, 1 * tib, "bytes a second"),
                  live,
                  "What one client may receive, over all its connections together: answers "
                  "from wherever they come, and tunnels. Whoever has said a name "
                  "(access.users_file, access.tokens_file) is a client by that, anybody else "
                  "by address, of IPv6 by its /64. Peers, and fronts that don't say for whom "
                  "they ask, are not limited; nor is what clients send. An eighth of a "
                  "second's worth, 64KiB at least, comes at once. Less leaves more to the "
                  "others; 0 limits nobody."),
        },
        {},
        check_limits};
}

object_table<timeout_options> timeouts_table() {
    constexpr milliseconds least = 10ms;
    constexpr milliseconds most = day;
    const auto time = time_between(least, most);
    return {{
        value("client_head",
              &timeout_options::client_head,
              time,
              live,
              "From a request's first byte to the end of its head. Longer bears "
              "slower clients, and attackers that hold connections open."),
        value("client_idle",
              &timeout_options::client_idle,
              time,
              live,
              "Between two requests of a connection. Longer spares clients new "
              "connections; idle ones count in limits.client_connections."),
        value("client_body",
              &timeout_options::client_body,
              time,
              live,
              "A client may fall below limits.body_rate for so long, sending a "
              "body or reading one."),
        value("origin_connect",
              &timeout_options::origin_connect,
              time,
              live,
              "To connect to an origin, all its addresses together. Then 504."),
        value("origin_upload",
              &timeout_options::origin_upload,
              time,
              live,
              "Without the origin taking any of a request's body. Longer waits for "
              "origins that are busy. Then 504."),
        value("origin_head",
              &timeout_options::origin_head,
              time,
              live,
              "From the request sent, its body too, to the response's head. Longer waits "
              "for origins that compute long. Then 504. Whoever waits for what another "
              "client has asked, with other fields than its own, waits a quarter of "
              "it, and then asks too."),
        value("origin_body",
              &timeout_options::origin_body,
              time,
              live,
              "Between two pieces of a response's body; then it is cut short and "
              "never stored."),
        value("tunnel_idle",
              &timeout_options::tunnel_idle,
              time,
              live,
              "A CONNECT or WebSocket tunnel without a byte either way is closed. "
              "Longer keeps quiet ones up and their connections taken."),
        value("drain",
              &timeout_options::drain,
              time_between(0ms, most),
              live,
              "After SIGTERM, for requests under way to end, and for what is to be "
              "written; eight seconds later, at most, the program ends whatever "
              "hangs. Longer cuts fewer off; the program stops later. systemd is told "
              "and waits for it; whatever else would kill it sooner (docker stop, after "
              "10 seconds) must be given longer."),
        value("hand_over",
              &timeout_options::hand_over,
              time_between(0ms, most),
              live,
              "After SIGUSR2, for the old program to finish what it has while the "
              "new one serves. Longer cuts fewer downloads and tunnels off; as long "
              "as it lasts there is the memory of both, and a full store on disk "
              "takes nothing new."),
    }};
}

object_table<origin_options> origins_table() {
    return {{
                value("connections",
                      &origin_options::connections,
                      small_count_between(1, 65535, "connections"),
                      live,
                      "To one host and port, from one thread. More fetches more at "
                      "once from one origin and loads it as much more."),
                value("connections_per_client",
                      &origin_options::connections_per_client,
                      small_count_between(1, 65535, "connections"),
                      live,
                      "Of those, how many one client address, or IPv6 network of 64 bits, may use "
                      "at once; "
                      "access.fronts and peers are no one client. More lets one client take more "
                      "of an origin from "
                      "the others. Beyond it: 503."),
                value("idle",
                      &origin_options::idle,
                      small_count_between(0, 65535, "connections"),
                      live,
                      "Of those, how many are kept open unused. More spares round "
                      "trips; each costs a file descriptor at both ends."),
                value("idle_timeout",
                      &origin_options::idle_timeout,
                      time_between(0ms, day),
                      live,
                      "How long one is kept unused. Longer than the origin keeps "
                      "it is a request sent twice now and then."),
                value("ca_file",
                      &origin_options::ca_file,
                      path_or_off(),
                      live,
                      "A PEM file of authorities whose certificates are taken of https origins, "
                      "upstreams and peers, beside those of the system's trust store. Certificates "
                      "are always checked, chain and name."),
                value("crl_file",
                      &origin_options::crl_file,
                      path_or_off(),
                      live,
                      "A PEM file of revocation lists, at most 64 MiB. A certificate that one of "
                      "them names is not taken; one whose authority has no list there in its name "
                      "is taken as without the file, and one whose authority has only lists there "
                      "that can't be used for it (out of date, of another key, for some reasons "
                      "alone) is not. A list takes three times its size in memory, and each new "
                      "handshake with a server of its authority the time to hash it, about 1 ms a "
                      "MiB."),
            },
            {},
            check_origins};
}

object_table<dns_options> dns_table() {
    return {{
                value("servers",
                      &dns_options::servers,
                      list_of(name_server(), 0, 16),
                      restart,
                      "Name servers, each an address and perhaps a port (53). None: "
                      "those of /etc/resolv.conf."),
                value("hosts_file",
                      &dns_options::hosts_file,
                      path_or_off(),
                      restart,
                      "A file of addresses and names that is asked before any server; "
                      "\"off\": none is."),
                value("min_ttl",
                      &dns_options::min_ttl,
                      seconds_between(0s, 1 * day),
                      restart,
                      "An answer is kept at least so long. Longer asks less often and "
                      "notices a moved host later."),
                value("max_ttl",
                      &dns_options::max_ttl,
                      seconds_between(1s, 7 * day),
                      restart,
                      "An answer is kept at most so long, whatever its own TTL; and so is a "
                      "connection to an origin or peer, which would go on where the name led "
                      "once (one that a client is logged in on aside)."),
                value("negative_ttl",
                      &dns_options::negative_ttl,
                      seconds_between(0s, 1 * day),
                      restart,
                      "A name that does not exist is not asked for again for so long. "
                      "Longer spares the servers; a new name works later."),
                value("timeout",
                      &dns_options::timeout,
                      time_between(10ms, 5min),
                      restart,
                      "For one name, all servers and tries together. Then 504."),
            },
            {},
            check_dns};
}

}  // namespace reprise::config
