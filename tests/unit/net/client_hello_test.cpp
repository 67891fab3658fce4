#include "proxy/net/client_hello.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <openssl/ssl.h>
#include <string>
#include <vector>

namespace reprise::proxy::net::test::of_client_hello_test {
namespace {

using state = client_hello_reader::state;

std::string number(std::size_t value, unsigned bytes) {
    std::string text;
    for (unsigned i = bytes; i-- > 0;) {
        text += static_cast<char>(value >> (8 * i));
    }
    return text;
}
std::string vector(const std::string& content, unsigned length_bytes) {
    return number(content.size(), length_bytes) + content;
}
std::string extension_of(unsigned type, const std::string& body) {
    return number(type, 2) + vector(body, 2);
}
std::string server_name_of(const std::string& host) {
    return extension_of(0, vector(number(0, 1) + vector(host, 2), 2));
}
std::string record_of(const std::string& fragment) {
    return "\x16\x03\x01" + vector(fragment, 2);
}
std::string message_of(const std::string& body) {
    return "\x01" + vector(body, 3);
}

struct parts_of_hello {
    std::string version = "\x03\x03";
    std::string session = std::string(32, 's');
    std::string ciphers = "\x13\x01\xc0\x2b";
    std::string compressions = std::string(1, '\0');
    std::string extensions = server_name_of("a.test");

    [[nodiscard]] std::string body() const {
        return version + std::string(32, 'r') + vector(session, 1) + vector(ciphers, 2) +
               vector(compressions, 1) + vector(extensions, 2);
    }
    [[nodiscard]] std::string message() const { return message_of(body()); }
};

std::string hello_with(const std::string& extensions) {
    parts_of_hello parts;
    parts.extensions = extensions;
    return record_of(parts.message());
}

/// In records whose fragments have `size` bytes.
std::string in_records(const std::string& message, std::size_t size) {
    std::string all;
    for (std::size_t at = 0; at < message.size(); at += size) {
        all += record_of(message.substr(at, size));
    }
    return all;
}

/// What OpenSSL sends first.
struct openssl_wishes {
    const char* host = "www.example.org";
    std::string alpn = "\x02h2\x08http/1.1";
    int newest = TLS1_3_VERSION;
    int oldest = TLS1_2_VERSION;
};
std::string openssl_hello(const openssl_wishes& wanted) {
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context{
        SSL_CTX_new(TLS_client_method()), &SSL_CTX_free};
    const std::unique_ptr<SSL, decltype(&SSL_free)> ssl{SSL_new(context.get()), &SSL_free};
    SSL_set_security_level(ssl.get(), 0);
    SSL_set_min_proto_version(ssl.get(), wanted.oldest);
    SSL_set_max_proto_version(ssl.get(), wanted.newest);
    if (wanted.host != nullptr) {
        SSL_set_tlsext_host_name(ssl.get(), wanted.host);
    }
    if (!wanted.alpn.empty()) {
        SSL_set_alpn_protos(ssl.get(),
                            reinterpret_cast<const unsigned char*>(wanted.alpn.data()),
                            static_cast<unsigned>(wanted.alpn.size()));
    }
    auto* in = BIO_new(BIO_s_mem());
    auto* out = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl.get(), in, out);
    SSL_set_connect_state(ssl.get());
    SSL_do_handshake(ssl.get());
    char* at = nullptr;
    const auto size = BIO_get_mem_data(out, &at);
    return {at, static_cast<std::size_t>(size)};
}

client_hello read_whole(const std::string& bytes) {
    client_hello_reader reader;
    const auto found = reader.read(bytes);
    CAPTURE(reader.why());
    REQUIRE(found == state::done);
    return reader.hello();
}

/// Why these bytes are no hello, which must be said however they come.
std::string why_not(const std::string& bytes) {
    client_hello_reader whole;
    REQUIRE(whole.read(bytes) == state::other);
    client_hello_reader in_bytes;
    for (std::size_t size = 1; size <= bytes.size(); ++size) {
        if (in_bytes.read(std::string_view{bytes}.substr(0, size)) != state::more) {
            break;
        }
    }
    REQUIRE(in_bytes.read(bytes) == state::other);
    CHECK(in_bytes.why() == whole.why());
    CHECK(in_bytes.hello().host.empty());
    return std::string{whole.why()};
}

}  // namespace

