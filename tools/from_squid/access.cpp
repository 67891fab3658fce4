#include "tools/from_squid/access.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace reprise::from_squid {

namespace {

// The hosts and networks of dstdomain and dst.
struct destinations {
    std::vector<std::string> all;
    bool names_looked_up = false;      // of a dst without -n
    bool addresses_looked_up = false;  // of a dstdomain without -n
};

// What the conditions of one rule come to, which must all hold.
struct conditions {
    network_set clients = everybody();
    std::optional<port_set> ports, not_ports;
    destinations hosts, not_hosts;
    bool hosts_given = false, not_hosts_given = false;  // though a list of them is empty
    bool connect = false, not_connect = false;
    bool purge = false, not_purge = false;
    bool users = false, not_users = false;
    bool manager = false, self = false;
    bool unspoken = false;         // of protocols that ours does not speak: matches nothing
    std::string other, not_other;  // a condition that ours can't say
    bool missed = false;           // a value of a list could not be read

    // That no request fulfils: an empty list holds nothing, and a request has one method.
    [[nodiscard]] bool never() const {
        return (hosts_given && hosts.all.empty()) || (ports && ports->empty()) ||
               (connect && not_connect) || (purge && (not_purge || connect));
    }
    [[nodiscard]] bool any_ports() const { return ports || not_ports; }
    [[nodiscard]] port_set all_ports() const {
        return difference(ports.value_or(every_port()), not_ports.value_or(port_set{}));
    }
    [[nodiscard]] bool of_addresses_alone() const {
        return other.empty() && not_other.empty() && !hosts_given && !not_hosts_given &&
               !any_ports() && !users && !not_users && !self;
    }
};

// What is for some clients only: whether that matters is known at the end.
struct bound {
    network_set clients;
    std::optional<port_set> allowed_ports;
    bool for_connect = false;  // the ports are those of CONNECT alone
    destinations hosts;
    const statement* from = nullptr;
};

// An allow that ours can't say.
struct skipped {
    network_set clients;
    std::string unsaid;  // the condition; empty: it is known, but not for some clients alone
    const statement* from = nullptr;
};

class reduction {
public:
    reduction(const acl_table& acls, bool has_users, notes& told)
        : acls_{acls},
          has_users_{has_users},
          told_{told} {}

    reduced_access run(const std::vector<const statement*>& rules) {
        bool last_allows = true;  // none at all: Squid denies
        bool over = false;
        for (const auto* rule : rules) {
            if (rule->words.size() < 2) {
                continue;
            }
            const auto& action = rule->words[1].text;
            if (action != "allow" && action != "deny") {
                say(fate::left_out, *rule, "neither allow nor deny");
                continue;
            }
            if (rule->words.size() < 3) {
                say(fate::left_out, *rule, "without a condition Squid takes no notice of it");
                continue;
            }
            last_allows = action == "allow";
            if (over) {
                say(fate::left_out,
                    *rule,
                    "is never reached: a rule before it decides for everybody");
                continue;
            }
            take(*rule, last_allows);
            over = undecided_.empty();
        }
        if (!last_allows) {
            // Squid's default is the opposite of the last rule.
            allowed_.insert(allowed_.end(), undecided_.begin(), undecided_.end());
        }
        out_.clients = tidied(allowed_);
        apply_bounds();
        judge_skipped();
        if (out_.ports_bounded && out_.request_ports.empty()) {
            out_.purge_clients.clear();  // of no port there is anything to purge
        }
        out_.purge_clients = intersection(tidied(out_.purge_clients), out_.clients);
        return std::move(out_);
    }

private:
    void say(fate what, const statement& rule, std::string why, std::string setting = "access") {
        told_.push_back({what, rule.where, text_of(rule), std::move(why), std::move(setting)});
    }

    // A list's value that could not be read: fewer are meant by it than before. Of a deny that is
    // laxer; an allow of all others would be too, and becomes one that can't be said.
    void miss(conditions& out, std::string why, bool negated, const statement& rule) {
        out.missed = true;
        const bool allows = rule.words[1].text == "allow";
        if (allows && negated) {
            out.not_other = std::move(why);
        } else {
            say(allows || negated ? fate::left_out : fate::laxer, rule, std::move(why));
        }
    }

