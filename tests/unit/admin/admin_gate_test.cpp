#include "proxy/admin/admin_answers.hpp"
#include "proxy/admin/admin_gate.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

using namespace reprise;
using namespace reprise::proxy;
using namespace reprise::proxy::admin;
namespace asio = boost::asio;
namespace beast_http = boost::beast::http;
using beast_http::verb;

namespace {

const asio::ip::tcp::endpoint loopback{asio::ip::make_address("127.0.0.1"), 3180};

// A file that holds `text` for as long as it lives.
class text_file {
public:
    explicit text_file(std::string_view text) {
        char name[] = "/tmp/reprise-token-XXXXXX";
        const int fd = ::mkstemp(name);
        REQUIRE(fd >= 0);
        ::close(fd);
        path = name;
        std::ofstream{path} << text;
    }
    ~text_file() { std::filesystem::remove(path); }
    std::string path;
};

admin_answers some_answers(const config::admin_options& options = {}) {
    admin_answers answers;
    answers.set_gate(admin_gate{options});
    answers.add_route({verb::get, "/figures", false, "", [](const admin_request& request) {
                           return admin_response{.body = "?" + std::string{request.query}};
                       }});
    answers.add_route({verb::post, "/change", true, "", [](const admin_request& request) {
                           return admin_response{.body = "did " + std::string{request.body}};
                       }});
    answers.add_route({verb::get,
                       "/told",
                       false,
                       "",
                       [](const admin_request&) { return admin_response{.body = "told"}; },
                       true});
    answers.add_route({verb::get, "/broken", false, "", [](const admin_request&) -> admin_response {
                           throw std::runtime_error{"secret"};
                       }});
    return answers;
}

admin_http_request request_of(verb method, std::string_view target) {
    admin_http_request request{method, {target.data(), target.size()}, 11};
    request.set(beast_http::field::host, "localhost:3180");
    return request;
}

}  // namespace