TEST_SUITE("net/client_hello") {

    TEST_CASE("what OpenSSL's clients say is read") {
        const auto usual = read_whole(openssl_hello({}));
        CHECK(usual.host == "www.example.org");
        CHECK(usual.tls_1_2);
        CHECK(usual.has_alpn);
        CHECK(usual.http_1_1);
        CHECK_FALSE(usual.outer_ech);

        const auto h2_alone = read_whole(openssl_hello({.alpn = "\x02h2"}));
        CHECK(h2_alone.has_alpn);
        CHECK_FALSE(h2_alone.http_1_1);

        const auto plain = read_whole(
            openssl_hello({.host = nullptr, .alpn = "", .newest = TLS1_2_VERSION}));
        CHECK(plain.host.empty());
        CHECK(plain.tls_1_2);
        CHECK_FALSE(plain.has_alpn);
        CHECK_FALSE(plain.http_1_1);

        CHECK(read_whole(openssl_hello({.oldest = TLS1_3_VERSION})).tls_1_2);
        CHECK_FALSE(
            read_whole(openssl_hello({.newest = TLS1_1_VERSION, .oldest = TLS1_VERSION})).tls_1_2);
    }

    TEST_CASE("a hello cut anywhere wants more, and is read as soon as it is whole") {
        const auto bytes = openssl_hello({});
        for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
            CAPTURE(cut);
            client_hello_reader reader;
            CHECK(reader.read(std::string_view{bytes}.substr(0, cut)) == state::more);
            CHECK(reader.read(bytes) == state::done);
            CHECK(reader.hello().host == "www.example.org");
        }
        client_hello_reader in_bytes;
        for (std::size_t size = 1; size < bytes.size(); ++size) {
            REQUIRE(in_bytes.read(std::string_view{bytes}.substr(0, size)) == state::more);
        }
        CHECK(in_bytes.read(bytes) == state::done);
    }

    TEST_CASE("a hello in records of any size is the same hello") {
        const auto message = openssl_hello({}).substr(5);
        for (std::size_t size = 1; size <= message.size(); ++size) {
            CAPTURE(size);
            const auto bytes = in_records(message, size);
            client_hello_reader at_once;
            REQUIRE(at_once.read(bytes) == state::done);
            CHECK(at_once.hello().host == "www.example.org");
            client_hello_reader in_bytes;
            auto found = state::more;
            std::size_t given = 0;
            while (found == state::more && given < bytes.size()) {
                found = in_bytes.read(std::string_view{bytes}.substr(0, ++given));
            }
            CHECK(found == state::done);
            CHECK(given == bytes.size());
        }
    }

    TEST_CASE("what follows the hello's last record is not looked at") {
        const auto bytes = openssl_hello({});
        client_hello_reader reader;
        CHECK(reader.read(bytes + std::string(20'000, 'x')) == state::done);
        CHECK(reader.read(bytes) == state::done);
    }

    TEST_CASE("the versions' list counts before the message's own version") {
        const auto only = [](const std::string& versions) {
            return hello_with(extension_of(43, vector(versions, 1)));
        };
        CHECK(read_whole(only("\x03\x04")).tls_1_2);
        CHECK(read_whole(only("\x03\x03")).tls_1_2);
        CHECK_FALSE(read_whole(only("\x03\x02")).tls_1_2);
        CHECK_FALSE(read_whole(only("\x3a\x3a\x7f\x1c")).tls_1_2);  // GREASE, a draft
        parts_of_hello old;
        old.version = "\x03\x02";
        CHECK_FALSE(read_whole(record_of(old.message())).tls_1_2);
        old.extensions = extension_of(43, vector("\x03\x04", 1));
        CHECK(read_whole(record_of(old.message())).tls_1_2);
    }

    TEST_CASE("a hello of TLS 1.2 may have no extensions at all") {
        const parts_of_hello parts;
        const auto body = parts.body();
        const auto bare = body.substr(0, body.size() - 2 - parts.extensions.size());
        const auto found = read_whole(record_of(message_of(bare)));
        CHECK(found.tls_1_2);
        CHECK(found.host.empty());
    }

    TEST_CASE("an encrypted hello is told by its outer, whoever means it") {
        const auto name = server_name_of("public.test");
        CHECK(read_whole(hello_with(name + extension_of(0xfe0d, std::string(1, '\0') + "rest")))
                  .outer_ech);
        CHECK_FALSE(read_whole(hello_with(name + extension_of(0xfe0d, "\x01"))).outer_ech);
        CHECK(why_not(hello_with(extension_of(0xfe0d, ""))) == "the encrypted hello is malformed");
        CHECK(why_not(hello_with(extension_of(0xfe0d, "\x02"))) ==
              "the encrypted hello is malformed");
    }

    TEST_CASE("what is no TLS is told at its first byte that is none") {
        client_hello_reader ssh;
        CHECK(ssh.read("S") == state::other);
        CHECK(ssh.why() == "no TLS");
        CHECK(why_not("GET / HTTP/1.1\r\n\r\n") == "no TLS");
        CHECK(why_not("\x80\x2e\x01\x03\x01") == "no TLS");  // the hello of SSL 2
        CHECK(why_not("\x16\x02") == "no TLS");
        CHECK(why_not("\x15\x03\x03") == "no TLS");  // an alert
        CHECK(why_not("\x16\x03\x01" + vector("\x02", 2)) == "TLS, but no ClientHello");
    }

    TEST_CASE("records that lie end it") {
        const auto message = parts_of_hello{}.message();
        CHECK(why_not("\x16\x03\x01" + number(0, 2)) == "a record's length is not one");
        CHECK(why_not("\x16\x03\x01" + number((1 << 14) + 1, 2)) == "a record's length is not one");
        CHECK(why_not(record_of(message.substr(0, 7)) + "\x17\x03\x03") ==
              "a record within the hello is none of it");
        CHECK(why_not(record_of(message.substr(0, 7)) + "\x16\x04") ==
              "a record within the hello is none of it");
        CHECK(why_not(record_of(message + "x")) == "something follows the hello in its record");
        CHECK(why_not(record_of(message + message)) == "something follows the hello in its record");
    }

    TEST_CASE("16 KiB are read with their records' headers, and not a byte more") {
        const auto of_size = [](std::size_t size) {
            const auto rest = hello_with(extension_of(21, "")).size();
            return hello_with(extension_of(21, std::string(size - rest, '\0')));
        };
        CHECK(of_size(client_hello_reader::most).size() == client_hello_reader::most);
        static_cast<void>(read_whole(of_size(client_hello_reader::most)));
        CHECK(why_not(of_size(client_hello_reader::most + 1)) == "the hello is too large");
        // Small enough by itself, not in as many records.
        const auto message = of_size(4'000).substr(5);
        CHECK(why_not(in_records(message, 1)) == "the hello is too large");
        // Said by the header alone, before anything has come.
        client_hello_reader told;
        CHECK(told.read(record_of("\x01" + number(1 << 20, 3))) == state::other);
        CHECK(told.why() == "the hello is too large");
    }

    TEST_CASE("every length that lies, at every place, ends it") {
        const auto right = parts_of_hello{}.body();
        const auto extensions = right.size() - 2 - server_name_of("a.test").size();
        // Of one byte: session, compressions; of two, the low one: ciphers, all extensions, one,
        // the list of names, the name.
        const std::size_t lengths[] = {34,
                                       34 + 33 + 1,
                                       34 + 33 + 6,
                                       extensions + 1,
                                       extensions + 2 + 3,
                                       extensions + 2 + 5,
                                       extensions + 2 + 8};
        for (const auto at : lengths) {
            for (const int by : {-1, 1, 100}) {
                CAPTURE(at);
                CAPTURE(by);
                auto wrong = right;
                wrong[at] = static_cast<char>(wrong[at] + by);
                CHECK_FALSE(why_not(record_of(message_of(wrong))).empty());
            }
        }
        for (std::size_t size = 0; size < right.size(); ++size) {
            CAPTURE(size);
            if (size != extensions) {  // that one is a hello without extensions
                CHECK_FALSE(why_not(record_of(message_of(right.substr(0, size)))).empty());
            }
        }
        CHECK(why_not(record_of(message_of(right + "x"))) ==
              "the extensions don't end where the hello does");
    }

    TEST_CASE("of the message's own parts none may be what no client sends") {
        const auto with = [](auto change) {
            parts_of_hello parts;
            change(parts);
            return record_of(parts.message());
        };
        const std::string wrong = "the hello is malformed";
        CHECK(why_not(with([](auto& of) { of.version = "\x02\x03"; })) == wrong);
        CHECK(why_not(with([](auto& of) { of.session = std::string(33, 's'); })) == wrong);
        CHECK(why_not(with([](auto& of) { of.ciphers = ""; })) == wrong);
        CHECK(why_not(with([](auto& of) { of.ciphers = "\x13"; })) == wrong);
        CHECK(why_not(with([](auto& of) { of.compressions = ""; })) == wrong);
    }

    TEST_CASE("no extension comes twice, known or not") {
        CHECK(why_not(hello_with(server_name_of("a.test") + server_name_of("a.test"))) ==
              "an extension comes twice");
        CHECK(why_not(hello_with(extension_of(0xffff, "") + extension_of(7, "x") +
                                 extension_of(0xffff, ""))) == "an extension comes twice");
    }

    TEST_CASE("a server name is one host of 1 to 255 bytes") {
        const std::string wrong = "the server name is malformed";
        const auto named = [](const std::string& names) {
            return hello_with(extension_of(0, vector(names, 2)));
        };
        const auto host = [](unsigned type, const std::string& name) {
            return number(type, 1) + vector(name, 2);
        };
        CHECK(read_whole(named(host(0, std::string(255, 'a')))).host == std::string(255, 'a'));
        CHECK(read_whole(named(host(0, "MiXed.Test."))).host == "MiXed.Test.");
        CHECK(why_not(named(host(0, std::string(256, 'a')))) == wrong);
        CHECK(why_not(named(host(0, ""))) == wrong);
        CHECK(why_not(named("")) == wrong);
        CHECK(why_not(named(host(1, "a.test"))) == wrong);
        CHECK(why_not(named(host(0, "a.test") + host(0, "b.test"))) == wrong);
        CHECK(why_not(named(host(0, std::string("a\0b", 3)))) == wrong);
        CHECK(why_not(hello_with(extension_of(0, ""))) == wrong);
    }

    TEST_CASE("the lists of protocols and versions are not empty, and end where they say") {
        const std::string protocols = "the list of protocols is malformed";
        const auto alpn = [](const std::string& body) {
            return hello_with(extension_of(16, body));
        };
        CHECK(why_not(alpn("")) == protocols);
        CHECK(why_not(alpn(vector("", 2))) == protocols);
        CHECK(why_not(alpn(vector(vector("", 1), 2))) == protocols);
        CHECK(why_not(alpn(vector(vector("h2", 1) + "\x05h", 2))) == protocols);
        CHECK(why_not(alpn(vector(vector("h2", 1), 2) + "x")) == protocols);
        CHECK(read_whole(alpn(vector(vector("http/1.1", 1), 2))).http_1_1);
        CHECK_FALSE(read_whole(alpn(vector(vector("http/1.0", 1), 2))).http_1_1);

        const std::string versions = "the list of versions is malformed";
        const auto offers = [](const std::string& body) {
            return hello_with(extension_of(43, body));
        };
        CHECK(why_not(offers("")) == versions);
        CHECK(why_not(offers(vector("", 1))) == versions);
        CHECK(why_not(offers(vector("\x03\x04\x03", 1))) == versions);
        CHECK(why_not(offers(vector("\x03\x04", 1) + "x")) == versions);
    }

}  // TEST_SUITE

}  // namespace reprise::proxy::net::test::of_client_hello_test
