#include "proxy/peer/peering.hpp"

#include "proxy/base/log.hpp"
#include "proxy/base/relaxed.hpp"
#include "proxy/base/seldom.hpp"
#include "proxy/cache/admission/admission_gate.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <exception>
#include <new>
#include <stdexcept>
#include <sys/random.h>
#include <utility>

// The book is made anew on the home loop alone (publish_book), whatever changed; what others are
// told is made by look(), on the keeper's thread. What crosses between them is posted, is atomic,
// or lies behind a short lock.

namespace reprise::proxy::peer {

namespace {

// Tried again ten times, or once, a second.
constinit log::seldom not_all_is_told, no_memory_to_share;

static_assert(most_slots == config::most_siblings);

/// Names of peers are resolved by then, or their servers are down.
constexpr std::chrono::seconds unknown_for{10};

// The system's own, which needs no memory: libcrypto's takes some when a thread first asks it, and of all threads the keeper asks
// when it has just taken what a larger filter needs.
std::uint64_t random_word() {
    std::uint64_t word = 0;
    while (::getrandom(&word, sizeof word, 0) != static_cast<ssize_t>(sizeof word)) {
        if (errno != EINTR) {
            throw std::runtime_error{"no random numbers: the system's generator failed"};
        }
    }
    return word;
}

// What siblings are told of one source. Whatever fails, the keeper's thread goes on: nobody would begin it anew.
template <class Tick>
bool try_to_tell(const Tick& tick) noexcept {
    try {
        tick();
        return true;
    } catch (const std::exception& thrown) {
        if (const auto more = not_all_is_told.due()) {
            const bool lacks = dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr;
            log::error("digest: ",
                       std::string_view{lacks ? "out of memory" : thrown.what()},
                       "; what siblings are told may be behind",
                       *more);
        }
    }
    return false;
}

peer::fleet_secret secret_of(const config::digest_options& options) {
    if (options.secret_file.empty()) {
        return peer::fleet_secret::none();
    }
    auto loaded = peer::load_secret(options.secret_file);
    if (!loaded) {
        throw std::runtime_error{"digest.secret_file: " + options.secret_file + ": " +
                                 loaded.error().message()};
    }
    return *loaded;
}

bool shares_seen(const config::options& options) noexcept {
    return options.admission.share && !options.digest.secret_file.empty();
}

// Siblings are told first sights and nothing more.
filter::admission_settings one_layer_of(filter::admission_settings settings) noexcept {
    settings.layers = 1;
    return settings;
}

std::string_view value_of(const http::request_head& request, std::string_view name) noexcept {
    const auto* const line = http::find(request.fields, name);
    return line == nullptr ? std::string_view{} : line->value;
}

std::chrono::sys_seconds seconds_of(wall_time now) noexcept {
    return std::chrono::floor<std::chrono::seconds>(now);
}

}  // namespace

peering::peering(const config::options& options, std::string node, wall_time now)
    : secret_{secret_of(options.digest)},
      node_{std::move(node)},
      serves_squid_{options.digest.squid},
      publish_after_{options.digest.publish_after},
      news_{options.peering.news},
      site_nodes_{options.digest.site_nodes},
      source_{peer::plan_of(options.digest, options.peering),
              secret_,
              random_word,
              signals_for(peer::waited_for::digest)},
      fleet_{node_, random_word()},
      guests_{options.peering.gateway_for} {
    if (secret_.has_file()) {
        const peer::signature_checker::moment start{now, started_};
        checker_ = std::make_unique<peer::signature_checker>(secret_, start);
    }
    if (shares_seen(options)) {
        auto begin = one_layer_of(cache::filter_settings(options));
        if (options.admission.remember.automatic) {
            begin.objects = std::min<std::uint64_t>(begin.objects, 1u << 16);
        }
        seen_ = std::make_unique<cache::resizable_admission>(
            std::make_unique<filter::admission_filter>(begin, seconds_of(now)));
        auto take = [this](const filter::digest_stamp& stamp) {
            return std::make_unique<filter::digest>(seen_->recent_digest(stamp));
        };
        auto signals = signals_for(peer::waited_for::seen);
        peer::news_plan news{
            .every = news_,
            .key_of = [this](std::uint64_t name) { return peer::key_of(name, secret_); },
            .stir = std::move(signals.stir),
            .told = std::move(signals.told),
            .readers = std::move(signals.readers)};
        seen_source_ = std::make_unique<peer::seen_source>(
            secret_.id(), publish_after_, std::move(take), random_word, std::move(news));
    }
    if (!guests_.empty()) {
        auto signals = signals_for(peer::waited_for::members);
        // At `news` whoever follows: it is for sites, and the way there is what it spares.
        news_plan news{.every = news_,
                       .key_of = [this](std::uint64_t name) { return peer::key_of(name, secret_); },
                       .stir = std::move(signals.stir),
                       .told = std::move(signals.told)};
        members_ = std::make_unique<members_source>(
            secret_.id(), publish_after_, random_word, std::move(news));
    }
    if (options.disk.path.empty()) {
        loaded();
    }
}

peering::~peering() {
    stop();
}

void peering::held(cache::holder by,
                   const filter::key_hash& key,
                   std::string_view url,
                   wall_time until) noexcept {
    source_.held(by, key, url, until, resident_now());
}

void peering::gone(cache::holder by, const filter::key_hash& key) noexcept {
    source_.gone(by, key);
}

void peering::outdated(const filter::key_hash& key) noexcept {
    source_.outdated(key);
}

void peering::begin(asio::io_context& home,
                    net::deadlines& timer,
                    net::resolver& names,
                    net::origin_pool& pool,
                    const config::options& options,
                    std::function<void(book_ptr)> publish) {
    auto credentials = load_all_credentials(options.peers);
    const peer::follow_context context{.io = home,
                                       .timer = timer,
                                       .pool = pool,
                                       .aside = aside_,
                                       .secret = secret_,
                                       .table = table_,
                                       .seen = shares() ? &seen_elsewhere_ : nullptr,
                                       .catching = &catching_up_,
                                       .budget = options.peering.budget,
                                       .members = members_.get(),
                                       .node = node_,
                                       .random = random_word,
                                       .site_nodes = std::bit_ceil(site_nodes_),
                                       .news = news_,
                                       .changed = [this] { publish_book(); }};
    fetcher_ = std::make_unique<peer::digest_fetcher>(context);
    fleet_.begin(context);
    publish_ = std::move(publish);
    home_loop_ = &home;
    home_timer_ = &timer;
    auto found = [this](std::vector<peer::followed> siblings,
                        std::vector<peer::peer_address> addresses) {
        if (siblings.size() > peer::most_slots) {
            log::warn("peers: ",
                      siblings.size(),
                      " siblings are known, by their names and addresses; ",
                      peer::most_slots,
                      " are followed, the others are not asked");
        }
        fetcher_->follow(siblings);
        auto nodes = siblings;
        std::erase_if(nodes, [](const followed& one) { return one.of_site; });
        fleet_.follow(nodes);
        siblings_ = std::move(siblings);
        addresses_ = std::move(addresses);
        publish_book();
    };
    discovery_ = std::make_unique<peer::sibling_discovery>(home, names, std::move(found));
    adopt(options, std::move(credentials));
    keeper_.begin([this] { return look(); });
}

void peering::adopt(const config::options& options, parent_credentials credentials) {
    auto peers = options.peers;
    table_.set_hit_worth(options.peering.hit_worth);
    peers_ = std::move(peers);
    credentials_ = std::move(credentials);
    have_homes_.store(options.peering.homes, relaxed);
    if (!options.peering.homes) {
        live_.reset();
    } else if (!live_) {
        live_.emplace();  // until it is known who lives all is our own
        tell_who_lives_.store(true, relaxed);
    }
    refusals_told_.forget();
    waits_.end_all(false);  // those that wait may be no peers any more
    const auto before = book_;
    discovery_->follow(options.peers, shares());
    if (book_ == before) {  // siblings and addresses are as they were; parents need not be
        publish_book();
    }
}

void peering::publish_book() {
    auto others = siblings_;
    std::erase_if(others, [this](const followed& one) { return fetcher_->is_itself(one.name); });
    book_ = peer::make_book(
        peers_, credentials_, node_, others, addresses_, guests_, live_, table_, book_.get());
    {
        const std::scoped_lock lock{homes_guard_};
        homes_ = book_->homes;
    }
    publish_(book_);
}

void peering::leave() {
    left_ = true;
    end_waits();
    if (fetcher_) {
        discovery_->stop();
        fetcher_->stop();
        fleet_.stop();
    }
}

void peering::stop() {
    end_waits();
    keeper_.end();
    aside_.finish();
}

peer::source_signals peering::signals_for(peer::waited_for what) {
    return {
        .stir = [this, what] { keeper_.stir(what); },
        .told = [this, what] { told_[static_cast<std::size_t>(what)] = news_of(what)->newest(); },
        .readers = [this, what] { return waits_.waiting(what); }};
}

news_shelf* peering::news_of(peer::waited_for what) {
    switch (what) {
    case waited_for::digest: return source_.news();
    case waited_for::seen: return seen_source_ ? seen_source_->news() : nullptr;
    case waited_for::members: return members_ ? members_->news() : nullptr;
    }
    return nullptr;
}

// What was seen is told along with what came to the digest, in one answer.
keeper::plan peering::look() noexcept {
    const auto now = steady_now();
    keeper::plan next;
    // What one fails in keeps no other from being told. It is due at once, and has to wait for the next look in any case: to ask
    // for the same memory a thousand times a second gives nobody any.
    const auto keep = [&next](waited_for what, const auto& of, const auto& tick) {
        auto& from = next.from[static_cast<std::size_t>(what)];
        if (try_to_tell(tick)) {
            next.until = std::min(next.until, of.due_at());
            from = of.next_news();
        } else {
            from = steady_time::max();
        }
    };
    const auto* const shelf = source_.news();
    const auto newest = shelf != nullptr ? shelf->newest() : filter::digest_generation{};
    keep(waited_for::digest, source_, [&] { source_.tick(now, resident_now(), wall_now()); });
    if (seen_source_) {
        // Not where more wait for what was seen alone: they are told at its own pace.
        const bool rides = shelf != nullptr && shelf->newest() != newest &&
                           waits_.waiting(waited_for::seen) <= waits_.waiting(waited_for::digest);
        keep(waited_for::seen, *seen_source_, [&] { seen_source_->tick(now, wall_now(), rides); });
    }
    // Both at once, so that whoever waits for both is woken when both are there.
    waits_.wake_behind(std::exchange(told_, {}));
    if (members_) {
        keep(waited_for::members, *members_, [&] { members_->tick(now, wall_now()); });
    }
    waits_.wake_behind(std::exchange(told_, {}));
    return next;
}

bool peering::should_wait(const http::request_head& request,
                          const asio::ip::address& client,
                          bool refused,
                          const peer::peer_book& book,
                          steady_time now) const {
    if (!serves_squid_ || peer::resource_at(request.target) != peer::resource::squid_digest) {
        return false;
    }
    if (book.addresses.empty()) {
        return !refused && now - started_ < unknown_for;
    }
    return book.is_peer(client, true) && !source_.squid_digest().wire;
}

peer::asker peering::identify(const http::request_head& request,
                              const asio::ip::address& client,
                              const tcp::endpoint& reached_at,
                              bool secure,
                              const peer::peer_book& book,
                              wall_time now) {
    peer::asker who;
    who.is_reprise = book.may_ask(client);
    who.is_squid = book.is_peer(client, true);
    who.signing = checker_ != nullptr;
    who.address = client.to_string();
    const auto which = peer::resource_at(request.target);
    if (checker_ && peer::is_for_reprises(which) && who.is_reprise) {
        const auto* const host = http::find(request.fields, http::field_id::host);
        const auto judged = checker_->check(
            {.method = request.method_text,
             .target = request.target,
             .host = host == nullptr ? std::string_view{} : host->value,
             .secure = secure,
             .fields = request.fields},
            {.endpoint = net::endpoint_text(reached_at.address(), reached_at.port()),
             .name = node_},
            now);
        who.signature = judged.what;
        who.signer = judged.signer;
    }
    const bool is_known = who.is_reprise && (!checker_ || who.signature == signature_verdict::good);
    if (fetcher_ && is_known && peer::is_for_reprises(which)) {
        fetcher_->heard_of(checker_ ? std::string_view{who.signer}
                                    : value_of(request, peer::node_field));
    }
    return who;
}

peer::resource_answer peering::answer(const http::request_head& request,
                                      const peer::asker& who,
                                      bool waited,
                                      bool close,
                                      wall_time now) {
    const auto which = peer::resource_at(request.target);
    const auto squid = which == peer::resource::squid_digest ? source_.squid_digest()
                                                             : peer::squid_form{};
    // Counted apart from digests: figures are asked for once a second, whatever becomes of those.
    auto figures = [this] { return fleet_.told(steady_now()); };
    auto out = peer::answer(request,
                            who,
                            {.digest = source_.digests().now(),
                             .seen = seen_source_ ? seen_source_->digests().now() : nullptr,
                             .members = members_ ? members_->digests().now() : nullptr,
                             .serves_members = members_ != nullptr,
                             .squid = squid.wire,
                             .squid_at = squid.changed,
                             .squid_for = publish_after_,
                             .serves_squid = serves_squid_,
                             .node = node_,
                             .digest_news = news_of(waited_for::digest),
                             .seen_news = news_of(waited_for::seen),
                             .members_news = news_of(waited_for::members),
                             .waited = waited,
                             .figures = std::move(figures)},
                            close,
                            now);
    if (out.what == peer::answered::waiting) {
        return out;
    }
    if (out.status == 403) {
        refusals_told_.refused(who.address, peer::refusal_of(out.what, who));
    }
    if (which == peer::resource::figures) {
        fleet_.count(out);
    } else {
        count_answer(out);
    }
    return out;
}

void peering::count_answer(const resource_answer& answer) noexcept {
    const auto how = static_cast<std::size_t>(answer.what);
    answers_[how].fetch_add(1, relaxed);
    answer_bytes_[how].fetch_add(answer.bytes(), relaxed);
}

void peering::note_figures(node_figures figures, steady_time now) {
    const auto own = source_.figures();
    figures.objects = own.known;
    figures.listed = own.listed;
    fleet_.note_own(figures, now);
}

peer::news_waits::wait peering::wait_for_news(const http::request_head& request,
                                              const peer::asker& who,
                                              const peer::resource_answer& told,
                                              net::wakeup::signal signal) {
    const auto which = peer::resource_at(request.target);
    const auto what = which == peer::resource::seen      ? peer::waited_for::seen
                      : which == peer::resource::members ? peer::waited_for::members
                                                         : peer::waited_for::digest;
    news_waits::wanted wanted;
    wanted[static_cast<std::size_t>(waited_for::seen)] = told.seen_since;
    wanted[static_cast<std::size_t>(what)] = told.since.value_or(filter::digest_generation{});
    return waits_.enter(
        wanted, who.address, std::string{value_of(request, peer::node_field)}, std::move(signal));
}

void peering::note_seen(std::string_view url, wall_time now) noexcept {
    const auto name = peer::name_of(url, secret_);
    (void)seen_->note(peer::key_of(name, secret_), seconds_of(now));
    seen_source_->noted(name);
}

void peering::housekeep(const filter::admission_settings& own, wall_time now) {
    warn_of_namesakes();
    note_who_lives();
    if (!seen_) {
        return;
    }
    seen_->tidy();
    // What siblings fetch grows as it fills, whatever room the filter for admission begins with.
    auto wanted = one_layer_of(own);
    const auto has = seen_->current()->settings().objects;
    const auto figures = seen_->current()->figures(seconds_of(now));
    const bool fills = std::max(figures.young.keys, figures.old.keys) >= has / 4 * 3;
    wanted.objects = std::min(wanted.objects, fills ? has * 4 : has);
    if (seen_->changing() || seen_->current()->settings() == wanted) {
        return;
    }
    try {
        seen_->change_to(wanted, seconds_of(now));
    } catch (const std::bad_alloc&) {
        if (const auto more = no_memory_to_share.due()) {
            log::warn("admission.share: no memory for ", wanted.objects, " objects", *more);
        }
    }
}

// A name that DNS gives for all nodes has this one's address too; a url of its own is a mistake in
// one place or the other.
void peering::warn_of_namesakes() {
    if (!fetcher_ || fetcher_->others() == fetcher_->followed_count()) {
        return;
    }
    for (const auto& one : fetcher_->figures()) {
        const bool by_dns = one.name.find('/') != one.name.npos;
        if (one.members || one.digest.state != peer::follow_state::itself || by_dns ||
            std::find(namesakes_.begin(), namesakes_.end(), one.name) != namesakes_.end()) {
            continue;
        }
        namesakes_.push_back(one.name);
        log::warn("peers: ",
                  one.name,
                  " answers as ",
                  node_,
                  ", which is this instance: it is not asked. If it is another one, give each its "
                  "own forwarding.pseudonym");
    }
}

// A sibling whose digest can't be had is taken for one that is gone: what belongs to it moves to the
// next, and comes back with it.
void peering::note_who_lives() {
    if (!fetcher_ || !have_homes_.load(relaxed)) {
        return;
    }
    std::vector<heard_node> heard;
    for (const auto& one : fetcher_->figures()) {
        if (one.digest.state == peer::follow_state::current && !one.digest.node.empty() &&
            one.slot && !one.of_site) {
            heard.push_back({{*one.slot, one.digest.node, one.https}, one.generation.epoch});
        }
    }
    for (const auto& name : who_is_who_.namesakes_among(heard, steady_now())) {
        log::warn("peers: several siblings answer as ",
                  name,
                  ": no URL belongs to any of them. Give each its own forwarding.pseudonym");
    }
    auto live = who_is_who::instances_of(heard);
    if (!tell_who_lives_.exchange(false, relaxed) && live == lived_) {
        return;
    }
    try {
        auto said = live;
        asio::post(*home_loop_, [this, live = std::move(live)] { take_who_lives(live); });
        lived_ = std::move(said);
    } catch (...) {
        tell_who_lives_.store(true, relaxed);
        throw;
    }
}

// What of it there was no memory for is said again: else all that belongs to others would be our own until one of them
// comes or goes.
void peering::take_who_lives(const std::vector<live_node>& live) {
    if (!live_ || left_) {
        return;
    }
    try {
        live_ = live;
        publish_book();
    } catch (...) {
        tell_who_lives_.store(true, relaxed);
        throw;
    }
}

// Accelerators' keys are no URLs that a sibling can be asked for.
bool peering::belongs_here(std::string_view url) const {
    return home_of(url).empty();
}

std::string peering::home_of(std::string_view url) const {
    const auto homes = [this] {
        const std::scoped_lock lock{homes_guard_};
        return homes_;
    }();
    const bool secure = url.starts_with("https://");
    if (!homes || (!secure && !url.starts_with("http://")) || (secure && !secret_.has_file()) ||
        url.find(' ') != std::string_view::npos) {
        return {};
    }
    const auto home = homes->of(key_of(url), secure, steady_now());
    return home ? std::string{home->name} : std::string{};
}

}  // namespace reprise::proxy::peer
