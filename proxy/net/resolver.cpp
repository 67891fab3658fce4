#include "proxy/net/resolver.hpp"

#include "proxy/net/address.hpp"
#include "proxy/net/dns_channel.hpp"
#include "proxy/net/hosts.hpp"
#include "proxy/net/kept_answers.hpp"
#include "proxy/net/wakeup.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

// The life of a question: it is started by the first request, joined by others, answered when both
// families have been heard or the grace after the first addresses is over, and ended when both
// families have been heard. What comes between answer and end still improves the kept answer, and
// makes it hold no longer. One that was answered, or that nobody should wait for any more, is replaced
// by whoever asks next: from then on what it brings is its own waiters' alone.
// Who wants both families waits for the end, joins a question until then, and begins another where
// what is kept is of one family. That other one may bring less, so what is kept of addresses gives way
// to what is whole alone, while it holds.
// Waiters poll nothing: an answer signals each waiter's wakeup, and the coroutine then finds the
// answer in the question that it holds.

namespace reprise::proxy::net {
namespace {

using asked_answer = attempt<resolved>;

/// For whom an answer is one.
enum class wanted_of : std::uint8_t { either_family, both_families };

constexpr std::array families{ip_family::v6, ip_family::v4};      // RFC 8305 3: AAAA first
constexpr std::chrono::milliseconds grace_for_second_family{50};  // RFC 8305 3
constexpr std::chrono::seconds longest_hold_of_failures{1};  // servers that fail are asked again
// Nor is half of an answer kept for as long as its records say: what is missing may be the half that a connection can be made
// to. Where a server never answers for one family, a dial now and then waits the grace for it.
constexpr std::chrono::seconds longest_hold_of_halves{30};

constexpr std::size_t longest_name = 253;
constexpr std::size_t longest_label = 63;

/// Lower case and without the final dot.
std::string name_key(std::string_view host) {
    if (host.size() > 1 && host.back() == '.') {
        host.remove_suffix(1);
    }
    std::string key{host};
    std::transform(key.begin(), key.end(), key.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return key;
}

bool is_host_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/// Letters, digits, - and _ in labels of 1 to 63. The last one must not look like a number: 127.1
/// and 0x7f000001 are addresses to some and names to nobody.
bool is_host_name(std::string_view name) {
    if (name.empty() || name.size() > longest_name) {
        return false;
    }
    std::string_view label;
    for (;;) {
        const auto dot = name.find('.');
        label = name.substr(0, dot);
        if (label.empty() || label.size() > longest_label ||
            !std::all_of(label.begin(), label.end(), is_host_character)) {
            return false;
        }
        if (dot == std::string_view::npos) {
            break;
        }
        name.remove_prefix(dot + 1);
    }
    const bool hex = label.substr(0, 2) == "0x" &&
                     label.find_first_not_of("0123456789abcdef", 2) == std::string_view::npos;
    return !hex && label.find_first_not_of("0123456789") != std::string_view::npos;
}

bool is_localhost(std::string_view name) {
    constexpr std::string_view suffix = ".localhost";
    return name == "localhost" ||
           (name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix);
}

std::vector<asio::ip::address> loopback_addresses() {
    return {asio::ip::address_v6::loopback(), asio::ip::address_v4::loopback()};
}

resolved as_resolved(std::vector<asio::ip::address> addresses,
                     steady_time valid_until,
                     std::optional<ip_family> unheard = {}) {
    return std::make_shared<const resolution>(
        resolution{std::move(addresses), valid_until, unheard});
}

asked_answer failed(failure_code code, std::string_view host, std::string_view why) {
    return failure{code, "no address for \"" + std::string{host} + "\": " + std::string{why}};
}

}  // namespace

struct resolver::state {
    /// What a family brought beside its addresses.
    struct word {
        dns_answer::kind what = dns_answer::kind::failed;
        std::string why;

        /// The server has said whether there are addresses.
        [[nodiscard]] bool was_heard() const noexcept {
            using kind = dns_answer::kind;
            return what == kind::addresses || what == kind::no_address || what == kind::no_name;
        }
    };
    struct question {
        question(state& of, std::string asked)
            : name(std::move(asked)),
              grace(of.timer, [this, &of] { of.settle(*this); }) {}

