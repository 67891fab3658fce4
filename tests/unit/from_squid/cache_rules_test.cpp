#include "config/url.hpp"
#include "tests/unit/from_squid/converted.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::from_squid {

namespace {

// The URLs of the rules, in their order.
std::vector<std::string> urls_of(const conversion_result& r) {
    std::vector<std::string> out;
    for (const auto& each : r.options.admission.rules) {
        out.push_back(each.url);
    }
    return out;
}

using config::admission_policy;

// What becomes of this URL, as cache::choice_for has it: the first rule that matches, or the policy.
admission_policy policy_for(const conversion_result& r, std::string_view url) {
    for (const auto& each : r.options.admission.rules) {
        if (config::matches_pattern(each.url, url)) {
            return each.choice.policy;
        }
    }
    return r.options.admission.choice.policy;
}

bool stores(const conversion_result& r, std::string_view url) {
    return policy_for(r, url) != admission_policy::never;
}

const std::string site_lists = "acl good dstdomain a.example\nacl sites dstdomain .b.example\n"
                               "acl intern urlpath_regex ^/intern/ /secret/\n"
                               "acl page rep_mime_type text/html\nacl lan src 10.0.0.0/8\n";

constexpr const char* good_url = "http://a.example/x";
constexpr const char* site_url = "https://www.b.example:8443/x";
constexpr const char* other_url = "http://c.example/x";

}  // namespace

