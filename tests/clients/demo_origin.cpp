// A small origin server for the demonstration and for the tests with real clients.
// It answers what a cache needs to show itself (a lifetime, an ETag, conditions, ranges), serves a folder or a few pages
// of its own, over TLS if given a certificate, and logs one line a request, so that a test can count what got past the
// proxy. Trusted clients; bodies of requests are held whole.
//
//   /hello         a greeting that is fresh for --max-age seconds, with an ETag
//   /never         the same, with no-store
//   /private       the same, for one client alone
//   /silent        a greeting with no word on how long it is good
//   /bytes/N       N bytes
//   any, POST/PUT  answers with the body's length and SHA-256
//   --root DIR     GET and HEAD serve the folder's files instead
//   --git DIR      repositories over git's "smart" protocol: git's http-backend behind the least of a CGI server
//   --delay-ms N   as far away as that
//   --no-names     a name server instead, which knows no name. Browsers phone home through whatever proxy they are given:
//                  one that resolves here can be reached by address alone, so such requests end at once.

#include "tests/support/fake_dns.hpp"
#include "tests/support/fake_origin.hpp"
#include "tests/support/proxy_process.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <openssl/evp.h>
#include <sys/stat.h>

namespace {

using namespace reprise::tests;

struct site_options {
    std::string root;         ///< folder to serve; empty: the pages
    std::string git;          ///< folder of repositories to serve; empty: none
    unsigned max_age = 3600;  ///< lifetime of what may be stored, in seconds
    unsigned delay_ms = 0;
};

/// An answer's head, and what its body is made of: a text, made-up bytes, or a run of a file's.
struct made_answer {
    std::string status = "200 OK";
    std::string fields{};  ///< each line ended by CRLF; without framing and Date
    std::string text{};
    std::uint64_t made_up = 0;  ///< bytes of filling
    std::ifstream file{};
    std::uint64_t from_file = 0;  ///< bytes of `file`, from where it stands
    [[nodiscard]] std::uint64_t length() const { return text.size() + made_up + from_file; }
};

/// A text that no cache keeps.
made_answer plain(std::string status, std::string text) {
    return {.status = std::move(status),
            .fields = "Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n",
            .text = std::move(text)};
}

std::string_view media_type(const std::filesystem::path& path) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 8> known{{
        {".html", "text/html; charset=utf-8"},
        {".txt", "text/plain; charset=utf-8"},
        {".css", "text/css"},
        {".js", "text/javascript"},
        {".json", "application/json"},
        {".png", "image/png"},
        {".svg", "image/svg+xml"},
        {".deb", "application/vnd.debian.binary-package"},
    }};
    const auto extension = path.extension().string();
    const auto* const found = std::find_if(
        known.begin(), known.end(), [&](const auto& one) { return one.first == extension; });
    return found == known.end() ? "application/octet-stream" : found->second;
}

// The file a target names below `root`; none when it has a segment that could lead out of it.
std::optional<std::filesystem::path> file_of(std::string_view target, const std::string& root) {
    target = target.substr(0, target.find_first_of("?#"));
    std::string decoded;
    for (std::size_t i = 0; i < target.size(); ++i) {
        if (target[i] == '%' && i + 2 < target.size()) {
            unsigned octet = 0;
            const char* digits = target.data() + i + 1;
            const auto [end, bad] = std::from_chars(digits, digits + 2, octet, 16);
            if (bad != std::errc{} || end != digits + 2 || octet == 0) {
                return std::nullopt;
            }
            decoded += static_cast<char>(octet);
            i += 2;
        } else {
            decoded += target[i];
        }
    }
    const std::filesystem::path below{decoded};
    if (std::find(below.begin(), below.end(), "..") != below.end()) {
        return std::nullopt;
    }
    auto path = std::filesystem::path{root} / below.relative_path();
    std::error_code ignored;
    return std::filesystem::is_directory(path, ignored) ? path / "index.html" : path;
}