        /// There is nothing more to wait for.
        [[nodiscard]] bool is_over_for(wanted_of who) const noexcept {
            return who == wanted_of::both_families ? open == 0 : answer.has_value();
        }
        /// Others may wait for it too.
        [[nodiscard]] bool can_be_joined(wanted_of who, steady_time now) const noexcept {
            return !is_over_for(who) && now < give_up;
        }
        [[nodiscard]] bool is_whole() const noexcept {
            return heard[0].was_heard() && heard[1].was_heard();
        }

        std::string name;
        std::vector<asio::ip::address> addresses;
        steady_time valid_until = steady_time::max();  // of the addresses, by when each was heard
        word heard[families.size()];                   // of each of these, as far as it was
        unsigned open = 2;                             // families not heard yet
        bool current = true;                           // false: replaced: it is not kept
        std::weak_ptr<question> follower{};            // by which it was replaced
        share_holder asker;
        steady_time give_up;
        deadline grace;
        std::optional<asked_answer> answer;
        std::vector<wakeup*> waiters;
    };
    using question_ptr = std::shared_ptr<question>;

    /// A question both halves of which are not asked, for want of memory, would never end: it is
    /// taken back.
    struct beginning {
        state& of;
        question_ptr asking;
        bool complete = false;
        ~beginning() {
            if (!complete) {
                asking->open = 0;
                of.forget(asking);
            }
        }
    };

    state(deadlines& with, const config::dns_options& wanted)
        : timer(with),
          options(wanted),
          hosts(wanted.hosts_file),
          channel(std::make_unique<dns_channel>(with, wanted)) {}

    std::optional<asked_answer> known(const std::string& name, wanted_of who, steady_time now);
    attempt<question_ptr> join_or_ask(const std::string& name,
                                      wanted_of who,
                                      steady_time now,
                                      const share_holder& asker);
    question_ptr ask(const std::string& name, steady_time now, const share_holder& asker);
    void replace(const question_ptr& by);
    void forget(const question_ptr& ended) noexcept;
    void hear(const question_ptr& asked, std::size_t family, dns_answer brought);
    void add_addresses(question& to, const dns_answer& brought) const;
    void settle(question& asked);
    [[nodiscard]] bool is_ahead(const question& asking) const;
    [[nodiscard]] bool is_to_be_kept(const question& asking,
                                     const asked_answer& answer,
                                     steady_time now);
    asked_answer conclude(const question& asked,
                          wanted_of who,
                          steady_time now,
                          steady_time& until) const;
    static awaitable<asked_answer> find(std::shared_ptr<state> mine,
                                        std::string host,
                                        wanted_of who,
                                        steady_time until,
                                        share_holder asker);
    void stop();

