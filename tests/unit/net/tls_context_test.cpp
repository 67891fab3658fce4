#include "proxy/net/tls_trust.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdexcept>
#include <string>

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace reprise;
using tests::test_authority;

namespace {

const test_authority& authority() {
    static const test_authority one;
    return one;
}

/// What is thrown of these two files; empty when nothing is.
std::string mistake(const std::string& certificate, const std::string& key) {
    try {
        static_cast<void>(tls_identity::read({certificate, key}, "listeners[3].tls"));
        return {};
    } catch (const std::runtime_error& thrown) {
        return thrown.what();
    }
}

/// The same key under a passphrase.
std::string locked(const std::string& key) {
    const std::unique_ptr<BIO, int (*)(BIO*)> in{
        BIO_new_mem_buf(key.data(), static_cast<int>(key.size())), &BIO_free};
    const std::unique_ptr<BIO, int (*)(BIO*)> out{BIO_new(BIO_s_mem()), &BIO_free};
    auto* read = PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, nullptr);
    const unsigned char phrase[] = "open sesame";
    REQUIRE(PEM_write_bio_PrivateKey(
                out.get(), read, EVP_aes_128_cbc(), phrase, sizeof phrase - 1, nullptr, nullptr) ==
            1);
    EVP_PKEY_free(read);
    char* at = nullptr;
    const auto size = BIO_get_mem_data(out.get(), &at);
    return {at, static_cast<std::size_t>(size)};
}

/// What a client that offers these ciphers of TLS 1.3, or else these of TLS 1.2, agrees on.
std::string agreed_with(const tls_identity& identity,
                        const std::string& newer,
                        const char* older = "") {
    const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context{SSL_CTX_new(TLS_client_method()),
                                                               &SSL_CTX_free};
    if (newer.empty()) {
        REQUIRE(SSL_CTX_set_max_proto_version(context.get(), TLS1_2_VERSION) == 1);
        REQUIRE(SSL_CTX_set_cipher_list(context.get(), older) == 1);
    } else {
        REQUIRE(SSL_CTX_set_ciphersuites(context.get(), newer.c_str()) == 1);
    }
    const std::unique_ptr<SSL, void (*)(SSL*)> client{SSL_new(context.get()), &SSL_free};
    const auto server = identity.begin();
    BIO* here = nullptr;
    BIO* there = nullptr;
    REQUIRE(BIO_new_bio_pair(&here, 1 << 16, &there, 1 << 16) == 1);
    SSL_set_bio(client.get(), here, here);
    SSL_set_bio(server.get(), there, there);
    SSL_set_connect_state(client.get());
    for (int turn = 0; turn < 5; ++turn) {
        static_cast<void>(SSL_do_handshake(client.get()));
        static_cast<void>(SSL_do_handshake(server.get()));
    }
    REQUIRE(SSL_is_init_finished(server.get()));
    return SSL_get_cipher_name(client.get());
}

}  // namespace

TEST_SUITE_BEGIN("net/tls_context");

TEST_CASE("a certificate and its key are taken, the chain behind it too") {
    const tests::temp_dir at;
    const auto made = authority().issue("DNS:a.test");
    const auto key = at.write("k", made.key);
    CHECK(mistake(at.write("c", made.certificate), key).empty());
    const auto chain = at.write("chain", made.certificate + "\n" + authority().certificate());
    const auto identity = tls_identity::read({chain, key}, "x");
    const auto ssl = identity->begin();
    REQUIRE(ssl);
    STACK_OF(X509)* above = nullptr;
    REQUIRE(SSL_get0_chain_certs(ssl.get(), &above) == 1);
    CHECK(sk_X509_num(above) == 1);
}

