#pragma once
// One client connection and all that comes of it, both ends in one hand: what the client says and
// what every origin connection hears, what origins answer and what the client hears.
//
// Two kinds. In a trial of requests the client's bytes are the grammar's, and the origin answers as
// it should; in a trial of responses it is the other way round. What must hold is said of bytes by
// the strict reader alone:
//
// - what an origin hears is canonical, and one of the messages that the client's bytes are to the
//   strict reader, in their order: no other, none twice, nothing behind what it refuses;
// - what the client hears is canonical; an answer with an origin's mark is that origin's answer to
//   this very request, whole and unchanged, and was one to the strict reader;
// - what is not such an answer is an error of the proxy's own, or a connection that ends so that
//   nobody can take what came for whole.

#include "tests/framing/grammar.hpp"
#include "tests/framing/strict_reader.hpp"

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::framing {

struct totals {
    std::uint64_t messages = 0, heard_whole = 0, refused = 0, stalled = 0;
    std::uint64_t plain = 0, plain_answered = 0;  ///< of connections whose messages had nothing odd
    std::uint64_t violations = 0;
    std::map<std::string, std::uint64_t> by_kind;  ///< of violations
};

/// A place where trials run one after another, with a listener of its own, whose connections stay
/// open between them: what one trial left in the proxy must not turn up in the next.
class slot {
public:
    slot(std::uint16_t proxy_port, std::uint64_t seed, bool verbose, totals& sum);
    ~slot();
    slot(const slot&) = delete;
    slot& operator=(const slot&) = delete;

    /// @pre is_idle()
    void begin(std::uint64_t trial);
    [[nodiscard]] bool is_idle() const { return !running_; }

    void add_to(std::vector<pollfd>& watched);
    /// What add_to put at `from` and on has come back.
    void go_on(const std::vector<pollfd>& watched, std::size_t from);

private:
    using clock = std::chrono::steady_clock;
    struct end {
        int fd = -1;
        std::string in, out;
        bool close_when_sent = false, reset_when_sent = false, ended = false, was_reset = false;
        bool continued = false;
    };
    struct answer {
        std::string id, method, bytes;
        unsigned minor = 1;
        result meant;  ///< of its final response
        bool closes = false, resets = false, plain = false;
    };

    void begin_requests();
    void begin_responses();
    void hear_origin(end& one);
    void hear_client();
    void judge_heard(const message& heard);
    void judge_answer(const message& got);
    void respond(end& to, const message& heard);
    void finish();
    void complain(std::string_view what, std::string_view detail);
    static void push(end& one);
    static void pull(end& one);
    static void drop(end& one);

    std::uint16_t proxy_port_;
    std::uint64_t seed_;
    bool verbose_;
    totals& sum_;
    int listener_ = -1;
    std::uint16_t port_ = 0;
    bool running_ = false, of_requests_ = true, plain_ = false, complained_ = false, deaf_ = false;
    std::uint64_t trial_ = 0;
    std::optional<grammar> made_;
    std::string authority_, sent_, heard_;
    clock::time_point until_;
    end client_;
    std::list<end> origins_;
    std::vector<message> meant_,
        before_;  // requests as the strict reader has them; of the last trial
    std::size_t next_meant_ = 0;
    std::vector<std::size_t> forwarded_;  // which of them were heard
    std::vector<answer> answers_;
    std::size_t answered_ = 0;  // final responses that the client has read
    std::size_t asked_ = 0;     // of the requests in a trial of responses
};

}  // namespace reprise::framing