    conditions read(const statement& rule) {
        conditions out;
        for (std::size_t i = 2; i < rule.words.size(); ++i) {
            auto name = rule.words[i].text;
            const bool negated = name.starts_with('!');
            name.erase(0, negated ? 1 : 0);
            const auto* found = acls_.find(name);
            if (found == nullptr) {
                (negated ? out.not_other : out.other) = name + ", which is not defined";
            } else {
                add(out, name, *found, negated, rule);
            }
        }
        return out;
    }

    void add(conditions& out,
             const std::string& name,
             const acl& one,
             bool negated,
             const statement& rule) {
        auto& other = negated ? out.not_other : out.other;
        if (!one.unread.empty()) {
            other = name + ": " + one.unread;
        } else if (one.type == "src") {
            std::vector<std::string> unread;
            auto networks = networks_of(one, unread);
            for (const auto& each : unread) {
                miss(
                    out, name + " has " + each + ", which is no address or network", negated, rule);
            }
            if (negated) {
                networks = difference(everybody(), networks);
            }
            out.clients = intersection(out.clients, networks);
        } else if (one.type == "port") {
            auto& ports = negated ? out.not_ports : out.ports;
            std::vector<std::string> unread;
            const auto mine = ports_of(one, unread);
            for (const auto& each : unread) {
                miss(out, name + " has " + each + ", which is no port or range", negated, rule);
            }
            if (!ports) {
                ports = mine;
            } else if (negated) {
                ports->insert(ports->end(), mine.begin(), mine.end());
            } else {
                ports = intersection(*ports, mine);
            }
        } else if (one.type == "method") {
            add_method(out, name, one, negated);
        } else if (one.type == "dst" || one.type == "dstdomain") {
            std::vector<std::string> unread;
            auto hosts = destinations_of(one, unread);
            if (!unread.empty()) {
                miss(out,
                     name + " has " + unread.front() + ", which is no " +
                         (one.type == "dst" ? "address or network" : "host"),
                     negated,
                     rule);
            }
            auto& into = negated ? out.not_hosts : out.hosts;
            if (!negated && out.hosts_given) {
                other = name + " beside other destinations";
            }
            if (!hosts.empty() && !one.no_lookup) {
                (one.type == "dst" ? into.names_looked_up : into.addresses_looked_up) = true;
            }
            into.all.insert(into.all.end(), hosts.begin(), hosts.end());
            (negated ? out.not_hosts_given : out.hosts_given) = true;
        } else if (one.type == "proxy_auth" || one.type == "proxy_auth_regex") {
            const bool any = one.type == "proxy_auth" && one.values.size() == 1 &&
                             one.values.front() == "REQUIRED";
            if (any) {
                (negated ? out.not_users : out.users) = true;
            } else {
                other = name + " (some users only)";
            }
        } else if (one.type == "manager") {
            out.manager = out.manager || !negated;
        } else if (one.type == "to_self") {
            out.self = out.self || !negated;
        } else if (one.type == "proto") {
            const auto of_manager = [](const std::string& value) {
                return lower_case(value) == "cache_object";
            };
            if (!is_of_unspoken_protocols(one)) {
                other = name + " (proto)";
            } else if (std::any_of(one.values.begin(), one.values.end(), of_manager)) {
                out.manager = out.manager || !negated;
            } else {
                out.unspoken = out.unspoken || !negated;
            }
        } else {
            other = name + " (" + one.type + ')';
        }
    }

    static void add_method(conditions& out, const std::string& name, const acl& one, bool negated) {
        const bool single = one.values.size() == 1;
        if (single && one.values.front() == "CONNECT") {
            (negated ? out.not_connect : out.connect) = true;
        } else if (single && one.values.front() == "PURGE") {
            (negated ? out.not_purge : out.purge) = true;
        } else {
            (negated ? out.not_other : out.other) = name + " (method)";
        }
    }