TEST_CASE("what is wrong with the files is said with the setting and the file") {
    const tests::temp_dir at;
    const auto made = authority().issue("DNS:a.test");
    const auto other = authority().issue("DNS:b.test");
    const auto certificate = at.write("c", made.certificate);
    const auto key = at.write("k", made.key);

    const auto absent = at.file("absent");
    CHECK(mistake(absent, key) ==
          "listeners[3].tls.certificate: cannot read " + absent + ": No such file or directory");
    CHECK(mistake(certificate, absent) ==
          "listeners[3].tls.key: cannot read " + absent + ": No such file or directory");
    const auto folder = at.path().string();
    CHECK(mistake(folder, key) ==
          "listeners[3].tls.certificate: cannot read " + folder + ": Is a directory");
    const auto large = at.write("large", std::string((1 << 20) + 1, 'x'));
    CHECK(mistake(large, key) ==
          "listeners[3].tls.certificate: cannot read " + large + ": larger than 1 MiB");

    const auto text = at.write("text", "no PEM at all");
    CHECK(mistake(text, key).starts_with("listeners[3].tls.certificate: no PEM certificate in " +
                                         text));
    CHECK(mistake(certificate, text) ==
          "listeners[3].tls.key: no PEM private key without a passphrase in " + text);
    CHECK(mistake(key, key).starts_with("listeners[3].tls.certificate: no PEM certificate in "));

    const auto stranger = at.write("stranger", other.key);
    CHECK(mistake(certificate, stranger) ==
          "listeners[3].tls.key: " + stranger +
              " is not the key of listeners[3].tls.certificate, " + certificate);
}

TEST_CASE(
    "of the ciphers a client offers the quickest is taken, and ChaCha where it is offered first") {
    const tests::temp_dir at;
    const auto made = authority().issue("DNS:a.test");
    const auto identity = tls_identity::read(
        {at.write("c", made.certificate), at.write("k", made.key)}, "x");
    const std::string small = "TLS_AES_128_GCM_SHA256";
    const std::string large = "TLS_AES_256_GCM_SHA384";
    const std::string chacha = "TLS_CHACHA20_POLY1305_SHA256";
    CHECK(agreed_with(*identity, large + ":" + chacha + ":" + small) == small);
    CHECK(agreed_with(*identity, large + ":" + chacha) == large);
    CHECK(agreed_with(*identity, chacha + ":" + small + ":" + large) == chacha);
    CHECK(agreed_with(*identity, "", "ECDHE-ECDSA-AES256-GCM-SHA384") ==
          "ECDHE-ECDSA-AES256-GCM-SHA384");
}

TEST_CASE("a chain that is cut in the middle is refused, not shortened") {
    const tests::temp_dir at;
    const auto made = authority().issue("DNS:a.test");
    auto above = authority().certificate();
    above.resize(above.size() / 2);
    const auto cut = at.write("cut", made.certificate + above);
    CHECK(mistake(cut, at.write("k", made.key))
              .starts_with("listeners[3].tls.certificate: a further certificate in "));
}

TEST_CASE("a key that is damaged or has a passphrase is refused, and of it the file's name alone "
          "is told") {
    const tests::temp_dir at;
    const auto made = authority().issue("DNS:a.test");
    const auto certificate = at.write("c", made.certificate);
    auto damaged = made.key;
    const auto middle = damaged.size() / 2;
    damaged.replace(middle, 8, "AAAAAAAA");
    damaged.erase(middle + 10, 4);
    const auto cut = made.key.substr(0, made.key.size() / 2);
    for (const auto& text : {damaged, locked(made.key), cut}) {
        const auto file = at.write("bad", text);
        CHECK(mistake(certificate, file) ==
              "listeners[3].tls.key: no PEM private key without a passphrase in " + file);
    }
}

TEST_CASE("trust is for a name, which is sent, or for an address, which is not") {
    const auto trust = tls_trust::read({});
    const auto name = trust->begin("b.test");
    REQUIRE(name);
    CHECK(std::string{SSL_get_servername(name.get(), TLSEXT_NAMETYPE_host_name)} == "b.test");
    for (const auto* address : {"127.0.0.1", "::1"}) {
        CAPTURE(address);
        const auto ssl = trust->begin(address);
        REQUIRE(ssl);
        CHECK(SSL_get_servername(ssl.get(), TLSEXT_NAMETYPE_host_name) == nullptr);
    }
    CHECK_FALSE(trust->begin(""));
}

TEST_SUITE_END();
