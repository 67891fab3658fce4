#include "tests/unit/from_squid/converted.hpp"

#include <doctest/doctest.h>

#include <filesystem>

namespace reprise::from_squid {

TEST_SUITE("from_squid/conversion") {
    TEST_CASE("an empty configuration serves nobody, as Squid would") {
        const auto r = settings_of("");
        CHECK(r.options.access.clients.empty());
        CHECK(r.says(fate::left_out, "there is no statement in it"));
        CHECK_FALSE(settings_of("via on\n").says(fate::left_out, "there is no statement in it"));
        CHECK(r.options.log.format == config::log_format::squid);
        CHECK(r.options.forwarding.client_address == config::forwarded_field::x_forwarded_for);
    }

    TEST_CASE("ports become listeners, and what can't be one is left out") {
        const auto r = settings_of(
            "http_port 3128\nhttp_port 127.0.0.1:3129\nhttp_port localhost:3130\n"
            "http_port [::1]:3131\nhttp_port 3128 intercept\nhttp_port name:80\n"
            "https_port 443 tls-cert=/c.pem tls-key=/k.pem\nhttp_port 3128\n");
        std::vector<std::string> places;
        for (const auto& each : r.options.listeners) {
            places.push_back(each.address.host + ' ' + std::to_string(each.address.port));
        }
        CHECK(places == std::vector<std::string>{"0.0.0.0 3128",
                                                 ":: 3128",
                                                 "127.0.0.1 3129",
                                                 "127.0.0.1 3130",
                                                 "::1 3131",
                                                 "0.0.0.0 443",
                                                 ":: 443"});
        CHECK(r.options.listeners.back().tls->key == "/k.pem");
        CHECK(r.says(fate::left_out, "tell clients of the proxy"));
        CHECK(r.says(fate::left_out, "listened on already"));
    }

    TEST_CASE("a port of Squid's that the admin listener would have is Squid's") {
        const std::string rest = "http_access allow all\ncache_mem 64 MB\n";
        for (const std::string port : {"3180", "127.0.0.1:3180", "10.0.0.1:3180"}) {
            CAPTURE(port);
            const auto r = settings_of("http_port " + port + "\nhttp_port 3181\n" + rest);
            CHECK(r.options.listeners.front().address.port == 3180);
            REQUIRE(r.options.admin.address.has_value());
            CHECK(config::to_string(*r.options.admin.address) == "127.0.0.1:3182");
            CHECK(r.options.memory.size == 64u << 20);
            CHECK(r.says(fate::changed, "port 3180"));
        }
    }

    TEST_CASE("a port of :: takes both kinds of address, as Squid's does") {
        for (const std::string place : {"[::]:3128", "[0:0::0]:3128"}) {
            CAPTURE(place);
            const auto r = settings_of("http_port " + place + "\n");
            REQUIRE(r.options.listeners.size() == 2);
            CHECK(r.options.listeners[0].address.host == "0.0.0.0");
            CHECK(r.options.listeners[1].address.host == "::");
            CHECK(r.says(fate::changed, "a listener for each kind of address"));
        }
        CHECK(settings_of("http_port 0.0.0.0:3128\n").options.listeners.size() == 1);
    }

    TEST_CASE("a port that asks for more than a connection is no listener without that") {
        for (const std::string more : {"https_port 443 cert=/c key=/k clientca=/ca.pem",
                                       "https_port 443 tls-cert=/c tls-clientca=/ca.pem",
                                       "http_port 3129 ssl-bump cert=/c clientca=/ca.pem",
                                       "http_port 3129 require-proxy-header"}) {
            CAPTURE(more);
            const std::string allow = "\nhttp_access allow all\n";
            const auto r = settings_of("http_port 127.0.0.1:3128\n" + more + allow);
            REQUIRE(r.options.listeners.size() == 1);
            CHECK(r.options.listeners[0].address.port == 3128);
            CHECK(r.count(fate::left_out) >= 1);
            CHECK_FALSE(r.options.access.clients.empty());
            // The listener that there is without any asks for nothing.
            CHECK(settings_of(more + allow).options.access.clients.empty());
        }
        CHECK(settings_of("http_port 80 accel\nhttp_access allow all\n")
                  .options.access.clients.empty());
        const auto r = settings_of("http_port 3128 name=inside tcpkeepalive=60,30,3\n"
                                   "https_port 3130 cert=/c key=/k cipher=HIGH future-thing\n");
        CHECK(r.says(fate::left_out, "cipher=HIGH"));
        CHECK(r.says(fate::left_out, "future-thing"));
        CHECK_FALSE(r.says(fate::left_out, "name=inside"));
    }

    TEST_CASE("what refused requests or hid them from others, and is lost, is told as laxer") {
        for (const std::string line : {"miss_access deny all",
                                       "adapted_http_access deny all",
                                       "http_access2 deny all",
                                       "url_rewrite_program /usr/bin/filter",
                                       "redirect_program /usr/bin/filter",
                                       "ecap_enable on",
                                       "header_access Cookie deny all",
                                       "follow_x_forwarded_for allow all",
                                       "never_direct allow all",
                                       "if maybe\nhttp_access deny all\nendif"}) {
            CAPTURE(line);
            CHECK(settings_of(line + "\n").count(fate::laxer) == 1);
        }
        for (const std::string line :
             {"miss_access allow all", "follow_x_forwarded_for deny all", "ecap_enable off"}) {
            CAPTURE(line);
            CHECK(settings_of(line + "\n").count(fate::laxer) == 0);
        }
    }

    TEST_CASE("an accelerator has its originserver as upstream") {
        const auto r = settings_of(
            "http_port 80 accel defaultsite=a.example no-vhost\n"
            "cache_peer 192.0.2.1 parent 8080 0 no-query originserver name=web\n");
        CHECK(r.options.listeners[0].mode == config::listener_mode::accelerator);
        CHECK(r.options.listeners[0].upstream == "http://192.0.2.1:8080");
        CHECK(r.options.peers.empty());
        CHECK(settings_of("http_port 80 accel\n").says(fate::left_out, "needs its upstream"));
    }

    TEST_CASE("who had to show a password is not served by an accelerator, which asks for none") {
        const std::string site = "http_port 80 accel defaultsite=a.example no-vhost\n"
                                 "cache_peer 10.0.0.1 parent 8080 0 originserver\n";
        const std::string passwords = "auth_param basic program /x/basic_ncsa_auth /etc/p\n"
                                      "acl members proxy_auth REQUIRED\n"
                                      "http_access allow members\nhttp_access deny all\n";
        const auto alone = settings_of(site + passwords);
        CHECK(alone.says(fate::left_out, "an accelerator asks for no passwords"));
        CHECK(alone.options.access.clients.empty());
        const auto beside = settings_of(site + "http_port 127.0.0.1:3128\n" + passwords);
        REQUIRE(beside.options.listeners.size() == 1);
        CHECK(beside.options.listeners[0].mode == config::listener_mode::forward);
        CHECK_FALSE(beside.options.access.clients.empty());
        CHECK(settings_of(site + "http_access allow all\n").options.listeners.size() == 2);
    }

    TEST_CASE("that an accelerator serves hosts that were denied is said") {
        const std::string denied = "acl hidden dstdomain -n intranet.a.example\n"
                                   "http_access deny hidden\nhttp_access allow all\n";
        const auto by_accelerator = settings_of(
            "http_port 80 accel vhost\ncache_peer 10.0.0.1 parent 8080 0 originserver\n" + denied);
        CHECK(by_accelerator.says(fate::laxer, "serves whatever host"));
        CHECK(settings_of("http_port 3128\n" + denied).count(fate::laxer) == 0);
    }

    TEST_CASE("that a name may lead to what is denied is said where a peer may be asked") {
        const std::string port = "http_port 3128\n";
        const std::string all = "http_access allow all\n";
        const std::string inside = "acl inside dst 10.0.0.0/8\nhttp_access deny inside\n" + all;
        const std::string but = "acl inside dst 10.0.0.0/8\nhttp_access allow all !inside\n";
        const std::string here = "http_access deny to_localhost\n" + all;
        const std::string parent = "cache_peer p.example parent 3128 0 no-query\n"
                                   "nonhierarchical_direct off\n";
        const std::string sibling = "cache_peer s.example sibling 3128 0 no-query\n";
        for (const auto& rules : {inside, but, here}) {
            CAPTURE(rules);
            for (const auto& peer : {parent, sibling}) {
                CAPTURE(peer);
                const auto r = settings_of(port + peer + rules);
                CHECK(r.count(fate::laxer) == 1);
                CHECK(r.says(fate::laxer, "the peer's to judge"));
            }
            // Whoever connects looks the name up.
            CHECK(settings_of(port + rules).count(fate::laxer) == 0);
            CHECK_FALSE(settings_of("http_port 80 accel\ncache_peer 192.0.2.1 parent 80 0 "
                                    "originserver\n" +
                                    rules)
                            .says(fate::laxer, "the peer's to judge"));
        }
        // Here Squid does not ask for them either, or nobody is served whom it would be for.
        for (const std::string rules :
             {"acl inside dst -n 10.0.0.0/8\nhttp_access deny inside\nhttp_access allow all\n",
              "acl inside dst 10.0.0.0/8\nacl lan src 10.0.0.0/8\n"
              "http_access deny lan inside\nhttp_access deny lan\nhttp_access allow all\n",
              "http_access allow all\nhttp_access deny to_localhost\n"}) {
            CAPTURE(rules);
            CHECK(settings_of(port + parent + rules).count(fate::laxer) == 0);
        }
    }

    TEST_CASE("that no address is denied for its name is said, once, where Squid asks for it") {
        const std::string rules = "http_access deny a\nhttp_access deny b\nhttp_access allow all\n";
        const auto r = settings_of("acl a dstdomain .a.example\nacl b dstdomain b.example\n" +
                                   rules);
        CHECK(r.count(fate::laxer) == 1);
        CHECK(r.says(fate::laxer, "is not looked up for its name"));
        const auto none = settings_of("acl a dstdomain -n .a.example\nacl b dstdomain "
                                      "b.example\nacl b dstdomain -n c.example\n" +
                                      rules);
        CHECK(none.options.access.deny_destinations.size() == 4);
        CHECK(none.count(fate::laxer) == 0);
        CHECK(settings_of("acl a dstdomain a.example\nhttp_access allow all !a\n")
                  .says(fate::laxer, "is not looked up for its name"));
        CHECK(settings_of("acl a dstdomain a.example\nhttp_access allow a\n").count(fate::laxer) ==
              0);
    }

    TEST_CASE("peers keep their kind; siblings are Squids") {
        const auto r = settings_of(
            "cache_peer a.example parent 3128 3130 default login=u:p\n"
            "cache_peer b.example sibling 3128 3130 proxy-only\n"
            "cache_peer b.example sibling 3129 0 no-query name=b.example\n"
            "cache_peer c.example multicast 3128 3130\nnever_direct allow all\n");
        REQUIRE(r.options.peers.size() == 3);
        CHECK(r.options.peers[0].kind == config::peer_kind::parent);
        CHECK(r.options.peers[1].protocol == config::peer_protocol::squid);
        CHECK(r.options.peers[1].proxy_only);
        CHECK(r.options.peers[2].name == "b.example-2");
        CHECK(r.options.digest.squid);
        CHECK(r.options.peering.never_direct);
        CHECK(r.says(fate::left_out, "credentials_file"));
        CHECK(r.says(fate::changed, "ICP is not spoken"));
    }

    TEST_CASE("never_direct without a parent is taken out again, with the reason") {
        const auto r = settings_of("never_direct allow all\n");
        CHECK_FALSE(r.options.peering.never_direct);
        CHECK(r.says(fate::laxer, "leaves no way out"));
    }

    TEST_CASE("sizes, times and counts") {
        const auto r = settings_of(
            "cache_mem 64 MB\nmaximum_object_size_in_memory 512 KB\n"
            "cache_dir ufs /var/spool/squid 1000 16 256\nmaximum_object_size 100 MB\n"
            "cache_dir rock /x 24 slot-size=4096\nshutdown_lifetime 5 seconds\n"
            "connect_timeout 1 minute\nnegative_ttl 30 seconds\nworkers 3\n"
            "positive_dns_ttl 2 hours\nquick_abort_min 16 KB\n"
            "memory_replacement_policy heap LFUDA\n");
        CHECK(r.options.memory.size == 64u << 20);
        CHECK(r.options.memory.max_object == 512u << 10);
        CHECK(r.options.memory.policy == config::eviction_kind::lfu_da);
        CHECK(r.options.disk.size == 1024ull << 20);
        CHECK(r.options.disk.max_object == 100u << 20);
        CHECK(r.options.disk.path == "/var/cache/reprise");
        CHECK(r.options.timeouts.drain == std::chrono::seconds{5});
        CHECK(r.options.timeouts.origin_connect == std::chrono::minutes{1});
        CHECK(r.options.freshness.negative == std::chrono::seconds{30});
        CHECK(r.options.dns.max_ttl == std::chrono::hours{2});
        CHECK(r.options.collapsing.finish == 16u << 10);
        CHECK(r.options.threads == 3);
    }

    TEST_CASE("refresh_pattern becomes rules, and the last of them the heuristic") {
        const auto r = settings_of(
            "refresh_pattern ^ftp: 1440 20% 10080\n"
            "refresh_pattern -i \\.(deb|rpm)$ 1440 100% 10080 override-expire ignore-reload "
            "ignore-no-store ignore-private ignore-auth refresh-ims\n"
            "refresh_pattern (/cgi-bin/|\\?) 0 0% 0\nrefresh_pattern \\.deb$ 0 1% 1\n"
            "refresh_pattern . 0 20% 4320\nrefresh_pattern x 1 1% 1\n");
        const auto& rules = r.options.freshness.rules;
        REQUIRE(rules.size() == 4);
        CHECK(rules[0].url == "*.deb");
        CHECK(rules[0].at_least == std::chrono::hours{24});
        CHECK(rules[0].heuristic_fraction == 1.0);
        CHECK(rules[0].heuristic_most == std::chrono::hours{7 * 24});
        CHECK(rules[0].reload == config::reload_answer::ignore);
        using config::overridden;
        CHECK(rules[0].overrides == std::vector{overridden::expires,
                                                overridden::max_age,
                                                overridden::s_maxage,
                                                overridden::no_store,
                                                overridden::private_response});
        CHECK(rules[2].url == "*/cgi-bin/*");
        CHECK(rules[2].heuristic_fraction == 0.0);
        CHECK(r.options.freshness.heuristic_fraction == 0.2);
        CHECK(r.options.freshness.heuristic_most == std::chrono::hours{72});
        CHECK(r.says(fate::left_out, "ignore-auth"));
        CHECK(r.says(fate::left_out, "refresh-ims"));
        CHECK(r.says(fate::left_out, "is never reached"));
        CHECK(r.says(fate::left_out, "not spoken"));
    }

    TEST_CASE("what is never stored is a rule of admission") {
        const auto r = settings_of(
            "acl q urlpath_regex cgi-bin \\?\nacl d dstdomain .a.example\n"
            "acl m rep_mime_type text/html\ncache deny q\ncache deny d\ncache deny m\n");
        CHECK(r.options.admission.rules.size() == 6);
        CHECK(r.options.admission.rules[0].url == "*://*/*cgi-bin*");
        CHECK(r.options.admission.rules[0].choice.policy == config::admission_policy::never);
        CHECK(r.options.admission.choice.policy == config::admission_policy::second_hit);
        CHECK(r.count(fate::laxer) == 1);
        CHECK(r.says(fate::laxer, "not by this condition (m)"));
        CHECK(settings_of("cache deny all\n").options.admission.choice.policy ==
              config::admission_policy::never);
        // Of a list that can't be read nothing is known.
        const auto unread = settings_of(
            "acl d dstdomain a.example \"no-such-file\"\ncache deny d\n");
        CHECK(unread.options.admission.rules.empty());
        CHECK(unread.says(fate::laxer, "no-such-file"));
        const auto refused = settings_of("acl d dstdomain a.example b%c\ncache deny d\n");
        CHECK(refused.options.admission.rules.size() == 2);
        CHECK(refused.says(fate::left_out, "b%c"));
        std::string many = "acl d dstdomain";
        for (int i = 0; i < 501; ++i) {
            many += " h" + std::to_string(i) + ".example";
        }
        CHECK(settings_of(many + "\ncache deny d\n").says(fate::laxer, "as many rules"));
    }

    TEST_CASE("the log goes on in the format that it had") {
        CHECK(settings_of("access_log stdio:/a/log squid\n").options.log.access == "/a/log");
        CHECK(settings_of("access_log /a/log logformat=combined\n").options.log.format ==
              config::log_format::combined);
        CHECK(settings_of("access_log none\n").options.log.access == "off");
        CHECK(settings_of("access_log daemon:/var/log/squid/access.log mine\n")
                  .says(fate::approximated, "mine is not among"));
        CHECK(settings_of("access_log syslog:daemon.info\n")
                  .says(fate::left_out, "the log is a file"));
        CHECK(settings_of("strip_query_terms off\n").options.log.query_values);
    }

    TEST_CASE("some requests that were not logged are, and the log stays") {
        const std::string log = "access_log /var/log/squid/access.log squid\n";
        const auto r = settings_of("acl probes src 10.0.0.9\naccess_log none probes\n" + log);
        CHECK(r.options.log.access == "/var/log/reprise/access.log");
        CHECK(r.says(fate::approximated, "all requests are logged: those are too"));
        CHECK(settings_of("access_log none all\n" + log).options.log.access == "off");
    }

    TEST_CASE("which log is rotated is said, and where the name is another") {
        const auto known = settings_of("access_log /var/log/squid/access.log\nlogfile_rotate 5\n");
        CHECK(known.says(fate::left_out, "do it for /var/log/reprise/access.log"));
        CHECK_FALSE(known.says(fate::approximated, "/etc/logrotate.d/reprise"));
        for (const std::string place : {"/var/log/squid/clients.log", "/srv/log"}) {
            CAPTURE(place);
            CHECK(settings_of("access_log stdio:" + place + "\n")
                      .says(fate::approximated, "/etc/logrotate.d/reprise"));
        }
    }

    TEST_CASE("bounds that are none for Squid are not told as lost") {
        for (const std::string line : {"request_body_max_size 0",
                                       "request_body_max_size 0 KB",
                                       "reply_body_max_size none",
                                       "reply_body_max_size none all",
                                       "reply_body_max_size -1",
                                       "client_delay_pools 0"}) {
            CAPTURE(line);
            CHECK(settings_of(line + "\n").count(fate::laxer) == 0);
        }
        for (const std::string line :
             {"request_body_max_size 1 MB", "reply_body_max_size 10 MB", "client_delay_pools 1"}) {
            CAPTURE(line);
            CHECK(settings_of(line + "\n").count(fate::laxer) == 1);
        }
    }

    TEST_CASE("units are read in whatever case, and as far as Squid reads them") {
        CHECK(settings_of("cache_mem 64 mb\n").options.memory.size == 64u << 20);
        CHECK(settings_of("cache_mem 64 MBytes\n").options.memory.size == 64u << 20);
        CHECK(settings_of("connect_timeout 2 Minutes\n").options.timeouts.origin_connect ==
              std::chrono::minutes{2});
        CHECK(settings_of("cache_mem 64 lots\n").says(fate::left_out, "not a size"));
    }

    TEST_CASE("more hosts than may be denied one by one are told of, with the place for them") {
        std::string many = "acl banned dstdomain";
        for (int i = 0; i <= 10'000; ++i) {
            many += " h" + std::to_string(i) + ".example";
        }
        const auto r = settings_of(many + "\nhttp_access deny banned\nhttp_access allow all\n");
        CHECK(r.options.access.deny_destinations.empty());
        CHECK(r.says(fate::laxer, "access.block_lists"));
        CHECK(r.made.settings.find("access.block_lists") != std::string::npos);
        const auto front = settings_of(
            "http_port 80 accel defaultsite=a.example no-vhost\n"
            "cache_peer 10.0.0.1 parent 8080 0 originserver\n"
            "acl banned dstdomain bad.example\nhttp_access deny banned\nhttp_access allow all\n");
        CHECK(front.says(fate::laxer, "no listener is forward"));
        CHECK(front.made.settings.find("access.block_lists") == std::string::npos);
    }

    TEST_CASE("that a client's Host decides which site is meant is said where it did not") {
        const std::string site = "cache_peer 10.0.0.1 parent 8080 0 originserver\n";
        CHECK(settings_of("http_port 80 accel defaultsite=a.example no-vhost\n" + site)
                  .says(fate::laxer, "no-vhost"));
        CHECK(settings_of("http_port 80 accel defaultsite=a.example\n" + site).count(fate::laxer) ==
              0);
    }

    TEST_CASE("an if without its end hides what it denies") {
        CHECK(
            settings_of("if false\nhttp_access deny all\n").says(fate::laxer, "without its endif"));
    }

    TEST_CASE("each line is either said in settings or has a comment") {
        const auto r = settings_of(
            "external_acl_type x %LOGIN /bin/x\nssl_bump peek all\nfancy_thing on\n"
            "delay_pools 1\nvia off\nrange_offset_limit none\n"
            "request_header_access Referer deny all\nforwarded_for delete\n");
        for (const auto* line : {"external_acl_type",
                                 "ssl_bump",
                                 "fancy_thing",
                                 "delay_pools",
                                 "via off",
                                 "range_offset_limit",
                                 "request_header_access"}) {
            CAPTURE(line);
            CHECK(r.made.settings.find(line) != std::string::npos);
        }
        CHECK(r.options.forwarding.client_address == config::forwarded_field::off);
        CHECK(r.says(fate::approximated, "what a client sends of it is passed on"));
        CHECK(settings_of("request_header_access X-Forwarded-For deny all\n")
                  .says(fate::approximated, "what a client sends of it is passed on"));
        CHECK(r.count(fate::laxer) == 2);
    }

    TEST_CASE("whoever had to show a password is not served without one") {
        const auto r = settings_of(
            "auth_param basic program /x/basic_ncsa_auth /etc/squid/passwords\n"
            "acl known proxy_auth REQUIRED\nhttp_access allow known\n"
            "http_access deny all\n");
        const bool asks = r.made.settings.find("\"users_file\"") != std::string::npos;
        CHECK(r.options.access.clients.empty() != asks);
        // The last program is asked: of a helper no file is known.
        const auto helper = settings_of(
            "auth_param basic program /x/basic_ncsa_auth /etc/squid/passwords\n"
            "auth_param basic program /x/basic_ldap_auth\nacl known proxy_auth REQUIRED\n"
            "http_access allow known\nhttp_access deny all\n");
        CHECK(helper.options.access.clients.empty());
    }

    TEST_CASE("ports of CONNECT stay ranges, however wide") {
        const auto r = settings_of("acl ssl port 443 8000-8100 49152-65535\n"
                                   "http_access deny CONNECT !ssl\nhttp_access allow all\n");
        CHECK(r.options.access.connect_ports ==
              std::vector<config::port_range>{{443, 443}, {8000, 8100}, {49152, 65535}});
        CHECK_FALSE(r.says(fate::left_out, "CONNECT"));
    }

    TEST_CASE("what a line holds ends no comment and no string") {
        const auto r = settings_of(
            "fancy \x01\"*/ } \xff\nvisible_hostname a\"b\naccess_log \"/a\\\"b\"\n");
        CHECK(r.made.settings.find('\x01') == std::string::npos);
        CHECK(r.says(fate::left_out, "forwarding.pseudonym"));
    }

    TEST_CASE(
        "ten configurations as people have them are accepted, and nothing is allowed in silence") {
        std::size_t seen = 0;
        for (const auto& entry : std::filesystem::directory_iterator{conf_folder}) {
            if (entry.path().extension() != ".conf") {
                continue;
            }
            CAPTURE(entry.path().filename().string());
            const auto text = conf_text(entry.path().string());
            REQUIRE(text);
            const auto r = settings_of(*text);
            CHECK_FALSE(r.made.told.empty());
            // Each says in its first line whether anybody is served, and how many lines of it can't
            // be kept to.
            const auto first = text->substr(0, text->find('\n'));
            CHECK(r.options.access.clients.empty() ==
                  (first.find("serves nobody") != std::string::npos));
            const auto laxer = static_cast<std::size_t>(std::stoul(first.substr(first.rfind(' '))));
            CHECK(r.count(fate::laxer) == laxer);
            ++seen;
        }
        CHECK(seen == 10);
    }
}

}  // namespace reprise::from_squid
