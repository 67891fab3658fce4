#include "tools/bench_proxy/servers.hpp"

#include "tools/bench_proxy/floors.hpp"
#include "tools/bench_proxy/load.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace reprise::bench {

namespace fs = std::filesystem;

bool is_installed(const std::string& program) {
    const char* const path = std::getenv("PATH");
    std::string rest = std::string{path != nullptr ? path : ""} + ":/usr/sbin";
    while (!rest.empty()) {
        const auto end = rest.find(':');
        if (::access((rest.substr(0, end) + "/" + program).c_str(), X_OK) == 0) {
            return true;
        }
        rest = end == std::string::npos ? std::string{} : rest.substr(end + 1);
    }
    return false;
}

std::string written(const std::string& file, const std::string& text) {
    std::ofstream{file, std::ios::binary} << text;
    return file;
}

namespace {

std::string end_of_file(const std::string& file) {
    std::ifstream in{file, std::ios::binary};
    const std::string all{std::istreambuf_iterator<char>{in}, {}};
    return all.size() > 2000 ? all.substr(all.size() - 2000) : all;
}

[[noreturn]] void did_not_start(const lab& of, const std::string& name) {
    throw std::runtime_error(name + " did not start:\n" + end_of_file(of.log));
}

/// Ten seconds for `ready()`, as long as the process is there.
template <class Condition>
void wait_for_start(const lab& of, server& one, Condition ready) {
    for (int i = 0; i < 1000; ++i) {
        if (!one.process.is_running()) {
            break;
        }
        if (ready()) {
            return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    did_not_start(of, one.name);
}

bool answers(std::uint16_t port) {
    try {
        (void)connect_to(port);
        return true;
    } catch (const std::runtime_error&) {
        return false;
    }
}

std::uint16_t port_in(const std::string& address) {
    return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

}  // namespace

bool make_certificate(const lab& of,
                      const std::string& base,
                      const std::string& subject,
                      const std::vector<std::string>& extensions,
                      const std::string& signer) {
    if (!is_installed("openssl")) {
        return false;
    }
    start_of_program how{.words = {"openssl",
                                   "req",
                                   "-x509",
                                   "-newkey",
                                   "ec",
                                   "-pkeyopt",
                                   "ec_paramgen_curve:prime256v1",
                                   "-nodes",
                                   "-days",
                                   "30",
                                   "-subj",
                                   subject,
                                   "-keyout",
                                   base + ".key",
                                   "-out",
                                   base + ".crt"},
                         .environment = {},
                         .log = of.log,
                         .where = processor::any};
    for (const auto& one : extensions) {
        how.words.insert(how.words.end(), {"-addext", one});
    }
    if (!signer.empty()) {
        how.words.insert(how.words.end(), {"-CA", signer + ".crt", "-CAkey", signer + ".key"});
    }
    auto made = child::of_program(how);
    for (int i = 0; i < 1000 && made.is_running(); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    return fs::exists(base + ".crt") && fs::exists(base + ".key");
}

lab::lab(const plan& all)
    : wanted{all},
      log{all.folder + "/log"},
      has_wrk{is_installed("wrk")},
      has_nginx{is_installed("nginx")} {
    const auto base = all.folder + "/tls";
    if (make_certificate(*this, base, "/CN=127.0.0.1", {"subjectAltName=IP:127.0.0.1"})) {
        certificate = base + ".crt";
        key = base + ".key";
    }
    token_file = written(all.folder + "/token", "a-token-for-the-bench-alone\n");
    ::chmod(token_file.c_str(), 0600);
}

nlohmann::json reprise_server::stats() const {
    return nlohmann::json::parse(exchange_once(admin_port, "GET", "/stats").body);
}

nlohmann::json disk_of_all_admitted(const std::string& path, const std::string& size) {
    return {{"path", path},
            {"size", size},
            {"write", "admission"},
            {"carry", 0.25},
            {"selective", false}};
}

void reprise_server::change(const nlohmann::json& some) {
    settings.merge_patch(some);
    static_cast<void>(written(settings_file, settings.dump(2)));
    ::kill(process.pid(), SIGHUP);
}

void reprise_server::post(const lab& of, const std::string& target, int or_else) const {
    std::ifstream file{of.token_file};
    std::string token;
    file >> token;
    const auto answer = exchange_once(
        admin_port, "POST", target, "Authorization: Bearer " + token + "\r\n");
    if (answer.status / 100 != 2 && answer.status != or_else) {
        throw std::runtime_error("POST " + target + ": " + std::to_string(answer.status) + " " +
                                 answer.body);
    }
}

std::unique_ptr<reprise_server> start_reprise(const lab& of, const start_of_reprise& start) {
    static int count = 0;
    const auto base = of.wanted.folder + "/reprise" + std::to_string(++count);
    nlohmann::json settings{
        {"listeners", {{{"address", "127.0.0.1:0"}}}},
        {"admin", {{"address", "127.0.0.1:0"}, {"token_file", of.token_file}}},
        {"threads", 1},
        {"limits", {{"client_connections", 20000}, {"connections_per_client", 20000}}},
        {"memory", {{"size", "512MiB"}}},
        {"access", {{"allow_destinations", {"127.0.0.0/8"}}}},
        {"log", {{"access", "off"}, {"level", "warn"}}},
    };
    if (!of.certificate.empty()) {
        settings["listeners"].push_back(
            {{"address", "127.0.0.1:0"},
             {"tls", {{"certificate", of.certificate}, {"key", of.key}}}});
    }
    settings.merge_patch(start.settings);
    const auto file = written(base + ".json", settings.dump(2));
    const auto ports = base + ".ports";
    start_of_program how{.words = {start.program, "--config", file, "--ports-file", ports},
                         .environment = {},
                         .log = of.log,
                         .where = start.where};
    if (!start.loop_times.empty()) {
        how.environment = {{"LD_PRELOAD", of.wanted.shim},
                           {"REPRISE_LOOP_TIMES", start.loop_times}};
    }
    auto out = std::make_unique<reprise_server>(start.name, child::of_program(how), 0, true);
    nlohmann::json listening;
    wait_for_start(of, *out, [&] {
        std::ifstream in{ports};
        listening = nlohmann::json::parse(in, nullptr, false);
        return listening.is_object();
    });
    out->port = port_in(listening["listeners"][0]);
    out->tls_port = of.certificate.empty() ? 0 : port_in(listening["listeners"][1]);
    out->admin_port = port_in(listening["admin"]);
    out->settings_file = file;
    out->settings = settings;
    wait_for_start(
        of, *out, [&] { return exchange_once(out->admin_port, "GET", "/readyz").status == 200; });
    return out;
}

void wait_until_it_answers(const lab& of, server& one) {
    wait_for_start(of, one, [&] { return answers(one.port); });
}

server_ptr start_bare(const lab&, std::size_t body_bytes) {
    const auto at = listen_anywhere();
    return std::make_unique<server>(
        "bare",
        child::of_work(processor::first, [&] { answer_without_http(at.socket.get(), body_bytes); }),
        at.port,
        false);
}

server_ptr start_relay(const lab& of) {
    const auto at = listen_anywhere();
    return std::make_unique<server>(
        "relay",
        child::of_work(processor::first, [&] { carry_bytes(at.socket.get(), of.origin.port()); }),
        at.port,
        false);
}

server_ptr start_nginx(const lab& of, processor where, const std::string& loop_times) {
    static int count = 0;
    const auto base = of.wanted.folder + "/nginx" + std::to_string(++count);
    fs::create_directory(base);
    const auto ports = free_ports(2);
    const auto port = ports[0];
    const auto tls_port = of.certificate.empty() ? std::uint16_t{0} : ports[1];
    std::string tls, tls_listener;
    if (tls_port != 0) {
        tls = " ssl_certificate " + of.certificate + "; ssl_certificate_key " + of.key +
              "; ssl_session_cache off; ssl_session_tickets off;\n";
        tls_listener = " listen 127.0.0.1:" + std::to_string(tls_port) + " ssl backlog=4096;";
    }
    // Its workers would run as another user, who may not reach this folder.
    const std::string user = ::geteuid() == 0 ? "user root; " : "";
    const auto file = written(
        base + "/nginx.conf",
        user + "daemon off; worker_processes 1; pid " + base + "/pid; error_log " + base +
            "/error.log;\nevents { worker_connections 20000; }\n"
            "http { access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000;\n"
            " open_file_cache max=10000 inactive=60s;\n proxy_cache_path " +
            base +
            "/cache levels=1:2 keys_zone=c:256m max_size=8g inactive=60m use_temp_path=off;\n" +
            " upstream o { server " + of.origin.authority() + "; keepalive 64; }\n" + tls +
            " server { listen 127.0.0.1:" + std::to_string(port) + " backlog=4096;" + tls_listener +
            "\n  location / { proxy_http_version 1.1; proxy_set_header Connection \"\";"
            " proxy_set_header Host $host; proxy_pass http://o; proxy_cache c; } } }\n");
    start_of_program how{
        .words = {"nginx", "-c", file}, .environment = {}, .log = of.log, .where = where};
    if (!loop_times.empty()) {
        how.environment = {{"LD_PRELOAD", of.wanted.shim}, {"REPRISE_LOOP_TIMES", loop_times}};
    }
    auto out = std::make_unique<server>("nginx", child::of_program(how), port, false);
    out->tls_port = tls_port;
    wait_until_it_answers(of, *out);
    return out;
}

}  // namespace reprise::bench
