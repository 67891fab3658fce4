#include "proxy/net/leaf_authority.hpp"

#include <algorithm>
#include <ctime>
#include <new>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <optional>
#include <stdexcept>
#include <string_view>

// A walk over the chain, each question asked of OpenSSL as a client's OpenSSL would ask it.

namespace reprise::proxy::net {
namespace {

constexpr int least_security_bits = 112;  // RSA of 2,048 bits, P-224
constexpr int client_security_level = 2;  // the same, of keys and hashes: Debian's clients ask for it

struct free_constraints {
    void operator()(NAME_CONSTRAINTS* constraints) const noexcept {
        NAME_CONSTRAINTS_free(constraints);
    }
};
using constraints_ptr = std::unique_ptr<NAME_CONSTRAINTS, free_constraints>;

std::optional<wall_time> time_of(const ASN1_TIME* at) {
    std::tm parts{};
    if (ASN1_TIME_to_tm(at, &parts) != 1) {
        return std::nullopt;
    }
    return wall_time{std::chrono::seconds{::timegm(&parts)}};
}

std::string date_of(wall_time at) {
    const std::time_t seconds =
        std::chrono::floor<std::chrono::seconds>(at.time_since_epoch()).count();
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    char text[32];
    return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts)};
}

bool is_self_signed(X509* one) {
    return (X509_get_extension_flags(one) & EXFLAG_SS) != 0;
}

constraints_ptr constraints_of(const X509* one) {
    return constraints_ptr{static_cast<NAME_CONSTRAINTS*>(
        X509_get_ext_d2i(one, NID_name_constraints, nullptr, nullptr))};
}

// Some names are permitted and so no other, and not by a name of no labels, which is in all.
bool binds_hosts(const NAME_CONSTRAINTS& constraints) {
    bool permits = false;
    for (int i = 0; i < sk_GENERAL_SUBTREE_num(constraints.permittedSubtrees); ++i) {
        const auto* base = sk_GENERAL_SUBTREE_value(constraints.permittedSubtrees, i)->base;
        if (base->type != GEN_DNS) {
            continue;
        }
        if (ASN1_STRING_length(base->d.dNSName) == 0) {
            return false;
        }
        permits = true;
    }
    return permits;
}

// Both families: some addresses permitted, or all of them excluded (RFC 5280 4.2.1.10: an address
// and its mask, so zeros are everything).
bool binds_addresses(const NAME_CONSTRAINTS& constraints) {
    const auto is_address = [](const GENERAL_SUBTREE* one, int bytes) {
        return one->base->type == GEN_IPADD && ASN1_STRING_length(one->base->d.iPAddress) == bytes;
    };
    bool permits = false;
    for (int i = 0; i < sk_GENERAL_SUBTREE_num(constraints.permittedSubtrees); ++i) {
        const auto* one = sk_GENERAL_SUBTREE_value(constraints.permittedSubtrees, i);
        permits = permits || one->base->type == GEN_IPADD;
    }
    const auto excludes_all = [&](int bytes) {
        for (int i = 0; i < sk_GENERAL_SUBTREE_num(constraints.excludedSubtrees); ++i) {
            const auto* one = sk_GENERAL_SUBTREE_value(constraints.excludedSubtrees, i);
            const auto* data = is_address(one, bytes)
                                   ? ASN1_STRING_get0_data(one->base->d.iPAddress)
                                   : nullptr;
            if (data != nullptr && std::all_of(data, data + bytes, [](auto b) { return b == 0; })) {
                return true;
            }
        }
        return false;
    };
    return permits || (excludes_all(8) && excludes_all(32));
}

