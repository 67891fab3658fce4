#include "tools/bench_proxy/https_lab.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace reprise::bench {

namespace fs = std::filesystem;

namespace {

constexpr const char* certificate_helper = "/usr/lib/squid/security_file_certgen";

https_origin start_https_origin(const lab& of, const std::string& certificate) {
    const auto base = of.wanted.folder + "/https_origin";
    fs::create_directory(base);
    const auto ports = free_ports(4);
    const auto server = [&](std::uint16_t port, bool tls, bool closes) {
        return " server { listen 127.0.0.1:" + std::to_string(port) + (tls ? " ssl" : "") +
               " backlog=4096;" + (closes ? " keepalive_timeout 0;" : "") +
               " location / { proxy_http_version 1.1; proxy_set_header Connection \"\";"
               " proxy_set_header Host $host; proxy_pass http://o; } }\n";
    };
    // Its workers would run as another user, who may not reach this folder.
    const std::string user = ::geteuid() == 0 ? "user root; " : "";
    const auto file = written(
        base + "/nginx.conf",
        user + "daemon off; worker_processes 1; pid " + base + "/pid; error_log " + base +
            "/error.log;\nevents { worker_connections 20000; }\n"
            "http { access_log off; keepalive_requests 100000000;\n upstream o { server " +
            of.origin.authority() + "; keepalive 256; }\n ssl_certificate " + certificate +
            ".crt; ssl_certificate_key " + certificate + ".key;\n" +
            server(ports[0], false, false) + server(ports[1], true, false) +
            server(ports[2], false, true) + server(ports[3], true, true) + "}\n");
    https_origin out;
    out.process = std::make_unique<bench::server>("https origin",
                                                  child::of_program({.words = {"nginx", "-c", file},
                                                                     .environment = {},
                                                                     .log = of.log,
                                                                     .where = processor::second}),
                                                  ports[0],
                                                  false);
    out.plain = ports[0];
    out.tls = ports[1];
    out.plain_closing = ports[2];
    out.tls_closing = ports[3];
    wait_until_it_answers(of, *out.process);
    return out;
}

}  // namespace

std::string https_lab::obstacle(const lab& of) {
    return of.certificate.empty() ? "openssl is not installed"
           : !of.has_nginx        ? "nginx is not installed"
                                  : "";
}

bool https_lab::has_squid() {
    return is_installed("squid") && ::access(certificate_helper, X_OK) == 0;
}

https_lab::https_lab(const lab& of)
    : of_{of},
      ca_{of.wanted.folder + "/ca"},
      root_{of.wanted.folder + "/root"},
      origin_certificate_{of.wanted.folder + "/origin"} {
    const std::vector<std::string> of_a_ca{"keyUsage=critical,keyCertSign,cRLSign"};
    auto bound = of_a_ca;
    std::string permitted = "nameConstraints=critical,excluded;IP:0.0.0.0/0.0.0.0,"
                            "excluded;IP:::/::,permitted;DNS:" +
                            host();
    for (int i = 0; i < 98; ++i) {
        permitted += ",permitted;DNS:listed" + std::to_string(i) + ".test";
    }
    bound.push_back(permitted);
    if (!make_certificate(of, root_, "/CN=root", of_a_ca) ||
        !make_certificate(of, ca_, "/CN=ca", bound, root_) ||
        !make_certificate(of,
                          origin_certificate_,
                          "/CN=origin",
                          {"subjectAltName=DNS:" + host() + ",DNS:" + other_host()})) {
        throw std::runtime_error("openssl makes no certificates");
    }
    ::chmod((ca_ + ".key").c_str(), 0600);
    names_ = written(of.wanted.folder + "/names",
                     "127.0.0.1 " + host() + "\n127.0.0.1 " + other_host() + "\n");
    origin_ = start_https_origin(of, origin_certificate_);
}

