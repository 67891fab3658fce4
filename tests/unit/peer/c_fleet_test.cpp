// A fleet's keys and signatures as libreprise-digest makes them for servers that are not ours, and as the proxy does: each takes
// what the other signed.

#include "proxy/peer/secret.hpp"
#include "proxy/peer/signature.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <reprise/digest.h>
#include <string>
#include <vector>

namespace reprise::proxy::peer::test::of_c_fleet {
namespace {

struct fleet_closer {
    void operator()(reprise_fleet* one) const { reprise_fleet_close(one); }
};
using fleet_ptr = std::unique_ptr<reprise_fleet, fleet_closer>;

constexpr std::int64_t start = 1'763'668'000;
const std::string content(48, 'k');
const std::string target = "/.well-known/reprise/digest?since=1f-2";
const std::string host = "Cache-B.example:8080";
const std::string endpoint = "192.0.2.7:8080";

wall_time at(std::int64_t seconds) {
    return wall_time{std::chrono::seconds{seconds}};
}

fleet_ptr fleet_of(const std::string& secret) {
    const reprise::tests::temp_dir place;
    reprise_fleet* made = nullptr;
    reprise_error error = REPRISE_ERROR_INIT;
    REQUIRE_MESSAGE(reprise_fleet_open(
                        place.write("secret", secret).c_str(), start, &made, &error) == REPRISE_OK,
                    error.text);
    return fleet_ptr{made};
}

int append(void* to, const void* piece, size_t bytes) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(piece), bytes);
    return 0;
}

struct line {
    std::string name, value;
};

std::vector<line> lines_in(const std::string& text) {
    std::vector<line> out;
    for (std::size_t i = 0; i < text.size();) {
        const auto end = text.find("\r\n", i);
        const auto colon = text.find(": ", i);
        out.push_back({text.substr(i, colon - i), text.substr(colon + 2, end - colon - 2)});
        i = end + 2;
    }
    return out;
}

std::string signed_by_c(const reprise_fleet* fleet, std::int64_t now) {
    reprise_request request = REPRISE_REQUEST_INIT;
    request.method = "GET";
    request.target = target.c_str();
    request.authority = host.c_str();
    std::string out;
    REQUIRE(reprise_fleet_sign(
                fleet, &request, "cache-a", endpoint.c_str(), now, append, &out, nullptr) ==
            REPRISE_OK);
    return out;
}

std::string signed_by_proxy(const fleet_secret& secret, std::int64_t now, unsigned char fresh) {
    nonce one{};
    one[0] = std::byte{fresh};
    return sign(secret,
                {.method = "GET", .target = target, .host = host, .secure = false, .fields = {}},
                {.from = "cache-a", .to = endpoint},
                at(now),
                one);
}

/// "good", or what is wrong.
std::string judged_by_c(reprise_fleet* fleet,
                        const std::vector<line>& lines,
                        std::int64_t now,
                        const std::string& here = endpoint,
                        const char* name = nullptr) {
    std::vector<reprise_field> fields;
    for (const auto& one : lines) {
        fields.push_back({one.name.c_str(), one.value.c_str()});
    }
    reprise_request request = REPRISE_REQUEST_INIT;
    request.method = "GET";
    request.target = target.c_str();
    request.authority = host.c_str();
    request.fields = fields.data();
    request.field_count = fields.size();
    reprise_error error = REPRISE_ERROR_INIT;
    const auto code = reprise_fleet_check(fleet, &request, here.c_str(), name, now, &error);
    const std::string said{error.text};
    REQUIRE((code == REPRISE_OK || code == REPRISE_REFUSED));
    return code == REPRISE_OK ? "good" : said.substr(said.rfind(' ') + 1);
}

}  // namespace

