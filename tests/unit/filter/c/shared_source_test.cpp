// A source that several processes are at, each by a handle of its own over memory that all have mapped.

#include "filter/c/source_region.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/filter/c/sources.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <pthread.h>
#include <reprise/digest.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace reprise::filter::c::test {

namespace {

/// Memory that processes share, which each maps where it likes.
class shared_file {
public:
    shared_file() : file_{::memfd_create("source", 0)} { REQUIRE(file_ >= 0); }
    shared_file(const shared_file&) = delete;
    shared_file& operator=(const shared_file&) = delete;
    ~shared_file() {
        for (auto* const each : maps_) {
            ::munmap(each, bytes_);
        }
        ::close(file_);
    }
    /// One more view of it.
    [[nodiscard]] void* map() {
        auto* const at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
        if (at == MAP_FAILED) {
            return nullptr;
        }
        maps_.push_back(at);
        return at;
    }
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] std::size_t given() const noexcept { return given_; }

    void lend_to(reprise_source_options& options) {
        options.memory_context = this;
        options.memory_take = [](void* context, std::size_t bytes, std::size_t) -> void* {
            auto& self = *static_cast<shared_file*>(context);
            self.bytes_ = bytes;
            return ::ftruncate(self.file_, static_cast<off_t>(bytes)) == 0 ? self.map() : nullptr;
        };
        options.memory_give = [](void* context, void*, std::size_t) {
            ++static_cast<shared_file*>(context)->given_;
        };
    }
    [[nodiscard]] source_ptr opened(reprise_source_options options) {
        lend_to(options);
        return source_of(options);
    }
    [[nodiscard]] source_ptr attached() {
        reprise_source* made = nullptr;
        reprise_error error = REPRISE_ERROR_INIT;
        const auto code = reprise_source_attach(map(), bytes_, &made, &error);
        REQUIRE_MESSAGE(code == REPRISE_OK, error.text);
        return source_ptr{made};
    }
    [[nodiscard]] source_region& region() { return *static_cast<source_region*>(maps_.front()); }

private:
    int file_;
    std::size_t bytes_ = 0, given_ = 0;
    std::vector<void*> maps_;
};