nlohmann::json https_lab::settings() const {
    return {{"admission", "always"},
            {"access",
             {{"connect_ports", {443, origin_.tls, of_.origin.port()}},
              {"allow_destinations", {"127.0.0.0/8"}}}},
            {"origins", {{"ca_file", origin_certificate_ + ".crt"}, {"idle", 256}}},
            {"dns", {{"hosts_file", names_}}}};
}

std::unique_ptr<reprise_server> https_lab::start_opening() const {
    auto with = settings();
    auto hosts = nlohmann::json::array({host(), "*." + host()});
    for (int i = 0; i < 98; ++i) {
        hosts.push_back("listed" + std::to_string(i) + ".test");
    }
    with["intercept"] = {{"hosts", hosts},
                         {"clients", {"127.0.0.0/8"}},
                         {"ports", {443, origin_.tls, of_.origin.port()}},
                         {"ca_certificate", ca_ + ".crt"},
                         {"ca_key", ca_ + ".key"},
                         // A load that only shakes hands and leaves is no refusal here.
                         {"on_refusal", "fail"}};
    return start_reprise(of_, {.program = of_.wanted.program, .settings = with});
}

std::unique_ptr<reprise_server> https_lab::start_passing(const std::string& name,
                                                         const std::string& program) const {
    return start_reprise(of_, {.name = name, .program = program, .settings = settings()});
}

server_ptr https_lab::start_bumping(bumping when) const {
    const std::string name = when == bumping::at_once ? "squid at once" : "squid";
    const auto base = of_.wanted.folder + (when == bumping::at_once ? "/squid1" : "/squid2");
    fs::remove_all(base);  // a row that is worse is measured once more
    fs::create_directory(base);
    for (const auto* const end : {".crt", ".key"}) {
        fs::copy_file(ca_ + end, base + "/ca" + end);
    }
    fs::copy_file(origin_certificate_ + ".crt", base + "/origin.crt");
    fs::copy_file(names_, base + "/names");
    const auto port = free_ports(1)[0];
    std::ofstream{base + "/squid.conf"}
        << "http_port 127.0.0.1:" << port
        << " ssl-bump generate-host-certificates=on dynamic_cert_mem_cache_size=16MB"
           " tls-cert=ca.crt tls-key=ca.key\nsslcrtd_program "
        << certificate_helper
        << " -s certificates -M 16MB\nsslcrtd_children 2 startup=2 idle=1\nacl first at_step "
           "SslBump1\n"
        << (when == bumping::at_once ? "" : "ssl_bump peek first\n")
        << "ssl_bump bump all\n"
           "tls_outgoing_options cafile=origin.crt\nhosts_file names\nhttp_access allow all\n"
           "cache_mem 256 MB\nmaximum_object_size_in_memory 1 MB\naccess_log none\n"
           "cache_log cache.log\ncache_store_log none\npid_filename none\nnetdb_filename none\n"
           "pinger_enable off\nicp_port 0\ndns_nameservers 127.0.0.1\nvisible_hostname squid.test\n"
           "max_filedescriptors 20000\nshutdown_lifetime 0 seconds\ncoredump_dir .\n";
    // Squid refuses to be root, and nobody else may reach this folder by its name.
    std::string as;
    if (::geteuid() == 0) {
        as = "setpriv --reuid 65534 --regid 65534 --clear-groups --pdeathsig TERM ";
        for (const auto& one : {fs::path{base}, fs::path{base + "/ca.key"}}) {
            if (::chown(one.c_str(), 65534, 65534) != 0) {
                throw std::runtime_error("cannot give Squid its files");
            }
        }
    }
    const auto line = "cd " + base + " && " + as + certificate_helper +
                      " -c -s certificates -M 16MB && exec " + as + "squid -N -f squid.conf";
    auto out = std::make_unique<server>(
        name,
        child::of_program({.words = {"sh", "-c", line},
                           .environment = {{"PATH", "/usr/sbin:/usr/bin:/bin"}},
                           .log = of_.log,
                           .where = processor::first}),
        port,
        true);
    wait_until_it_answers(of_, *out);
    return out;
}

}  // namespace reprise::bench
