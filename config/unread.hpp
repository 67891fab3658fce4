#pragma once
// Settings that are right by themselves, and that nobody would read as the others are.
// Whoever writes one takes it to be in force: it is a mistake, as a rule that nothing can come to is. What is "off",
// empty or at its default asks for nothing, and is none; nor is what waits for a master that is written as "off".

#include "config/options.hpp"
#include "config/table.hpp"

#include <initializer_list>
#include <string_view>

namespace reprise::config {

/// One of `some` is written, and `master`, without which they do nothing, is not: that is missing, and `why`.
void check_master(std::initializer_list<std::string_view> some,
                  std::string_view master,
                  std::string_view why,
                  const given& members,
                  const place& here);

/// Passwords need somebody who has one; and who may send PURGE is served at all.
void check_access(const access_options& into, const given& members, const place& here);

/// stale_on_error_status widens stale_on_error, which must be some time.
void check_freshness(const freshness_options& into, const given& members, const place& here);

/// Across objects: what is for forward listeners alone has one, admission.rules have a listener that heeds them, a tunnel
/// that is to be opened may be asked for, and what siblings are to share they can.
void check_unread(const options& into, const given& members, const place& here);

}  // namespace reprise::config
