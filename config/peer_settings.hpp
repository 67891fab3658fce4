#pragma once
// The part of the settings' table on other caches: what of ours they are told, who they are, how
// they are asked; and TLS on a listener, which an https sibling connects to.

#include "config/options.hpp"
#include "config/table.hpp"

namespace reprise::config {

[[nodiscard]] object_table<digest_options> digest_table();
[[nodiscard]] object_table<peering_options> peering_table();
[[nodiscard]] object_table<tls_options> tls_table();

/// The row "peers". What must hold between them is checked as the list is read: names are unique,
/// and at most most_siblings are siblings.
[[nodiscard]] row<options> peers_row();

}  // namespace reprise::config