    deadlines& timer;
    config::dns_options options;
    hosts_file hosts;
    std::unique_ptr<dns_channel> channel;
    std::map<std::string, question_ptr, std::less<>> questions;
    std::unordered_map<address_bytes, std::size_t, address_hash> asked_by;  // open ones, by clients
    kept_answers kept;
    std::atomic<std::uint64_t> asked{0}, from_cache{0}, failures{0};
    bool stopped = false;
};

/// What is known without a server.
std::optional<asked_answer> resolver::state::known(const std::string& name,
                                                   wanted_of who,
                                                   steady_time now) {
    if (const auto numeric = parse_numeric_host(name)) {
        return as_resolved({*numeric}, steady_time::max());
    }
    if (!is_host_name(name)) {
        return failed(
            failure_code::dns_not_found, name.substr(0, longest_name), "this is not a host name");
    }
    if (const auto* listed = hosts.find(name, now)) {
        from_cache.fetch_add(1, std::memory_order_relaxed);
        return as_resolved(*listed, now + hosts_file::check_every);
    }
    if (is_localhost(name)) {
        return as_resolved(loopback_addresses(), steady_time::max());
    }
    if (stopped) {
        return failed(failure_code::dns_error, name, "the proxy is shutting down");
    }
    const auto* const answer = kept.find(name, now);
    if (answer != nullptr && (who == wanted_of::either_family || answer->is_whole)) {
        from_cache.fetch_add(1, std::memory_order_relaxed);
        return answer->answer;
    }
    return std::nullopt;
}

attempt<resolver::state::question_ptr> resolver::state::join_or_ask(const std::string& name,
                                                                    wanted_of who,
                                                                    steady_time now,
                                                                    const share_holder& asker) {
    const auto found = questions.find(name);
    if (found != questions.end() && found->second->can_be_joined(who, now)) {
        return found->second;
    }
    if (channel->under_way() >= 2 * most_questions) {
        return failed(failure_code::dns_error, name, "too many names are being asked for").error();
    }
    if (asker) {
        const auto of_asker = asked_by.find(*asker);
        if (of_asker != asked_by.end() && of_asker->second >= most_questions_of_one) {
            return failed(failure_code::client_share_used,
                          name,
                          "too many names are being asked for by this client")
                .error();
        }
    }
    return ask(name, now, asker);
}

resolver::state::question_ptr resolver::state::ask(const std::string& name,
                                                   steady_time now,
                                                   const share_holder& asker) {
    auto asking = std::make_shared<question>(*this, name);
    asking->give_up = now + options.timeout;
    beginning begun{*this, asking};
    if (asker) {
        ++asked_by[*asker];
        asking->asker = asker;  // not before: it gives back what it took
    }
    replace(asking);
    asked.fetch_add(1, std::memory_order_relaxed);
    for (std::size_t family = 0; family < families.size(); ++family) {
        channel->ask(name, families[family], [this, asking, family](dns_answer brought) {
            hear(asking, family, std::move(brought));
        });
    }
    begun.complete = true;
    return asking;
}

// What the one before brings late must not be taken for newer than what its follower brought. Where that has
// brought nothing it is: a server may need longer than anybody waits for it.
void resolver::state::replace(const question_ptr& by) {
    auto& place = questions[by->name];
    if (place) {
        place->current = false;
        place->follower = by;
    }
    place = by;
}

void resolver::state::hear(const question_ptr& asking, std::size_t family, dns_answer brought) {
    if (asking->open == 0) {
        return;  // it was taken back when it began
    }
    const bool is_last = --asking->open == 0;
    if (is_last) {  // now, and not behind what may throw: it must end
        asking->grace.clear();
        forget(asking);
    }
    auto& word = asking->heard[family];
    word = {brought.what, std::move(brought.why)};
    if (word.what == dns_answer::kind::addresses) {
        try {
            add_addresses(*asking, brought);
        } catch (const std::bad_alloc&) {
            // As where it is lost on its way: there may be some.
            word.what = dns_answer::kind::failed;
        }
    }
    const auto what = word.what;
    const bool has_addresses = what == dns_answer::kind::addresses;
    if (is_last) {
        settle(*asking);
    } else if (has_addresses || what == dns_answer::kind::no_name) {
        // The other family gets a little longer: a server that loses AAAA questions must not hold
        // up every connection for its whole timeout. One that says of a name that has no AAAA record that
        // there is no such name (RFC 4074 4.2) says otherwise of the other family.
        asking->grace.expire_after(grace_for_second_family);
    }
}

// Their time runs from when they were heard: what comes later doesn't make them younger.
void resolver::state::add_addresses(question& to, const dns_answer& brought) const {
    const auto keep = std::clamp(
        brought.ttl, options.min_ttl, std::max(options.min_ttl, options.max_ttl));
    to.valid_until = std::min(to.valid_until, steady_now() + keep);
    const auto room = most_addresses - to.addresses.size();
    const auto first = brought.addresses.begin();
    const auto count = std::min(room, brought.addresses.size());
    to.addresses.insert(to.addresses.end(), first, first + static_cast<std::ptrdiff_t>(count));
}

void resolver::state::forget(const question_ptr& ended) noexcept {
    const auto found = questions.find(ended->name);
    if (found != questions.end() && found->second == ended) {
        questions.erase(found);
    }
    const auto asker = std::exchange(ended->asker, share_holder{});
    const auto of_asker = asker ? asked_by.find(*asker) : asked_by.end();
    if (of_asker != asked_by.end() && --of_asker->second == 0) {
        asked_by.erase(of_asker);
    }
}

asked_answer resolver::state::conclude(const question& asking,
                                       wanted_of who,
                                       steady_time now,
                                       steady_time& until) const {
    if (!asking.addresses.empty()) {
        until = asking.valid_until;
        std::optional<ip_family> unheard;
        for (std::size_t family = 0; family < families.size(); ++family) {
            if (!asking.heard[family].was_heard()) {
                unheard = families[family];
            }
        }
        return as_resolved(asking.addresses, until, unheard);
    }
    using kind = dns_answer::kind;
    const auto heard = [&](kind what) -> const word* {
        const auto found = std::find_if(std::begin(asking.heard),
                                        std::end(asking.heard),
                                        [=](const word& each) { return each.what == what; });
        return found == std::end(asking.heard) ? nullptr : found;
    };
    const auto briefly = now + std::min(options.negative_ttl, longest_hold_of_failures);
    // Not found is a conclusion only when a server says so of the name, or of both families.
    until = now + options.negative_ttl;
    if (heard(kind::no_name) != nullptr && (who == wanted_of::either_family || asking.is_whole())) {
        if (!asking.is_whole()) {
            until = briefly;  // one says nothing, or not yet
        }
        return failed(failure_code::dns_not_found, asking.name, "the name does not exist");
    }
    if (asking.heard[0].what == kind::no_address && asking.heard[1].what == kind::no_address) {
        return failed(
            failure_code::dns_not_found, asking.name, "the name exists but has no address");
    }
    until = briefly;
    if (heard(kind::cancelled) != nullptr) {
        until = now;
        return failed(failure_code::dns_error, asking.name, "the question was given up");
    }
    if (heard(kind::timed_out) != nullptr) {
        return failed(failure_code::dns_timeout, asking.name, "the name servers do not answer");
    }
    const auto* reason = heard(kind::failed);
    return failed(failure_code::dns_error,
                  asking.name,
                  reason != nullptr ? reason->why : "the name servers failed");
}

// Its first answer, and its follower has none.
bool resolver::state::is_ahead(const question& asking) const {
    const auto follower = asking.follower.lock();
    return follower && follower->current && !follower->answer && !asking.answer;
}

// Half of an answer, or none, does not displace the addresses that are known still: whoever asks for the whole asks before
// their time is over. The same half does, as a later word.
bool resolver::state::is_to_be_kept(const question& asking,
                                    const asked_answer& answer,
                                    steady_time now) {
    const bool was_told = answer.has_value() || answer.error().code == failure_code::dns_not_found;
    if (!asking.current && !(was_told && is_ahead(asking))) {
        return false;
    }
    const auto* const before = asking.is_whole() ? nullptr : kept.find(asking.name, now);
    if (before == nullptr || before->answer.has_error()) {
        return true;
    }
    return answer.has_value() && (*answer)->unheard == (*before->answer)->unheard;
}

void resolver::state::settle(question& asking) {
    const auto now = steady_now();
    auto until = now;
    auto answer = conclude(asking, wanted_of::either_family, now, until);
    if (!asking.is_whole()) {
        until = std::min(until, now + std::max(options.min_ttl, longest_hold_of_halves));
    }
    if (until > now && is_to_be_kept(asking, answer, now)) {
        kept.keep(asking.name, {answer, until, asking.is_whole()});
    }
    // Where the second family came late what is kept has learnt it, and those whom the first was enough for have gone.
    if (!asking.answer) {
        if (answer.has_error()) {
            failures.fetch_add(1, std::memory_order_relaxed);
        }
        asking.answer.emplace(std::move(answer));
    }
    for (auto* each : asking.waiters) {
        each->notify();
    }
}

void resolver::state::stop() {
    if (std::exchange(stopped, true)) {
        return;
    }
    channel.reset();  // each question under way hears `cancelled` and tells its waiters
}

resolver::resolver(deadlines& timer, const config::dns_options& options)
    : state_(std::make_shared<state>(timer, options)) {}

resolver::~resolver() {
    stop();
}

void resolver::stop() {
    state_->stop();
}

deadlines& resolver::timer() const noexcept {
    return state_->timer;
}

std::uint64_t resolver::asked() const noexcept {
    return state_->asked.load(std::memory_order_relaxed);
}

std::uint64_t resolver::answered_from_cache() const noexcept {
    return state_->from_cache.load(std::memory_order_relaxed);
}

std::uint64_t resolver::failures() const noexcept {
    return state_->failures.load(std::memory_order_relaxed);
}

std::optional<attempt<resolved>> resolver::known(std::string_view host) {
    return state_->known(name_key(host), wanted_of::either_family, steady_now());
}

std::optional<std::vector<asio::ip::address>> resolver::local(std::string_view host) {
    const auto name = name_key(host);
    if (const auto numeric = parse_numeric_host(name)) {
        return std::vector{*numeric};
    }
    if (!is_host_name(name)) {
        return std::vector<asio::ip::address>{};
    }
    if (const auto* listed = state_->hosts.find(name, steady_now())) {
        return *listed;
    }
    return is_localhost(name) ? std::optional{loopback_addresses()} : std::nullopt;
}

std::chrono::seconds resolver::longest_kept() const noexcept {
    return std::max(state_->options.min_ttl, state_->options.max_ttl);
}

namespace {
/// One coroutine's place among those who wait for a question.
template <class Question>
class place_in_line {
public:
    place_in_line(const Question& asking, deadlines& timer) : asking_(asking), arrived_(timer) {
        asking_->waiters.push_back(&arrived_);
    }
    ~place_in_line() { std::erase(asking_->waiters, &arrived_); }
    place_in_line(const place_in_line&) = delete;
    place_in_line& operator=(const place_in_line&) = delete;

