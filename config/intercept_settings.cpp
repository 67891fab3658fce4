#include "config/intercept_settings.hpp"

#include "config/address.hpp"
#include "config/kinds.hpp"
#include "config/units.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>

namespace reprise::config {
namespace {

using namespace std::chrono_literals;
using enum change;

// Each is a name constraint in the CA's certificate, which goes with every handshake.
constexpr std::size_t most_hosts = 1'000;

parsed<std::string> parse_host_pattern(std::string_view text) {
    if (text == "*") {
        return refusal{"is every site there is, banks and mail among them: name the hosts that "
                       "are meant, as deb.example.org or *.example.org"};
    }
    auto answer = parse_destination(text);
    const auto* where = value_of(answer);
    if (where == nullptr) {
        return std::get<refusal>(answer);
    }
    if (where->net) {
        return refusal{"is an address: certificates are made for names; write the host's"};
    }
    if (where->port) {
        return refusal{"has a port: write the host alone, and its port in intercept.ports"};
    }
    return where->host;
}

kind<std::string> host_pattern() {
    return text_kind<std::string>(
        "host or *.host", parse_host_pattern, [](const std::string& pattern) { return pattern; });
}

// One of the patterns stands for every host that the other stands for.
bool covers(std::string_view wide, std::string_view narrow) {
    if (wide == narrow) {
        return true;
    }
    return wide.starts_with("*.") && narrow.ends_with(wide.substr(1)) &&
           narrow.size() > wide.size() - 1;
}

// A list that opens nothing is a slip: whoever wants none leaves the object out.
void check_intercept(const intercept_options& into, const given& members, const place& here) {
    if (!members.has("hosts") || !members.is_sound("hosts") || !members.is_sound("except")) {
        return;
    }
    const auto shut = [&](const std::string& host) {
        return std::any_of(into.except.begin(), into.except.end(), [&](const std::string& one) {
            return covers(one, host);
        });
    };
    for (std::size_t i = 0; i < into.hosts.size(); ++i) {
        if (shut(into.hosts[i])) {
            here.member("hosts").element(i).wrong(in_quotes(into.hosts[i]) +
                                                  " is never opened: all of it is in except");
        }
    }
}

}  // namespace

object_table<intercept_options> intercept_table() {
    return {
        {
            required(value("hosts",
                           &intercept_options::hosts,
                           list_of(host_pattern(), 1, most_hosts),
                           live,
                           "The hosts whose tunnels are opened, each a name or *.name for its "
                           "subdomains. Those that serve downloads which many clients share belong "
                           "here (packages, images, archives), never those where people sign in. "
                           "Everything else is passed on byte for byte.")),
            value("except",
                  &intercept_options::except,
                  list_of(host_pattern(), 0, most_hosts),
                  live,
                  "Of those, the hosts that are not opened: programs that pin their server's "
                  "certificate, and servers that want one of the client."),
            value("clients",
                  &intercept_options::clients,
                  list_of(network_kind(), 1, 10'000),
                  live,
                  "The networks, among access.clients, whose tunnels may be opened: those of "
                  "clients that have been given the CA's certificate. What one of them refuses "
                  "is remembered by its address; an address that speaks for many (access.fronts, "
                  "peers) has no refusal remembered, so all that is behind it must have been "
                  "given the certificate too."),
            value("ports",
                  &intercept_options::ports,
                  list_of(port(), 1, 100),
                  live,
                  "The ports, among access.connect_ports, at which a tunnel may be opened."),
            required(value("ca_certificate",
                           &intercept_options::ca_certificate,
                           path_kind(),
                           live,
                           "A PEM file: the certificate that signs for the hosts, and those that "
                           "lead to the root which clients trust, in this order. tools/make-ca "
                           "makes one that can sign for nothing but the hosts.")),
            required(value("ca_key",
                           &intercept_options::ca_key,
                           path_kind(),
                           live,
                           "A PEM file: that certificate's private key, without a passphrase; the "
                           "proxy's user alone may read it.")),
            value("unconstrained",
                  &intercept_options::unconstrained,
                  yes_or_no(),
                  live,
                  "Whether a CA is taken whose certificate is not constrained to some names. "
                  "Whoever steals such a key can be any site to every client that trusts it."),
            value("leaf_lifetime",
                  &intercept_options::leaf_lifetime,
                  seconds_between(1h, 825 * day),
                  live,
                  "For how long a host's certificate is valid; a new one is made when half of it "
                  "is over. Longer makes fewer of them, and what was stolen from memory serves "
                  "the thief for longer. Some clients take none that is valid for more than 398 "
                  "days."),
            value("leaves",
                  &intercept_options::leaves,
                  small_count_between(16, 100'000, "certificates"),
                  live,
                  "How many hosts' certificates are kept. More spares the making of a host's that "
                  "returns; each takes 3 KiB."),
            value("on_refusal",
                  &intercept_options::on_refusal,
                  one_of<refusal_answer>(
                      {{"tunnel", refusal_answer::tunnel}, {"fail", refusal_answer::fail}}),
                  live,
                  "What follows when a client doesn't take our certificate for a host: \"tunnel\" "
                  "passes its next connections there on unopened; \"fail\" opens them all the "
                  "same, so that whoever lacks the CA's certificate notices."),
            value("refusal_memory",
                  &intercept_options::refusal_memory,
                  seconds_between(1s, 30 * day),
                  live,
                  "For how long that is remembered, where on_refusal is \"tunnel\". Longer spares "
                  "such a client a failed connection; once it trusts the CA its hits begin later. "
                  "A reload changes it for refusals from then on."),
        },
        {},
        check_intercept};
}

}  // namespace reprise::config
