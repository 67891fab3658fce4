#include "tools/bench_disk/subject.hpp"

#include "proxy/cache/disk/files.hpp"
#include "tools/sized_body.hpp"

#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <unistd.h>

namespace reprise::tools {

namespace {

using namespace std::chrono_literals;

// What a bench waits for is microseconds away; a loop of its own would be more to measure.
void pause_briefly() {
    std::this_thread::sleep_for(20us);
}

template <class Action>
void for_each_file(const std::string& directory, Action&& action) {
    for (const auto& entry : std::filesystem::directory_iterator{directory}) {
        if (entry.is_regular_file()) {
            const int fd = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
            if (fd >= 0) {
                action(fd);
                ::close(fd);
            }
        }
    }
}

disk::tier_settings settings_of(const std::string& path,
                                std::uint64_t size,
                                std::uint64_t segment) {
    disk::tier_settings out;
    out.path = path;
    out.size = size;
    out.segment = segment;
    return out;
}

}  // namespace

std::string object_maker::url(std::uint64_t number) {
    const auto digits = std::to_string(number);  // padded: all URLs cost a store the same
    return "http://origin.example/k/" + std::string(20 - digits.size(), '0') + digits;
}

cache::stored_ptr object_maker::make(std::uint64_t number) const {
    cache::response_draft out;
    out.head = "HTTP/1.1 200 OK\r\nDate: Thu, 19 Nov 2026 10:00:00 GMT\r\nServer: origin\r\n"
               "Content-Type: application/octet-stream\r\nCache-Control: max-age=31536000\r\n"
               "Via: 1.1 reprise\r\nContent-Length: " +
               std::to_string(body_bytes_) + "\r\n";
    out.status = 200;
    cache::index_head(out);
    out.freshness.response_time = proxy::wall_now();
    out.freshness.lifetime = std::chrono::hours{24 * 365};
    out.freshness.source = proxy::http::lifetime_source::max_age;
    out.reusable_until = out.freshness.response_time + out.freshness.lifetime;
    auto whole = std::make_shared<cache::body>();
    auto memory = cache::block::make(body_bytes_);
    fill_body(number, 0, {memory->data(), body_bytes_});
    whole->slices.push_back({std::move(memory), 0, body_bytes_});
    whole->size = body_bytes_;
    out.content = std::move(whole);
    return cache::stored_response::make(out);
}

bool object_maker::is_right(std::uint64_t number, const cache::stored_response& response) const {
    if (!response.has_content() || response.size() != body_bytes_) {
        return false;
    }
    std::uint64_t at = 0;
    bool right = true;
    response.each_piece([&](std::string_view piece) {
        right = right && is_body(number, at, piece);
        at += piece.size();
    });
    return right;
}

opened_tier::opened_tier(const std::string& path, std::uint64_t size, std::uint64_t segment)
    : tier_{settings_of(path, size, segment), disk::system_files(), purges_, invalidated_} {}

filter::key_hash opened_tier::key_of(std::string_view url) const {
    return filter::hash_of(url, tier_.secret());
}

void opened_tier::put(std::uint64_t number, const object_maker& objects) {
    put(number, objects.make(number));
}

void opened_tier::put(std::uint64_t number, const cache::stored_ptr& response) {
    const auto url = object_maker::url(number);
    const auto key = key_of(url);
    const cache::invalidation_mark asked{invalidated_.count(key), purges_.epoch()};
    const auto until = proxy::steady_now() + 1min;
    while (!tier_.put(key, url, response, asked)) {
        if (proxy::steady_now() > until) {
            throw std::runtime_error("nothing is taken any more: " + tier_.figures().trouble);
        }
        pause_briefly();
    }
    last_put_ = number;
}

cache::stored_ptr opened_tier::find(std::uint64_t number) {
    const auto url = object_maker::url(number);
    const auto key = key_of(url);
    if (!tier_.may_hold(key)) {
        return nullptr;
    }
    disk::disk_lookup lookup{tier_, key, url, {}};
    while (!lookup.step({})) {
        std::this_thread::yield();
    }
    return lookup.result.response;
}

void opened_tier::wait_until_written() {
    const auto key = key_of(object_maker::url(last_put_));
    while (!tier_.may_hold(key)) {
        pause_briefly();
    }
}

void opened_tier::wait_until_ready() {
    while (tier_.figures().state == disk::tier_state::loading) {
        pause_briefly();
    }
}

std::uint64_t resident_bytes() {
    std::ifstream in{"/proc/self/statm"};
    std::uint64_t all = 0, resident = 0;
    in >> all >> resident;
    return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void sync_files(const std::string& directory) {
    for_each_file(directory, [](int fd) { (void)::fdatasync(fd); });
}

void forget_pages(const std::string& directory) {
    for_each_file(directory, [](int fd) {
        (void)::fdatasync(fd);
        (void)::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    });
}

}  // namespace reprise::tools
