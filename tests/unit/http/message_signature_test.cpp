#include "proxy/http/message_signature.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace reprise::proxy::http::test::of_message_signature {
namespace {

field line(std::string_view name, std::string_view value) {
    return {field_id::unknown, name, value};
}

/// RFC 9421 B.2, with the fields that its examples cover.
struct rfc_request {
    std::vector<field> fields{
        line("Host", "example.com"),
        line("Date", "Tue, 20 Apr 2021 02:07:55 GMT"),
        line("Content-Type", "application/json"),
        line(
            "Content-Digest",
            "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEm"
            "THWXvJwew==:"),
        line("Content-Length", "18")};

    [[nodiscard]] signed_request as_signed() const {
        return {.method = "POST",
                .target = "/foo?param=Value&Pet=dog",
                .host = "example.com",
                .secure = true,
                .fields = fields};
    }
};

std::string base_of(const signed_request& request,
                    std::string_view covered,
                    std::string_view parameters = ";created=1") {
    std::string out;
    return append_signature_base(out, request, {.covered = covered, .parameters = parameters})
               ? out
               : "none";
}

signature_search search(const std::vector<field>& fields) {
    message_signature found;
    return find_signature(fields, "t", found);
}

}  // namespace

TEST_SUITE("http/message_signature") {
    TEST_CASE("the bases of RFC 9421's own examples") {
        const rfc_request of;
        CHECK(base_of(of.as_signed(),
                      R"("date" "@authority" "content-type")",
                      R"(;created=1618884473;keyid="test-shared-secret")") ==
              "\"date\": Tue, 20 Apr 2021 02:07:55 GMT\n"
              "\"@authority\": example.com\n"
              "\"content-type\": application/json\n"
              "\"@signature-params\": (\"date\" \"@authority\" "
              "\"content-type\");created=1618884473;keyid=\"test-shared-secret\"");
        CHECK(
            base_of(of.as_signed(),
                    R"("date" "@method" "@path" "@query" "@authority" "content-type" )"
                    R"("content-digest" "content-length")",
                    R"(;created=1618884473;keyid="test-key-rsa-pss")") ==
            "\"date\": Tue, 20 Apr 2021 02:07:55 GMT\n"
            "\"@method\": POST\n"
            "\"@path\": /foo\n"
            "\"@query\": ?param=Value&Pet=dog\n"
            "\"@authority\": example.com\n"
            "\"content-type\": application/json\n"
            "\"content-digest\": sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrI"
            "iYllu7BNNyealdVLvRwEmTHWXvJwew==:\n"
            "\"content-length\": 18\n"
            "\"@signature-params\": (\"date\" \"@method\" \"@path\" \"@query\" \"@authority\" "
            "\"content-type\" \"content-digest\" "
            "\"content-length\");created=1618884473;keyid=\"test-key-rsa-pss\"");
        // B.2.1: nothing but the parameters.
        CHECK(base_of(of.as_signed(), "", ";created=1618884473") ==
              "\"@signature-params\": ();created=1618884473");
    }

    TEST_CASE("derived components are what section 2.2 says") {
        const auto value = [](const signed_request& of, const std::string& name) {
            const auto base = base_of(of, '"' + name + '"');
            const auto begin = name.size() + 4;
            return base == "none" ? base : base.substr(begin, base.find('\n') - begin);
        };
        signed_request of{.method = "GET", .target = "/a/%7e?x=1&y", .host = "WWW.Example:8080"};
        CHECK(value(of, "@method") == "GET");
        CHECK(value(of, "@authority") == "www.example:8080");
        CHECK(value(of, "@scheme") == "http");
        CHECK(value(of, "@request-target") == "/a/%7e?x=1&y");
        CHECK(value(of, "@path") == "/a/%7e");
        CHECK(value(of, "@query") == "?x=1&y");
        CHECK(value(of, "@target-uri") == "http://www.example:8080/a/%7e?x=1&y");
        of.target = "/";
        CHECK(value(of, "@query") == "?");  // as for a query that is empty
        CHECK(value(of, "@path") == "/");
        of.host = "a:80";
        CHECK(value(of, "@authority") == "a");
        of.secure = true;
        CHECK(value(of, "@authority") == "a:80");
        of.host = "a:443";
        CHECK(value(of, "@target-uri") == "https://a/");
        for (const std::string unknown : {"@status", "@query-param", "@", "@Method", "@path "}) {
            CAPTURE(unknown);
            CHECK(value(of, unknown) == "none");
        }
    }

    TEST_CASE("lines of one field are joined, and names are in lower case") {
        const std::vector<field> fields{line("X-Two", "one"),
                                        line("Other", "o"),
                                        line("x-two", "two, three"),
                                        line("X-None", "")};
        const signed_request of{.method = "GET", .target = "/", .host = "a", .fields = fields};
        CHECK(base_of(of, R"("x-two")").starts_with("\"x-two\": one, two, three\n"));
        CHECK(base_of(of, R"("x-none")").starts_with("\"x-none\": \n"));
        CHECK(base_of(of, R"("X-Two")") == "none");
        CHECK(base_of(of, R"("x-absent")") == "none");
    }

    TEST_CASE("what can't be told for sure has no base") {
        const std::vector<field> fields{line("x", "v"), line("y", "v\n\"@method\": GET")};
        const signed_request of{.method = "GET", .target = "/", .host = "a", .fields = fields};
        for (const auto* covered : {R"("x" "x")",
                                    R"("x" "@path" "@path")",
                                    R"("x";sf)",
                                    R"("x";req)",
                                    R"("y")",
                                    R"("x\"")",
                                    R"(x)",
                                    R"(:eA==:)",
                                    R"(1)",
                                    R"("")",
                                    R"("x""@path")",
                                    R"("x" ()",
                                    R"("x)"}) {
            CAPTURE(covered);
            CHECK(base_of(of, covered) == "none");
        }
    }

    TEST_CASE("a signature is found by its tag, whatever its label and whoever else signed") {
        const std::vector<field> fields{
            line("signature-input", R"(a=("date");created=1;tag="o", b=();tag="other")"),
            line("Signature-Input",
                 R"(c=("@method" "x");created=5;expires=-6;nonce="n";alg="g";keyid="k";tag="t";z)"),
            line("Signature", "a=:AA==:, c=:BB==:"),
            line("Signature", "b=:CC==:")};
        message_signature found;
        REQUIRE(find_signature(fields, "t", found) == signature_search::found);
        CHECK(found.label == "c");
        CHECK(found.covered == R"("@method" "x")");
        CHECK(found.parameters == R"(;created=5;expires=-6;nonce="n";alg="g";keyid="k";tag="t";z)");
        CHECK(found.base64 == "BB==");
        CHECK(found.created == 5);
        CHECK(found.expires == -6);
        CHECK(found.nonce == "n");
        CHECK(found.alg == "g");
        CHECK(found.keyid == "k");
        CHECK(found.tag == "t");
        CHECK(covers(found, "@method"));
        CHECK(covers(found, "x"));
        CHECK_FALSE(covers(found, "method"));
        CHECK(find_signature(fields, "none", found) == signature_search::none);
        CHECK(find_signature({}, "t", found) == signature_search::none);
        // Only one that says nothing of them has none.
        const std::vector<field> bare{line("Signature-Input", R"(s=();tag="t")"),
                                      line("Signature", "s=::")};
        REQUIRE(find_signature(bare, "t", found) == signature_search::found);
        CHECK_FALSE(found.created);
        CHECK_FALSE(found.nonce);
        CHECK(found.base64.empty());
    }

    TEST_CASE("what is twice, of another type or not whole is malformed, and says nothing") {
        const field signature = line("Signature", "a=:AA==:");
        CHECK(search({line("Signature-Input", R"(a=("x");tag="t")"), signature}) ==
              signature_search::found);
        for (const auto* input : {R"(a=("x");tag="t", b=("y");tag="t")",
                                  R"(a=("x");tag="t", a=("y");tag="o")",
                                  R"(a=("x");tag="t";tag="t")",
                                  R"(a=("x");created=1;created=2;tag="t")",
                                  R"(a=("x");created=1.5;tag="t")",
                                  R"(a=("x");expires="1";tag="t")",
                                  R"(a=("x");nonce=n;tag="t")",
                                  R"(a=("x");nonce="\"";tag="t")",
                                  R"(a=("x");keyid=:AA==:;tag="t")",
                                  R"(a=1;tag="t")",
                                  R"(a;tag="t")",
                                  R"(b=("x");tag="t")",
                                  R"(a=("x");tag="t",)",
                                  R"(a=("x" "y";tag="t")",
                                  R"(A=())"}) {
            CAPTURE(input);
            CHECK(search({line("Signature-Input", input), signature}) ==
                  signature_search::malformed);
        }
        const field input = line("Signature-Input", R"(a=("x");tag="t")");
        for (const auto* other : {"",
                                  "b=:AA==:",
                                  "a=AA",
                                  "a=\"AA==\"",
                                  "a=:AA==:;p",
                                  "a=:AA==:, a=:AA==:",
                                  "a=:AA==:, ",
                                  "a=:A A=:"}) {
            CAPTURE(other);
            CHECK(search({input, line("Signature", other)}) == signature_search::malformed);
        }
        CHECK(search({input}) == signature_search::malformed);
        CHECK(search({line("Signature-Input", "a=(")}) == signature_search::malformed);
    }

    TEST_CASE("every prefix of the fields is read or refused") {
        const std::string input =
            R"(a=("@method" "x";p);created=1;nonce="n";tag="o", b=("@path");tag="t")";
        const std::string signature = "a=:AAAA:, b=:BBBB:";
        for (std::size_t cut = 0; cut < input.size(); ++cut) {
            CAPTURE(cut);
            const std::vector<char> exact(input.begin(),
                                          input.begin() + static_cast<std::ptrdiff_t>(cut));
            CHECK(search({line("Signature-Input", {exact.data(), exact.size()}),
                          line("Signature", signature)}) != signature_search::found);
        }
        for (std::size_t cut = 0; cut < signature.size(); ++cut) {
            CAPTURE(cut);
            const std::vector<char> exact(signature.begin(),
                                          signature.begin() + static_cast<std::ptrdiff_t>(cut));
            CHECK(search({line("Signature-Input", input),
                          line("Signature", {exact.data(), exact.size()})}) ==
                  signature_search::malformed);
        }
    }
}

}  // namespace reprise::proxy::http::test::of_message_signature
