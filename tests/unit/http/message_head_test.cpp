#include "proxy/http/message_head.hpp"

#include <boost/beast/http/verb.hpp>
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace reprise::proxy;
using namespace reprise::proxy::http;
using boost::beast::http::verb;

namespace {

struct request_case {
    std::string_view bytes;
    failure_code code;
    std::string_view why;
};

head_result read_request(std::string_view bytes, request_head& out, head_limits limits = {}) {
    return parse_request_head(bytes, out, limits);
}

// A response with this line among its fields.
head_result read_response_with(std::string_view line, response_head& out) {
    static std::string bytes;
    bytes = "HTTP/1.1 200 OK\r\nDate: x\r\n";
    bytes += line;
    bytes += "\r\n\r\n";
    return parse_response_head(bytes, out, {});
}

bool points_into(std::string_view part, std::string_view whole) {
    return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

}  // namespace

TEST_SUITE_BEGIN("http/message_head");

TEST_CASE("a request is read into views of its bytes") {
    const std::string bytes = "GET http://a.example/x?y=1 HTTP/1.1\r\n"
                              "Host: a.example\r\n"
                              "Accept:\t*/* \t\r\n"
                              "X-Empty:\r\n"
                              "X-Odd: tab\there, \xc3\xa9, \"q\"\r\n"
                              "\r\nBODY";
    request_head head;
    const auto result = read_request(bytes, head);
    REQUIRE(result.state == head_state::done);
    CHECK(head.method == verb::get);
    CHECK(head.method_text == "GET");
    CHECK(head.target == "http://a.example/x?y=1");
    CHECK(head.version == 11);
    CHECK(bytes.substr(head.bytes) == "BODY");
    REQUIRE(head.fields.size() == 4);
    CHECK(head.fields[0].id == field_id::host);
    CHECK(head.fields[1].value == "*/*");
    CHECK(head.fields[2].name == "X-Empty");
    CHECK(head.fields[2].value.empty());
    CHECK(head.fields[2].id == field_id::unknown);
    CHECK(head.fields[3].value == "tab\there, \xc3\xa9, \"q\"");
    for (const auto& line : head.fields) {
        CHECK(points_into(line.name, bytes));
        CHECK(points_into(line.value, bytes));
    }
}

TEST_CASE("a head without field lines is whole") {
    request_head head;
    CHECK(read_request("GET / HTTP/1.0\r\n\r\n", head).state == head_state::done);
    CHECK(head.fields.empty());
    CHECK(head.version == 10);
    CHECK(head.bytes == 18);
}

TEST_CASE("a status is three digits, from 100 to 599") {
    response_head head;
    for (const char* status : {"100", "199", "200", "599"}) {
        CAPTURE(status);
        const auto bytes = std::string{"HTTP/1.1 "} + status + " x\r\n\r\n";
        CHECK(parse_response_head(bytes, head, {}).state == head_state::done);
    }
    for (const char* status : {"000", "099", "600", "799", "999", "20", "2000", "2x0", "-20"}) {
        CAPTURE(status);
        const auto bytes = std::string{"HTTP/1.1 "} + status + " x\r\n\r\n";
        const auto result = parse_response_head(bytes, head, {});
        CHECK(result.state == head_state::bad);
        CHECK(result.code == failure_code::bad_response);
    }
}

TEST_CASE("a response is read, with and without a phrase") {
    response_head head;
    REQUIRE(parse_response_head("HTTP/1.1 404 Not \xe9 Found\r\nA: b\r\n\r\n", head, {}).state ==
            head_state::done);
    CHECK(head.status == 404);
    CHECK(head.reason == "Not \xe9 Found");
    CHECK(head.fields.size() == 1);
    REQUIRE(parse_response_head("HTTP/1.0 200\r\n\r\n", head, {}).state == head_state::done);
    CHECK(head.status == 200);
    CHECK(head.version == 10);
    CHECK(head.reason.empty());
    CHECK(head.fields.empty());
    REQUIRE(parse_response_head("HTTP/1.1 200 \r\n\r\n", head, {}).state == head_state::done);
    CHECK(head.reason.empty());
}

TEST_CASE("an object used again keeps its memory and forgets the last head") {
    request_head head;
    REQUIRE(read_request("GET / HTTP/1.1\r\na: 1\r\nb: 2\r\nc: 3\r\n\r\n", head).state ==
            head_state::done);
    const auto* const memory = head.fields.data();
    REQUIRE(read_request("GET / HTTP/1.1\r\nd: 4\r\n\r\n", head).state == head_state::done);
    CHECK(head.fields.size() == 1);
    CHECK(head.fields.data() == memory);
}

TEST_CASE("methods nobody knows are tokens like any other") {
    request_head head;
    REQUIRE(read_request("BREW! / HTTP/1.1\r\n\r\n", head).state == head_state::done);
    CHECK(head.method == verb::unknown);
    CHECK(head.method_text == "BREW!");
    REQUIRE(read_request("get / HTTP/1.1\r\n\r\n", head).state == head_state::done);
    CHECK(head.method == verb::unknown);  // methods are case-sensitive
}

TEST_CASE("of a method that a proxy acts upon another case is seen, of others it is their own") {
    const auto meant = [](const std::string& method) {
        const auto bytes = method + " / HTTP/1.1\r\n\r\n";
        request_head head;
        REQUIRE(read_request(bytes, head).state == head_state::done);
        return method_in_other_case(head);
    };
    CHECK(meant("get") == verb::get);
    CHECK(meant("Head") == verb::head);
    CHECK(meant("oPTIONS") == verb::options);
    CHECK(meant("tracE") == verb::trace);
    CHECK(meant("Connect") == verb::connect);
    CHECK(meant("purge") == verb::purge);
    for (const auto* plain : {"GET",
                              "HEAD",
                              "OPTIONS",
                              "TRACE",
                              "CONNECT",
                              "PURGE",
                              "POST",
                              "patch",
                              "ge",
                              "gets",
                              "X"}) {
        CAPTURE(plain);
        CHECK(meant(plain) == verb::unknown);
    }
}

TEST_CASE("a higher minor version is taken as 1.1") {
    request_head head;
    REQUIRE(read_request("GET / HTTP/1.7\r\n\r\n", head).state == head_state::done);
    CHECK(head.version == 11);
}

TEST_CASE("whatever browsers send in a target passes") {
    for (const std::string_view target :
         {"/a|b", "/[x]{y}", "/?q=\"1\"'<>`^\\", "/%zz%", "/\xc3\xa9\xff", "http://h/a?b|c[]"}) {
        CAPTURE(target);
        const std::string bytes = "GET " + std::string{target} + " HTTP/1.1\r\nHost: h\r\n\r\n";
        request_head head;
        REQUIRE(read_request(bytes, head).state == head_state::done);
        CHECK(head.target == target);
    }
}

TEST_CASE("every control character, space and DEL in a target is refused") {
    for (int c = 0; c <= 0x7f; c = c == 0x20 ? 0x7f : c + 1) {
        CAPTURE(c);
        std::string bytes = "GET /long-enough-for-a-word";
        bytes += static_cast<char>(c);
        bytes += "x HTTP/1.1\r\nHost: h\r\n\r\n";
        request_head head;
        const auto result = read_request(bytes, head);
        CHECK(result.state == head_state::bad);
        CHECK(result.code == failure_code::bad_request);
    }
}

TEST_CASE("every control character but HTAB in a field value is refused, wherever it stands") {
    for (int c = 0; c <= 0xff; ++c) {
        const bool good = c == '\t' || (c >= 0x20 && c != 0x7f);
        for (std::size_t at = 0; at <= 17; ++at) {
            CAPTURE(c);
            CAPTURE(at);
            std::string value(17, 'v');
            value.insert(at, 1, static_cast<char>(c));
            const std::string bytes = "GET / HTTP/1.1\r\nA: " + value + "\r\n\r\n";
            request_head head;
            CHECK((read_request(bytes, head).state == head_state::done) == good);
        }
    }
}

TEST_CASE("what can be read in two ways is refused, and told by its name") {
    const std::vector<request_case> cases{
        {"GET / HTTP/1.1\nHost: a\r\n\r\n", failure_code::bad_request, "LF without CR"},
        {"GET / HTTP/1.1\r\nHost: a\n\r\n", failure_code::bad_request, "LF without CR"},
        {"GET / HTTP/1.1\r\nHost: a\r\n\n", failure_code::bad_request, "LF without CR"},
        {"GET /\n", failure_code::bad_request, "LF without CR"},
        {"GET\n", failure_code::bad_request, "LF without CR"},
        {"\nGET / HTTP/1.1\r\n\r\n", failure_code::bad_request, "LF without CR"},
        {"GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", failure_code::bad_request, "CR without LF"},
        {"GET / HTTP/1.1\r\nA: b\r\n\rx", failure_code::bad_request, "CR without LF"},
        {"GET / HTTP/1.1\r\nA: b\r\r\n\r\n", failure_code::bad_request, "CR without LF"},
        {{"GET / HTTP/1.1\r\nA: b\0c\r\n\r\n", 27}, failure_code::bad_request, "NUL"},
        {{"GET / HTTP/1.1\r\nA\0: b\r\n\r\n", 26}, failure_code::bad_request, "NUL"},
        {"GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", failure_code::bad_request, "obs-fold"},
        {"GET / HTTP/1.1\r\nA: b\r\n\tc\r\n\r\n", failure_code::bad_request, "obs-fold"},
        {"GET / HTTP/1.1\r\n A: b\r\n\r\n", failure_code::bad_request, "first field line"},
        {"GET / HTTP/1.1\r\nA : b\r\n\r\n", failure_code::bad_request, "before its colon"},
        {"GET / HTTP/1.1\r\nA\t: b\r\n\r\n", failure_code::bad_request, "before its colon"},
        {"GET / HTTP/1.1\r\n: b\r\n\r\n", failure_code::bad_request, "without a name"},
        {"GET / HTTP/1.1\r\nA\r\n\r\n", failure_code::bad_request, "without a colon"},
        {"GET / HTTP/1.1\r\nA(: b\r\n\r\n", failure_code::bad_request, "field's name"},
        {"GET / HTTP/1.1\r\nA\xc3: b\r\n\r\n", failure_code::bad_request, "field's name"},
        {"GET /\r\n\r\n", failure_code::bad_request, "without an HTTP version"},
        {"GET\r\n\r\n", failure_code::bad_request, "without a target"},
        {" GET / HTTP/1.1\r\n\r\n", failure_code::bad_request, "white space"},
        {"GET\t/ HTTP/1.1\r\n\r\n", failure_code::bad_request, "white space"},
        {"GET  / HTTP/1.1\r\n\r\n", failure_code::bad_request, "two spaces"},
        {"GET /  HTTP/1.1\r\n\r\n", failure_code::bad_request, "HTTP version"},
        {"GET /a b HTTP/1.1\r\n\r\n", failure_code::bad_request, "HTTP version"},
        {"GET / HTTP/1.1 \r\n\r\n", failure_code::bad_request, "behind"},
        {"GET / HTTP/1.11\r\n\r\n", failure_code::bad_request, "behind"},
        {"GET / http/1.1\r\n\r\n", failure_code::bad_request, "version"},
        {"GET / HTTP/x.1\r\n\r\n", failure_code::bad_request, "version"},
        {"GET / HTTP/1,1\r\n\r\n", failure_code::bad_request, "version"},
        {"G(T / HTTP/1.1\r\n\r\n", failure_code::bad_request, "token"},
        {"\x16\x03\x01\x02", failure_code::bad_request, "token"},
        {"\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n\r\n", failure_code::bad_request, "four empty"},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", failure_code::unsupported_version, "version"},
        {"GET / HTTP/0.9\r\n\r\n", failure_code::unsupported_version, "version"},
        {"GET / HTTP/3.0\r\n\r\n", failure_code::unsupported_version, "version"},
    };
    for (const auto& one : cases) {
        CAPTURE(one.bytes);
        request_head head;
        const auto result = read_request(one.bytes, head);
        CAPTURE(result.why);
        REQUIRE(result.state == head_state::bad);
        CHECK(result.code == one.code);
        CHECK(std::string_view{result.why}.find(one.why) != std::string_view::npos);
    }
}

TEST_CASE("a response is held to the same grammar, as the origin's fault") {
    response_head head;
    for (const std::string_view line :
         {"A : b", "A: b\r\n c", ": b", "A", "A: b\rc", "A: b\nc", "A: \x01"}) {
        CAPTURE(line);
        const auto result = read_response_with(line, head);
        CHECK(result.state == head_state::bad);
        CHECK(result.code == failure_code::bad_response);
    }
    for (const std::string_view bytes : {"HTTP/1.1 20 OK\r\n\r\n",
                                         "HTTP/1.1 2000 OK\r\n\r\n",
                                         "HTTP/1.1  200 OK\r\n\r\n",
                                         "HTTP/1.1 099 OK\r\n\r\n",
                                         "HTTP/1.1\r\n\r\n",
                                         "HTTP/1.1 2\r\n\r\n",
                                         "HTTP/2.0 200 OK\r\n\r\n",
                                         "ICY 200 OK\r\n\r\n",
                                         "<html>",
                                         "\r\nHTTP/1.1 200 OK\r\n\r\n",
                                         "HTTP/1.1 200 OK\nA: b\r\n\r\n"}) {
        CAPTURE(bytes);
        const auto result = parse_response_head(bytes, head, {});
        CHECK(result.state == head_state::bad);
        CHECK(result.code == failure_code::bad_response);
    }
}

TEST_CASE("an interim response that frames a body is refused") {
    // What follows would be its body to one recipient and the final response to another.
    const auto read = [](const std::string& status, const std::string& line) {
        response_head head;
        return parse_response_head("HTTP/1.1 " + status + "\r\n" + line + "\r\n", head, {});
    };
    for (const std::string status :
         {"100 Continue", "103 Early Hints", "101 Switching Protocols"}) {
        CAPTURE(status);
        CHECK(read(status, "").state == head_state::done);
        CHECK(read(status, "Content-Length: 0\r\n").state == head_state::done);
        for (const std::string line : {"Content-Length: 5\r\n",
                                       "Content-Length: 0, 5\r\n",
                                       "Content-Length: x\r\n",
                                       "Transfer-Encoding: chunked\r\n"}) {
            CAPTURE(line);
            const auto refused = read(status, line);
            CHECK(refused.state == head_state::bad);
            CHECK(refused.code == failure_code::bad_response);
        }
    }
    CHECK(read("204 No Content", "Content-Length: 5\r\n").state == head_state::done);
}

TEST_CASE("up to four empty lines before a request are skipped, and counted as its bytes") {
    const std::string_view bytes = "\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    request_head head;
    REQUIRE(read_request(bytes, head).state == head_state::done);
    CHECK(head.bytes == bytes.size());
    CHECK(head.method == verb::get);
}

TEST_CASE("a head that comes in two pieces, cut anywhere, is the same head") {
    const std::string bytes = "\r\n\r\nGET /where HTTP/1.1\r\nHost: a\r\nAccept: b\r\n\r\nmore";
    const auto whole = bytes.size() - 4;
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
        CAPTURE(cut);
        request_head head;
        const auto first = parse_request_head(std::string_view{bytes}.substr(0, cut), head, {});
        REQUIRE(first.state == (cut < whole ? head_state::need_more : head_state::done));
        if (first.state == head_state::need_more) {
            REQUIRE(parse_request_head(bytes, head, {}, first.resume).state == head_state::done);
        }
        CHECK(head.bytes == whole);
        CHECK(head.target == "/where");
        REQUIRE(head.fields.size() == 2);
        CHECK(head.fields[1].value == "b");
    }
}

