#include "tools/bench_proxy/bare_exchange.hpp"
#include "tools/bench_proxy/https_lab.hpp"
#include "tools/bench_proxy/load.hpp"
#include "tools/bench_proxy/parts.hpp"
#include "tools/bench_proxy/tunnel_load.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <unistd.h>

namespace reprise::bench {

namespace {

/// One server with its load: what is set beside another.
struct contender {
    std::string name;
    const server* to;
    tunnel_load load;
};

using costs_by_name = std::map<std::string, std::vector<double>>;

/// Connections that are only set up: no more of them than the server could have kept apart.
constexpr std::uint64_t hosts_in_a_round = 1000;

class https_contest {
public:
    explicit https_contest(const lab& of) : of_{of} {}

    found_rows run() {
        if (!of_.wanted.wants_any("https", {"opened", "tunnel", "new host", "https miss"})) {
            return {};
        }
        if (const auto why = https_lab::obstacle(of_); !why.empty()) {
            out_.skipped.push_back("https: " + why);
            return std::move(out_);
        }
        const https_lab lab{of_};
        lab_ = &lab;
        opens_ = lab.start_opening();
        passes_ = lab.start_passing("passes", of_.wanted.program);
        kept_hits();
        new_connections();
        new_hosts();
        tunnels("tunnel1k", false);
        tunnels("tunnelnew1k", true);
        misses();
        misses_over_new_connections();
        servers_.clear();
        return std::move(out_);
    }

private:
    [[nodiscard]] tunnel_load load_of(std::uint16_t port, bool closes) const {
        tunnel_load out;
        out.port = port;
        out.closes = closes;
        return out;
    }

    [[nodiscard]] tunnel_load opened(const server& to, bool closes) const {
        auto out = load_of(to.port, closes);
        const auto authority = https_lab::host() + ':' + std::to_string(lab_->origin().tls);
        out.connect = [authority](std::uint64_t) { return authority; };
        out.tls = true;
        out.request = [text = get_request("/1024/one", authority)](std::uint64_t) { return text; };
        return out;
    }

    /// The short form has no time for more: these are fourteen loads a round.
    [[nodiscard]] double seconds() const {
        return of_.wanted.form == "whole" ? of_.wanted.seconds : 0.3;
    }

    /// Rounds in turn, each second one backwards; the first does not count.
    costs_by_name rounds_of(std::vector<contender> all) {
        costs_by_name out;
        for (unsigned round = 0; round <= of_.wanted.rounds; ++round) {
            for (auto& one : all) {
                one.load.seconds = round == 0 ? 0.3 : seconds();
                const auto before = processor_seconds(one.to->process.pid());
                const auto done = run_tunnel_load(one.load);
                const auto spent = processor_seconds(one.to->process.pid()) - before;
                if (round > 0) {
                    out[one.name].push_back(spent * 1e6 / static_cast<double>(done));
                }
            }
            std::reverse(all.begin(), all.end());
        }
        return out;
    }

    void add(const std::string& name,
             const std::vector<double>& ours,
             const std::vector<double>& theirs,
             std::optional<double> goal) {
        row one{.name = name, .unit = "x", .goal = goal};
        for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
            one.rounds.push_back(ours[i] / theirs[i]);
        }
        out_.rows.push_back(std::move(one));
    }

    void add_time(const std::string& name, const std::vector<double>& rounds) {
        out_.rows.push_back({.name = name, .unit = "us", .rounds = rounds, .judged = false});
        std::fprintf(stderr, "bench: %s\n", name.c_str());
    }

    const server* squid(const char* row) {
        if (!https_lab::has_squid()) {
            out_.skipped.push_back(std::string{row} + " / squid: squid-openssl is not installed");
            return nullptr;
        }
        if (squid_ == nullptr) {
            squid_ = lab_->start_bumping(https_lab::bumping::after_peek);
        }
        return squid_.get();
    }

    /// What a TLS listener is asked for in the same way, without a tunnel.
    [[nodiscard]] contender listener(bool closes) const {
        const auto plain = "127.0.0.1:" + std::to_string(lab_->origin().plain);
        auto load = load_of(opens_->tls_port, closes);
        load.tls = true;
        load.request = [text = get_request("http://" + plain + "/1024/one", plain)](std::uint64_t) {
            return text;
        };
        return {"listener", opens_.get(), load};
    }

    void kept_hits() {
        if (!of_.wanted.wants("https", "opened1k")) {
            return;
        }
        std::vector<contender> all{{"ours", opens_.get(), opened(*opens_, false)}, listener(false)};
        if (const auto* const peer = squid("opened1k")) {
            all.push_back({"squid", peer, opened(*peer, false)});
        }
        auto costs = rounds_of(all);
        add("opened1k / TLS listener", costs["ours"], costs["listener"], 1.05);
        if (costs.count("squid") != 0) {
            add("opened1k / squid", costs["ours"], costs["squid"], 0.3);
        }
        add_time("opened1k: processor time", costs["ours"]);
    }

