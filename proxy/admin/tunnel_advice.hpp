#pragma once
// What an operator would write to have a host's tunnels opened and what passes in them stored.

#include "config/options.hpp"
#include "proxy/base/tunnel_hosts.hpp"

#include <optional>
#include <string>

namespace reprise::proxy::admin {

/// The line of settings: all of `intercept` where it is off, else the member that changes. Empty: no
/// line would do (a numeric address; a client that wants no certificate of ours), or
/// the operator has said the contrary (intercept.except, intercept.clients).
[[nodiscard]] std::string line_that_opens(const tunnel_hosts::unlisted& one,
                                          const std::optional<config::intercept_options>& now);

}  // namespace reprise::proxy::admin