/// A process that does this, and whether it did: nothing of it goes through doctest.
pid_t process(const std::function<bool()>& work) {
    const auto id = ::fork();
    if (id == 0) {
        ::_exit(work() ? 0 : 1);
    }
    REQUIRE(id > 0);
    return id;
}
int status_of(pid_t id) {
    int status = -1;
    while (::waitpid(id, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

reprise_source* attach_in_child(shared_file& memory) {
    reprise_source* made = nullptr;
    (void)reprise_source_attach(memory.map(), memory.bytes(), &made, nullptr);
    return made;
}

reprise_key plain_key(const reprise_source* source, std::uint64_t i) {
    const auto text = "http://host/" + std::to_string(i);
    return reprise_source_key(source, text.data(), text.size());
}

int told_news(const source_ptr& source, reprise_sibling held, std::string& wire) {
    wire.clear();
    const auto append = [](void* context, const void* piece, std::size_t bytes) {
        static_cast<std::string*>(context)->append(static_cast<const char*>(piece), bytes);
        return 0;
    };
    return reprise_source_news(source.get(), held.epoch, held.counter, append, &wire, nullptr);
}

reprise_source_options with_news(reprise_source_options options, std::uint64_t news) {
    options.news = news;
    return options;
}

/// Whole bits of what both have, whatever their generations.
void check_equal_bits(const siblings_ptr& siblings, const source_ptr& source) {
    const auto reader = reader_of(siblings);
    const auto fresh = siblings_of(siblings_options());
    const auto anew = reader_of(fresh);
    REQUIRE(take(fresh, 0, served(source)) == REPRISE_OK);
    CHECK(read_of(fresh, 0).keys == read_of(siblings, 0).keys);
    std::uint64_t differ = 0;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
        const auto key = key_of(source, i);
        const auto named = reprise_siblings_ask(reader.get(), key) ^
                           reprise_siblings_ask(anew.get(), key);
        differ += named & 1;
    }
    CHECK(differ == 0);
}

}  // namespace

TEST_SUITE("filter/c/shared_source") {
    TEST_CASE("two processes store, a third publishes, and its digest has all") {
        for (const auto& options : {counting_options(), ring_options(2'000'000)}) {
            CAPTURE(options.kind);
            shared_file memory;
            const auto source = memory.opened(options);
            std::vector<pid_t> stores;
            for (std::uint64_t which = 0; which < 2; ++which) {
                stores.push_back(process([&] {
                    auto* const mine = attach_in_child(memory);
                    for (auto i = which * 1'000; mine != nullptr && i < (which + 1) * 1'000; ++i) {
                        reprise_source_came(mine, plain_key(mine, i), 1'000);
                    }
                    reprise_source_close(mine);
                    return mine != nullptr;
                }));
            }
            for (unsigned i = 0; i < 50; ++i) {
                const auto code = reprise_source_publish(source.get(), nullptr);
                CHECK((code == REPRISE_OK || code == REPRISE_UNCHANGED));
            }
            CHECK(status_of(stores[0]) == 0);
            CHECK(status_of(stores[1]) == 0);
            (void)reprise_source_publish(source.get(), nullptr);
            const auto siblings = siblings_of(siblings_options());
            const auto reader = reader_of(siblings);
            follow(siblings, 0, source);
            CHECK(count_named(reader, source, 0, 0, 2'000) == 2'000);
            if (options.kind == REPRISE_COUNTING) {
                CHECK(read_of(siblings, 0).keys == 2'000);
                // What one process stored another may tell has left.
                for (std::uint64_t i = 0; i < 2'000; ++i) {
                    CHECK(reprise_source_left(source.get(), key_of(source, i)) == REPRISE_OK);
                }
                CHECK(figures_of(source).places_on == 0);
            }
        }
    }

    TEST_CASE("whoever publishes, all serve one digest by one number") {
        shared_file memory;
        const auto opener = memory.opened(counting_options());
        const auto other = memory.attached();
        CHECK(key_of(opener, 7).low == key_of(other, 7).low);
        CHECK(served(opener) == served(other));
        came(opener, 0, 1'000, 0);
        REQUIRE(reprise_source_publish(other.get(), nullptr) == REPRISE_OK);
        CHECK(served(opener) == served(other));
        CHECK(reprise_source_publish(opener.get(), nullptr) == REPRISE_UNCHANGED);
        const auto siblings = siblings_of(siblings_options());
        const auto reader = reader_of(siblings);
        CHECK(follow(siblings, 0, opener) > 1'000);
        CHECK(follow(siblings, 0, other) == 0);
        came(other, 1'000, 1'010, 0);
        REQUIRE(reprise_source_publish(opener.get(), nullptr) == REPRISE_OK);
        // That one never made the digest before, and sends the whole; this one did.
        CHECK(follow(siblings, 0, opener) < 500);
        CHECK(follow(siblings, 0, other) == 0);
        CHECK(count_named(reader, opener, 0, 0, 1'010) == 1'010);
        CHECK(figures_of(other).counter == figures_of(opener).counter);
        CHECK(figures_of(other).memory == memory.bytes());
        CHECK(reprise_source_save(memory.attached().get(), nullptr, nullptr) ==
              REPRISE_BAD_ARGUMENT);
        CHECK(memory.given() == 0);
    }

    TEST_CASE("what a ring's process knows, another saves, and a third begins with") {
        const tests::temp_dir folder;
        const auto path = folder.file("ring");
        auto options = ring_options(2'000'000);
        {
            shared_file memory;
            const auto opener = memory.opened(options);
            came(opener, 0, 1'500, 1'000);
            REQUIRE(reprise_source_set_room(opener.get(), 3'000'000) == REPRISE_OK);
            CHECK(reprise_source_save(memory.attached().get(), path.c_str(), nullptr) ==
                  REPRISE_OK);
        }
        options.state = path.c_str();
        shared_file memory;
        const auto opener = memory.opened(options);
        const auto other = memory.attached();
        const auto siblings = siblings_of(siblings_options());
        const auto reader = reader_of(siblings);
        follow(siblings, 0, other);
        CHECK(count_named(reader, other, 0, 0, 1'500) == 1'500);
        CHECK(figures_of(other).room == 3'000'000);
    }

    TEST_CASE("who dies with the lock blocks nobody, and what it left half done is mended") {
        for (const auto& options :
             {with_news(counting_options(), 1'000), with_news(ring_options(2'000'000), 1'000)}) {
            CAPTURE(options.kind);
            shared_file memory;
            const auto source = memory.opened(options);
            const auto siblings = siblings_of(siblings_options());
            const auto reader = reader_of(siblings);
            came(source, 0, 1'000, 1'000);
            REQUIRE(reprise_source_publish(source.get(), nullptr) == REPRISE_OK);
            follow(siblings, 0, source);
            const auto before = figures_of(source);
            const auto one = process([&] {
                auto& region = memory.region();
                if (pthread_mutex_lock(&region.guard) != 0) {
                    return false;
                }
                // As it may be in the middle of a publish, of a key, and of keeping what it counted.
                region.told.on += 12'345;
                region.told.changed = UINT64_MAX - 3;
                region.told.sum ^= 0xffff;
                const auto now = region.bits(), published = region.published_bits();
                for (std::size_t i = 0; i < now.size() / 2; ++i) {
                    published[i] = ~now[i];
                    now[i] = i % 2 != 0 ? 0 : now[i];
                }
                return true;
            });
            REQUIRE(status_of(one) == 0);
            came(source, 1'000, 1'001, 1'000);
            const auto after = figures_of(source);
            CHECK(after.counter > before.counter);
            CHECK(after.places_on >= before.places_on);
            CHECK(after.places_on < before.places_on + 10);
            std::string wire;
            CHECK(told_news(source, read_of(siblings, 0), wire) == REPRISE_ASK_WHOLE);
            (void)reprise_source_publish(source.get(), nullptr);
            follow(siblings, 0, source);
            CHECK(count_named(reader, source, 0, 0, 1'001) == 1'001);
            CHECK(count_named(reader, source, 0, 10'000, 20'000) < 150);
            // And goes on, news too.
            came(source, 1'001, 1'011, 1'000);
            REQUIRE(told_news(source, read_of(siblings, 0), wire) == REPRISE_OK);
            CHECK(take(siblings, 0, wire) == REPRISE_OK);
            CHECK(count_named(reader, source, 0, 0, 1'011) == 1'011);
        }
    }

    TEST_CASE("wherever processes are killed, nothing that others told is missing") {
        for (const auto& options :
             {with_news(counting_options(), 5'000), with_news(ring_options(500'000), 5'000)}) {
            CAPTURE(options.kind);
            shared_file memory;
            const auto source = memory.opened(options);
            const auto siblings = siblings_of(siblings_options());
            const auto reader = reader_of(siblings);
            for (unsigned round = 0; round < 12; ++round) {
                CAPTURE(round);
                const auto busy = process([&] {
                    auto* const mine = attach_in_child(memory);
                    for (std::uint64_t i = 0; mine != nullptr; ++i) {
                        reprise_source_came(mine, plain_key(mine, 5'000 + i % 500), 10);
                        if (i % 64 == round) {
                            (void)reprise_source_publish(mine, nullptr);
                        }
                        (void)reprise_source_left(mine, plain_key(mine, 5'000 + i % 500));
                    }
                    return false;
                });
                // A ring's bits stay as they are once it has had all of them; what is written goes on.
                const auto progress = [&] {
                    const auto now = figures_of(source);
                    return now.counter * 100 + now.generation * 500'000 + now.written;
                };
                for (const auto begin = progress(); progress() < begin + 300 + 100 * round;) {
                    std::this_thread::yield();
                }
                ::kill(busy, SIGKILL);
                CHECK(WIFSIGNALED(status_of(busy)));
                came(source, 0, 300, 1'000);
                (void)reprise_source_publish(source.get(), nullptr);
                follow(siblings, 0, source);
                CHECK(count_named(reader, source, 0, 0, 300) == 300);
                for (std::uint64_t i = 0; options.kind == REPRISE_COUNTING && i < 300; ++i) {
                    CHECK(reprise_source_left(source.get(), key_of(source, i)) == REPRISE_OK);
                }
            }
        }
    }

    TEST_CASE("memory with no open source of this release in it is refused, and why") {
        const auto refused = [](void* memory, std::size_t bytes, const char* why) {
            reprise_source* made = nullptr;
            reprise_error error = REPRISE_ERROR_INIT;
            CHECK(reprise_source_attach(memory, bytes, &made, &error) == REPRISE_REFUSED);
            CHECK(made == nullptr);
            CHECK_MESSAGE(std::strstr(error.text, why) != nullptr, error.text);
        };
        shared_file memory;
        (void)memory.opened(counting_options());
        auto& region = memory.region();
        auto* const first = reinterpret_cast<char*>(&region);
        refused(first + 8, memory.bytes() - 64, "boundary of 64");
        refused(first, 100, "too small for a source");
        refused(first, memory.bytes() - 1, "bytes, of which");
        const auto layout = region.layout.exchange(0);
        refused(first, memory.bytes(), "not open yet");
        region.layout = layout + 1;
        refused(first, memory.bytes(), "another release");
        region.layout = layout;
        ++region.itself;
        refused(first, memory.bytes(), "another release");
        --region.itself;
        for (const auto change : {+[](source_shape& shape) { shape.size.bits = 0; },
                                  +[](source_shape& shape) { shape.size.bits = UINT64_MAX; },
                                  +[](source_shape& shape) { shape.size.probes = 0; },
                                  +[](source_shape& shape) { shape.generations = 15; },
                                  +[](source_shape& shape) { shape.history = 17; },
                                  +[](source_shape& shape) { shape.news = UINT64_MAX / 8; },
                                  +[](source_shape& shape) { shape.size.bits /= 2; }}) {
            const auto kept = region.shape;
            change(region.shape);
            refused(first, memory.bytes(), "does not go with");
            region.shape = kept;
        }
        reprise_source* made = nullptr;
        CHECK(reprise_source_attach(nullptr, 100, &made, nullptr) == REPRISE_BAD_ARGUMENT);
        CHECK(reprise_source_attach(first, memory.bytes(), nullptr, nullptr) ==
              REPRISE_BAD_ARGUMENT);
        (void)memory.attached();
    }

    TEST_CASE("news lead from what a reader has to what is held, by the places that turned") {
        for (const auto& options :
             {with_news(counting_options(), 1'000), with_news(ring_options(2'000'000), 1'000)}) {
            CAPTURE(options.kind);
            shared_file memory;
            const auto source = memory.opened(options);
            const auto other = memory.attached();
            const auto siblings = siblings_of(siblings_options());
            came(source, 0, 1'500, 1'000);
            REQUIRE(reprise_source_publish(source.get(), nullptr) == REPRISE_OK);
            const auto whole = follow(siblings, 0, source);
            std::string wire;
            CHECK(told_news(source, read_of(siblings, 0), wire) == REPRISE_UNCHANGED);
            for (std::uint64_t round = 0; round < 20; ++round) {
                CAPTURE(round);
                came(
                    round % 2 != 0 ? source : other, 1'500 + round * 10, 1'510 + round * 10, 1'000);
                if (options.kind == REPRISE_COUNTING) {
                    for (auto i = round * 5; i < round * 5 + 5; ++i) {
                        CHECK(reprise_source_left(other.get(), key_of(source, i)) == REPRISE_OK);
                    }
                }
                // Whichever process tells them, with a publish between or none.
                if (round % 3 == 0) {
                    REQUIRE(reprise_source_publish(other.get(), nullptr) == REPRISE_OK);
                }
                if (round % 4 != 3) {
                    const auto& teller = round % 5 < 3 ? source : other;
                    REQUIRE(told_news(teller, read_of(siblings, 0), wire) == REPRISE_OK);
                    CHECK(wire.size() < 128 + 200);
                    CHECK(wire.size() < whole / 5);
                    CHECK(take(siblings, 0, wire) == REPRISE_OK);
                    CHECK(told_news(teller, read_of(siblings, 0), wire) == REPRISE_UNCHANGED);
                    CHECK(read_of(siblings, 0).counter == figures_of(source).counter);
                }
            }
            came(source, 9'000, 9'001, 1'000);
            REQUIRE(told_news(source, read_of(siblings, 0), wire) == REPRISE_OK);
            CHECK(take(siblings, 0, wire) == REPRISE_OK);
            CHECK(served(source, read_of(siblings, 0).epoch, read_of(siblings, 0).counter).empty());
            check_equal_bits(siblings, source);
            // What turned and turned back is news of nothing, which a reader takes as well.
            if (options.kind == REPRISE_COUNTING) {
                came(source, 30'000, 30'001, 0);
                CHECK(reprise_source_left(source.get(), key_of(source, 30'000)) == REPRISE_OK);
                REQUIRE(told_news(source, read_of(siblings, 0), wire) == REPRISE_OK);
                CHECK(wire.size() == 128);
                CHECK(take(siblings, 0, wire) == REPRISE_OK);
                check_equal_bits(siblings, source);
            }
        }
    }

    TEST_CASE(
        "what turned back since it was told as news is published, for whoever took the news") {
        const auto source = source_of(with_news(counting_options(), 1'000));
        const auto siblings = siblings_of(siblings_options());
        const auto reader = reader_of(siblings);
        came(source, 0, 500, 0);
        REQUIRE(reprise_source_publish(source.get(), nullptr) == REPRISE_OK);
        follow(siblings, 0, source);
        std::string wire;
        // Keys that come and leave again, and some that leave and come again.
        for (const bool comes_first : {true, false}) {
            CAPTURE(comes_first);
            const std::uint64_t first = comes_first ? 9'000 : 100;
            const auto turn = [&](bool comes) {
                if (comes) {
                    came(source, first, first + 10, 0);
                    return;
                }
                for (auto i = first; i < first + 10; ++i) {
                    CHECK(reprise_source_left(source.get(), key_of(source, i)) == REPRISE_OK);
                }
            };
            const auto named = [&] { return count_named(reader, source, 0, first, first + 10); };
            turn(comes_first);
            REQUIRE(told_news(source, read_of(siblings, 0), wire) == REPRISE_OK);
            CHECK(take(siblings, 0, wire) == REPRISE_OK);
            CHECK((named() == 10) == comes_first);
            turn(!comes_first);
            CHECK(figures_of(source).places_changed == 0);
            CHECK(reprise_source_publish(source.get(), nullptr) == REPRISE_OK);
            CHECK(follow(siblings, 0, source) > 0);
            CHECK((named() == 10) != comes_first);
            CHECK(read_of(siblings, 0).counter == figures_of(source).counter);
            check_equal_bits(siblings, source);
            CHECK(reprise_source_publish(source.get(), nullptr) == REPRISE_UNCHANGED);
            CHECK(follow(siblings, 0, source) == 0);
        }
    }

    TEST_CASE("news that leave what was published as it was are no reason to publish") {
        const auto source = source_of(with_news(counting_options(), 1'000));
        const auto siblings = siblings_of(siblings_options());
        came(source, 0, 500, 0);
        REQUIRE(reprise_source_publish(source.get(), nullptr) == REPRISE_OK);
        follow(siblings, 0, source);
        const auto came_and_left = [&] {
            came(source, 9'000, 9'010, 0);
            for (std::uint64_t i = 9'000; i < 9'010; ++i) {
                CHECK(reprise_source_left(source.get(), key_of(source, i)) == REPRISE_OK);
            }
        };
        came_and_left();
        std::string wire;
        REQUIRE(told_news(source, read_of(siblings, 0), wire) == REPRISE_OK);
        CHECK(take(siblings, 0, wire) == REPRISE_OK);
        CHECK(reprise_source_publish(source.get(), nullptr) == REPRISE_UNCHANGED);
        CHECK(follow(siblings, 0, source) == 0);
        // Nor is what turned since, and is again as it was told.
        came_and_left();
        CHECK(reprise_source_publish(source.get(), nullptr) == REPRISE_UNCHANGED);
        CHECK(follow(siblings, 0, source) == 0);
        // What news told, and is still so, is published once.
        came(source, 9'000, 9'001, 0);
        REQUIRE(told_news(source, read_of(siblings, 0), wire) == REPRISE_OK);
        CHECK(take(siblings, 0, wire) == REPRISE_OK);
        CHECK(reprise_source_publish(source.get(), nullptr) == REPRISE_OK);
        CHECK(reprise_source_publish(source.get(), nullptr) == REPRISE_UNCHANGED);
        follow(siblings, 0, source);
        check_equal_bits(siblings, source);
    }

    TEST_CASE("who is too far behind for news is to ask the whole, and is told so") {
        const auto source = source_of(with_news(counting_options(), 500));
        const auto siblings = siblings_of(siblings_options());
        std::string wire;
        CHECK(told_news(source, REPRISE_SIBLING_INIT, wire) == REPRISE_ASK_WHOLE);
        came(source, 0, 1'000, 0);
        REQUIRE(reprise_source_publish(source.get(), nullptr) == REPRISE_OK);
        follow(siblings, 0, source);
        auto stranger = read_of(siblings, 0);
        ++stranger.epoch;
        CHECK(told_news(source, stranger, wire) == REPRISE_ASK_WHOLE);
        auto ahead = read_of(siblings, 0);
        ++ahead.counter;
        CHECK(told_news(source, ahead, wire) == REPRISE_ASK_WHOLE);
        came(source, 1'000, 1'100, 0);
        CHECK(told_news(source, read_of(siblings, 0), wire) == REPRISE_OK);
        came(source, 1'100, 1'500, 0);  // more places than are remembered
        CHECK(told_news(source, read_of(siblings, 0), wire) == REPRISE_ASK_WHOLE);
        REQUIRE(reprise_source_publish(source.get(), nullptr) == REPRISE_OK);
        follow(siblings, 0, source);
        // As many pieces of news ago as are remembered, and one more.
        auto follower = read_of(siblings, 0);
        const auto behind = follower;
        for (unsigned i = 0; i < 255; ++i) {
            came(source, 1'500, 1'501, 0);
            (void)reprise_source_left(source.get(), key_of(source, 1'500));
            REQUIRE(told_news(source, follower, wire) == REPRISE_OK);
            ++follower.counter;
        }
        came(source, 1'500, 1'501, 0);
        CHECK(told_news(source, follower, wire) == REPRISE_OK);
        CHECK(told_news(source, behind, wire) == REPRISE_ASK_WHOLE);
        CHECK(told_news(source_of(counting_options()), behind, wire) == REPRISE_BAD_ARGUMENT);
        const auto stop = [](void*, const void*, std::size_t) { return 1; };
        came(source, 1'501, 1'502, 0);
        CHECK(reprise_source_news(
                  source.get(), follower.epoch, follower.counter, stop, nullptr, nullptr) ==
              REPRISE_STOPPED);
        CHECK(reprise_source_news(nullptr, 0, 0, stop, nullptr, nullptr) == REPRISE_BAD_ARGUMENT);
        auto options = with_news(counting_options(), (std::uint64_t{1} << 26) + 1);
        reprise_source* made = nullptr;
        reprise_error error = REPRISE_ERROR_INIT;
        CHECK(reprise_source_open(&options, &made, &error) == REPRISE_BAD_OPTION);
        CHECK_MESSAGE(std::strstr(error.text, "news is 67108865") != nullptr, error.text);
    }

    TEST_CASE("threads of two handles store, publish, send and tell at once") {
        shared_file memory;
        const auto opener = memory.opened(with_news(counting_options(), 4'000));
        const auto other = memory.attached();
        const auto siblings = siblings_of(siblings_options());
        came(opener, 0, 500, 0);
        (void)reprise_source_publish(opener.get(), nullptr);
        follow(siblings, 0, opener);
        std::atomic<unsigned> busy{4};
        std::vector<std::thread> threads;
        for (std::uint64_t which = 0; which < 4; ++which) {
            threads.emplace_back([&, which] {
                const auto& mine = which % 2 == 0 ? opener : other;
                for (unsigned round = 0; round < 20; ++round) {
                    const auto first = 1'000 + which * 100;
                    came(mine, first, first + 100, 0);
                    for (auto i = first; i < first + 100; ++i) {
                        (void)reprise_source_left(mine.get(), key_of(mine, i));
                    }
                }
                --busy;
            });
        }
        for (unsigned which = 0; which < 4; ++which) {
            threads.emplace_back([&, which] {
                const auto& mine = which % 2 == 0 ? opener : other;
                std::string wire;
                while (busy > 0) {
                    (void)reprise_source_publish(mine.get(), nullptr);
                    if (told_news(mine, read_of(siblings, which), wire) == REPRISE_OK) {
                        (void)take(siblings, which, wire);
                    } else {
                        follow(siblings, which, mine);
                    }
                    (void)figures_of(mine);
                }
            });
        }
        for (auto& each : threads) {
            each.join();
        }
        CHECK(reprise_source_publish(opener.get(), nullptr) >= 0);
        follow(siblings, 0, opener);
        CHECK(count_named(reader_of(siblings), opener, 0, 0, 500) == 500);
        check_equal_bits(siblings, other);
    }
}

}  // namespace reprise::filter::c::test
