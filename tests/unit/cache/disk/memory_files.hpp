#pragma once
// A file system in memory that can be cut off from power, and that fails when it is told to.
//
// Every write since a file's last sync is kept apart. cut() gives what a disk might have after the
// power went: of each file what was synced and any part of the rest, in any order, whole, torn at
// sectors or not at all; of names made, renamed or removed since their directory was synced, any.
//
// A hook sees every operation before it happens, and may fail it or hold it up. It may also let memory end for the
// thread that is in it (memory_ends): what this itself then lacks memory for fails as files.hpp says.

#include "proxy/cache/disk/files.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::proxy::cache::disk::test {

enum class operation { open, read, read_cached, write, sync, reserve, list, rename, remove, other };

class memory_files final : public filesystem, public std::enable_shared_from_this<memory_files> {
public:
    /// A failure to be given instead of doing it; none: go on.
    using hook = std::function<error_code(operation, std::string_view path)>;

    void set_hook(hook next) {
        const std::lock_guard lock{guard_};
        hook_ = std::move(next);
    }
    /// Whatever operation `condition` says yes to fails, `how`.
    template <class Condition>
    void fail_when(Condition condition,
                   boost::system::errc::errc_t how = boost::system::errc::io_error) {
        set_hook([condition, how](operation what, std::string_view path) {
            return condition(what, path) ? boost::system::errc::make_error_code(how) : error_code{};
        });
    }
    /// Reads and writes do less than they are asked.
    void set_short_transfers(bool wanted) {
        const std::lock_guard lock{guard_};
        short_ = wanted;
    }
    /// Nothing is in the page cache.
    void set_cold(bool cold) {
        const std::lock_guard lock{guard_};
        cold_ = cold;
    }

    /// What is there after the power went now.
    [[nodiscard]] std::shared_ptr<memory_files> cut(std::uint64_t seed) const {
        std::mt19937_64 random{seed};
        auto after = std::make_shared<memory_files>();
        const std::lock_guard lock{guard_};
        // A name that differs from what was synced is there as it was or as it is.
        for (const auto& [path, one] : names_) {
            const auto before = synced_names_.find(path);
            const bool changed = before == synced_names_.end() || before->second != one;
            if (!changed || random() % 2 == 0) {
                after->names_[path] = one->cut(random);
            } else if (before != synced_names_.end()) {
                after->names_[path] = before->second->cut(random);
            }
        }
        for (const auto& [path, one] : synced_names_) {
            if (!names_.contains(path) && random() % 2 == 0) {
                after->names_[path] = one->cut(random);
            }
        }
        after->synced_names_ = after->names_;
        return after;
    }
    /// What is there after the process was killed: everything.
    [[nodiscard]] std::shared_ptr<memory_files> after_kill() const {
        auto after = std::make_shared<memory_files>();
        const std::lock_guard lock{guard_};
        for (const auto& [path, one] : names_) {
            auto copy = std::make_shared<node>();
            copy->now = one->now;
            copy->synced = one->synced;
            copy->writes = one->writes;
            after->names_[path] = std::move(copy);
        }
        after->synced_names_ = after->names_;
        return after;
    }

    [[nodiscard]] std::string contents(const std::string& path) const {
        const std::lock_guard lock{guard_};
        const auto it = names_.find(path);
        return it == names_.end() ? std::string{} : it->second->now;
    }
    /// Overwrites bytes behind everybody's back.
    void damage(const std::string& path, std::uint64_t at, std::string_view bytes) {
        const std::lock_guard lock{guard_};
        names_.at(path)->now.replace(at, bytes.size(), bytes);
    }
    /// Bytes of all files.
    [[nodiscard]] std::uint64_t taken() const {
        const std::lock_guard lock{guard_};
        std::uint64_t sum = 0;
        for (const auto& one : names_) {
            sum += one.second->now.size();
        }
        return sum;
    }
    [[nodiscard]] std::vector<std::string> paths() const {
        const std::lock_guard lock{guard_};
        std::vector<std::string> out;
        for (const auto& one : names_) {
            out.push_back(one.first);
        }
        return out;
    }

