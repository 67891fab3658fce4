// Everything at once, at random: clients that ask for whole objects, ranges, variants and heads,
// reload, leave and upload, while versions change with a purge or an unsafe request; with a disk
// that is slow or fails, and ends of the program in order and not.

#include "tests/judge/worlds.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/disk_faults.hpp"

#include <cerrno>

namespace reprise::tests::judge {

namespace {

using engine = std::mt19937_64;

std::uint64_t below(engine& dice, std::uint64_t limit) {
    return std::uniform_int_distribution<std::uint64_t>{0, limit - 1}(dice);
}

std::vector<std::string> many_paths(world& w, int count) {
    std::vector<std::string> out;
    for (int i = 0; i < count; ++i) {
        object one;
        one.size = w.one_in(10)  ? 500'000 + w.below(1'000'000)
                   : w.one_in(8) ? w.below(3)
                                 : 100 + w.below(80'000);
        one.framed = w.one_in(4)   ? framing::chunked
                     : w.one_in(5) ? framing::until_close
                                   : framing::length;
        one.validated = w.one_in(4)   ? validator::none
                        : w.one_in(5) ? validator::weak
                                      : validator::strong;
        const int lifetimes[] = {-1, 1, 2, 5, 60, 3600, 3600};
        one.lifetime = lifetimes[w.below(7)];
        one.while_revalidate = w.one_in(4) ? 3 : 0;
        one.ranges = !w.one_in(5);
        one.varies = w.one_in(6);
        one.cookie = w.one_in(8);
        out.push_back(w.fresh(one));
    }
    return out;
}

wish any_wish(engine& dice, const std::string& path, bool tls) {
    wish out{.path = path};
    const auto size = object::of(path).size;
    // Where nothing tells versions apart, a HEAD may bring a newer head to what is stored (RFC 9111
    // 4.3.5): then head and body cannot be held against each other.
    const bool told_apart = object::of(path).validated != validator::none;
    out.method = told_apart && below(dice, 12) == 0 ? "HEAD" : "GET";
    out.http10 = below(dice, 6) == 0;
    out.tls = tls && below(dice, 8) == 0;
    out.flavour = static_cast<char>('a' + below(dice, 3));
    out.reload = below(dice, 12) == 0;
    if (size > 10 && below(dice, 4) == 0) {
        const auto first = below(dice, size);
        out.range = "bytes=" + std::to_string(first) + "-" +
                    std::to_string(first + below(dice, size - first));
    }
    if (below(dice, 15) == 0) {
        out.leave_at = below(dice, size + 1);
    }
    return out;
}

void ask_at_random(world& w,
                   const std::vector<std::string>& paths,
                   std::uint64_t seed,
                   const std::atomic<bool>& stop,
                   bool tls,
                   const allowance& beyond) {
    engine dice{seed};
    asker kept{w.place()};
    while (!stop) {
        const auto& path = paths[below(dice, paths.size())];
        if (below(dice, 60) == 0) {
            const auto body = below(dice, 2) == 0 ? 0 : 1 + below(dice, 100'000);
            (void)w.unsafe({.method = below(dice, 2) == 0 ? "POST" : "PUT",
                            .path = path,
                            .upload = body,
                            .upload_chunked = below(dice, 3) == 0},
                           beyond);
        } else if (below(dice, 60) == 0) {
            w.purge(path, beyond);
        } else {
            (void)w.get(kept, any_wish(dice, path, tls), beyond);
        }
    }
}

// So many clients for so long; then `end`, while they are still asking.
template <class End>
void round_of(world& w,
              const std::vector<std::string>& paths,
              milliseconds so_long,
              bool tls,
              const allowance& beyond,
              End&& end) {
    std::atomic<bool> stop{false};
    std::vector<std::jthread> clients;
    for (int i = 0; i < 6; ++i) {
        const auto seed = w.below(~std::uint64_t{0} - 1);
        clients.emplace_back([&, seed] { ask_at_random(w, paths, seed, stop, tls, beyond); });
    }
    std::this_thread::sleep_for(so_long);
    end();
    stop = true;
    clients.clear();
}

}  // namespace

void play_mixture(world& w) {
    const temp_dir files;
    const auto made = self_signed("IP:127.0.0.1");
    auto settings = w.settings();
    settings["memory"] = {{"size", "2MiB"}};
    settings["admission"] = w.one_in(2) ? json("always")
                                        : json{{"policy", "second-hit"}, {"probation", "100%"}};
    settings["listeners"].push_back({{"address", "127.0.0.1:0"},
                                     {"tls",
                                      {{"certificate", files.write("c.pem", made.certificate)},
                                       {"key", files.write("k.pem", made.key)}}}});
    w.start(settings);
    while (w.goes_on()) {
        const auto paths = many_paths(w, 40);
        round_of(w, paths, milliseconds{2'000}, true, {}, [] {});
    }
}

void play_disk(world& w) {
    disk_faults disk;
    while (w.goes_on()) {
        const temp_dir files;
        auto settings = with_disk(
            w.settings(), files, w.one_in(2) ? "admission" : "eviction", "64MiB");
        settings["memory"] = {{"size", "1MiB"}};
        if (w.one_in(2)) {
            settings["admission"] = {{"policy", "second-hit"}, {"probation", "100%"}};
        }
        const auto paths = many_paths(w, 60);
        // The shim stands in front of calls that a sanitizer's runtime wants to be first at.
        const auto environment = sanitized ? std::vector<std::string>{} : disk.environment();
        for (int life = 0; life < 3; ++life) {
            const auto begun = steady::now();
            w.start(settings, environment);
            allowance beyond;
            const auto trouble = sanitized ? 9 : w.below(6);
            if (trouble == 0) {
                disk.set().delay_ms = 200;
            } else if (trouble == 1) {
                disk.set().read_error = EIO;
                beyond.cut = true;  // a body whose rest can't be read
            } else if (trouble == 2) {
                disk.set().write_error = ENOSPC;
            }
            if (trouble <= 2) {
                beyond.statuses = {503, 504};  // to a purge that the journal can't take
            }
            const bool killed = w.one_in(2);
            const char* const told[] = {"slow disk", "EIO", "ENOSPC"};
            w.circumstances(std::string{trouble <= 2 ? told[trouble] : "well"} + ", life " +
                            std::to_string(life));
            round_of(w, paths, milliseconds{1'500}, false, beyond, [&] {
                disk.heal();
                killed ? w.kill() : w.stop();
            });
            if (killed) {
                w.forget_what_may_be_lost();
            } else if (trouble <= 2) {
                // What could not be written, were it that something is outdated.
                w.record.forget_since(begun);
                w.record.forget_kept();
            }
        }
    }
}

}  // namespace reprise::tests::judge
