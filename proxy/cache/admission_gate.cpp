#include "proxy/cache/admission_gate.hpp"

#include "filter/admission_state.hpp"
#include "proxy/admin/log.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <openssl/rand.h>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace reprise::proxy::cache {

namespace {

std::chrono::sys_seconds seconds_of(wall_time now) noexcept {
    return std::chrono::floor<std::chrono::seconds>(now);
}

filter::hash_seed random_seed() {
    filter::hash_seed seed{};
    if (RAND_bytes(reinterpret_cast<unsigned char*>(seed.data()), static_cast<int>(seed.size())) !=
        1) {
        throw std::runtime_error{"no random numbers: the system's generator failed"};
    }
    return seed;
}

/// A file descriptor that closes itself.
class descriptor {
public:
    explicit descriptor(int fd) noexcept : fd_{fd} {}
    ~descriptor() {
        if (fd_ >= 0) {
            ::close(fd_);
        }
    }
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
    [[nodiscard]] int get() const noexcept { return fd_; }

private:
    int fd_;
};

boost::system::error_code last_error() {
    return {errno, boost::system::system_category()};
}

// The file's bytes, at most `most`; nullopt when there is none or it can't be read (said in the
// log).
std::optional<std::vector<std::byte>> read_state(const std::string& path, std::uint64_t most) {
    // O_NONBLOCK: a pipe by that name is refused below, not waited for.
    const descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (file.get() < 0) {
        if (errno != ENOENT) {
            log::warn("admission.state: cannot read ",
                      path,
                      ": ",
                      last_error().message(),
                      "; the filter starts empty");
        }
        return std::nullopt;
    }
    struct stat facts {};
    if (::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
        log::warn("admission.state: ", path, " is no regular file; the filter starts empty");
        return std::nullopt;
    }
    std::vector<std::byte> bytes(static_cast<std::size_t>(
        std::min<std::uint64_t>(static_cast<std::uint64_t>(facts.st_size), most)));
    std::size_t got = 0;
    while (got < bytes.size()) {
        const auto count = ::read(file.get(), bytes.data() + got, bytes.size() - got);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            break;
        }
        got += static_cast<std::size_t>(count);
    }
    bytes.resize(got);
    return bytes;
}

}  // namespace

bool url_matches(std::string_view pattern, std::string_view url) noexcept {
    std::size_t p = 0;
    std::size_t u = 0;
    std::size_t star = std::string_view::npos;
    std::size_t resume = 0;
    while (u < url.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            resume = u;
        } else if (p < pattern.size() && pattern[p] == url[u]) {
            ++p;
            ++u;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            u = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') {
        ++p;
    }
    return p == pattern.size();
}

admission_choice_for choice_for(const config::admission_options& options,
                                const std::optional<config::admission_choice>& of_listener,
                                std::string_view url) {
    if (of_listener) {
        return {*of_listener, ~std::size_t{0}};
    }
    for (std::size_t i = 0; i < options.rules.size(); ++i) {
        if (url_matches(options.rules[i].url, url)) {
            return {options.rules[i].choice, i};
        }
    }
    return {options.choice, ~std::size_t{0}};
}

filter::admission_settings filter_settings(const config::options& options) {
    filter::admission_settings settings;
    settings.objects = options.admission.remember.objects;
    settings.age = options.admission.remember.age;
    settings.false_positive_rate = options.admission.false_positive_rate;
    unsigned hits = 2;
    const auto consider = [&](const config::admission_choice& choice) {
        if (choice.policy == config::admission_policy::nth_hit) {
            hits = std::max(hits, choice.hits);
        }
    };
    consider(options.admission.choice);
    for (const auto& rule : options.admission.rules) {
        consider(rule.choice);
    }
    for (const auto& one : options.listeners) {
        if (one.admission) {
            consider(*one.admission);
        }
    }
    settings.layers = std::clamp(hits - 1, 1u, filter::admission_filter::max_layers);
    return settings;
}

