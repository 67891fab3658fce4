// A store that many threads use at once: ThreadSanitizer sees it, which leaves out what only enumerates.

#include "proxy/cache/disk/tier.hpp"
#include "tests/unit/cache/disk/faulty_disk.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace reprise::proxy::cache::disk {

using namespace test;

TEST_SUITE("cache/disk/many_threads") {

    TEST_CASE("many threads at once put, look up, purge and read, and all of it is right") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, smallest_store};
        s.settings.write_queue = 128u << 10;
        s.open();
        std::atomic<unsigned> wrong{0};
        std::atomic<unsigned> hits{0};
        std::vector<std::jthread> threads;
        for (unsigned t = 0; t < 3; ++t) {
            threads.emplace_back([&, t] {
                std::mt19937_64 random{t};
                // Long enough that the writer, on whatever machine, has had its turns.
                for (unsigned i = 0; i < 600 || (hits < 50 && i < 1'000'000); ++i) {
                    const auto number = random() % 60;
                    const auto url = url_of(number);
                    const auto key = key_of(url);
                    const auto size = number % 10 == 0 ? 70'000 : 100 + 300 * number;
                    switch (random() % 32) {
                    case 0:
                        s.lately->note(key);
                        s->invalidate(key);
                        break;
                    case 1: s->expire(key, wall_now()); break;
                    case 2:
                        s.purges->ban_prefix(url, "", purge_mode::hard, wall_now());
                        s->keep_bans();
                        break;
                    case 3:
                    case 4:
                    case 5:
                    case 6:
                    case 7:
                    case 8:
                    case 9: (void)s.put(url, object(url, size)); break;
                    default: {
                        disk_lookup one{*s, key, url, {}};
                        while (!one.step({})) {
                            std::this_thread::yield();
                        }
                        const auto& got = one.result.response;
                        if (!got) {
                            break;
                        }
                        ++hits;
                        if (got->has_content()) {
                            wrong += bytes_of(*got->content()) == body_for(url, size) ? 0 : 1;
                            (void)s->freshen(key, url, *got, *got, s.mark(url));
                            if (random() % 8 == 0) {
                                (void)s->drop(key, *got);
                            }
                            break;
                        }
                        const auto reader = got->on_disk()->read_from(0, {});
                        std::string content;
                        std::vector<slice> pieces;
                        auto came = disk_body_reader::read_result::data;
                        while (content.size() < size &&
                               came != disk_body_reader::read_result::lost &&
                               came != disk_body_reader::read_result::refused) {
                            pieces.clear();
                            came = reader->next(size, 50'000, pieces);
                            for (const auto& piece : pieces) {
                                content.append(piece.view());
                            }
                        }
                        wrong += body_for(url, size).starts_with(content) ? 0 : 1;
                    }
                    }
                    (void)s->figures();
                }
            });
        }
        threads.clear();
        CHECK(wrong == 0);
        CHECK(hits > 20);
        CHECK(s->figures().damaged == 0);
    }
}

}  // namespace reprise::proxy::cache::disk