// RFC 9110 13.2.2: an ETag decides when the request names one, else the date.
bool is_unmodified(const origin_request& asked, const std::string& etag, std::time_t modified) {
    if (const auto tags = asked.get("If-None-Match"); !tags.empty()) {
        return tags == "*" || tags.find(etag) != std::string::npos;
    }
    std::tm parts{};
    const auto since = asked.get("If-Modified-Since");
    const char* const end = ::strptime(since.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    return end != nullptr && *end == '\0' && modified <= ::timegm(&parts);
}

made_answer serve_file(const origin_request& asked, const site_options& site) {
    const auto path = file_of(asked.target, site.root);
    struct stat about {};
    if (!path || ::stat(path->c_str(), &about) != 0 || !S_ISREG(about.st_mode)) {
        return plain("404 Not Found", "There is no such file here.\n");
    }
    made_answer made;
    const auto size = static_cast<std::uint64_t>(about.st_size);
    const auto etag = "\"" + std::to_string(size) + "-" + std::to_string(about.st_mtim.tv_sec) +
                      "-" + std::to_string(about.st_mtim.tv_nsec) + "\"";
    const auto modified = http_date_of(about.st_mtim.tv_sec);
    made.fields = "Content-Type: " + std::string{media_type(*path)} + "\r\nETag: " + etag +
                  "\r\nLast-Modified: " + modified + "\r\nAccept-Ranges: bytes\r\n" +
                  "Cache-Control: max-age=" + std::to_string(site.max_age) + "\r\n";
    if (is_unmodified(asked, etag, about.st_mtim.tv_sec)) {
        made.status = "304 Not Modified";
        return made;
    }
    made.file.open(*path, std::ios::binary);
    made.from_file = size;
    const auto wanted = asked.get("Range");
    const auto condition = asked.get("If-Range");
    if (!wanted.starts_with("bytes=") || wanted.find(',') != std::string::npos ||
        !(condition.empty() || condition == etag || condition == modified)) {
        return made;
    }
    const auto span = span_of(wanted, size);
    if (!span) {
        made.status = "416 Range Not Satisfiable";
        made.fields += "Content-Range: bytes */" + std::to_string(size) + "\r\n";
        made.from_file = 0;
        return made;
    }
    made.status = "206 Partial Content";
    made.fields += content_range(*span, size);
    made.file.seekg(static_cast<std::streamoff>(span->first));
    made.from_file = span->count;
    return made;
}

made_answer serve_page(const origin_request& asked, const site_options& site) {
    constexpr std::string_view bytes = "/bytes/";
    const auto path = asked.path();
    const auto lifetime = "Cache-Control: max-age=" + std::to_string(site.max_age) + "\r\n";
    if (path == "/hello") {
        const std::string etag = "\"hello-1\"";
        made_answer made{.fields = lifetime + "ETag: " + etag + "\r\nContent-Type: text/plain\r\n"};
        if (is_unmodified(asked, etag, std::time(nullptr))) {
            made.status = "304 Not Modified";
        } else {
            made.text = "Hello from the origin.\n";
        }
        return made;
    }
    if (path == "/never") {
        return plain("200 OK", "Hello, and forget it.\n");
    }
    if (path == "/private") {
        return {.fields = "Cache-Control: private, max-age=3600\r\nContent-Type: text/plain\r\n",
                .text = "Hello, and to you alone.\n"};
    }
    if (path == "/silent") {
        return {.fields = "Content-Type: text/plain\r\n",
                .text = "Hello, for as long as you like.\n"};
    }
    if (const auto count = number_in(path.substr(std::min(bytes.size(), path.size())));
        path.starts_with(bytes) && count) {
        return {.fields = lifetime + "Content-Type: application/octet-stream\r\n",
                .made_up = *count};
    }
    return plain("404 Not Found", "Here are /hello, /never, /private, /silent and /bytes/N.\n");
}

// Length and SHA-256 of what came.
made_answer receipt_of(const std::string& body) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> octets{};
    unsigned size = 0;
    EVP_Digest(body.data(), body.size(), octets.data(), &size, EVP_sha256(), nullptr);
    auto out = std::to_string(body.size()) + " ";
    for (unsigned i = 0; i < size; ++i) {
        constexpr std::string_view digits = "0123456789abcdef";
        out += digits[octets[i] >> 4];
        out += digits[octets[i] & 15];
    }
    return plain("200 OK", out + "\n");
}

// What git's http-backend prints for this request, a CGI response (RFC 3875), as an HTTP one.
made_answer serve_git(const origin_request& asked, const site_options& site) {
    const auto question = asked.target.find('?');
    const temp_dir directory;
    const auto input = directory.write("body", asked.body);
    std::string printed = run_to_its_end(
                              {"env",
                               "-i",
                               "PATH=" + std::string{std::getenv("PATH")},
                               "GIT_CONFIG_NOSYSTEM=1",
                               "GIT_HTTP_EXPORT_ALL=1",
                               "GIT_PROJECT_ROOT=" + site.git,
                               "GIT_PROTOCOL=" + asked.get("Git-Protocol"),
                               "REQUEST_METHOD=" + asked.method,
                               "PATH_INFO=" + asked.target.substr(0, question),
                               "QUERY_STRING=" + (question == std::string::npos
                                                      ? std::string{}
                                                      : asked.target.substr(question + 1)),
                               "CONTENT_TYPE=" + asked.get("Content-Type"),
                               "CONTENT_LENGTH=" + std::to_string(asked.body.size()),
                               "HTTP_CONTENT_ENCODING=" + asked.get("Content-Encoding"),
                               "REMOTE_USER=somebody",
                               "REMOTE_ADDR=127.0.0.1",
                               "sh",
                               "-c",
                               "exec git http-backend <\"$0\"",
                               input},
                              std::chrono::minutes{1})
                              .output;
    printed.insert(0, "CGI\r\n");  // where a message has its start line
    const auto head = take_head(printed);
    if (!head) {
        return plain("500 Internal Server Error", "git http-backend printed no head\n");
    }
    made_answer made{.text = std::move(printed)};
    for (const auto& line : head->fields.lines) {
        if (line.name == "Status") {
            made.status = line.value;
        } else {
            made.fields += line.name + ": " + line.value + "\r\n";
        }
    }
    return made;
}