    boost::system::result<std::shared_ptr<file>> open(const std::string& path,
                                                      open_mode mode) override {
        if (const auto failed = before(operation::open, path)) {
            return failed;
        }
        const std::lock_guard lock{guard_};
        auto it = names_.find(path);
        if (it == names_.end()) {
            if (mode != open_mode::make) {
                return error(boost::system::errc::no_such_file_or_directory);
            }
            it = names_.emplace(path, std::make_shared<node>()).first;
        }
        return std::shared_ptr<file>{
            std::make_shared<opened>(path, it->second, shared_from_this(), mode)};
    }
    error_code make_directory(const std::string& path) override {
        return before(operation::other, path);
    }
    boost::system::result<std::vector<std::string>> list(const std::string& path) override {
        if (const auto failed = before(operation::list, path)) {
            return failed;
        }
        const std::lock_guard lock{guard_};
        std::vector<std::string> out;
        for (const auto& one : names_) {
            if (one.first.starts_with(path + "/")) {
                out.push_back(one.first.substr(path.size() + 1));
            }
        }
        return out;
    }
    error_code rename(const std::string& from, const std::string& to) noexcept override {
        return with_memory([&]() -> error_code {
            if (const auto failed = before(operation::rename, from)) {
                return failed;
            }
            const std::lock_guard lock{guard_};
            const auto it = names_.find(from);
            if (it == names_.end()) {
                return error(boost::system::errc::no_such_file_or_directory);
            }
            names_[to] = it->second;
            names_.erase(it);
            return {};
        });
    }
    error_code remove(const std::string& path) noexcept override {
        return with_memory([&]() -> error_code {
            if (const auto failed = before(operation::remove, path)) {
                return failed;
            }
            const std::lock_guard lock{guard_};
            names_.erase(path);
            return {};
        });
    }
    error_code sync_directory(const std::string& path) noexcept override {
        return with_memory([&]() -> error_code {
            if (const auto failed = before(operation::sync, path)) {
                return failed;
            }
            const std::lock_guard lock{guard_};
            auto names = names_;
            synced_names_.swap(names);
            return {};
        });
    }

private:
    struct write {
        std::uint64_t at = 0;
        std::string bytes;
    };
    struct node {
        std::string now;
        std::string synced;
        std::vector<write> writes;  // since then
        bool locked = false;
        unsigned shared = 0;  // locks of the other kind

        [[nodiscard]] std::shared_ptr<node> cut(std::mt19937_64& random) const {
            auto after = std::make_shared<node>();
            after->now = synced;
            for (const auto& one : writes) {
                constexpr std::size_t sector = 512;
                const auto fate = random() % 3;
                for (std::size_t begin = 0; begin < one.bytes.size();) {
                    const auto end = std::min<std::size_t>(
                        one.bytes.size(), (one.at + begin) / sector * sector + sector - one.at);
                    if (fate == 0 || (fate == 1 && random() % 4 != 0)) {
                        put(after->now, one.at + begin, {one.bytes.data() + begin, end - begin});
                    }
                    begin = end;
                }
            }
            if (random() % 2 == 0 && after->now.size() < now.size()) {
                after->now.resize(now.size());
            }
            after->synced = after->now;
            return after;
        }
        static void put(std::string& into, std::uint64_t at, std::string_view bytes) {
            if (into.size() < at + bytes.size()) {
                into.resize(at + bytes.size());
            }
            std::memcpy(into.data() + at, bytes.data(), bytes.size());
        }
    };

    class opened final : public file {
    public:
        opened(std::string path,
               std::shared_ptr<node> of,
               std::shared_ptr<memory_files> in,
               open_mode mode)
            : path_{std::move(path)},
              node_{std::move(of)},
              files_{std::move(in)},
              mode_{mode} {}
        ~opened() override {
            if (locks_) {
                const std::lock_guard lock{files_->guard_};
                node_->locked = false;
            }
            if (shares_) {
                const std::lock_guard lock{files_->guard_};
                --node_->shared;
            }
        }

