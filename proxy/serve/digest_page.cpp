#include "proxy/serve/digest_page.hpp"

#include "proxy/http/query.hpp"
#include "proxy/http/target.hpp"
#include "proxy/peer/any_digest.hpp"

#include <optional>
#include <vector>

namespace reprise::proxy::serve {

namespace {

void append(std::string& out,
            const std::vector<peer::digest_line>& lines,
            std::string_view prefix = {}) {
    for (const auto& one : lines) {
        out.append(prefix).append(one.name).append(": ").append(one.value).append("\n");
    }
}

// As the store's keys have it.
std::optional<std::string> normal(std::string_view url) {
    const auto target = http::parse_target(boost::beast::http::verb::get, url, http::url_forms);
    if (!target || target->form != http::target_form::absolute) {
        return std::nullopt;
    }
    std::string out;
    http::append_key(out, *target);
    return out;
}

}  // namespace

digest_page show_digest(const peer::peering* peers, std::string_view query) {
    if (peers == nullptr) {
        return {404, "there are no peers in the settings, and so no digest\n"};
    }
    const auto asked = http::parse_query(query);
    if (!asked) {
        return {400, "digest: the query can't be read; it would be ?of=NAME&url=URL&with=NAME\n"};
    }
    if (const auto twice = http::named_twice(*asked, {"of", "with"}); !twice.empty()) {
        return {400, "digest: " + std::string{twice} + " is there twice\n"};
    }
    std::string of;
    std::vector<std::string> urls;
    std::optional<std::string> with;
    for (const auto& one : *asked) {
        if (one.name == "of") {
            of = one.value;
        } else if (one.name == "url") {
            urls.push_back(one.value);
        } else if (one.name == "with") {
            with = one.value;
        } else {
            return {400, "digest: unknown parameter \"" + one.name + "\": of, url and with are\n"};
        }
    }
    const auto digest = peers->digest_of(of);
    if (!digest) {
        return {404,
                of.empty() ? "digest: none is published yet\n"
                           : "digest: none is held of a sibling named \"" + of + "\"" +
                                 peers->why_no_digest_of(of, steady_now()) + "\n"};
    }
    digest_page page;
    append(page.text, peer::describe(*digest, peers->secret()));
    if (const auto squid = of.empty() ? peers->squid_digest() : std::nullopt) {
        append(page.text, peer::describe(*squid, peers->secret()), "as Squids get it, ");
    }
    for (const auto& url : urls) {
        const auto key = normal(url);
        if (!key) {
            return {400, "digest: url: \"" + url + "\" is no http or https URL\n"};
        }
        const auto said = peer::lists(*digest, *key, peers->secret());
        page.text += *key + ": " +
                     (!said   ? "of another secret"
                      : *said ? "listed"
                              : "not listed") +
                     "\n";
    }
    if (with) {
        const auto other = peers->digest_of(*with);
        if (!other) {
            return {404, "digest: none is held of \"" + *with + "\"\n"};
        }
        const auto both = peer::compare(*digest, *other);
        if (!both) {
            return {409, "digest: the two differ in kind, secret or rate\n"};
        }
        append(page.text, *both);
    }
    return page;
}

}  // namespace reprise::proxy::serve
