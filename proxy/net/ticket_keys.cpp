#include "proxy/net/ticket_keys.hpp"

#include <algorithm>
#include <openssl/crypto.h>
#include <openssl/rand.h>

namespace reprise::proxy::net {
namespace {

void forget(std::optional<ticket_keys::key>& one) {
    if (one) {
        OPENSSL_cleanse(&*one, sizeof *one);
        one.reset();
    }
}

std::optional<ticket_keys::key> made_anew() {
    ticket_keys::key made{};
    if (RAND_bytes(made.name.data(), static_cast<int>(made.name.size())) != 1 ||
        RAND_priv_bytes(made.cipher.data(), static_cast<int>(made.cipher.size())) != 1 ||
        RAND_priv_bytes(made.mac.data(), static_cast<int>(made.mac.size())) != 1) {
        return std::nullopt;
    }
    return made;
}

}  // namespace

ticket_keys::~ticket_keys() {
    forget(current_);
    forget(previous_);
}

void ticket_keys::rotate(steady_time now) {
    if (current_ && now < made_ + period) {
        return;
    }
    forget(previous_);
    if (now < made_ + 2 * period) {
        previous_ = current_;
    }
    forget(current_);
    current_ = made_anew();
    made_ = now;
}

std::optional<ticket_keys::key> ticket_keys::current(steady_time now) {
    const std::lock_guard lock{guard_};
    rotate(now);
    return current_;
}

std::optional<ticket_keys::opener> ticket_keys::find(
    std::span<const unsigned char, name_bytes> name, steady_time now) {
    const std::lock_guard lock{guard_};
    rotate(now);
    for (const auto* one : {&current_, &previous_}) {
        if (*one && std::ranges::equal((*one)->name, name)) {
            return opener{**one, one == &current_};
        }
    }
    return std::nullopt;
}

}  // namespace reprise::proxy::net
