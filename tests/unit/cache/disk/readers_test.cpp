// The threads that read: what a process that was stopped holds against them, and what becomes of an asker
// that there is no memory to wake.

#include "proxy/cache/disk/readers.hpp"
#include "tests/support/waiting.hpp"
#include "tests/unit/net/loop.hpp"
#include "tests/unit/net/memory_ends.hpp"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

TEST_SUITE("cache/disk/readers") {

    using namespace reprise::proxy::cache::disk;
    using reprise::tests::eventually;
    using reprise::tests::gate;

    namespace {

    constexpr std::chrono::milliseconds patience{1000};

    class gated_read final : public read_job {
    public:
        explicit gated_read(gate& behind) : read_job{{}}, behind_{behind} {}

    private:
        void run() noexcept override { (void)behind_.wait(); }
        gate& behind_;
    };

    namespace net = reprise::proxy::net;

    /// When it is read its thread has no memory, a few times.
    class starving_read final : public read_job {
    public:
        explicit starving_read(const net::wakeup& of) : read_job{of.handle()} {}

    private:
        void run() noexcept override { lack_.emplace(0, 3); }
        std::optional<net::memory_ends> lack_;
    };

    reprise::proxy::awaitable<void> wait_into(net::wakeup& event, std::optional<bool>& woken) {
        const bool signalled = co_await event.wait(net::late());
        woken = signalled;
    }

    struct two_way {
        std::array<int, 2> ends{};
        two_way() { REQUIRE(::pipe(ends.data()) == 0); }
        two_way(const two_way&) = delete;
        two_way& operator=(const two_way&) = delete;
        ~two_way() {
            ::close(ends[0]);
            ::close(ends[1]);
        }
        void say() const { (void)!::write(ends[1], "x", 1); }
        void hear() const {
            char heard = 0;
            (void)!::read(ends[0], &heard, 1);
        }
    };

    // Reads while its parent has it stopped; 0: that read is in time.
    int read_while_stopped(const two_way& to_parent, const two_way& to_child) {
        gate disk;
        reader_pool readers{{.threads = 1, .patience = patience}};
        const auto job = std::make_shared<gated_read>(disk);
        if (!readers.submit(job)) {
            return 1;
        }
        to_parent.say();
        to_child.hear();
        disk.open();
        (void)eventually([&] { return job->what() != read_job::stage::waiting; });
        return job->what() == read_job::stage::done ? 0 : 2;
    }

    }  // namespace

    TEST_CASE(
        "a process that was stopped for longer than its patience holds that against no disk") {
        const two_way to_parent, to_child;
        const auto child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            ::_exit(read_while_stopped(to_parent, to_child));
        }
        to_parent.hear();
        REQUIRE(::kill(child, SIGSTOP) == 0);
        int status = 0;
        REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
        REQUIRE(WIFSTOPPED(status));
        std::this_thread::sleep_for(patience * 5 / 4);  // how long it is gone is what this is about
        to_child.say();
        REQUIRE(::kill(child, SIGCONT) == 0);
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status));
        CHECK(WEXITSTATUS(status) == 0);
    }

    TEST_CASE("an asker that there is no memory to wake is woken when there is some") {
        net::test_loop loop;
        net::wakeup event{loop.timer};
        reader_pool readers{{.threads = 1, .patience = patience}};
        std::optional<bool> woken;
        loop.start(wait_into(event, woken));
        (void)loop.io.poll();  // it waits
        const auto job = std::make_shared<starving_read>(event);
        REQUIRE(readers.submit(job));
        loop.run_until([&] { return woken.has_value(); });
        CHECK(woken == true);
        CHECK(job->what() == read_job::stage::done);
    }

    TEST_CASE("a read that does not end is late, and no other is begun beside it") {
        gate disk;
        reader_pool readers{{.threads = 1, .patience = std::chrono::milliseconds{20}}};
        const auto stuck = std::make_shared<gated_read>(disk);
        REQUIRE(readers.submit(stuck));
        CHECK(eventually([&] { return stuck->what() == read_job::stage::late; }));
        CHECK(eventually([&] { return !readers.submit(std::make_shared<gated_read>(disk)); }));
        disk.open();
        CHECK(eventually([&] { return readers.submit(std::make_shared<gated_read>(disk)); }));
    }
}