made_answer decide(const origin_request& asked, const site_options& site) {
    if (!site.git.empty()) {
        return serve_git(asked, site);
    }
    if (asked.method == "GET" || asked.method == "HEAD") {
        return site.root.empty() ? serve_page(asked, site) : serve_file(asked, site);
    }
    if (asked.method == "POST" || asked.method == "PUT") {
        return receipt_of(asked.body);
    }
    return plain("405 Method Not Allowed", "GET, HEAD, POST or PUT.\n");
}

void send(const origin_request& asked, made_answer& made, origin_connection& connection) {
    const auto manner = lower(asked.get("Connection"));
    const bool stays = asked.version == "HTTP/1.1" ? manner != "close" : manner == "keep-alive";
    auto head = "HTTP/1.1 " + made.status + "\r\n" + made.fields + "Date: " + http_date() + "\r\n";
    if (!made.status.starts_with("304")) {
        head += "Content-Length: " + std::to_string(made.length()) + "\r\n";
    }
    head += stays ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
    bool sent = connection.send(asked.method == "HEAD" ? head : head + made.text);
    std::string piece(64 * 1024, '.');
    while (sent && asked.method != "HEAD" && made.made_up + made.from_file > 0) {
        auto& left = made.made_up > 0 ? made.made_up : made.from_file;
        const auto size = std::min<std::uint64_t>(left, piece.size());
        sent = (&left == &made.made_up ||
                made.file.read(piece.data(), static_cast<std::streamsize>(size))) &&
               connection.send(std::string_view{piece}.substr(0, size));
        left -= size;
    }
    if (!sent) {
        connection.reset();
    } else if (!stays) {
        connection.close();
    }
}

class log_of_requests {
public:
    explicit log_of_requests(const std::string& file) {
        if (!file.empty()) {
            out_.open(file, std::ios::app);
        }
    }
    // Written before the answer is sent: whoever has the answer can count on the line.
    void note(const origin_request& asked, const made_answer& made) {
        const auto range = asked.get("Range");
        const std::lock_guard lock{guard_};
        out_ << asked.method << ' ' << asked.target << ' ' << made.status.substr(0, 3) << ' '
             << (!range.empty()                        ? range
                 : asked.framed_by == framing::chunked ? "chunked"
                                                       : "-")
             << ' ' << made.length()
             << (asked.has("Proxy-Authorization") ? " proxy-authorization" : "") << std::endl;
    }

private:
    std::mutex guard_;
    std::ofstream out_;
};

// Renamed into place, so that whoever sees the file sees all of it.
void tell_port(const std::string& file, std::uint16_t port) {
    if (file.empty()) {
        std::cout << "port " << port << std::endl;
        return;
    }
    std::ofstream{file + ".new"} << port << '\n';
    std::filesystem::rename(file + ".new", file);
}

}  // namespace

int main(int argc, char** argv) {
    origin_options options{.remembers = false};
    site_options site;
    std::string log, port_file, certificate, key;
    bool no_names = false;
    CLI::App app{"A small origin server for demonstrations and tests."};
    app.add_option("--address", options.address, "numeric address to listen on");
    app.add_option("--port", options.port, "port to listen on; 0: the system picks");
    app.add_option("--port-file", port_file, "file to write the port to, when it listens");
    app.add_option("--root", site.root, "folder to serve")->check(CLI::ExistingDirectory);
    app.add_option("--git", site.git, "folder of repositories")->check(CLI::ExistingDirectory);
    app.add_option("--max-age", site.max_age, "lifetime of answers, in seconds");
    app.add_option("--log", log, "file to append a line a request to");
    app.add_option("--delay-ms", site.delay_ms, "milliseconds that an answer takes, as from afar");
    app.add_flag("--no-names", no_names, "a name server that knows no name");
    auto* with_certificate = app.add_option("--certificate", certificate, "PEM file: serve TLS");
    with_certificate->needs(app.add_option("--key", key, "PEM file of the certificate's key"));
    CLI11_PARSE(app, argc, argv);

    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // of all threads: main waits for it
    int came = 0;
    try {
        if (no_names) {
            const fake_dns names;
            tell_port(port_file, names.port());
            return ::sigwait(&ends, &came);
        }
        if (!certificate.empty()) {
            options.identity = {read_file(certificate), read_file(key)};
        }
        log_of_requests requests{log};
        fake_origin origin{options};
        origin.otherwise_at_head([&](origin_request& asked, origin_connection& connection) {
            if (lower(asked.get("Expect")) == "100-continue") {
                connection.send("HTTP/1.1 100 Continue\r\n\r\n");
            }
            connection.read_body(asked);
            auto made = decide(asked, site);
            requests.note(asked, made);
            std::this_thread::sleep_for(std::chrono::milliseconds{site.delay_ms});
            send(asked, made, connection);
        });
        tell_port(port_file, origin.port());
        return ::sigwait(&ends, &came);
    } catch (const std::exception& failed) {
        std::cerr << "demo_origin: " << failed.what() << '\n';
        return 1;
    }
}