        boost::system::result<std::size_t> read_some(std::uint64_t at,
                                                     std::span<std::byte> into) noexcept override {
            return read(operation::read, at, {&into, 1});
        }
        boost::system::result<std::size_t> read_cached(
            std::uint64_t at, std::span<std::byte> into) noexcept override {
            return read(operation::read_cached, at, {&into, 1});
        }
        boost::system::result<std::size_t> scatter_some(std::uint64_t at,
                                                        places into) noexcept override {
            return read(operation::read, at, into);
        }
        boost::system::result<std::size_t> scatter_cached(std::uint64_t at,
                                                          places into) noexcept override {
            return read(operation::read_cached, at, into);
        }
        boost::system::result<std::size_t> write_some(
            std::uint64_t at, std::span<const std::byte> bytes) noexcept override {
            return with_memory([&]() -> boost::system::result<std::size_t> {
                if (const auto failed = files_->before(operation::write, path_)) {
                    return failed;
                }
                if (mode_ == open_mode::read) {
                    return error(boost::system::errc::bad_file_descriptor);
                }
                const std::lock_guard lock{files_->guard_};
                auto size = bytes.size();
                if (files_->short_ && size > 1) {
                    size = 1 + size / 3;
                }
                std::string copy{reinterpret_cast<const char*>(bytes.data()), size};
                node_->writes.push_back({at, std::move(copy)});
                node::put(node_->now, at, {reinterpret_cast<const char*>(bytes.data()), size});
                files_->written_.fetch_add(size);
                return size;
            });
        }
        error_code sync() noexcept override {
            return with_memory([&]() -> error_code {
                if (const auto failed = files_->before(operation::sync, path_)) {
                    return failed;
                }
                const std::lock_guard lock{files_->guard_};
                node_->synced = node_->now;
                node_->writes.clear();
                return {};
            });
        }
        void write_out(std::uint64_t, std::uint64_t) noexcept override {}
        error_code reserve(std::uint64_t size) noexcept override {
            return with_memory([&]() -> error_code {
                if (const auto failed = files_->before(operation::reserve, path_)) {
                    return failed;
                }
                return resize(size);
            });
        }
        error_code resize(std::uint64_t size) noexcept override {
            return with_memory([&]() -> error_code {
                const std::lock_guard lock{files_->guard_};
                node_->now.resize(size);
                node_->synced.resize(std::min<std::size_t>(node_->synced.size(), size));
                return {};
            });
        }
        boost::system::result<std::uint64_t> size() noexcept override {
            const std::lock_guard lock{files_->guard_};
            return std::uint64_t{node_->now.size()};
        }
        error_code try_lock() noexcept override {
            const std::lock_guard lock{files_->guard_};
            if ((node_->locked && !locks_) || node_->shared > (shares_ ? 1u : 0u)) {
                return error(boost::system::errc::operation_would_block);
            }
            node_->locked = locks_ = true;
            return {};
        }
        error_code try_lock_shared() noexcept override {
            const std::lock_guard lock{files_->guard_};
            if (node_->locked && !locks_) {
                return error(boost::system::errc::operation_would_block);
            }
            node_->shared += shares_ ? 0 : 1;
            shares_ = true;
            return {};
        }

    private:
        boost::system::result<std::size_t> read(operation how,
                                                std::uint64_t at,
                                                places into) noexcept {
            return with_memory([&]() -> boost::system::result<std::size_t> {
                if (const auto failed = files_->before(how, path_)) {
                    return failed;
                }
                if (how == operation::read_cached && files_->is_cold()) {
                    return error(boost::system::errc::resource_unavailable_try_again);
                }
                const std::lock_guard lock{files_->guard_};
                std::size_t wanted = 0;
                for (const auto& place : into) {
                    wanted += place.size();
                }
                if (files_->short_ && wanted > 1) {
                    wanted = 1 + wanted / 3;
                }
                const auto there = node_->now.size() -
                                   std::min<std::uint64_t>(at, node_->now.size());
                const auto size = std::min<std::size_t>(wanted, there);
                std::size_t done = 0;
                for (const auto& place : into) {
                    const auto some = std::min(place.size(), size - done);
                    if (some != 0) {
                        std::memcpy(place.data(), node_->now.data() + at + done, some);
                    }
                    done += some;
                }
                return size;
            });
        }

        const std::string path_;
        const std::shared_ptr<node> node_;
        const std::shared_ptr<memory_files> files_;
        const open_mode mode_;
        bool locks_ = false, shares_ = false;
    };

    // As the system's own files say it, whose codes are of its category.
    static error_code error(boost::system::errc::errc_t what) {
        return {what, boost::system::system_category()};
    }
    template <class Operation>
    static auto with_memory(const Operation& operation) noexcept -> decltype(operation()) {
        try {
            return operation();
        } catch (const std::bad_alloc&) {
            return error(boost::system::errc::not_enough_memory);
        }
    }
    error_code before(operation what, const std::string& path) {
        hook now;
        {
            const std::lock_guard lock{guard_};
            now = hook_;
        }
        const auto failed = now ? now(what, path) : error_code{};
        return failed.category() == boost::system::generic_category()
                   ? error(static_cast<boost::system::errc::errc_t>(failed.value()))
                   : failed;
    }
    bool is_cold() const {
        const std::lock_guard lock{guard_};
        return cold_;
    }

    mutable std::mutex guard_;
    hook hook_;
    bool short_ = false, cold_ = false;
    std::map<std::string, std::shared_ptr<node>> names_, synced_names_;
};

}  // namespace reprise::proxy::cache::disk::test