// A certificate of nobody for this name, for what judges names by the certificate they stand in.
certificate_ptr bearer_of(const std::string& host) {
    certificate_ptr made{X509_new()};
    const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names{GENERAL_NAMES_new(),
                                                                              &GENERAL_NAMES_free};
    std::unique_ptr<GENERAL_NAME, decltype(&GENERAL_NAME_free)> name{GENERAL_NAME_new(),
                                                                     &GENERAL_NAME_free};
    auto* text = ASN1_IA5STRING_new();
    if (!made || !names || !name || text == nullptr ||
        ASN1_STRING_set(text, host.data(), static_cast<int>(host.size())) != 1) {
        ASN1_IA5STRING_free(text);
        throw std::bad_alloc{};
    }
    GENERAL_NAME_set0_value(name.get(), GEN_DNS, text);
    if (sk_GENERAL_NAME_push(names.get(), name.get()) == 0) {
        throw std::bad_alloc{};
    }
    static_cast<void>(name.release());  // the list's now
    if (X509_add1_ext_i2d(made.get(), NID_subject_alt_name, names.get(), 1, 0) != 1) {
        throw std::bad_alloc{};
    }
    static_cast<void>(X509_check_purpose(made.get(), -1, 0));  // OpenSSL reads the names here
    return made;
}

// One that it signs now, valid for a minute: what every client is going to be shown.
certificate_ptr trial_of(const std::string& host, X509* own, EVP_PKEY* key, wall_time now) {
    auto made = bearer_of(host);
    auto* it = made.get();
    const std::time_t from = std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count();
    if (X509_set_version(it, X509_VERSION_3) != 1 ||
        ASN1_INTEGER_set(X509_get_serialNumber(it), 1) != 1 ||
        ASN1_TIME_set(X509_getm_notBefore(it), from) == nullptr ||
        ASN1_TIME_set(X509_getm_notAfter(it), from + 60) == nullptr ||
        X509_set_issuer_name(it, X509_get_subject_name(own)) != 1 ||
        X509_set_pubkey(it, key) != 1 || X509_sign(it, key, signature_digest(key)) <= 0) {
        return nullptr;
    }
    return certificate_ptr{X509_dup(it)};  // what OpenSSL read of it before is not of this one
}

// As a client does who trusts the last of the chain. Empty: it would take the certificate.
std::string why_refused(X509* leaf, const std::vector<certificate_ptr>& chain, wall_time now) {
    const std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)> trusted{X509_STORE_new(),
                                                                          &X509_STORE_free};
    const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> look{
        X509_STORE_CTX_new(), &X509_STORE_CTX_free};
    const auto free_list = [](STACK_OF(X509) * list) { sk_X509_free(list); };
    const std::unique_ptr<STACK_OF(X509), decltype(free_list)> between{sk_X509_new_null(),
                                                                       free_list};
    if (!trusted || !look || !between) {
        throw std::bad_alloc{};
    }
    for (const auto& one : chain) {
        if (sk_X509_push(between.get(), one.get()) == 0) {
            throw std::bad_alloc{};
        }
    }
    if (X509_STORE_add_cert(trusted.get(), chain.back().get()) != 1 ||
        X509_STORE_CTX_init(look.get(), trusted.get(), leaf, between.get()) != 1) {
        throw std::bad_alloc{};
    }
    auto* how = X509_STORE_CTX_get0_param(look.get());
    X509_VERIFY_PARAM_set_flags(how, X509_V_FLAG_PARTIAL_CHAIN);
    X509_VERIFY_PARAM_set_purpose(how, X509_PURPOSE_SSL_SERVER);
    X509_VERIFY_PARAM_set_auth_level(how, client_security_level);
    X509_VERIFY_PARAM_set_time(
        how, std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count());
    return X509_verify_cert(look.get()) == 1
               ? std::string{}
               : X509_verify_cert_error_string(X509_STORE_CTX_get_error(look.get()));
}

// A pattern's name, or one of those that it stands for.
std::string example_of(const std::string& pattern) {
    return pattern.starts_with("*.") ? "any" + pattern.substr(1) : pattern;
}

class chain_judge {
public:
    chain_judge(const config::intercept_options& wanted, wall_time now)
        : wanted_{wanted},
          now_{now} {}

    leaf_authority::reading found{};