    void take(const statement& rule, bool allows) {
        const auto of = read(rule);
        if (of.never()) {
            say(fate::left_out,
                rule,
                of.missed
                    ? "nothing is left of it that could be read"
                    : "is for nothing: a list of it is empty, or it wants two methods at once");
            return;
        }
        if (of.manager) {
            say(fate::changed,
                rule,
                "the cache manager's place is taken by the admin listener, which is this "
                "machine's");
            return;
        }
        if (of.unspoken) {
            say(fate::left_out, rule, "a protocol that is not spoken here is refused in any case");
            return;
        }
        if (of.purge) {
            take_purge(rule, of, allows);
        } else if (allows) {
            take_allow(rule, of);
        } else {
            take_deny(rule, of);
        }
    }

    void take_purge(const statement& rule, const conditions& of, bool allows) {
        if (!allows) {
            // Of those whom no rule has allowed it, these are not asked about any more.
            if (!of.of_addresses_alone()) {
                say(fate::approximated,
                    rule,
                    "PURGE is denied by address alone, whatever else the rule wants",
                    "access.purge_clients");
            }
            undecided_of_purge_ = difference(undecided_of_purge_, of.clients);
            return;
        }
        if (!of.of_addresses_alone()) {
            say(fate::left_out, rule, "PURGE is allowed by address alone");
            return;
        }
        const auto more = intersection(of.clients, undecided_of_purge_);
        out_.purge_clients.insert(out_.purge_clients.end(), more.begin(), more.end());
        say(fate::changed, rule, "is access.purge_clients", "access.purge_clients");
    }

    void decide(const network_set& clients, bool allow) {
        if (allow) {
            const auto more = intersection(clients, undecided_);
            allowed_.insert(allowed_.end(), more.begin(), more.end());
        } else {
            undecided_of_purge_ = difference(undecided_of_purge_, clients);
        }
        undecided_ = difference(undecided_, clients);
    }

    void take_allow(const statement& rule, const conditions& of) {
        if (of.self) {
            say(fate::left_out,
                rule,
                "write the addresses that may be reached into access.allow_destinations");
            return;
        }
        const bool narrow = !of.other.empty() || !of.not_other.empty() || of.hosts_given ||
                            of.connect || of.not_users || (of.users && !has_users_);
        if (narrow) {
            auto unsaid = of.other.empty() && !of.not_other.empty() ? '!' + of.not_other : of.other;
            skipped_.push_back({intersection(of.clients, undecided_), std::move(unsaid), &rule});
            return;
        }
        const auto clients = intersection(of.clients, undecided_);
        if (!intersection(of.clients, narrowed_).empty()) {
            say(fate::approximated,
                rule,
                "whom a rule before it allows some ports or destinations has those alone");
        }
        if (of.users) {
            out_.needs_users = true;
            say(fate::approximated,
                rule,
                "whoever is served must show a name and password (access.users_file)",
                "access.users_file");
        }
        const auto before = bounds_.size();
        if (of.any_ports()) {
            bounds_.push_back({clients, of.all_ports(), false, {}, &rule});
        }
        if (of.not_connect) {
            bounds_.push_back({clients, port_set{}, true, {}, &rule});
        }
        if (!of.not_hosts.all.empty()) {
            bounds_.push_back({clients, std::nullopt, false, of.not_hosts, &rule});
        }
        if (bounds_.size() > before) {
            narrowed_.insert(narrowed_.end(), clients.begin(), clients.end());
        }
        decide(of.clients, true);
    }