TEST_SUITE("from_squid/cache_rules") {
    TEST_CASE("what alone may be stored is a rule, and the rest never is") {
        for (const std::string rules : {"cache allow good\n",
                                        "cache deny !good\n",
                                        "cache allow good\ncache deny all\n",
                                        "cache deny !good\ncache allow all\n",
                                        "no_cache allow good\ncache deny all\n"}) {
            CAPTURE(rules);
            const auto r = settings_of(site_lists + rules);
            CHECK(r.options.admission.choice.policy == admission_policy::never);
            CHECK(r.options.admission.probation == 1);
            CHECK(stores(r, good_url));
            CHECK(stores(r, "http://a.example:8080/"));
            CHECK_FALSE(stores(r, other_url));
            CHECK_FALSE(stores(r, "http://www.a.example/x"));
            CHECK(r.count(fate::laxer) == 0);
            CHECK(r.says(fate::approximated, "what it is for is stored"));
        }
    }

    TEST_CASE("what stands in the path of another's URL is not stored for it") {
        const auto r = settings_of(site_lists + "cache allow good\ncache allow sites\n");
        for (const std::string url : {"http://c.example/?to=http://a.example/x",
                                      "http://c.example/?to=https://a.example:8080/",
                                      "http://c.example/www.b.example/x",
                                      "http://c.example/x.b.example:80/"}) {
            CAPTURE(url);
            CHECK_FALSE(stores(r, url));
        }
        CHECK(stores(r, site_url));
        CHECK(stores(r, "http://b.example/"));
        CHECK(r.count(fate::laxer) == 0);
    }

    TEST_CASE("the first line that matches decides, and then the opposite of the last") {
        struct chain {
            const char* rules;
            bool good, site, other;
        };
        for (const auto& each :
             {chain{"", true, true, true},
              chain{"cache deny good\n", false, true, true},
              chain{"cache deny good\ncache deny all\n", false, false, false},
              chain{"cache allow all\ncache deny good\n", true, true, true},
              chain{"cache deny good\ncache allow sites\n", false, true, false},
              chain{"cache allow good\ncache deny sites\n", true, false, true},
              chain{"cache deny !good !sites\n", true, true, false},
              chain{"cache deny !sites\ncache deny good\n", false, true, false},
              chain{"cache allow !good\n", false, true, true},
              chain{"cache allow !good\ncache allow all\n", true, true, true},
              chain{"cache deny all\nno_cache allow good\n", false, false, false},
              chain{"no_cache deny good\ncache allow all\n", false, true, true}}) {
            CAPTURE(each.rules);
            const auto r = settings_of(site_lists + each.rules);
            CHECK(stores(r, good_url) == each.good);
            CHECK(stores(r, site_url) == each.site);
            CHECK(stores(r, other_url) == each.other);
            CHECK(r.count(fate::laxer) == 0);
        }
    }

    TEST_CASE("what was stored by another condition is not, where that can't be said") {
        for (const std::string rules : {"cache allow lan\n",
                                        "cache allow good lan\n",
                                        "cache deny !good\ncache allow lan\ncache deny all\n",
                                        "cache deny !good\ncache deny !sites\n",
                                        "cache deny !good\ncache allow sites\ncache deny all\n"}) {
            CAPTURE(rules);
            const auto r = settings_of(site_lists + rules);
            CHECK(r.options.admission.choice.policy == admission_policy::never);
            CHECK(r.options.admission.rules.empty());
            CHECK(r.count(fate::laxer) == 0);
        }
        // Of two conditions the one that can be said keeps more from being stored.
        const auto both = settings_of(site_lists + "cache deny good lan\n");
        CHECK_FALSE(stores(both, good_url));
        CHECK(stores(both, other_url));
        CHECK(both.count(fate::laxer) == 0);
        CHECK(both.says(fate::approximated, "whatever else the line wants"));
    }

    TEST_CASE("whatever the lines, nothing is stored that Squid did not, unless that is told") {
        struct line {
            bool allows;
            std::vector<std::string> conditions;
        };
        // What each list says of a request; "lan" and "page" are of no URLs.
        struct request {
            const char* url;
            bool good, sites, lan, page;
            [[nodiscard]] bool meets(std::string_view condition) const {
                const bool negated = condition.starts_with('!');
                condition.remove_prefix(negated ? 1 : 0);
                const bool is = condition == "good"    ? good
                                : condition == "sites" ? sites
                                : condition == "lan"   ? lan
                                : condition == "page"  ? page
                                                       : true;
                return is != negated;
            }
        };
        std::size_t exact = 0;
        for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
            CAPTURE(seed);  // a failure names the seed that reproduces it
            std::mt19937_64 random{seed};
            const auto any = [&](std::size_t below) {
                return static_cast<std::size_t>(random() % below);
            };
            std::vector<line> chain(1 + any(4));
            std::string text = site_lists;
            for (auto& each : chain) {
                each.allows = any(2) == 0;
                text += each.allows ? "cache allow" : "cache deny";
                for (std::size_t i = 0, most = 1 + any(2); i < most; ++i) {
                    constexpr const char* names[]{"good", "sites", "good", "sites", "lan", "all"};
                    each.conditions.push_back(std::string{any(3) == 0 ? "!" : ""} + names[any(6)]);
                    text += ' ' + each.conditions.back();
                }
                text += '\n';
            }
            CAPTURE(text);
            const auto r = settings_of(text);
            bool laxer = false, same = true;
            for (unsigned bits = 0; bits < 12; ++bits) {
                const auto host = bits % 3;
                const request asked{host == 0   ? good_url
                                    : host == 1 ? site_url
                                                : other_url,
                                    host == 0,
                                    host == 1,
                                    bits / 3 % 2 == 1,
                                    bits / 6 == 1};
                bool stored = !chain.back().allows;
                for (const auto& each : chain) {
                    if (std::all_of(each.conditions.begin(),
                                    each.conditions.end(),
                                    [&](const auto& one) { return asked.meets(one); })) {
                        stored = each.allows;
                        break;
                    }
                }
                laxer = laxer || (stores(r, asked.url) && !stored);
                same = same && stores(r, asked.url) == stored;
            }
            CHECK((!laxer || r.count(fate::laxer) > 0));
            exact += same ? 1 : 0;
        }
        CHECK(exact > 600);  // and it is not by storing nothing
    }

    TEST_CASE("what was kept from being stored, and is not, is told") {
        for (const std::string rules : {"cache deny page\n",
                                        "cache deny !lan\n",
                                        "cache deny no-such-list\n",
                                        "cache deny page\ncache allow good\n"}) {
            CAPTURE(rules);
            const auto r = settings_of(site_lists + rules);
            CHECK(r.count(fate::laxer) == 1);
            CHECK(r.says(fate::laxer, "what it was for is stored"));
        }
        // Nothing is stored, or nothing that it was for.
        for (const std::string rules : {"cache deny page\ncache deny all\n",
                                        "acl posts method POST PUT\ncache deny posts\n",
                                        "acl gets method GET\ncache deny !gets\n",
                                        "acl ftp proto FTP\ncache deny ftp\n"}) {
            CAPTURE(rules);
            CHECK(settings_of(site_lists + rules).count(fate::laxer) == 0);
        }
    }

    TEST_CASE(
        "rules for more URLs than Squid stored of are told, and for fewer that it kept from that") {
        // A slash further on in the path is one too.
        CHECK(settings_of(site_lists + "cache allow intern\n").says(fate::laxer, "matches more"));
        CHECK(settings_of(site_lists + "cache deny intern\n").count(fate::laxer) == 0);
        const std::string dots = "acl x url_regex a.b\n";
        CHECK(settings_of(dots + "cache allow x\n").count(fate::laxer) == 1);
        CHECK(settings_of(dots + "cache deny !x\n").count(fate::laxer) == 1);
        CHECK(settings_of(dots + "cache deny x\n").count(fate::laxer) == 0);
        CHECK(settings_of(dots + "cache allow !x\n").count(fate::laxer) == 0);
        const std::string any_case = "acl x urlpath_regex -i /Secret/\n";
        CHECK(settings_of(any_case + "cache deny x\n").count(fate::laxer) == 1);
        CHECK(settings_of(any_case + "cache allow !x\n").count(fate::laxer) == 1);
        CHECK(settings_of(any_case + "cache allow x\n").count(fate::laxer) == 0);
        // What no pattern of ours is for.
        CHECK(settings_of("acl x url_regex to=.*://\ncache deny x\n").count(fate::laxer) == 1);
        CHECK(settings_of("acl x url_regex to=.*://\ncache allow x\n").count(fate::laxer) == 0);
    }

    TEST_CASE("an expression for paths is not for hosts") {
        const auto r = settings_of("acl x urlpath_regex cgi-bin /tmp/ \\.zip$\ncache deny x\n");
        CHECK(r.says(fate::changed, "is never stored"));
        CHECK(stores(r, "http://cgi-bin.example/"));
        for (const std::string url : {"http://a.example/cgi-bin/x",
                                      "http://a.example/x-cgi-bin",
                                      "http://a.example/tmp/x",
                                      "http://a.example/x/tmp/x",
                                      "http://a.example/x.zip"}) {
            CAPTURE(url);
            CHECK_FALSE(stores(r, url));
        }
    }

    TEST_CASE("where case does not matter, what is written with capitals is meant without, too") {
        using urls = std::vector<std::string>;
        const auto host = settings_of("acl x url_regex -i Ads\\.Example\\.COM\ncache deny x\n");
        CHECK(urls_of(host) == urls{"*Ads.Example.COM*", "*ads.example.com*"});
        CHECK(host.says(fate::laxer, "all in lower case"));
        CHECK_FALSE(host.says(fate::changed, "is never stored"));
        const auto path = settings_of("acl x urlpath_regex -i \\.ZIP$\ncache deny x\n");
        CHECK(urls_of(path) == urls{"*.ZIP", "*.zip"});
        // A scheme and a host are in lower case in any URL: there is nothing to be said of them.
        const auto whole = settings_of("acl x url_regex -i ^https?://A\\.Example/\ncache deny x\n");
        CHECK(urls_of(whole) == urls{"https://a.example/*", "http://a.example/*"});
        CHECK(whole.says(fate::changed, "is never stored"));
        const auto as_written = settings_of("acl x urlpath_regex \\.ZIP$\ncache deny x\n");
        CHECK(urls_of(as_written) == urls{"*.ZIP"});
        CHECK(as_written.says(fate::changed, "is never stored"));
    }

    TEST_CASE("-i and +i between expressions are none themselves") {
        const auto r = settings_of("acl x urlpath_regex /one$ -i /Two$ +i /three$\ncache deny x\n");
        CHECK(urls_of(r) == std::vector<std::string>{"*/one", "*/Two", "*/two", "*/three"});
        CHECK(r.says(fate::laxer, "all in lower case"));
    }

    TEST_CASE("a class of POSIX is read to its end, and what comes of it is said to be near") {
        const auto r = settings_of("acl x urlpath_regex [[:digit:]]\\.tmp$\ncache deny x\n");
        CHECK(urls_of(r) == std::vector<std::string>{"*.tmp"});
        CHECK(r.says(fate::approximated, "is never stored"));
    }
}

}  // namespace reprise::from_squid
