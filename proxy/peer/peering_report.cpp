// What operators and commands are told of peering: digests as they are held, who names a URL, and the
// report of all peers. None of it is on a request's way.

#include "filter/estimators.hpp"
#include "proxy/base/relaxed.hpp"
#include "proxy/peer/peering.hpp"

#include <utility>

namespace reprise::proxy::peer {

namespace {

std::string url_of(const known_peer& one) {
    const bool v6 = one.host.find(':') != std::string::npos;
    return std::string{one.https ? "https://" : "http://"} +
           (v6 ? "[" + one.host + "]" : one.host) + ":" + std::to_string(one.port);
}

}  // namespace

std::shared_ptr<const filter::digest> peering::own_digest() const {
    const auto now = source_.digests().now();
    return now ? now->bits : nullptr;
}

std::optional<any_digest> peering::digest_of(std::string_view name) const {
    if (name.empty()) {
        auto own = own_digest();
        return own ? std::optional<any_digest>{std::move(own)} : std::nullopt;
    }
    if (fetcher_) {
        for (auto& one : fetcher_->figures()) {
            if (one.name == name && one.held) {
                return one.held->read([](const filter::digest& now) {
                    return std::make_shared<const filter::digest>(
                        now.shape(),
                        std::vector<std::uint64_t>{now.words().begin(), now.words().end()},
                        now.stamp());
                });
            }
            if (one.name == name && one.held_squid) {
                return std::move(one.held_squid);
            }
        }
    }
    return std::nullopt;
}

std::string peering::why_no_digest_of(std::string_view name, steady_time now) const {
    if (fetcher_) {
        for (const auto& one : fetcher_->figures()) {
            if (one.name == name) {
                return in_words(one.digest, now);
            }
        }
    }
    return {};
}

std::optional<any_digest> peering::squid_digest() const {
    const auto form = source_.squid_digest();
    if (!form.wire) {
        return std::nullopt;
    }
    auto read = filter::squid_digest::decode(*form.wire);
    if (read.has_error()) {
        return std::nullopt;
    }
    return std::make_shared<const filter::squid_digest>(std::move(*read));
}

std::vector<std::string> peering::siblings_with(std::string_view url, const slot_set& among) {
    std::vector<std::string> names;
    sibling_table::reader reader{table_};
    (reader.named(url, key_of(url)) & among).for_each([&](unsigned slot) {
        names.push_back(table_.name_of(slot));
    });
    return names;
}

peer_report peering::report(const peer_book& book) const {
    peer_report out;
    out.own = source_.figures();
    const auto own = own_digest();
    if (own) {
        out.generation = own->stamp().generation;
    }
    out.signs = secret_.has_file();
    out.shares_seen = shares();
    for (std::size_t i = 0; i < answered_count; ++i) {
        out.served[i] = {answers_[i].load(relaxed), answer_bytes_[i].load(relaxed)};
    }
    if (fetcher_) {
        auto siblings = fetcher_->figures();
        out.fleet = fleet_.report(own, siblings);
        for (auto& one : siblings) {
            if (!one.slot) {
                out.itself.push_back(std::move(one.name));
                continue;
            }
            sibling_report sibling;
            sibling.benefit = table_.benefit_of(*one.slot).figures();
            if (const auto& known = book.siblings[*one.slot]) {
                sibling.squid = known->squid;
                sibling.proxy_only = known->proxy_only;
                sibling.url = url_of(*known);
            }
            std::optional<filter::filter_pair> pair;
            if (own && one.held) {
                pair = one.held->read(
                    [&own](const filter::digest& its) { return filter::compare(*own, its); });
            }
            if (pair) {
                sibling.overlap = filter::estimate_intersection(*pair).keys;
            }
            sibling.digest = std::move(one);
            out.siblings.push_back(std::move(sibling));
        }
    }
    for (std::size_t i = 0; i < book.parents.size(); ++i) {
        out.parents.push_back({book.parents[i].name,
                               url_of(book.parents[i]),
                               book.choice->has_failed(i),
                               book.choice->trouble(i)});
    }
    if (book.homes) {
        out.homes.emplace();
        for (const auto& one : book.homes->others()) {
            out.homes->push_back(one.name);
        }
    }
    out.index_bytes = table_.bytes();
    out.waiting = waits_.waiting();
    if (members_) {
        out.members = members_->figures();
    }
    out.seen_objects = seen_ ? seen_->current()->settings().objects : 0;
    return out;
}

}  // namespace reprise::proxy::peer