TEST_CASE("a head that comes byte by byte is the same head, or the same refusal at the latest") {
    for (const std::string_view bytes : {"GET / HTTP/1.1\r\nHost: a\r\nAccept: b\r\n\r\n",
                                         "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
                                         "GET / HTTP/1.1\r\nHost: a\n\r\n",
                                         "GET / HTTP/1.1\nHost: a\r\n\r\n",
                                         "GET /\r\nHost: a\r\n\r\n",
                                         "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}) {
        CAPTURE(bytes);
        request_head head;
        const auto at_once = parse_request_head(bytes, head, {});
        head_result result;
        for (std::size_t size = 1; size <= bytes.size(); ++size) {
            result = parse_request_head(bytes.substr(0, size), head, {}, result.resume);
            if (result.state != head_state::need_more) {
                break;
            }
        }
        CHECK(result.state == at_once.state);
        CHECK(result.code == at_once.code);
        CHECK(std::string_view{result.why} == at_once.why);
    }
}

TEST_CASE("a bad start line is refused as soon as it is whole, however it came") {
    request_head head;
    const auto first = parse_request_head("GET /ho", head, {});
    REQUIRE(first.state == head_state::need_more);
    CHECK(parse_request_head("GET /home\r\n", head, {}, first.resume).state == head_state::bad);
    response_head answer;
    CHECK(parse_response_head("SSH-2.0-OpenSSH\r\n", answer, {}).state == head_state::bad);
}

TEST_CASE("limits hold, each with its own failure") {
    request_head head;
    head_limits limits{.bytes = 200, .fields = 3, .target = 50};
    const auto code = [&](const std::string& bytes) {
        const auto result = parse_request_head(bytes, head, limits);
        return result.state == head_state::bad ? result.code : failure_code::internal;
    };
    const std::string start = "GET / HTTP/1.1\r\n";
    CHECK(code("GET /" + std::string(49, 'x') + " HTTP/1.1\r\n\r\n") == failure_code::internal);
    CHECK(code("GET /" + std::string(50, 'x') + " HTTP/1.1\r\n\r\n") == failure_code::url_too_long);
    CHECK(code("GET /" + std::string(50, 'x')) == failure_code::url_too_long);
    CHECK(code(std::string(200, 'G')) == failure_code::url_too_long);
    CHECK(code(start + "a:\r\na:\r\na:\r\n\r\n") == failure_code::internal);
    CHECK(code(start + "a:\r\na:\r\na:\r\na:\r\n\r\n") == failure_code::too_many_fields);
    CHECK(code(start + "a: " + std::string(300, 'x')) == failure_code::head_too_large);
    CHECK(code(start + "a: " + std::string(300, 'x') + "\r\n\r\n") == failure_code::head_too_large);

    response_head answer;
    const auto origin_code = [&](const std::string& fields) {
        return parse_response_head("HTTP/1.1 200 OK\r\n" + fields + "\r\n", answer, limits).code;
    };
    CHECK(origin_code("a:\r\na:\r\na:\r\na:\r\n") == failure_code::response_head_too_large);
    CHECK(origin_code("a: " + std::string(300, 'x') + "\r\n") ==
          failure_code::response_head_too_large);
}

TEST_CASE("field lines alone are read to their end or refused") {
    std::vector<field> fields;
    CHECK(parse_field_lines("", fields, 2) == nullptr);
    CHECK(parse_field_lines("A: b\r\nC: d\r\n", fields, 2) == nullptr);
    CHECK(fields.size() == 2);
    CHECK(parse_field_lines("E: f\r\n", fields, 2) != nullptr);
    fields.clear();
    CHECK(parse_field_lines("A: b", fields, 2) != nullptr);
    CHECK(parse_field_lines("\r\nA: b\r\n", fields, 2) != nullptr);
}

TEST_SUITE_END();
