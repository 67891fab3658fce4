// What a hit costs in system calls, as strace counts them.

#include "tests/scenario/world.hpp"
#include "tests/support/tls_client.hpp"
#include "tests/support/traced.hpp"
#include "tests/support/under_test.hpp"

#include <fstream>

TEST_SUITE("scenario/system_calls") {

    using namespace reprise::tests;

    namespace {

    /// The calls of the program's event loop while `hits` were answered on one connection, and
    /// what else it does in its life.
    std::size_t calls_of(bool tls, unsigned hits) {
        static const test_authority authority;
        const temp_dir files;
        auto settings = storing_settings();
        settings["threads"] = 1;
        settings["log"]["access"] = "off";
        if (tls) {
            const auto made = authority.issue("IP:127.0.0.1");
            settings["listeners"][0]["tls"] = {
                {"certificate", files.write("certificate.pem", made.certificate)},
                {"key", files.write("key.pem", made.key)}};
        }
        fake_origin origin;
        origin.on("/a", ok("Cache-Control: max-age=600\r\n", std::string(1'000, 'a')));
        const auto log = files.file("calls");
        std::set<pid_t> loop;
        {
            start_options how;
            how.run_by = {
                "strace", "--follow-forks", "--quiet=all", "--string-limit=0", "--output=" + log};
            proxy_process proxy{settings, how};
            loop = threads_named(proxy.pid(), "worker");
            const auto request = absolute_request("GET", origin.url("/a"));
            const auto ask = [&](auto& by) {
                for (unsigned i = 0; i <= hits; ++i) {
                    REQUIRE(by.ask(request).status == 200);
                }
            };
            if (tls) {
                tls_peer::wishes wanted;
                wanted.trusted = authority.certificate();
                tls_client client{proxy.port(), wanted};
                ask(client);
            } else {
                auto client = proxy.connect();
                ask(client);
            }
        }
        REQUIRE(loop.size() == 1);
        std::size_t calls = 0;
        std::ifstream in{log};
        for (std::string line; std::getline(in, line);) {
            calls += std::atol(line.c_str()) == *loop.begin() &&
                     line.find(" resumed>") == std::string::npos;
        }
        return calls;
    }

    }  // namespace

    TEST_CASE("a hit takes four system calls, with TLS too") {
        if (sanitized || !can_strace()) {
            MESSAGE("skipped: strace is not installed or may not trace here");
            return;
        }
        constexpr unsigned more = 1'000;
        for (const bool tls : {false, true}) {
            CAPTURE(tls);
            const auto few = calls_of(tls, 10);
            const auto many = calls_of(tls, 10 + more);
            CHECK(many > few + 2 * more);  // it was traced
            // What the program does beside it, each second, is not a hit's.
            CHECK(many - few < 4 * more + more / 10);
        }
    }
}
