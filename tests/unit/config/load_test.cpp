#include "config/load.hpp"
#include "tests/unit/config/loading.hpp"

#include <string>

using namespace reprise::config;

TEST_SUITE("config/load") {
    TEST_CASE("an empty object is the defaults") {
        CHECK(good("{}") == options{});
    }

    TEST_CASE("comments of both kinds are allowed") {
        CHECK(good("// one\n{ /* two */ \"threads\": 7 } // three\n").threads == 7);
    }

    TEST_CASE("the example beside the reference loads") {
        const auto wanted = good(text_of("config/example.json"));
        CHECK(wanted.listeners.size() == 2);
        CHECK(wanted.listeners[1].upstream == "http://127.0.0.1:8000");
    }

    TEST_CASE("names that other tools rely on are known") {
        const auto wanted = good(R"(
            { "listeners": [ { "address": "127.0.0.1:3128" },
                             { "address": "127.0.0.1:8080", "mode": "accelerator",
                               "upstream": "http://127.0.0.1:8000", "admission": "always" } ],
              "admin": { "address": "127.0.0.1:3180", "token_file": "/run/reprise/token" },
              "threads": 2,
              "memory": { "size": "256MiB" },
              "admission": { "policy": "second-hit",
                             "remember": { "objects": 1000000, "age": "50h" },
                             "false_positive_rate": 0.001,
                             "rules": [ { "url": "http://deb.example.org/*", "policy": "always" } ],
                             "state": "/var/lib/reprise/admission" },
              "access": { "clients": ["127.0.0.0/8", "10.0.0.0/8"], "connect_ports": [443],
                          "allow_destinations": [], "deny_destinations": [] },
              "log": { "access": "-", "level": "info" } })");
        REQUIRE(wanted.listeners.size() == 2);
        REQUIRE(wanted.listeners[1].admission.has_value());
        CHECK(wanted.listeners[1].admission->policy == admission_policy::always);
        CHECK(wanted.admission.state == "/var/lib/reprise/admission");
        CHECK(wanted.access.clients.size() == 2);
    }

    TEST_CASE("every mistake is reported at once, in the file's order") {
        CHECK(mistakes_of(R"({ "threads": -1,
                               "listeners": [ {}, { "address": "127.0.0.1:0", "upstream": "htp://b",
                                                    "mode": "accelerator" } ],
                               "acces": {}, "memory": { "size": "256mb" } })") ==
              std::vector<std::string>{
                  "threads: -1: must be 0 to 256",
                  "listeners[1].upstream: \"htp://b\": the scheme must be http or https: "
                  "write http://host[:port] or https://host[:port]",
                  "acces: unknown setting; did you mean access?",
                  "memory.size: \"256mb\": no such unit: write B, KB, MB, GB, TB or KiB, MiB, GiB, "
                  "TiB",
              });
    }

    TEST_CASE("a rate that names its second is told that a second is meant") {
        for (const std::string end : {"/s", "/sec", "/second", "ps"}) {
            CAPTURE(end);
            CHECK(mistake_of(R"({"limits": {"client_rate": "1MiB)" + end + R"("}})") ==
                  "limits.client_rate: \"1MiB" + end +
                      "\": a second is meant as it is: write \"1MiB\"");
        }
        CHECK(mistake_of(R"({"limits": {"body_rate": "100 B/s"}})").ends_with("write \"100 B\""));
        for (const std::string other : {R"({"limits": {"client_rate": "1Mbit/s"}})",
                                        R"({"limits": {"client_rate": "/s"}})",
                                        R"({"memory": {"size": "64MiB/s"}})"}) {
            CAPTURE(other);
            CHECK(mistake_of(other).find("a second") == std::string::npos);
        }
    }

    TEST_CASE("an unknown name is told its nearest neighbour, its home, or what is known") {
        CHECK(mistake_of(R"({"log": {"levle": "info"}})") ==
              "log.levle: unknown setting; did you mean level?");
        CHECK(mistake_of(R"({"head_size": 1})") ==
              "head_size: unknown setting; it is a member of limits");
        CHECK(mistake_of(R"({"limits.fields": 1})") ==
              "\"limits.fields\": unknown setting; it is a member of limits");
        CHECK(mistake_of(R"({"memory": {"colour": 1}})") ==
              "memory.colour: unknown setting; known here are size, max_object, policy");
    }

    TEST_CASE("a name given twice is a mistake, whichever value is right") {
        CHECK(mistake_of(R"({"threads": 1, "threads": 2})") ==
              "threads: 2: given twice in one object; keep one");
        CHECK(mistake_of(R"({"memory": {}, "memory": {}})") ==
              "memory: {}: given twice in one object; keep one");
    }

    TEST_CASE("a wrong type is told the right one") {
        CHECK(mistake_of("[]") == "[]: must be an object: { ... }");
        CHECK(mistake_of(R"({"listeners": {}})") == "listeners: {}: must be a list: [ ... ]");
        CHECK(mistake_of(R"({"memory": "1GiB"})") ==
              "memory: \"1GiB\": must be an object: { ... }");
        CHECK(mistake_of(R"({"threads": "2"})") ==
              "threads: \"2\": must be a whole number, 0 to 256");
        CHECK(mistake_of(R"({"threads": null})") ==
              "threads: null: must be a whole number, 0 to 256");
        CHECK(mistake_of(R"({"log": {"query_values": "yes"}})") ==
              "log.query_values: \"yes\": must be true or false, without quotes");
        CHECK(mistake_of(R"({"timeouts": {"drain": 10}})") ==
              "timeouts.drain: 10: must be a duration such as \"10s\" or \"500ms\": the unit is "
              "missing");
        CHECK(mistake_of(R"({"admission": 3})") ==
              "admission: 3: must be an object, or text: its \"policy\"");
        CHECK(mistake_of(R"({"admin": {"address": 3180}})") ==
              "admin.address: 3180: must be text: address:port or \"off\"");
    }

    TEST_CASE("numbers are neither cut nor wrapped") {
        CHECK(mistake_of(R"({"threads": 1.5})") ==
              "threads: 1.5: must be a whole number, 0 to 256, written in digits alone");
        CHECK(mistake_of(R"({"threads": 4294967297})") == "threads: 4294967297: must be 0 to 256");
        CHECK(mistake_of(R"({"access": {"connect_ports": [65979]}})") ==
              "access.connect_ports[0]: 65979: must be 1 to 65535");
        CHECK(mistake_of(R"({"memory": {"size": 18446744073709551617}})")
                  .starts_with("memory.size: 18446744073709551617: must be a size"));
        CHECK(mistake_of(R"({"memory": {"size": "99999999999TiB"}})") ==
              "memory.size: \"99999999999TiB\": too large to be counted");
        CHECK(mistake_of(R"({"admission": {"false_positive_rate": 0}})") ==
              "admission.false_positive_rate: 0: must be 1e-06 to 0.5");
        CHECK(mistake_of(R"({"admission": {"false_positive_rate": 1e999}})") ==
              "line 1, column 43: a number here is too large");
        CHECK(mistake_of(R"({"admission": {"remember": {"objects": 1000000001}}})") ==
              "admission.remember.objects: 1000000001: must be 1000 to 1000000000");
        CHECK(mistake_of(R"({"admission": {"remember": {"age": "90500ms"}}})") ==
              "admission.remember.age: \"90500ms\": must be a whole number of seconds");
    }

    TEST_CASE("a plain number is a size in bytes") {
        CHECK(good(R"({"memory": {"size": 1048576}})").memory.size == 1048576);
    }

    TEST_CASE("what is not JSON is told its line and column") {
        CHECK(mistake_of("{\n  \"threads\": 2,\n  oops\n}").starts_with("line 3, column 3: "));
        CHECK(mistake_of("").starts_with("line 1, column 1: "));
        CHECK(mistake_of("{\"threads\": 2,}").find("no comma after the last") != std::string::npos);
        CHECK(mistake_of("{} {}").starts_with("line 1, column 4: "));
        CHECK(mistake_of("{\"log\": \"\xff\"}").starts_with("line 1, column 10: "));
    }

    TEST_CASE("a policy can be plain text, at the top and in a listener") {
        const auto wanted = good(
            R"({"admission": "never", "listeners": [{"admission": "always"}]})");
        CHECK(wanted.admission.choice.policy == admission_policy::never);
        REQUIRE(wanted.listeners[0].admission.has_value());
        CHECK(wanted.listeners[0].admission->policy == admission_policy::always);
        CHECK(mistake_of(R"({"admission": "second"})") ==
              "admission: \"second\": must be \"second-hit\", \"always\", \"never\", "
              "\"nth-hit\", \"tinylfu\" or \"auto\"");
        CHECK(mistake_of(R"({"admission": "secondhit"})").ends_with("did you mean second-hit?"));
    }

    TEST_CASE("what is remembered is bounded by hand, or follows the store") {
        CHECK(good("{}").admission.remember.automatic);
        CHECK(good(R"({"admission": {"remember": "auto"}})").admission.remember.automatic);
        const auto by_hand = good(R"({"admission": {"remember": {"age": "1h"}}})");
        CHECK_FALSE(by_hand.admission.remember.automatic);
        CHECK(by_hand.admission.remember.objects == 1'000'000);
        CHECK(mistake_of(R"({"admission": {"remember": "always"}})") ==
              "admission.remember: \"always\": must be \"auto\", or an object: { ... }");
        CHECK(mistake_of(R"({"admission": {"remember": {"objects": "auto"}}})")
                  .starts_with("admission.remember.objects: "));
    }

    TEST_CASE("probation is a percentage of memory") {
        CHECK(good(R"({"admission": {"probation": "50%"}})").admission.probation == 0.5);
        CHECK(good(R"({"admission": {"probation": "100%"}})").admission.probation == 1);
        CHECK(mistake_of(R"({"admission": {"probation": "101%"}})")
                  .starts_with("admission.probation: \"101%\": write a number from 0 to 100"));
        CHECK(mistake_of(R"({"admission": {"probation": 0.02}})") ==
              "admission.probation: 0.02: must be a percentage such as \"2%\", as text");
        CHECK(mistake_of(R"({"admission": {"probation": "2"}})")
                  .starts_with("admission.probation: \"2\": write a number"));
    }

    TEST_CASE("frozen is for auto alone") {
        CHECK_FALSE(good(R"({"admission": "auto"})").admission.frozen);
        CHECK(good(R"({"admission": {"policy": "auto", "frozen": true}})").admission.frozen);
        CHECK(mistake_of(R"({"admission": {"frozen": true}})") ==
              "admission.frozen: is for \"policy\": \"auto\" alone");
    }

    TEST_CASE("nth-hit needs hits, which no other policy has") {
        CHECK(good(R"({"admission": {"policy": "nth-hit", "hits": 15}})").admission.choice ==
              admission_choice{admission_policy::nth_hit, 15});
        CHECK(mistake_of(R"({"admission": "nth-hit"})").starts_with("admission.hits: missing: "));
        CHECK(mistake_of(R"({"admission": {"policy": "nth-hit", "hits": 0}})") ==
              "admission.hits: 0: must be 1 to 15");
        CHECK(
            mistake_of(R"({"admission": {"hits": 3}})").starts_with("admission.hits: belongs to"));
        CHECK(mistake_of(R"({"listeners": [{"admission": {"policy": "always", "hits": 3}}]})")
                  .starts_with("listeners[0].admission.hits: belongs to"));
        CHECK(mistake_of(R"({"admission": {"rules": [{"url": "*", "policy": "nth-hit"}]}})")
                  .starts_with("admission.rules[0].hits: missing: "));
    }

    TEST_CASE("a rule needs its URL and its policy") {
        CHECK(mistakes_of(R"({"admission": {"rules": [{}]}})") ==
              std::vector<std::string>{"admission.rules[0].url: missing: it must be written",
                                       "admission.rules[0].policy: missing: it must be written"});
    }

    TEST_CASE("a rule that nothing can come to is a mistake") {
        const auto told = mistakes_of(R"({ "admission": { "rules": [
            { "url": "http://a.example/*", "policy": "always" },
            { "url": "http://b.example/*", "policy": "never" },
            { "url": "http://a.example/b/*", "policy": "never" },
            { "url": "http://b.example/*", "policy": "always" },
            { "url": "*", "policy": "never" },
            { "url": "*.iso", "policy": "always" } ] } })");
        REQUIRE(told.size() == 3);
        CHECK(told[0] ==
              R"(admission.rules[2].url: "http://a.example/b/*" is never reached: rules[0], )"
              R"("http://a.example/*", comes first and matches all of it)");
        CHECK(told[1].starts_with("admission.rules[3].url: "));
        CHECK(told[2].starts_with("admission.rules[5].url: "));

        const std::string port = R"("admission": { "rules": [
            { "url": "http://a.example:22/*", "policy": "always" } ] })";
        CHECK(
            mistake_of("{" + port + "}") ==
            R"(admission.rules[0].url: "http://a.example:22/*" can never match: port 22 is not in )"
            "access.request_ports");
        (void)good("{" + port + R"(, "access": { "request_ports": [22] } })");
        const std::string https = R"("admission": { "rules": [
            { "url": "https://a.example/*", "policy": "always" } ] })";
        CHECK(
            mistake_of("{" + https + R"(, "listeners": [ { "address": "127.0.0.1:80",
                "mode": "accelerator", "upstream": "http://127.0.0.1:8000" } ] })") ==
            R"(admission.rules[0].url: "https://a.example/*" can never match: no listener is asked )"
            "for https");
        (void)good("{" + https + "}");
        (void)good("{" + https + R"(, "listeners": [ { "address": "127.0.0.1:443",
            "tls": { "certificate": "/c", "key": "/k" },
            "mode": "accelerator", "upstream": "http://127.0.0.1:8000" } ] })");
        // What comes to an accelerator may have been asked for at any port.
        (void)good("{" + port + R"(, "listeners": [ { "address": "127.0.0.1:80",
            "mode": "accelerator", "upstream": "http://127.0.0.1:8000" } ] })");
        for (const std::string url : {"http://a.example*", "http://a.example:*/", "*:22/*"}) {
            CAPTURE(url);
            (void)good(R"({ "admission": { "rules": [ { "url": ")" + url +
                       R"(", "policy": "always" } ] } })");
        }
    }

    TEST_CASE("a freshness rule that does nothing, or contradicts itself, is a mistake") {
        const auto of = [](const std::string& members) {
            return mistake_of(R"({"freshness": {"rules": [{"url": "http://a.example/*")" + members +
                              "}]}}");
        };
        CHECK(of("").starts_with("freshness.rules[0]: a rule with a url alone"));
        CHECK(of(R"(, "at_least": "2h", "at_most": "1h")") ==
              "freshness.rules[0].at_least: must not be above at_most: here 2h and 1h");
        CHECK(
            of(R"(, "override": ["max-age"])").starts_with("freshness.rules[0].at_least: missing"));
        CHECK(of(R"(, "override": ["no-cash"])").find("did you mean no-cache?") !=
              std::string::npos);
        (void)good(R"({"freshness": {"rules": [{"url": "*", "override": ["no-store"]}]}})");
    }

    TEST_CASE("a freshness rule that nothing can come to is a mistake") {
        const auto told = mistakes_of(R"({ "freshness": { "rules": [
            { "url": "http://a.example/*", "at_most": "1h" },
            { "url": "http://a.example/b/*", "at_most": "1m" },
            { "url": "http://b.example:22/*", "at_most": "1m" } ] } })");
        REQUIRE(told.size() ==
                1);  // what is wrong between sections is looked at when they are right
        CHECK(told[0].starts_with(R"(freshness.rules[1].url: "http://a.example/b/*" is never)"));
        CHECK(mistake_of(R"({ "freshness": { "rules": [
            { "url": "http://b.example:22/*", "at_most": "1m" } ] } })") ==
              R"(freshness.rules[0].url: "http://b.example:22/*" can never match: port 22 is not )"
              "in access.request_ports");
    }

    TEST_CASE(
        "members of a disk without a path are a mistake, and beside one that is off they wait") {
        for (const std::string member : {R"("size": "50GiB")",
                                         R"("max_object": "1GiB")",
                                         R"("write": "admission")",
                                         R"("carry": 0.5)",
                                         R"("selective": false, "size": "50GiB")"}) {
            CAPTURE(member);
            CHECK(mistake_of(R"({"disk": {)" + member + "}}") ==
                  "disk.path: missing: without it there is no store on disk; write a directory, or "
                  "\"off\"");
            CHECK(good(R"({"disk": {"path": "off", )" + member + "}}").disk.path.empty());
        }
        (void)good(R"({"disk": {}})");
        // What is said of the path is enough.
        CHECK(
            mistake_of(R"({"disk": {"path": 7, "size": "50GiB"}})").starts_with("disk.path: 7: "));
    }

    TEST_CASE("how often a state is written that there is none of is a mistake") {
        CHECK(mistake_of(R"({"admission": {"save_every": "1m"}})") ==
              "admission.state: missing: save_every says how often it is written; write a file, or "
              "\"off\"");
        (void)good(R"({"admission": {"save_every": "1m", "state": "/s"}})");
        (void)good(R"({"admission": {"save_every": "1m", "state": "off"}})");
    }

    TEST_CASE("passwords in the clear that nobody is asked for are a mistake") {
        CHECK(mistake_of(R"({"access": {"plaintext_passwords": true}})")
                  .starts_with("access.plaintext_passwords: belongs to users_file or tokens_file"));
        (void)good(R"({"access": {"plaintext_passwords": false}})");
        (void)good(R"({"access": {"plaintext_passwords": true, "users_file": "off"}})");
        (void)good(R"({"access": {"plaintext_passwords": true, "tokens_file": "/t"}})");
    }

    TEST_CASE("who may purge and is not served is a mistake") {
        CHECK(mistake_of(R"({"access": {"clients": ["10.0.0.0/8", "fd00::/8"],
                                        "purge_clients": ["10.1.0.0/16", "192.0.2.7", "fd00::7"]}})") ==
              "access.purge_clients[1]: is not among access.clients: whoever is not served may not "
              "send PURGE");
        for (const std::string purgers : {"10.0.0.0/7", "0.0.0.0/0", "::/0", "10.255.255.255"}) {
            CAPTURE(purgers);
            (void)good(R"({"access": {"clients": ["10.0.0.0/8"], "purge_clients": [")" + purgers +
                       R"("]}})");
        }
        for (const std::string purgers : {"11.0.0.0/8", "9.255.255.255", "::1"}) {
            CAPTURE(purgers);
            CHECK(mistakes_of(R"({"access": {"clients": ["10.0.0.0/8"], "purge_clients": [")" +
                              purgers + R"("]}})")
                      .size() == 1);
        }
        // Nobody is served for now.
        (void)good(R"({"access": {"clients": [], "purge_clients": ["::1"]}})");
    }

    TEST_CASE("what is for error statuses has a time for which errors are stood in for") {
        CHECK(
            mistake_of(R"({"freshness": {"stale_on_error": "0s", "stale_on_error_status": true}})")
                .starts_with("freshness.stale_on_error_status: does nothing where stale_on_error"));
        (void)good(R"({"freshness": {"stale_on_error": "0s", "stale_on_error_status": false}})");
        (void)good(R"({"freshness": {"stale_on_error_status": true}})");
    }

    TEST_CASE("rules of admission that no listener heeds are a mistake") {
        const std::string rules = R"({"admission": {"rules": [{"url": "*", "policy": "never"}]},
            "listeners": [{"address": "127.0.0.1:1", "admission": "always"})";
        CHECK(mistake_of(rules + "]}").starts_with("admission.rules: decide nothing"));
        (void)good(rules + R"(, {"address": "127.0.0.1:2"}]})");
    }

    TEST_CASE("sights to be shared need the secret by which siblings know each other") {
        const auto with = [](const std::string& share, const std::string& more) {
            return R"({"admission": {"share": )" + share +
                   R"(}, "peers": [{"name": "b", "url": "http://b:1"}])" + more + "}";
        };
        CHECK(mistake_of(with("true", "")).starts_with("admission.share: shares nothing without"));
        (void)good(with("false", ""));
        (void)good(with("true", R"(, "digest": {"secret_file": "/s"})"));
        (void)good(R"({"admission": {"share": true}})");
        (void)good(R"({"peers": [{"name": "b", "url": "http://b:1"}]})");
    }

    TEST_CASE("what is for forward listeners is a mistake where there is none") {
        const std::string site = R"("listeners": [{"address": "127.0.0.1:1", "mode": "accelerator",
                                                   "upstream": "http://a"})";
        struct unread {
            std::string path, text;
        };
        for (const auto& each :
             {unread{"access.deny_destinations", R"("access": {"deny_destinations": ["b"]})"},
              unread{"access.https_prefix", R"("access": {"https_prefix": ["b"]})"},
              unread{"access.block_lists", R"("access": {"block_lists": ["/b"]})"},
              unread{"access.users_file", R"("access": {"users_file": "/u"})"},
              unread{"access.tokens_file", R"("access": {"tokens_file": "/t"})"},
              unread{"peers", R"("peers": [{"name": "b", "url": "http://b:1"}])"},
              unread{"intercept",
                     R"("intercept": {"hosts": ["b"], "ca_certificate": "c", "ca_key": "k"})"}}) {
            CAPTURE(each.path);
            const auto told = mistake_of("{" + site + "], " + each.text + "}");
            CHECK(told.starts_with(each.path + ": "));
            CHECK(told.find("no listener is forward") != std::string::npos);
            (void)good("{" + site + R"(, {"address": "127.0.0.1:2"}], )" + each.text + "}");
        }
        (void)good("{" + site + R"(], "access": {"deny_destinations": [], "users_file": "off"}})");
        // One slip is one mistake.
        CHECK(mistakes_of(R"({"listeners": [{"mode": "fwd"}], "access": {"users_file": "/u"}})")
                  .size() == 1);
    }

    TEST_CASE("a URL or \"off\" in the place of something else is told so") {
        CHECK(mistake_of(R"({ "disk": { "path": "http://x/" } })") ==
              R"(disk.path: "http://x/": is a URL: write the path of a file or directory of this )"
              "machine");
        CHECK(mistake_of(R"({ "access": { "allow_destinations": [ "http://x/" ] } })") ==
              R"(access.allow_destinations[0]: "http://x/": is a URL: write its host alone, and )"
              "perhaps :port");
        CHECK(mistake_of(R"({ "listeners": [ { "address": "127.0.0.1:1",
                                 "tls": { "certificate": "off", "key": "/k" } } ] })") ==
              R"(listeners[0].tls.certificate: "off": is no path here: leave the object out for )"
              "none, or write a path");
    }

    TEST_CASE("an accelerator needs an upstream and a forward listener must not have one") {
        CHECK(mistake_of(R"({"listeners": [{"mode": "accelerator"}]})")
                  .starts_with("listeners[0].upstream: missing: "));
        CHECK(mistake_of(R"({"listeners": [{"upstream": "http://a"}]})")
                  .starts_with("listeners[0].upstream: a forward listener has no upstream"));
    }

    TEST_CASE("one slip is one mistake") {
        // Neither the mode that was meant nor the address is known, so nothing follows from them.
        CHECK(mistakes_of(R"({"listeners": [{},
                                            {"address": "x", "mode": "fwd", "upstream": "http://a"}]})")
                  .size() == 2);
        CHECK(mistakes_of(R"({"admission": {"policy": "nth", "hits": 3}})").size() == 1);
        CHECK(mistakes_of(R"({"admin": {"address": "127.0.0.1"}})").size() == 1);
    }

    TEST_CASE("no address is listened on twice, however it is spelt") {
        CHECK(
            mistake_of(R"({"listeners": [{"address": "[::1]:80"}, {"address": "[0:0::1]:80"}]})") ==
            "listeners[1].address: [::1]:80 is already the address of listeners[0]: write another "
            "port");
        CHECK(mistake_of(R"({"listeners": [{"address": "127.0.0.1:3180"}]})") ==
              "admin.address: 127.0.0.1:3180 is already the address of listeners[0]: write another "
              "port");
        CHECK(good(R"({"listeners": [{"address": "127.0.0.1:0"}, {"address": "127.0.0.1:0"}]})")
                  .listeners.size() == 2);
    }

    TEST_CASE("the admin address is free beside listeners of every address") {
        const auto beside = [](const std::string& listener, const std::string& admin) {
            return R"({"listeners": [{"address": ")" + listener + R"("}], "admin": {"address": ")" +
                   admin + R"("}})";
        };
        CHECK(mistake_of(beside("0.0.0.0:80", "127.0.0.1:80")) ==
              "admin.address: 127.0.0.1:80 cannot be had beside listeners[0], 0.0.0.0:80: write "
              "another port");
        CHECK(
            mistake_of(R"({"listeners": [{"address": "0.0.0.0:3180"}]})") ==
            "admin.address: 127.0.0.1:3180 cannot be had beside listeners[0], 0.0.0.0:3180: write "
            "another port");
        CHECK(mistakes_of(beside("127.0.0.1:80", "0.0.0.0:80")).size() == 1);
        CHECK(mistakes_of(beside("[::]:80", "[::1]:80")).size() == 1);
        CHECK(mistakes_of(beside("[::]:80", "127.0.0.1:80")).empty());
        // The admin's takes IPv4 as well.
        CHECK(mistakes_of(beside("0.0.0.0:80", "[::]:80")).size() == 1);
        CHECK(mistakes_of(beside("127.0.0.1:80", "[::]:80")).size() == 1);
        CHECK(mistakes_of(beside("0.0.0.0:80", "127.0.0.1:81")).empty());
        CHECK(mistakes_of(beside("127.0.0.2:80", "127.0.0.1:80")).empty());
    }

    TEST_CASE("bounds between settings hold where the file speaks of them") {
        CHECK(mistake_of(R"({"memory": {"size": "2MiB", "max_object": "3MiB"}})") ==
              "memory.max_object: must not be above memory.size, 2MiB");
        CHECK(good(R"({"memory": {"size": "2MiB"}})").memory.size == 2 << 20);
        CHECK(mistake_of(R"({"limits": {"head_size": "2KiB", "url_length": "3KiB"}})") ==
              "limits.url_length: must not be above limits.head_size, 2KiB");
        CHECK(mistake_of(R"({"origins": {"connections": 2, "idle": 3}})") ==
              "origins.idle: must not be above origins.connections, 2");
        CHECK(mistake_of(R"({"dns": {"max_ttl": "1s", "min_ttl": "2s"}})") ==
              "dns.min_ttl: dns.min_ttl must not be above dns.max_ttl: here 2s and 1s");
    }

    TEST_CASE("lists replace their defaults and are bounded") {
        CHECK(good(R"({"access": {"clients": []}})").access.clients.empty());
        CHECK(mistake_of(R"({"listeners": []})") == "listeners: []: must have at least 1");
        std::string many = R"({"dns": {"servers": [)";
        for (int i = 0; i < 17; ++i) {
            many += i == 0 ? "\"::1\"" : ", \"::1\"";
        }
        CHECK(mistake_of(many + "]}}").ends_with("has 17 values; at most 16 are taken"));
    }

    TEST_CASE("\"off\" turns the admin listener, the state and the hosts file off") {
        const auto wanted = good(R"({"admin": {"address": "off", "token_file": "off"},
                                     "admission": {"state": "off"}, "dns": {"hosts_file": "off"}})");
        CHECK_FALSE(wanted.admin.address.has_value());
        CHECK(wanted.admin.token_file.empty());
        CHECK(wanted.admission.state.empty());
        CHECK(wanted.dns.hosts_file.empty());
        CHECK(good(R"({"log": {"access": "off"}})").log.access == "off");
    }

    TEST_CASE("values are put into one form") {
        const auto wanted = good(R"({
            "listeners": [{"address": "[0:0::1]:3128", "mode": "accelerator",
                           "upstream": "HTTP://Origin.Example:80/"}, {}],
            "admission": {"rules": [{"url": "HTTP://Deb.Example.org:80/", "policy": "always"}]},
            "access": {"deny_destinations": ["Host.Example.:80"]}})");
        CHECK(wanted.listeners[0].address == endpoint{"::1", 3128});
        CHECK(wanted.listeners[0].upstream == "http://origin.example");
        CHECK(wanted.admission.rules[0].url == "http://deb.example.org/");
        CHECK(wanted.access.deny_destinations[0] == destination{"host.example", {}, 80});
    }

    TEST_CASE("a hostile file cannot grow its report or reach a terminal") {
        std::string many = "[";
        for (int i = 0; i < 9000; ++i) {
            many += i == 0 ? "0" : ",0";
        }
        many += "]";
        const auto told = mistakes_of(R"({"access": {"clients": )" + many + "}}");
        REQUIRE(told.size() == 101);
        CHECK(told.back() == "and 8900 further mistakes");

        CHECK(mistake_of("{\"\\u001b[2J\": 1}").starts_with("\"\\u001b[2J\": unknown setting"));
        CHECK(mistake_of("{\"log\": {\"level\": \"\\u009b2J\"}}")
                  .starts_with("log.level: \"\\u009b2J\": must be"));
        const auto long_name = mistake_of("{\"" + std::string(5000, 'x') + "\": 1}");
        CHECK(long_name.size() < 400);
        const auto long_value = mistake_of(R"({"log": {"level": ")" + std::string(5000, 'x') +
                                           "\"}}");
        CHECK(long_value.size() < 300);
        const auto open_text = mistake_of("{\"" + std::string(5000, 'x'));
        CHECK(open_text.size() < 300);
    }

    TEST_CASE("nesting, values and size are bounded") {
        CHECK(mistake_of(std::string(17, '[') + std::string(17, ']')) ==
              "arrays and objects nested deeper than 16");
        CHECK(mistake_of(std::string(500'000, '[')) == "arrays and objects nested deeper than 16");
        std::string values = "[0";
        for (int i = 0; i < 100'000; ++i) {
            values += ",0";
        }
        CHECK(mistake_of(values + "]") == "more than 100000 values");
        CHECK(mistake_of("{}" + std::string(most_file_bytes, ' ')) == "longer than 1048576 bytes");
    }

    TEST_CASE("a file that cannot be read is a mistake that names it") {
        for (const std::string path : {"/nonexistent/reprise.json", "/"}) {
            CAPTURE(path);
            const auto result = load_file(path);
            const auto* mistakes = std::get_if<std::vector<mistake>>(&result);
            REQUIRE(mistakes != nullptr);
            CHECK(to_string(mistakes->front()).starts_with("cannot read \"" + path + "\": "));
        }
        const auto result = load_file(REPRISE_SOURCE_DIR "/config/example.json");
        CHECK(std::holds_alternative<options>(result));
    }

    TEST_CASE("a targeted field has a field's name, and none that everybody reads") {
        CHECK(good(R"({ "targeted": ["CDN-Cache-Control", "x_1"] })").targeted.size() == 2);
        CHECK(
            mistakes_of(R"({ "targeted": ["a b", "", "Expires", "cache-control"] })") ==
            std::vector<std::string>{
                "targeted[0]: \"a b\": must be a field's name: letters, digits or '-', at most 64 "
                "characters",
                "targeted[1]: \"\": must be a field's name: letters, digits or '-', at most 64 "
                "characters",
                "targeted[2]: \"Expires\": is what everybody reads: leave it out, it counts where "
                "none of the list is there",
                "targeted[3]: \"cache-control\": is what everybody reads: leave it out, it counts "
                "where none of the list is there"});
    }
}