    void judge_file(const pem_file& file) {
        if (file.may_be_read_by_others()) {
            wrong_key("may be used by others than its owner: chmod 600 it");
        }
    }
    void judge_pair(const X509& own, const EVP_PKEY& key) {
        if (X509_check_private_key(&own, &key) != 1) {
            wrong_key("is not the key of intercept.ca_certificate, " + wanted_.ca_certificate);
        }
        ERR_clear_error();
    }

    void judge_authority(X509& own) {
        const auto flags = X509_get_extension_flags(&own);
        if ((flags & EXFLAG_INVALID) != 0) {
            wrong("has an extension that OpenSSL can't read");
            return;
        }
        if ((flags & EXFLAG_BCONS) == 0 || (flags & EXFLAG_CA) == 0) {
            wrong("is none of a CA: its basicConstraints don't say CA:TRUE");
        }
        if ((flags & EXFLAG_KUSAGE) == 0 || (X509_get_key_usage(&own) & KU_KEY_CERT_SIGN) == 0) {
            wrong("may not sign certificates: its keyUsage doesn't say keyCertSign");
        }
        if ((flags & EXFLAG_XKUSAGE) != 0 &&
            (X509_get_extended_key_usage(&own) & (XKU_SSL_SERVER | XKU_ANYEKU)) == 0) {
            wrong("may not sign for servers: its extendedKeyUsage doesn't say serverAuth");
        }
        const auto* key = X509_get0_pubkey(&own);
        if (key == nullptr || EVP_PKEY_get_security_bits(key) < least_security_bits) {
            wrong("has a key that clients find too weak: make one of P-256");
        }
        ERR_clear_error();
    }

    /// The end of the validity of all of them.
    wall_time judge_chain(const std::vector<certificate_ptr>& chain) {
        auto until = wall_time::max();
        for (std::size_t i = 0; i < chain.size(); ++i) {
            const auto which = i == 0 ? std::string{}
                                      : ", certificate " + std::to_string(i + 1) + " of the file,";
            const auto from = time_of(X509_get0_notBefore(chain[i].get()));
            const auto to = time_of(X509_get0_notAfter(chain[i].get()));
            if (!from || !to) {
                wrong(which + " has dates that nobody can read");
                continue;
            }
            if (now_ < *from) {
                wrong(which + " is not valid before " + date_of(*from));
            }
            if (now_ >= *to) {
                wrong(which + " has expired on " + date_of(*to));
            }
            until = std::min(until, *to);
            if (i + 1 < chain.size() &&
                X509_check_issued(chain[i + 1].get(), chain[i].get()) != X509_V_OK) {
                wrong(which + " was not issued by the one behind it in the file");
            }
        }
        const auto left = std::chrono::floor<std::chrono::days>(until - now_);
        if (left >= std::chrono::days{0} && left < leaf_authority::warn_before) {
            const auto days = left.count();
            warn("expires in " + std::to_string(days) + (days == 1 ? " day" : " days") + ", on " +
                 date_of(until));
        }
        return until;
    }

    void judge_names(const std::vector<certificate_ptr>& chain) {
        std::vector<constraints_ptr> all;
        bool hosts = false;
        bool addresses = false;
        bool of_a_root = false;
        for (const auto& one : chain) {
            auto constraints = constraints_of(one.get());
            if (!constraints) {
                continue;
            }
            if (is_self_signed(one.get())) {
                of_a_root = true;
            } else {
                hosts = hosts || binds_hosts(*constraints);
                addresses = addresses || binds_addresses(*constraints);
            }
            all.push_back(std::move(constraints));
        }
        ERR_clear_error();
        judge_reach(hosts, addresses, of_a_root);
        for (const auto& pattern : wanted_.hosts) {
            const auto bearer = bearer_of(example_of(pattern));
            const bool allowed = std::all_of(all.begin(), all.end(), [&](const auto& each) {
                return NAME_CONSTRAINTS_check(bearer.get(), each.get()) == X509_V_OK;
            });
            if (!allowed) {
                found.mistakes.push_back("intercept.hosts: " + pattern +
                                         " is not among the names that the certificate in " +
                                         wanted_.ca_certificate +
                                         " is constrained to: make another, or leave it out");
            }
        }
        ERR_clear_error();
    }

