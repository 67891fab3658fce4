#pragma once
// The programs that are measured: builds of ours, the floors, and nginx; and what all of them
// need: an origin, a certificate, a folder.

#include "tools/bench_proxy/child.hpp"
#include "tools/bench_proxy/origin.hpp"
#include "tools/bench_proxy/plan.hpp"
#include "tools/bench_proxy/sockets.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace reprise::bench {

/// What there is on this machine, and where things lie.
struct lab {
    /// @throws std::runtime_error
    explicit lab(const plan& wanted);

    const plan& wanted;
    std::string log;          ///< what all programs print
    std::string certificate;  ///< empty where none could be made
    std::string key;
    std::string token_file;
    bool has_wrk = false, has_nginx = false;
    bench::origin origin;
};

[[nodiscard]] bool is_installed(const std::string& program);
/// Its own name.
std::string written(const std::string& file, const std::string& text);
/// BASE.crt and BASE.key, of P-256, good for a month.
/// @param signer  its BASE, which signs; empty: the certificate signs itself
/// False: openssl is not installed, or can't.
[[nodiscard]] bool make_certificate(const lab& of,
                                    const std::string& base,
                                    const std::string& subject,
                                    const std::vector<std::string>& extensions,
                                    const std::string& signer = {});

/// One server under measurement, of whatever kind.
class server {
public:
    server(std::string name, child process, std::uint16_t port, bool is_forward)
        : name{std::move(name)},
          process{std::move(process)},
          port{port},
          is_forward{is_forward} {}
    virtual ~server() = default;

    std::string name;
    child process;
    std::uint16_t port = 0, tls_port = 0;  ///< 0: it has none
    bool is_forward;                       ///< asked with whole URLs

    /// What a request for `path` asks for.
    [[nodiscard]] std::string url(const lab& of, const std::string& path) const {
        return is_forward ? of.origin.base() + path : path;
    }
};

using server_ptr = std::unique_ptr<server>;

/// A build of the proxy. Listeners and ports are the system's choice.
class reprise_server : public server {
public:
    using server::server;
    std::uint16_t admin_port = 0;
    std::string settings_file{};
    nlohmann::json settings{};

    /// These in place of what it has; it is told, and takes them over a moment later.
    void change(const nlohmann::json& some);
    [[nodiscard]] nlohmann::json stats() const;
    /// @throws std::runtime_error when the answer is none of 2xx, nor `or_else`
    void post(const lab& of, const std::string& target, int or_else = 200) const;
};

struct start_of_reprise {
    std::string name = "ours";
    std::string program{};
    nlohmann::json settings = nlohmann::json::object();  ///< in place of those that all have
    processor where = processor::first;
    std::string loop_times{};  ///< the mapping for the preloaded library; empty: it is not loaded
};

/// A store on disk to which each response is written as it is admitted, whatever it is worth, so that
/// rows are of what is asked for, and stay comparable.
[[nodiscard]] nlohmann::json disk_of_all_admitted(const std::string& path, const std::string& size);

/// Returns when it is ready. @throws std::runtime_error with the last lines of its log
[[nodiscard]] std::unique_ptr<reprise_server> start_reprise(const lab& of,
                                                            const start_of_reprise& start);
/// Until it takes connections. @throws std::runtime_error when it does not in ten seconds
void wait_until_it_answers(const lab& of, server& one);
[[nodiscard]] server_ptr start_bare(const lab& of, std::size_t body_bytes);
[[nodiscard]] server_ptr start_relay(const lab& of);
/// @pre of.has_nginx
[[nodiscard]] server_ptr start_nginx(const lab& of,
                                     processor where = processor::first,
                                     const std::string& loop_times = {});

}  // namespace reprise::bench