    [[nodiscard]] awaitable<bool> wait(steady_time until) { return arrived_.wait(until); }

private:
    Question asking_;
    wakeup arrived_;
};
}  // namespace

awaitable<asked_answer> resolver::state::find(
    std::shared_ptr<state> mine,  // the resolver may go while we wait
    std::string host,
    wanted_of who,
    steady_time until,
    share_holder asker) {
    const auto now = steady_now();
    const auto name = name_key(host);
    if (auto answer = mine->known(name, who, now)) {
        co_return std::move(*answer);
    }
    auto found = mine->join_or_ask(name, who, now, asker);
    if (found.has_error()) {
        co_return std::move(found.error());
    }
    const auto asking = std::move(*found);
    if (!asking->is_over_for(who)) {
        place_in_line line{asking, mine->timer};
        const auto patience = std::min(until, now + mine->options.timeout);
        while (!asking->is_over_for(who)) {
            const bool signalled = co_await line.wait(patience);
            if (!signalled) {
                break;
            }
        }
    }
    if (who == wanted_of::either_family && asking->answer) {
        co_return *asking->answer;
    }
    // What one family brought is all that is known of the name when there is no more time for the other.
    if (who == wanted_of::both_families && (asking->open == 0 || !asking->addresses.empty())) {
        auto ignored = now;
        co_return mine->conclude(*asking, who, now, ignored);
    }
    co_return failed(failure_code::dns_timeout,
                     name,
                     mine->timer.stopped() ? "the proxy is shutting down"
                                           : "the name servers do not answer in time");
}

awaitable<attempt<resolved>> resolver::resolve(std::string host,
                                               steady_time until,
                                               share_holder asker) {
    return state::find(state_, std::move(host), wanted_of::either_family, until, asker);
}

awaitable<attempt<resolved>> resolver::resolve_whole(std::string host, steady_time until) {
    return state::find(state_, std::move(host), wanted_of::both_families, until, {});
}

awaitable<std::optional<attempt<resolved>>> resolver::resolve_rest(std::string host,
                                                                   steady_time until) {
    const auto mine = state_;
    const auto name = name_key(host);
    const auto found = mine->questions.find(name);
    if (found != mine->questions.end()) {
        const auto asking = found->second;
        place_in_line line{asking, mine->timer};
        const auto patience = std::min(until, asking->give_up);
        while (!asking->is_over_for(wanted_of::both_families)) {
            const bool signalled = co_await line.wait(patience);
            if (!signalled) {
                break;
            }
        }
        if (!asking->addresses.empty()) {  // they may hold no longer than for this
            auto ignored = steady_now();
            co_return mine->conclude(*asking, wanted_of::both_families, ignored, ignored);
        }
    }
    const auto* const kept = mine->kept.find(name, steady_now());
    co_return kept != nullptr ? std::optional{kept->answer} : std::nullopt;
}

}  // namespace reprise::proxy::net