    void take_deny(const statement& rule, const conditions& of) {
        const auto clients = intersection(of.clients, undecided_);
        if (of.self) {
            self_denied_.insert(self_denied_.end(), clients.begin(), clients.end());
            say(fate::left_out, rule, "is always so: this machine and its links are refused");
            return;
        }
        if (!of.other.empty() || !of.not_other.empty()) {
            say(fate::laxer,
                rule,
                "there is no condition like " + (of.other.empty() ? '!' + of.not_other : of.other));
            return;
        }
        if (of.not_users) {
            out_.needs_users = has_users_;
            if (has_users_) {
                say(fate::changed, rule, "is access.users_file", "access.users_file");
            } else {
                say(fate::left_out,
                    rule,
                    "passwords are not asked for, so nobody is served that had to show one");
                decide(of.clients, false);
            }
            return;
        }
        if (of.users) {
            say(fate::laxer, rule, "who has a password is not refused for it");
            return;
        }
        if (of.not_hosts_given) {
            say(fate::approximated,
                rule,
                "only some destinations were allowed, which can't be said: nobody is served that "
                "this was for");
            decide(of.clients, false);
            return;
        }
        if (of.not_purge) {
            say(fate::approximated, rule, "is denied for PURGE as well");
        }
        if (of.hosts_given) {
            if (of.any_ports() || of.connect || of.not_connect) {
                say(fate::approximated, rule, "is denied whatever the port and method");
            }
            bounds_.push_back({clients, std::nullopt, false, of.hosts, &rule});
        } else if (of.any_ports()) {
            if (of.not_connect) {
                say(fate::approximated, rule, "is denied for CONNECT as well");
            }
            const auto allowed = difference(every_port(), of.all_ports());
            bounds_.push_back({clients, allowed, of.connect, {}, &rule});
        } else if (of.connect) {
            bounds_.push_back({clients, port_set{}, true, {}, &rule});
        } else if (of.not_connect) {
            say(fate::approximated,
                rule,
                "nobody is served that this was for: there is no CONNECT alone");
            decide(of.clients, false);
        } else {
            decide(of.clients, false);
        }
    }

    void apply_bounds() {
        const statement* told_of = nullptr;
        for (const auto& each : bounds_) {
            const auto concerned = intersection(each.clients, out_.clients);
            if (concerned.empty()) {
                continue;  // nobody is served whom it was for
            }
            if (each.from != told_of && !difference(out_.clients, each.clients).empty()) {
                told_of = each.from;
                say(fate::approximated,
                    *each.from,
                    "holds for all that are served: stricter for some");
            }
            const auto& hosts = each.hosts;
            out_.deny_destinations.insert(
                out_.deny_destinations.end(), hosts.all.begin(), hosts.all.end());
            out_.names_looked_up = out_.names_looked_up || hosts.names_looked_up;
            out_.addresses_looked_up = out_.addresses_looked_up || hosts.addresses_looked_up;
            if (!each.allowed_ports) {
                continue;
            }
            if (!each.for_connect) {
                out_.request_ports = intersection(out_.request_ports, *each.allowed_ports);
                out_.ports_bounded = true;
            }
            out_.connect_ports = intersection(out_.connect_ports, *each.allowed_ports);
            out_.connect_bounded = true;
        }
        if (!intersection(self_denied_, out_.clients).empty()) {
            out_.names_looked_up = true;
        }
        std::unordered_set<std::string> seen;
        std::erase_if(out_.deny_destinations,
                      [&](const std::string& each) { return !seen.insert(each).second; });
    }

    // An allow that ours can't say takes nothing from whom a later one serves.
    void judge_skipped() {
        for (const auto& each : skipped_) {
            const bool served = difference(each.clients, out_.clients).empty();
            if (served && intersection(each.clients, narrowed_).empty()) {
                continue;
            }
            say(fate::left_out,
                *each.from,
                "some clients might do some things, which can't be said" +
                    (each.unsaid.empty() ? "" : " (" + each.unsaid + ')') +
                    (served ? ": they may do what another rule allows" : ": they may do nothing"));
        }
    }

    const acl_table& acls_;
    const bool has_users_;
    notes& told_;
    reduced_access out_;
    network_set undecided_ = everybody();
    network_set undecided_of_purge_ = everybody();  // whom no rule has denied it
    network_set allowed_;
    network_set self_denied_;  // to whom a rule denied this machine, by whatever name
    network_set narrowed_;     // those of them whom the rule allowed some ports or destinations
    std::vector<bound> bounds_;
    std::vector<skipped> skipped_;
};

}  // namespace

reduced_access reduce(const std::vector<const statement*>& rules,
                      const acl_table& acls,
                      bool has_users,
                      notes& told) {
    return reduction{acls, has_users, told}.run(rules);
}

}  // namespace reprise::from_squid
