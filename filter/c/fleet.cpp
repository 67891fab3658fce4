// See the end of reprise/digest.h.

#include "filter/c/face.hpp"
#include "filter/c/fleet_keys.hpp"
#include "filter/c/signature_fields.hpp"
#include "filter/c/state_file.hpp"
#include "filter/key_hash.hpp"
#include "filter/seed_id.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <reprise/digest.h>
#include <string>
#include <string_view>
#include <sys/random.h>
#include <unordered_set>
#include <vector>

namespace filter = reprise::filter;
namespace face = reprise::filter::c;

namespace {

constexpr std::size_t first_request = sizeof(reprise_request);
constexpr std::int64_t window = 60;  // seconds that a signature may be old, or a clock ahead
/// 64 siblings that ask once a second fill a tenth of it.
constexpr std::size_t most_nonces = std::size_t{1} << 16;
constexpr std::size_t nonce_digits = 32;

std::string hex_of(std::span<const std::byte> bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    for (const auto byte : bytes) {
        out += digits[std::to_integer<unsigned>(byte) >> 4];
        out += digits[std::to_integer<unsigned>(byte) & 15];
    }
    return out;
}

bool is_nonce(std::string_view text) noexcept {
    return text.size() == nonce_digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::string lower_case(std::string_view text) {
    std::string out{text};
    std::transform(out.begin(), out.end(), out.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return out;
}

/// Whether a request whose signature says `destination` was meant for this node.
bool is_meant(std::string_view destination,
              std::string_view here,
              std::string_view name,
              std::string_view authority) {
    if (destination == here) {
        return true;
    }
    const auto host = lower_case(authority);
    const auto own = lower_case(name);
    const auto colon = host.rfind(':');
    const bool has_port = colon != host.npos && host.find(']', colon) == host.npos;
    return !own.empty() && (host == own || (has_port && host.substr(0, colon) == own));
}

}  // namespace

struct reprise_fleet {
    reprise_fleet(const face::fleet_keys& made, bool is_secret, std::int64_t now)
        : keys(made),
          hashing(filter::hash_secret::from_seed(made.hashing)),
          key_id(hex_of(filter::identify(made.hashing))),
          signs(is_secret),
          forgotten(now - 1) {}
    ~reprise_fleet() {
        face::wipe(keys.signing);
        face::wipe(keys.hashing);
    }
    reprise_fleet(const reprise_fleet&) = delete;
    reprise_fleet& operator=(const reprise_fleet&) = delete;

    face::fleet_keys keys;
    filter::hash_secret hashing;
    std::string key_id;
    bool signs;

    // As the proxy's (peer/signature.hpp): what was created by `forgotten` is not known, at first what was
    // before this was opened. While clocks go forward nothing so old is in time; where they are set
    // back it is refused for two windows.
    using clock = std::chrono::steady_clock;
    std::mutex guard;  // of these
    std::unordered_set<std::string> seen{};
    std::multimap<std::int64_t, std::string> order{};  // by when they were created
    std::int64_t forgotten;
    clock::time_point forgotten_until = clock::now() + 2 * std::chrono::seconds{window};

    void forget_what_is_past(std::int64_t now) {
        while (!order.empty() && order.begin()->first + window < now) {
            forgotten = order.begin()->first;
            forgotten_until = clock::now() + 2 * std::chrono::seconds{window};
            seen.erase(order.begin()->second);
            order.erase(order.begin());
        }
    }
    [[nodiscard]] bool may_have_been_taken(std::int64_t created) const {
        return created <= forgotten && clock::now() < forgotten_until;
    }
};

namespace {

int open_fleet(const char* path, std::int64_t now, reprise_fleet** fleet, reprise_error* error) {
    if (path == nullptr) {
        *fleet = new reprise_fleet{face::keys_from({}), false, now};
        return REPRISE_OK;
    }
    std::vector<std::byte> content;
    try {
        constexpr std::size_t room = face::most_secret_bytes + 3;  // a line end, and one too many
        auto read = face::read_file(path, room);
        if (!read) {
            return face::fail(error,
                              REPRISE_FILE,
                              ENOENT,
                              "the secret %s can't be read: there is no such file",
                              path);
        }
        content = std::move(*read);
    } catch (const face::file_failure& failure) {
        return face::fail(error,
                          REPRISE_FILE,
                          failure.system,
                          "the secret %s can't be read: %s%s%s",
                          path,
                          failure.what,
                          failure.system == 0 ? "" : ": ",
                          failure.system == 0 ? "" : std::strerror(failure.system));
    }
    if (!content.empty() && content.back() == std::byte{'\n'}) {
        content.pop_back();
        if (!content.empty() && content.back() == std::byte{'\r'}) {
            content.pop_back();
        }
    }
    const auto size = content.size();
    if (size < face::least_secret_bytes || size > face::most_secret_bytes) {
        face::wipe(content);
        return face::fail(error,
                          REPRISE_REFUSED,
                          0,
                          "the secret %s has %s: it must be a file of 32 to 4096 random bytes",
                          path,
                          size < face::least_secret_bytes ? "fewer than 32 bytes"
                                                          : "more than 4096 bytes");
    }
    auto keys = face::keys_from(content);
    face::wipe(content);
    *fleet = new reprise_fleet{keys, true, now};
    face::wipe(keys.signing);
    face::wipe(keys.hashing);
    return REPRISE_OK;
}

int refuse(reprise_error* error, const char* verdict) {
    return face::fail(error, REPRISE_REFUSED, 0, "the signature is %s", verdict);
}

int check(reprise_fleet& fleet,
          const reprise_request& request,
          std::string_view here,
          std::string_view name,
          std::int64_t now,
          reprise_error* error) {
    face::signature_said said;
    switch (face::find_signature(request, said)) {
    case face::signature_there::none: return refuse(error, "missing");
    case face::signature_there::malformed: return refuse(error, "malformed");
    case face::signature_there::found: break;
    }
    if (!is_nonce(said.nonce) || said.created < 0) {
        return refuse(error, "malformed");
    }
    if (said.keyid != fleet.key_id) {
        return refuse(error, "other_secret");
    }
    const auto base = face::signature_base(request, said.covered, said.parameters);
    if (!base) {
        return refuse(error, "malformed");
    }
    if (!face::are_same(face::base64_of_code(face::hmac_of(fleet.keys.signing, *base)),
                        said.base64)) {
        return refuse(error, "wrong");
    }
    if (!is_meant(face::field_value(request, face::to_field), here, name, request.authority)) {
        return refuse(error, "elsewhere");
    }
    if (said.created > now + window || said.expires < now || said.expires < said.created ||
        said.expires > said.created + window) {
        return refuse(error, "out_of_time");
    }
    const std::scoped_lock lock{fleet.guard};
    fleet.forget_what_is_past(now);
    if (fleet.may_have_been_taken(said.created)) {
        return refuse(error, "out_of_time");
    }
    const std::string nonce{said.nonce};
    if (fleet.seen.count(nonce) != 0) {
        return refuse(error, "replayed");
    }
    if (fleet.seen.size() >= most_nonces) {
        return refuse(error, "too_many");
    }
    fleet.order.emplace(said.created, nonce);
    fleet.seen.insert(nonce);
    return REPRISE_OK;
}

bool is_whole(const reprise_request& request) noexcept {
    const auto* const first = request.fields;
    return request.method != nullptr && request.target != nullptr && request.authority != nullptr &&
           (first != nullptr || request.field_count == 0) &&
           std::all_of(first, first + request.field_count, [](const reprise_field& line) {
               return line.name != nullptr && line.value != nullptr;
           });
}

/// The request as this release knows it.
int take_request(const reprise_request* given, reprise_request& ours, reprise_error* error) {
    if (given == nullptr) {
        return face::fail(error, REPRISE_BAD_ARGUMENT, 0, "request must not be null");
    }
    if (!face::take(given, first_request, ours)) {
        return face::bad_size(error, "request", given->size, sizeof ours);
    }
    if (!is_whole(ours)) {
        return face::fail(error,
                          REPRISE_BAD_ARGUMENT,
                          0,
                          "method, target, authority and the fields must not be null");
    }
    return REPRISE_OK;
}

}  // namespace

extern "C" {

int reprise_fleet_open(const char* secret_file,
                       int64_t now,
                       reprise_fleet** fleet,
                       reprise_error* error) {
    if (fleet != nullptr) {
        *fleet = nullptr;
    }
    return face::guarded(error, [&]() -> int {
        if (fleet == nullptr) {
            return face::fail(error, REPRISE_BAD_ARGUMENT, 0, "fleet must not be null");
        }
        return open_fleet(secret_file, now, fleet, error);
    });
}

void reprise_fleet_close(reprise_fleet* fleet) {
    delete fleet;
}

const unsigned char* reprise_fleet_seed(const reprise_fleet* fleet) {
    return reinterpret_cast<const unsigned char*>(fleet->keys.hashing.data());
}

int reprise_fleet_signs(const reprise_fleet* fleet) {
    return fleet->signs ? 1 : 0;
}

reprise_key reprise_fleet_key(const reprise_fleet* fleet, const void* url, size_t length) {
    // A digest's owner may have no more than 64 bits of a URL when it leaves (proxy/peer/README.md).
    const auto name = filter::hash_of({static_cast<const char*>(url), length}, fleet->hashing).low;
    const auto hash = face::key_of_name(name, fleet->hashing);
    return {hash.low, hash.high};
}

int reprise_fleet_sign(const reprise_fleet* fleet,
                       const reprise_request* request,
                       const char* from,
                       const char* to,
                       int64_t now,
                       reprise_sink sink,
                       void* context,
                       reprise_error* error) {
    return face::guarded(error, [&]() -> int {
        if (fleet == nullptr || from == nullptr || to == nullptr || sink == nullptr) {
            return face::fail(
                error, REPRISE_BAD_ARGUMENT, 0, "fleet, from, to and sink must not be null");
        }
        reprise_request known = REPRISE_REQUEST_INIT;
        if (const auto code = take_request(request, known, error); code != REPRISE_OK) {
            return code;
        }
        if (!fleet->signs) {
            return face::fail(
                error, REPRISE_BAD_ARGUMENT, 0, "without a secret nothing can be signed");
        }
        std::array<std::byte, nonce_digits / 2> fresh{};
        if (::getrandom(fresh.data(), fresh.size(), 0) != static_cast<ssize_t>(fresh.size())) {
            return face::fail(
                error, REPRISE_FILE, errno, "the system gives no random bytes for a nonce");
        }
        const std::string node{face::node_field};
        const std::string destination{face::to_field};
        const std::array<reprise_field, 2> said{reprise_field{node.c_str(), from},
                                                reprise_field{destination.c_str(), to}};
        known.fields = said.data();
        known.field_count = said.size();
        const auto parameters = face::parameters_of(now, hex_of(fresh), fleet->key_id);
        const auto base = face::signature_base(known, face::all_covered(), parameters);
        if (!base) {
            return face::fail(
                error, REPRISE_BAD_ARGUMENT, 0, "what is signed must have no line end");
        }
        const auto code = face::base64_of_code(face::hmac_of(fleet->keys.signing, *base));
        std::string lines = node + ": " + from + "\r\n" + destination + ": " + to + "\r\n";
        lines.append("Signature-Input: reprise=(").append(face::all_covered()).append(")");
        lines.append(parameters).append("\r\nSignature: reprise=:").append(code).append(":\r\n");
        return sink(context, lines.data(), lines.size()) == 0
                   ? REPRISE_OK
                   : face::fail(error, REPRISE_STOPPED, 0, "the caller's function stopped");
    });
}

int reprise_fleet_check(reprise_fleet* fleet,
                        const reprise_request* request,
                        const char* here,
                        const char* name,
                        int64_t now,
                        reprise_error* error) {
    return face::guarded(error, [&]() -> int {
        if (fleet == nullptr || here == nullptr) {
            return face::fail(error, REPRISE_BAD_ARGUMENT, 0, "fleet and here must not be null");
        }
        reprise_request known = REPRISE_REQUEST_INIT;
        if (const auto code = take_request(request, known, error); code != REPRISE_OK) {
            return code;
        }
        if (!fleet->signs) {
            return refuse(error, "not asked for: there is no secret here");
        }
        return check(*fleet, known, here, name == nullptr ? "" : name, now, error);
    });
}

}  // extern "C"