TEST_SUITE("peer/c_fleet") {
    TEST_CASE("both make the same keys of one secret, and of none") {
        const auto secret = fleet_secret::from_content(content + "\r\n").value();
        const auto fleet = fleet_of(content + "\n");
        CHECK(std::memcmp(reprise_fleet_seed(fleet.get()), secret.hashing().seed().data(), 32) ==
              0);
        const std::string url = "http://a.example/x?y";
        const auto key = reprise_fleet_key(fleet.get(), url.data(), url.size());
        const auto ours = key_of(name_of(url, secret), secret);
        CHECK(key.low == ours.low);
        CHECK(key.high == ours.high);
        CHECK(reprise_fleet_signs(fleet.get()) == 1);

        reprise_fleet* open = nullptr;
        REQUIRE(reprise_fleet_open(nullptr, start, &open, nullptr) == REPRISE_OK);
        const fleet_ptr without{open};
        CHECK(std::memcmp(
                  reprise_fleet_seed(open), fleet_secret::none().hashing().seed().data(), 32) == 0);
        CHECK(reprise_fleet_signs(open) == 0);
    }

    TEST_CASE("the proxy takes what the library signed") {
        const auto secret = fleet_secret::from_content(content).value();
        const signature_checker::moment begun{at(start), steady_time{}};
        signature_checker checker{secret, begun};
        const auto lines = lines_in(signed_by_c(fleet_of(content).get(), start + 1));
        std::vector<http::field> fields;
        for (const auto& one : lines) {
            fields.push_back({http::field_id::unknown, one.name, one.value});
        }
        const http::signed_request request{
            .method = "GET", .target = target, .host = host, .secure = false, .fields = fields};
        const auto check = [&] {
            return checker.check(request,
                                 {.endpoint = endpoint, .name = {}},
                                 at(start + 2),
                                 steady_time{std::chrono::seconds{2}});
        };
        const auto first = check();
        CHECK(first.what == signature_verdict::good);
        CHECK(first.signer == "cache-a");
        CHECK(check().what == signature_verdict::replayed);
    }

    TEST_CASE("the library takes what the proxy signed, once, in time, and for itself") {
        const auto secret = fleet_secret::from_content(content).value();
        const auto fleet = fleet_of(content);
        const auto lines = lines_in(signed_by_proxy(secret, start + 1, 1));
        CHECK(judged_by_c(fleet.get(), lines, start + 1, "192.0.2.8:8080") == "elsewhere");
        CHECK(judged_by_c(fleet.get(), lines, start + 62) == "out_of_time");
        CHECK(judged_by_c(fleet.get(), lines, start - 60) == "out_of_time");
        CHECK(judged_by_c(fleet.get(), lines, start + 2) == "good");
        CHECK(judged_by_c(fleet.get(), lines, start + 3) == "replayed");
        CHECK(judged_by_c(fleet_of(std::string(48, 'z')).get(), lines, start + 2) ==
              "other_secret");
        const auto before = lines_in(signed_by_proxy(secret, start - 1, 2));
        CHECK(judged_by_c(fleet.get(), before, start + 2) == "out_of_time");
        const auto by_name = lines_in(signed_by_proxy(secret, start + 1, 3));
        CHECK(judged_by_c(fleet.get(), by_name, start + 2, "10.0.0.1:80", "cache-b.EXAMPLE") ==
              "good");
    }

    TEST_CASE(
        "the library takes nothing twice where its clock is set back, and keeps nobody else out") {
        const auto secret = fleet_secret::from_content(content).value();
        const auto fleet = fleet_of(content);
        const auto first = lines_in(signed_by_proxy(secret, start + 1, 1));
        CHECK(judged_by_c(fleet.get(), first, start + 2) == "good");
        const auto later = lines_in(signed_by_proxy(secret, start + 70, 2));
        CHECK(judged_by_c(fleet.get(), later, start + 70) ==
              "good");  // by now the first is forgotten
        CHECK(judged_by_c(fleet.get(), first, start + 40) == "out_of_time");
        const auto another = lines_in(signed_by_proxy(secret, start + 40, 3));
        CHECK(judged_by_c(fleet.get(), another, start + 40) == "good");
    }

    TEST_CASE("whatever is changed of what is signed makes it no signature") {
        const auto secret = fleet_secret::from_content(content).value();
        const auto fleet = fleet_of(content);
        CHECK(judged_by_c(fleet.get(), {}, start + 2) == "missing");
        const auto good = lines_in(signed_by_proxy(secret, start + 1, 1));
        const std::string node = "Reprise-Node";
        for (std::size_t i = 0; i < good.size(); ++i) {
            CAPTURE(good[i].name);
            auto without = good;
            without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
            CHECK(judged_by_c(fleet.get(), without, start + 2) != "good");
            for (std::size_t at_byte = 0; at_byte < good[i].value.size(); ++at_byte) {
                for (const char other : {'x', '"', ';', ',', '(', ')', ' ', ':', '0'}) {
                    auto changed = good;
                    changed[i].value[at_byte] = other;
                    if (changed[i].value == good[i].value) {
                        continue;
                    }
                    CAPTURE(changed[i].value);
                    CHECK(judged_by_c(fleet.get(), changed, start + 2) != "good");
                }
                auto shorter = good;
                shorter[i].value.resize(at_byte);
                CHECK(judged_by_c(fleet.get(), shorter, start + 2) != "good");
            }
        }
        CHECK(judged_by_c(fleet.get(), good, start + 2) == "good");
    }

    TEST_CASE("others' signatures beside it, and components in another order, do no harm") {
        const auto fleet = fleet_of(content);
        auto lines = lines_in(signed_by_c(fleet.get(), start + 1));
        for (auto& one : lines) {
            if (one.name == "Signature-Input") {
                one.value = "other=(\"@method\");created=1;tag=\"else\", " + one.value;
            } else if (one.name == "Signature") {
                one.value += ", other=:AAAA:";
            }
        }
        CHECK(judged_by_c(fleet.get(), lines, start + 2) == "good");
        lines.push_back(lines[2]);
        CHECK(judged_by_c(fleet.get(), lines, start + 2) == "malformed");
    }

    TEST_CASE("secrets that can't be read, or are none, are refused by name") {
        const reprise::tests::temp_dir place;
        reprise_fleet* made = nullptr;
        reprise_error error = REPRISE_ERROR_INIT;
        CHECK(reprise_fleet_open("/nowhere/secret", start, &made, &error) == REPRISE_FILE);
        CHECK(std::string{error.text}.find("/nowhere/secret") != std::string::npos);
        CHECK(made == nullptr);
        const auto is_refused = [&](std::size_t bytes) {
            const auto path = place.write("secret", std::string(bytes, 's'));
            const auto code = reprise_fleet_open(path.c_str(), start, &made, &error);
            reprise_fleet_close(made);
            return code == REPRISE_REFUSED;
        };
        CHECK(is_refused(31));
        CHECK_FALSE(is_refused(32));
        CHECK_FALSE(is_refused(4096));
        CHECK(is_refused(4097));
        CHECK(is_refused(5000));
    }
}

}  // namespace reprise::proxy::peer::test::of_c_fleet
