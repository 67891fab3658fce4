#include "tools/make_ca/authorities.hpp"

#include <algorithm>
#include <ctime>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdexcept>

namespace reprise::make_ca {
namespace {

using proxy::wall_time;
using proxy::net::certificate_ptr;
using proxy::net::private_key_ptr;

constexpr std::chrono::hours back_dated{1};  // for clients whose clock is behind

void must(bool made) {
    if (!made) {
        throw std::runtime_error{"OpenSSL cannot make a certificate: " +
                                 proxy::net::openssl_reason()};
    }
}

std::time_t seconds_of(wall_time at) {
    return std::chrono::floor<std::chrono::seconds>(at.time_since_epoch()).count();
}

void add(X509* to, X509* issuer, int what, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, to, nullptr, nullptr, 0);
    auto* made = X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
    must(made != nullptr);
    const bool added = X509_add_ext(to, made, -1) == 1;
    X509_EXTENSION_free(made);
    must(added);
}

void name(X509* it, const std::string& common_name) {
    auto* subject = X509_get_subject_name(it);
    const auto set = [&](const char* part, const std::string& text) {
        must(X509_NAME_add_entry_by_txt(subject,
                                        part,
                                        MBSTRING_UTF8,
                                        reinterpret_cast<const unsigned char*>(text.c_str()),
                                        -1,
                                        -1,
                                        0) == 1);
    };
    set("O", "Reprise");
    set("CN", common_name);
}

/// A name of its own for each, so that clients that know several tell them apart.
std::string name_made_at(const std::string& what, wall_time now) {
    const auto at = seconds_of(now);
    std::tm parts{};
    ::gmtime_r(&at, &parts);
    char date[16];
    const auto size = std::strftime(date, sizeof date, "%Y-%m-%d", &parts);
    unsigned char random[3];
    must(RAND_bytes(random, sizeof random) == 1);
    std::string text = what + " of " + std::string{date, size} + ' ';
    for (const auto byte : random) {
        constexpr char digits[] = "0123456789abcdef";
        text += {digits[byte >> 4], digits[byte & 15]};
    }
    return text;
}

authority begin(const std::string& called, wall_time from, wall_time until) {
    authority made{certificate_ptr{X509_new()}, private_key_ptr{EVP_EC_gen("P-256")}};
    must(made.certificate && made.key);
    auto* it = made.certificate.get();
    unsigned char serial[16];
    must(RAND_bytes(serial, sizeof serial) == 1);
    auto* number = BN_bin2bn(serial, sizeof serial, nullptr);
    const bool numbered = number != nullptr &&
                          BN_to_ASN1_INTEGER(number, X509_get_serialNumber(it)) != nullptr;
    BN_free(number);
    must(numbered);
    must(X509_set_version(it, X509_VERSION_3) == 1);
    must(ASN1_TIME_set(X509_getm_notBefore(it), seconds_of(from)) != nullptr);
    must(ASN1_TIME_set(X509_getm_notAfter(it), seconds_of(until)) != nullptr);
    must(X509_set_pubkey(it, made.key.get()) == 1);
    name(it, called);
    add(it, it, NID_subject_key_identifier, "hash");
    add(it, it, NID_key_usage, "critical,keyCertSign,cRLSign");
    return made;
}

void sign(const authority& made, const authority& by) {
    auto* it = made.certificate.get();
    must(X509_set_issuer_name(it, X509_get_subject_name(by.certificate.get())) == 1);
    add(it, by.certificate.get(), NID_authority_key_identifier, "keyid:always");
    const bool edwards = EVP_PKEY_is_a(by.key.get(), "ED25519") == 1;
    must(X509_sign(it, by.key.get(), edwards ? nullptr : EVP_sha256()) > 0);
}

wall_time end_of(const X509* one) {
    std::tm parts{};
    must(ASN1_TIME_to_tm(X509_get0_notAfter(one), &parts) == 1);
    return wall_time{std::chrono::seconds{::timegm(&parts)}};
}

}  // namespace

std::vector<std::string> permitted_names(const std::vector<std::string>& hosts) {
    std::vector<std::string> all;
    for (const auto& host : hosts) {
        all.push_back(host.starts_with("*.") ? host.substr(2) : host);
    }
    std::sort(all.begin(), all.end(), [](const std::string& one, const std::string& other) {
        return one.size() != other.size() ? one.size() < other.size() : one < other;
    });
    std::vector<std::string> names;
    for (const auto& one : all) {
        const bool covered = std::any_of(names.begin(), names.end(), [&](const auto& wide) {
            return one == wide || one.ends_with('.' + wide);
        });
        if (!covered) {
            names.push_back(one);
        }
    }
    return names;
}

authority make_root(wall_time now) {
    auto made = begin(name_made_at("Reprise root", now), now - back_dated, now + root_lifetime);
    add(made.certificate.get(),
        made.certificate.get(),
        NID_basic_constraints,
        "critical,CA:TRUE,pathlen:1");
    sign(made, made);
    return made;
}

authority make_intermediate(const authority& root,
                            const std::vector<std::string>& hosts,
                            std::chrono::days lifetime,
                            wall_time now) {
    const auto until = std::min<wall_time>(now + lifetime, end_of(root.certificate.get()));
    if (until <= now) {
        throw std::runtime_error{"the root has expired: make another"};
    }
    auto made = begin(name_made_at("Reprise interception", now), now - back_dated, until);
    auto* it = made.certificate.get();
    add(it, it, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
    add(it, it, NID_ext_key_usage, "serverAuth");
    std::string constraints = "critical";
    for (const auto& permitted : permitted_names(hosts)) {
        constraints += ",permitted;DNS:" + permitted;
    }
    constraints += ",excluded;IP:0.0.0.0/0.0.0.0,excluded;IP:::/::";
    add(it, it, NID_name_constraints, constraints);
    sign(made, root);
    return made;
}

}  // namespace reprise::make_ca
