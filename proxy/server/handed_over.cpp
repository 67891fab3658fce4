#include "proxy/server/handed_over.hpp"

#include <cstdlib>
#include <utility>

namespace reprise::proxy::server {

std::vector<std::string> read_again_below(const config::options& of, std::string_view directory) {
    std::vector<std::string> out;
    const auto note = [&](std::string name, std::string_view file) {
        if (!directory.empty() && file.size() > directory.size() && file.starts_with(directory) &&
            file[directory.size()] == '/') {
            out.push_back(std::move(name));
        }
    };
    for (std::size_t i = 0; i < of.listeners.size(); ++i) {
        if (const auto& tls = of.listeners[i].tls) {
            const auto name = "listeners[" + std::to_string(i) + "].tls.";
            note(name + "certificate", tls->certificate);
            note(name + "key", tls->key);
        }
    }
    note("admin.token_file", of.admin.token_file);
    note("access.users_file", of.access.users_file);
    note("access.tokens_file", of.access.tokens_file);
    for (std::size_t i = 0; i < of.access.block_lists.size(); ++i) {
        note("access.block_lists[" + std::to_string(i) + "]", of.access.block_lists[i]);
    }
    note("origins.ca_file", of.origins.ca_file);
    note("origins.crl_file", of.origins.crl_file);
    for (std::size_t i = 0; i < of.peers.size(); ++i) {
        const auto name = "peers[" + std::to_string(i) + "].";
        note(name + "credentials_file", of.peers[i].credentials_file);
    }
    if (of.intercept) {
        note("intercept.ca_certificate", of.intercept->ca_certificate);
        note("intercept.ca_key", of.intercept->ca_key);
    }
    return out;
}

std::string remark_on_handed_over(const config::options& of) {
    const char* directory = std::getenv("CREDENTIALS_DIRECTORY");
    std::string names;
    for (const auto& name : read_again_below(of, directory != nullptr ? directory : "")) {
        names += (names.empty() ? "" : ", ") + name;
    }
    return names.empty()
               ? names
               : names + ": as the service manager handed them over at the start; what was "
                         "changed since comes with a restart";
}

}  // namespace reprise::proxy::server
