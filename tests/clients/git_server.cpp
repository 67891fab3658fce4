// Serves git repositories over its "smart" HTTP protocol: git's own http-backend behind the least
// of a CGI server. One connection and one request at a time; bodies are held whole. For tests.
//
// usage: git_server REPOSITORIES PORT_FILE REQUEST_LOG

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <spawn.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = net::ip::tcp;
using request = http::request<http::string_body>;

constexpr std::uint64_t most_body_bytes = 64ull << 20;

// RFC 3875's variables, as far as http-backend reads them.
std::vector<std::string> variables(const request& asked, const std::string& repositories) {
    const std::string target{asked.target()};
    const auto question = target.find('?');
    const auto value = [&](std::string_view name) { return std::string{asked[name]}; };
    return {"PATH=" + std::string{getenv("PATH")},
            "GIT_CONFIG_NOSYSTEM=1",
            "GIT_HTTP_EXPORT_ALL=1",
            "GIT_PROJECT_ROOT=" + repositories,
            "GIT_PROTOCOL=" + value("Git-Protocol"),
            "REQUEST_METHOD=" + std::string{asked.method_string()},
            "PATH_INFO=" + target.substr(0, question),
            "QUERY_STRING=" + (question == target.npos ? "" : target.substr(question + 1)),
            "CONTENT_TYPE=" + value("Content-Type"),
            "CONTENT_LENGTH=" + std::to_string(asked.body().size()),
            "HTTP_CONTENT_ENCODING=" + value("Content-Encoding"),
            "REMOTE_USER=somebody",
            "REMOTE_ADDR=127.0.0.1"};
}

struct close_file {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using file = std::unique_ptr<std::FILE, close_file>;

// What http-backend prints for this request: a CGI response.
std::string run_backend(const request& asked, const std::string& repositories) {
    const file input{std::tmpfile()};
    const file output{std::tmpfile()};
    if (!input || !output) {
        throw std::runtime_error("no temporary file");
    }
    std::fwrite(asked.body().data(), 1, asked.body().size(), input.get());
    std::fflush(input.get());
    std::rewind(input.get());

    auto settings = variables(asked, repositories);
    std::vector<char*> environment;
    for (auto& setting : settings) {
        environment.push_back(setting.data());
    }
    environment.push_back(nullptr);
    std::string git = "git";
    std::string backend = "http-backend";
    const std::array<char*, 3> command{git.data(), backend.data(), nullptr};
    posix_spawn_file_actions_t plumbing;
    posix_spawn_file_actions_init(&plumbing);
    posix_spawn_file_actions_adddup2(&plumbing, fileno(input.get()), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&plumbing, fileno(output.get()), STDOUT_FILENO);
    pid_t child = 0;
    const int failed = posix_spawnp(
        &child, "git", &plumbing, nullptr, command.data(), environment.data());
    posix_spawn_file_actions_destroy(&plumbing);
    if (failed != 0 || waitpid(child, nullptr, 0) < 0) {
        throw std::runtime_error("git http-backend does not run");
    }

    std::string printed(static_cast<std::size_t>(lseek(fileno(output.get()), 0, SEEK_END)), '\0');
    std::rewind(output.get());
    printed.resize(std::fread(printed.data(), 1, printed.size(), output.get()));
    return printed;
}

// A CGI response as an HTTP one.
http::response<http::string_body> translated(const std::string& printed) {
    http::response<http::string_body> made{http::status::ok, 11};
    constexpr std::string_view line_end = "\r\n";
    std::size_t at = 0;
    for (;;) {
        const auto end = printed.find(line_end, at);
        if (end == printed.npos) {
            throw std::runtime_error("git http-backend printed no head");
        }
        const auto line = std::string_view{printed}.substr(at, end - at);
        at = end + line_end.size();
        if (line.empty()) {
            break;
        }
        const auto colon = line.find(": ");
        if (colon == line.npos) {
            throw std::runtime_error("git http-backend printed a line without a name");
        }
        const auto name = line.substr(0, colon);
        const auto value = line.substr(colon + 2);
        if (name == "Status") {
            made.result(static_cast<unsigned>(std::stoul(std::string{value})));
        } else {
            made.set(name, value);
        }
    }
    made.body() = printed.substr(at);
    made.keep_alive(false);
    made.prepare_payload();
    return made;
}

void serve_one(tcp::socket& client, const std::string& repositories, std::ostream& log) {
    beast::flat_buffer buffer;
    http::request_parser<http::string_body> parser;
    parser.body_limit(most_body_bytes);
    http::read_header(client, buffer, parser);
    if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
        net::write(client, net::buffer(std::string_view{"HTTP/1.1 100 Continue\r\n\r\n"}));
    }
    http::read(client, buffer, parser);
    const auto& asked = parser.get();
    auto answer = translated(run_backend(asked, repositories));
    log << asked.method_string() << ' ' << asked.target() << ' ' << answer.result_int() << ' '
        << (asked.chunked() ? "chunked" : "-") << ' ' << asked.body().size() << std::endl;
    http::write(client, answer);
    client.shutdown(tcp::socket::shutdown_send);
}

void serve(const std::string& repositories, const std::string& port_file, const std::string& log) {
    net::io_context io;
    tcp::acceptor acceptor{io, {net::ip::address_v4::loopback(), 0}};
    std::ofstream requests{log, std::ios::app};
    std::ofstream{port_file + ".new"} << acceptor.local_endpoint().port() << '\n';
    std::filesystem::rename(port_file + ".new", port_file);
    for (;;) {
        auto client = acceptor.accept();
        try {
            serve_one(client, repositories, requests);
        } catch (const std::exception& failed) {
            std::cerr << "git_server: " << failed.what() << '\n';
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::cerr << "usage: git_server REPOSITORIES PORT_FILE REQUEST_LOG\n";
        return 2;
    }
    try {
        serve(argv[1], argv[2], argv[3]);
    } catch (const std::exception& failed) {
        std::cerr << "git_server: " << failed.what() << '\n';
        return 1;
    }
}