admission_gate::admission_gate(const config::options& options,
                               wall_time now,
                               const filter::hash_secret* fixed)
    : secret_{fixed != nullptr ? *fixed : filter::hash_secret::from_seed(random_seed())} {
    const auto settings = filter_settings(options);
    const auto& path = options.admission.state;
    if (!path.empty()) {
        // A file longer than any state of these settings is refused by decode as such, so a little
        // more is enough.
        const auto most = filter::encoded_size(settings) + 1;
        if (const auto bytes = read_state(path, most)) {
            auto state = filter::decode(*bytes, settings, seconds_of(now));
            if (state.has_value() && fixed != nullptr &&
                !std::ranges::equal(state->seed, fixed->seed())) {
                log::warn("admission.state: ",
                          path,
                          " refused: made under another secret than the store in disk.path; the "
                          "filter starts empty");
            } else if (state.has_value()) {
                secret_ = filter::hash_secret::from_seed(state->seed);
                filter_ = std::move(state->filter);
                log::info("admission.state: ", path, " loaded");
                return;
            } else {
                log::warn("admission.state: ",
                          path,
                          " refused: ",
                          state.error().message(),
                          "; the filter starts empty");
            }
        }
    }
    filter_ = std::make_unique<filter::admission_filter>(settings, seconds_of(now));
}

namespace {
// A filter made for fewer layers than `hits` asks for (a reload raised it) can't count that far:
// what it can count is then enough.
admission_ruling rule_on(unsigned seen, unsigned layers, const admission_choice_for& by) noexcept {
    admission_ruling ruling;
    ruling.policy = by.choice.policy;
    ruling.rule = by.rule;
    ruling.seen_before = seen;
    switch (by.choice.policy) {
    case config::admission_policy::always: ruling.admitted = true; break;
    case config::admission_policy::never: ruling.admitted = false; break;
    case config::admission_policy::second_hit: ruling.admitted = seen >= 1; break;
    case config::admission_policy::nth_hit:
        ruling.admitted = seen + 1 >= by.choice.hits || seen >= layers;
        break;
    }
    return ruling;
}
}  // namespace

admission_ruling admission_gate::note(const filter::key_hash& key,
                                      const admission_choice_for& by,
                                      wall_time now) noexcept {
    return rule_on(filter_->note(key, seconds_of(now)), filter_->settings().layers, by);
}

admission_ruling admission_gate::peek(const filter::key_hash& key,
                                      const admission_choice_for& by,
                                      std::size_t pending) const noexcept {
    const auto most = filter::admission_filter::max_layers;
    const auto seen = filter_->peek(key) + std::min<std::size_t>(pending, most);
    return rule_on(static_cast<unsigned>(seen), filter_->settings().layers, by);
}

void admission_gate::hit(const filter::key_hash& key, wall_time now) noexcept {
    filter_->refresh(key, seconds_of(now));
}

boost::system::error_code admission_gate::save(const std::string& path) const {
    const auto temporary = path + ".new";
    {
        ::unlink(temporary.c_str());
        const descriptor file{
            ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
        if (file.get() < 0) {
            return last_error();
        }
        boost::system::error_code failed;
        const auto sink = [&](std::span<const std::byte> piece) {
            while (!piece.empty()) {
                const auto count = ::write(file.get(), piece.data(), piece.size());
                if (count < 0 && errno == EINTR) {
                    continue;
                }
                if (count <= 0) {
                    failed = last_error();
                    return false;
                }
                piece = piece.subspan(static_cast<std::size_t>(count));
            }
            return true;
        };
        if (!filter::encode(*filter_, secret_.seed(), sink) || ::fsync(file.get()) != 0) {
            if (!failed) {
                failed = last_error();
            }
            ::unlink(temporary.c_str());
            return failed;
        }
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
        const auto failed = last_error();
        ::unlink(temporary.c_str());
        return failed;
    }
    return {};
}

filter::admission_figures admission_gate::figures(wall_time now) const noexcept {
    return filter_->figures(seconds_of(now));
}

}  // namespace reprise::proxy::cache