TEST_SUITE("admin/admin_gate") {

    TEST_CASE("its own names are its address and the loopback names, at its port") {
        const admin_gate gate{{}};
        for (const auto* own : {"127.0.0.1:3180",
                                "localhost:3180",
                                "LocalHost:3180",
                                "[::1]:3180",
                                "[0:0:0:0:0:0:0:1]:3180"}) {
            CAPTURE(own);
            CHECK(gate.is_own_host(own, loopback));
        }
        for (const auto* other : {"",
                                  "localhost",
                                  "localhost:80",
                                  "evil.example:3180",
                                  "127.0.0.2:3180",
                                  "localhost:3180.evil.example",
                                  "localhost:3180:3180",
                                  "[::1",
                                  "[::1]3180",
                                  "user@localhost:3180",
                                  "localhost.:3180",
                                  ":3180",
                                  "[localhost:3180"}) {
            CAPTURE(other);
            CHECK_FALSE(gate.is_own_host(other, loopback));
        }
    }

    TEST_CASE("on another address that address is its own, mapped forms included") {
        const admin_gate gate{{}};
        const asio::ip::tcp::endpoint mapped{asio::ip::make_address("::ffff:192.0.2.7"), 80};
        CHECK(gate.is_own_host("192.0.2.7", mapped));
        CHECK(gate.is_own_host("192.0.2.7:80", mapped));
        CHECK_FALSE(gate.is_own_host("192.0.2.8", mapped));
        const asio::ip::tcp::endpoint six{asio::ip::make_address("2001:db8::1"), 3180};
        CHECK(gate.is_own_host("[2001:DB8:0::1]:3180", six));
    }

    TEST_CASE("admin.host_names adds names, with any port or the one named") {
        config::admin_options options;
        options.host_names = {"cache.example", "Other.example:8443"};
        const admin_gate gate{options};
        CHECK(gate.is_own_host("cache.example", loopback));
        CHECK(gate.is_own_host("CACHE.example:9999", loopback));
        CHECK(gate.is_own_host("other.example:8443", loopback));
        CHECK_FALSE(gate.is_own_host("other.example", loopback));
        CHECK_FALSE(gate.is_own_host("x.cache.example", loopback));
    }

    TEST_CASE("only our own pages and no page at all may send requests") {
        const admin_gate gate{{}};
        CHECK_FALSE(gate.is_cross_site("", "", loopback));
        CHECK_FALSE(gate.is_cross_site("", "none", loopback));
        CHECK_FALSE(gate.is_cross_site("http://localhost:3180", "same-origin", loopback));
        CHECK(gate.is_cross_site("http://localhost:8000", "", loopback));
        CHECK(gate.is_cross_site("http://evil.example", "", loopback));
        CHECK(gate.is_cross_site("null", "", loopback));
        CHECK(gate.is_cross_site("ftp://localhost:3180", "", loopback));
        CHECK(gate.is_cross_site("", "cross-site", loopback));
        CHECK(gate.is_cross_site("", "same-site", loopback));
        CHECK(gate.is_cross_site("http://localhost:3180", "cross-site", loopback));
    }

    TEST_CASE("a token is compared whole") {
        const text_file file{"s3cret token\n"};
        config::admin_options options;
        options.token_file = file.path;
        const admin_gate gate{options};
        using verdict = admin_gate::token_verdict;
        CHECK(gate.token_problem().empty());
        CHECK(gate.check_token("Bearer s3cret token") == verdict::right);
        CHECK(gate.check_token("bearer   s3cret token ") == verdict::right);
        for (const auto* wrong : {"",
                                  "Bearer",
                                  "Bearer ",
                                  "Bearer s3cret",
                                  "Bearer s3cret tokens",
                                  "Basic s3cret token",
                                  "s3cret token",
                                  "Bearer S3CRET TOKEN"}) {
            CAPTURE(wrong);
            CHECK(gate.check_token(wrong) == verdict::wrong);
        }
    }

    TEST_CASE("without a usable token nothing is right, and the reason names the setting") {
        const auto problem_of = [](const std::string& path) {
            config::admin_options options;
            options.token_file = path;
            const admin_gate gate{options};
            CHECK(gate.check_token("Bearer ") == admin_gate::token_verdict::none_set);
            CHECK(gate.check_token("Bearer x") == admin_gate::token_verdict::none_set);
            CHECK(gate.token_problem().find("admin.token_file") != std::string::npos);
            return gate.token_problem();
        };
        CHECK(problem_of("").find("no token is set") != std::string::npos);
        CHECK(problem_of("").find("Unix socket, which needs none") != std::string::npos);
        CHECK(problem_of("").find("admin.socket") != std::string::npos);
        CHECK(problem_of("/nonexistent/token").find("cannot be read") != std::string::npos);
        CHECK(problem_of("/tmp").find("is no regular file") != std::string::npos);
        const text_file empty{" \n"};
        CHECK(problem_of(empty.path).find("is empty") != std::string::npos);
        const text_file endless{std::string(5000, 'x')};
        CHECK(problem_of(endless.path).find("is larger than 4096 bytes") != std::string::npos);
    }

    TEST_CASE("answers carry what keeps them out of caches and other sites") {
        const auto response = some_answers().answer(request_of(verb::get, "/figures?a=b"),
                                                    {loopback});
        CHECK(response.result_int() == 200);
        CHECK(response.body() == "?a=b");
        CHECK(response["Cache-Control"] == "no-store");
        CHECK(response["X-Content-Type-Options"] == "nosniff");
        CHECK(response.count("Date") == 1);
    }

    TEST_CASE("another Host is 421, and two are 400") {
        auto request = request_of(verb::get, "/figures");
        request.set(beast_http::field::host, "evil.example:3180");
        CHECK(some_answers().answer(request, {loopback}).result_int() == 421);
        request.erase(beast_http::field::host);
        CHECK(some_answers().answer(request, {loopback}).result_int() == 421);
        request.insert(beast_http::field::host, "localhost:3180");
        request.insert(beast_http::field::host, "localhost:3180");
        CHECK(some_answers().answer(request, {loopback}).result_int() == 400);
    }

    TEST_CASE("an absolute target's authority takes the place of Host") {
        const auto status_of = [](std::string_view target) {
            return some_answers().answer(request_of(verb::get, target), {loopback}).result_int();
        };
        CHECK(status_of("http://127.0.0.1:3180/figures") == 200);
        CHECK(status_of("http://evil.example/figures") == 421);
        CHECK(status_of("http:///figures") == 400);
        CHECK(status_of("figures") == 400);
        CHECK(status_of("*") == 400);
        CHECK(status_of("http://127.0.0.1:3180?x") == 404);
    }

    TEST_CASE("a request that another site's page made is 403") {
        auto request = request_of(verb::get, "/figures");
        request.set("Sec-Fetch-Site", "cross-site");
        CHECK(some_answers().answer(request, {loopback}).result_int() == 403);
        request = request_of(verb::get, "/figures");
        request.set(beast_http::field::origin, "http://evil.example");
        CHECK(some_answers().answer(request, {loopback}).result_int() == 403);
    }

    TEST_CASE("unknown pages are 404, wrong methods 405 with the right ones") {
        CHECK(some_answers().answer(request_of(verb::get, "/other"), {loopback}).result_int() ==
              404);
        const auto put = some_answers().answer(request_of(verb::put, "/figures"), {loopback});
        CHECK(put.result_int() == 405);
        CHECK(put["Allow"] == "GET, HEAD");
        const auto get = some_answers().answer(request_of(verb::get, "/change"), {loopback});
        CHECK(get.result_int() == 405);
        CHECK(get["Allow"] == "POST");
        CHECK(some_answers().answer(request_of(verb::head, "/figures"), {loopback}).result_int() ==
              200);
    }

    TEST_CASE("what changes something wants the token") {
        const text_file file{"t0ken"};
        config::admin_options options;
        options.token_file = file.path;
        auto request = request_of(verb::post, "/change");
        request.body() = "it";
        CHECK(some_answers().answer(request, {loopback}).result_int() == 403);  // none is set
        const auto refused = some_answers(options).answer(request, {loopback});
        CHECK(refused.result_int() == 401);
        CHECK(refused.count("WWW-Authenticate") == 1);
        request.set(beast_http::field::authorization, "Bearer t0ken");
        CHECK(some_answers(options).answer(request, {loopback}).body() == "did it");
    }

    TEST_CASE("what tells of single URLs wants the token from anywhere but loopback") {
        const text_file file{"t0ken"};
        config::admin_options options;
        options.token_file = file.path;
        auto request = request_of(verb::get, "/told");
        const auto answers = some_answers(options);
        CHECK(answers.answer(request, {loopback, true}).body() == "told");
        CHECK(answers.answer(request, {loopback, false}).result_int() == 401);
        CHECK(some_answers().answer(request, {loopback, false}).result_int() == 403);
        request.set(beast_http::field::authorization, "Bearer t0ken");
        CHECK(answers.answer(request, {loopback, false}).body() == "told");
    }

    TEST_CASE("who comes by the socket needs neither our name nor the token") {
        const arrival by_socket{{}, true, true};
        auto request = request_of(verb::post, "/change");
        request.set(beast_http::field::host, "elsewhere.example");
        request.body() = "it";
        CHECK(some_answers().answer(request, by_socket).body() == "did it");
        CHECK(some_answers().answer(request_of(verb::get, "/told"), by_socket).body() == "told");
        CHECK(some_answers().answer(request_of(verb::get, "/x"), by_socket).result_int() == 404);
    }

    TEST_CASE("a route that needs a token cannot be a GET") {
        admin_answers answers;
        CHECK_THROWS_AS(answers.add_route({verb::get, "/change", true, "", {}}),
                        std::invalid_argument);
    }

    TEST_CASE("a handler that throws is a 500 that says nothing of why") {
        const auto response = some_answers().answer(request_of(verb::get, "/broken"), {loopback});
        CHECK(response.result_int() == 500);
        CHECK(response.body().find("secret") == std::string::npos);
    }

}  // TEST_SUITE