    /// By what a client would say, whatever was not asked above: the signatures of the chain, the
    /// lengths of path, uses and strengths of those above the first.
    void judge_trial(const std::vector<certificate_ptr>& chain, EVP_PKEY* key) {
        const auto leaf = trial_of(
            example_of(wanted_.hosts.front()), chain.front().get(), key, now_);
        if (!leaf) {
            wrong_key("signs nothing: " + openssl_reason());
        } else if (const auto why = why_refused(leaf.get(), chain, now_); !why.empty()) {
            wrong("signs what every client refuses, with those behind it in the file: " + why);
        }
        ERR_clear_error();
    }

private:
    void judge_reach(bool hosts, bool addresses, bool of_a_root) {
        if (!hosts && wanted_.unconstrained) {
            warn("is bound to no names (intercept.unconstrained): whoever gets its key can be any "
                 "site to every client that trusts it");
        } else if (!hosts) {
            wrong(std::string{of_a_root
                                  ? "is a root, and not every client holds a root to its name "
                                    "constraints"
                                  : "is bound to no names: its key could be any site's"} +
                  ". Make an intermediate (tools/make-ca for), or write "
                  "\"unconstrained\": true and mean it");
        } else if (!addresses) {
            warn("is bound to names, but not kept from signing for addresses: its name constraints "
                 "should exclude 0.0.0.0/0 and ::/0");
        }
    }

    void wrong(const std::string& what) { found.mistakes.push_back(of_certificate(what)); }
    void warn(const std::string& what) { found.warnings.push_back(of_certificate(what)); }
    void wrong_key(const std::string& what) {
        found.mistakes.push_back("intercept.ca_key: " + wanted_.ca_key + ' ' + what);
    }
    [[nodiscard]] std::string of_certificate(const std::string& what) const {
        return "intercept.ca_certificate: the certificate in " + wanted_.ca_certificate +
               (what.starts_with(',') || what.starts_with(' ') ? "" : " ") + what;
    }

    const config::intercept_options& wanted_;
    wall_time now_;
};

}  // namespace

// Edwards curves have one of their own in the signature.
const evp_md_st* signature_digest(const evp_pkey_st* key) noexcept {
    const bool edwards = EVP_PKEY_is_a(key, "ED25519") == 1 || EVP_PKEY_is_a(key, "ED448") == 1;
    return edwards ? nullptr : EVP_sha256();
}

leaf_authority::reading leaf_authority::read(const config::intercept_options& wanted,
                                             wall_time now) {
    chain_judge judge{wanted, now};
    const std::shared_ptr<leaf_authority> made{new leaf_authority};
    try {
        made->chain_ = pem_file{"intercept.ca_certificate", wanted.ca_certificate}.certificates();
    } catch (const std::runtime_error& cannot) {
        judge.found.mistakes.emplace_back(cannot.what());
    }
    try {
        pem_file file{"intercept.ca_key", wanted.ca_key};
        judge.judge_file(file);
        made->key_ = file.key();
    } catch (const std::runtime_error& cannot) {
        judge.found.mistakes.emplace_back(cannot.what());
    }
    if (made->key_ && !made->chain_.empty()) {
        judge.judge_pair(*made->certificate(), *made->key_);
    }
    if (!made->chain_.empty()) {
        for (const auto& one : made->chain_) {
            static_cast<void>(X509_check_purpose(one.get(), -1, 0));  // reads the extensions
        }
        judge.judge_authority(*made->certificate());
        made->until_ = judge.judge_chain(made->chain_);
        judge.judge_names(made->chain_);
        const auto anchor = std::find_if(made->chain_.begin(), made->chain_.end(), [](auto& one) {
            return is_self_signed(one.get());
        });
        made->sent_ = static_cast<std::size_t>(anchor - made->chain_.begin());
    }
    if (judge.found.mistakes.empty()) {
        judge.judge_trial(made->chain_, made->key_.get());
    }
    if (judge.found.mistakes.empty()) {
        judge.found.authority = made;
    }
    return std::move(judge.found);
}

}  // namespace reprise::proxy::net