    void new_connections() {
        if (!of_.wanted.wants("https", "openednew1k")) {
            return;
        }
        std::vector<contender> all{{"ours", opens_.get(), opened(*opens_, true)}, listener(true)};
        server_ptr at_once;
        if (const auto* const peer = squid("openednew1k")) {
            all.push_back({"squid", peer, opened(*peer, true)});
            at_once = lab_->start_bumping(https_lab::bumping::at_once);
            all.push_back({"at once", at_once.get(), opened(*at_once, true)});
        }
        auto costs = rounds_of(all);
        add("openednew1k / TLS listener", costs["ours"], costs["listener"], {});
        if (costs.count("squid") != 0) {
            add("openednew1k / squid", costs["ours"], costs["squid"], 0.2);
            add("openednew1k / squid that bumps at once", costs["ours"], costs["at once"], {});
        }
        add_time("openednew1k: processor time", costs["ours"]);
    }

    /// What a host that was never asked for costs over one whose certificate is there: connections
    /// that are set up and closed.
    void new_hosts() {
        if (!of_.wanted.wants("https", "new host")) {
            return;
        }
        auto known = load_of(opens_->port, true);
        known.tls = true;
        known.count = hosts_in_a_round;
        auto fresh = known;
        known.connect = [](std::uint64_t) { return https_lab::host() + ":443"; };
        fresh.connect = [this](std::uint64_t) { return https_lab::host(asked_++) + ":443"; };
        auto costs = rounds_of({{"known", opens_.get(), known}, {"new", opens_.get(), fresh}});
        row one{.name = "new host: adds", .unit = "us", .goal = 250, .grain = 5};
        for (std::size_t i = 0; i < costs["new"].size(); ++i) {
            one.rounds.push_back(costs["new"][i] - costs["known"][i]);
        }
        out_.rows.push_back(std::move(one));
        add_time("new host: a known one's connection", costs["known"]);
    }

    /// To a host that is not listed, with a list and without.
    void tunnels(const char* name, bool closes) {
        if (!of_.wanted.wants("https", name)) {
            return;
        }
        const auto through = [&](const server& to) {
            auto out = load_of(to.port, closes);
            const auto authority = https_lab::other_host() + ':' +
                                   std::to_string(of_.origin.port());
            out.connect = [authority](std::uint64_t) { return authority; };
            out.request = [text = get_request("/1024/one", authority)](std::uint64_t) {
                return text;
            };
            return out;
        };
        std::vector<contender> all{{"ours", opens_.get(), through(*opens_)},
                                   {"passes", passes_.get(), through(*passes_)}};
        if (!of_.wanted.before.empty()) {
            servers_.push_back(lab_->start_passing("before", of_.wanted.before));
            all.push_back({"before", servers_.back().get(), through(*servers_.back())});
        }
        auto costs = rounds_of(all);
        add(std::string{name} + " / without intercept", costs["ours"], costs["passes"], 1.02);
        if (costs.count("before") != 0) {
            add(std::string{name} + " / before", costs["ours"], costs["before"], {});
        }
        add_time(std::string{name} + ": processor time", costs["ours"]);
    }

    [[nodiscard]] tunnel_load missing(const std::string& scheme, std::uint16_t port) {
        auto out = load_of(passes_->port, false);
        const auto authority = https_lab::host() + ':' + std::to_string(port);
        out.request = [this, scheme, authority](std::uint64_t) {
            return get_request(scheme + "://" + authority + "/1024/" + std::to_string(asked_++),
                               authority);
        };
        return out;
    }

    void misses() {
        if (!of_.wanted.wants("https", "https miss1k")) {
            return;
        }
        auto costs = rounds_of({{"https", passes_.get(), missing("https", lab_->origin().tls)},
                                {"http", passes_.get(), missing("http", lab_->origin().plain)}});
        add("https miss1k / miss1k", costs["https"], costs["http"], 1.2);
        add_time("https miss1k: processor time", costs["https"]);
    }

    /// Beside a plain miss on a new connection and what the smallest client needs for TLS.
    void misses_over_new_connections() {
        if (!of_.wanted.wants("https", "https missnew1k")) {
            return;
        }
        const auto& origin = lab_->origin();
        auto costs = rounds_of({{"https", passes_.get(), missing("https", origin.tls_closing)},
                                {"http", passes_.get(), missing("http", origin.plain_closing)}});
        std::vector<double> handshakes, sums;
        for (const auto plain : costs["http"]) {
            handshakes.push_back(bare_exchange_us(origin.tls_closing, https_lab::host(), true) -
                                 bare_exchange_us(origin.plain_closing, https_lab::host(), false));
            sums.push_back(plain + handshakes.back());
        }
        add("https missnew1k / plain and a handshake", costs["https"], sums, 1.2);
        add_time("https missnew1k: processor time", costs["https"]);
        add_time("https missnew1k: plain", costs["http"]);
        add_time("https missnew1k: a handshake", handshakes);
    }

    const lab& of_;
    const https_lab* lab_ = nullptr;
    std::unique_ptr<reprise_server> opens_, passes_;
    server_ptr squid_;
    std::vector<server_ptr> servers_;
    std::uint64_t asked_ = 0;  // of what is new each time
    found_rows out_;
};

}  // namespace

found_rows measure_https_costs(const lab& of) {
    return https_contest{of}.run();
}

}  // namespace reprise::bench
