#pragma once
// One request and its answer.
//
//     begin()   reads the request, decides which answer it gets, and gives what needs no waiting
//     run()     the rest: answers that wait, until one of them has ended
//
// A hit never leaves begin(): it is looked up, composed of three pieces (stored head, per-reply
// fields, body) and handed to the kernel. What becomes of the request is told to its ledger, which
// the destructor closes.

#include "proxy/serve/answer.hpp"
#include "proxy/serve/exchange_state.hpp"
#include "proxy/serve/look_up.hpp"

#include <memory>
#include <optional>

namespace reprise::proxy::serve {

class exchange {
public:
    /// `by.memory.head` is parsed from the first head.bytes of the client's input, which this
    /// exchange consumes.
    exchange(const lent& by, steady_time started) : x_{by, started} {}
    ~exchange();
    exchange(const exchange&) = delete;
    exchange& operator=(const exchange&) = delete;

    /// None: run() has to go on.
    [[nodiscard]] std::optional<ended> begin();
    [[nodiscard]] awaitable<ended> run();
    /// By its own word the client sends nothing behind this request, of which nothing is left to be
    /// read.
    [[nodiscard]] bool was_clients_last() const noexcept;

private:
    void find_answer();
    [[nodiscard]] bool find_pac();
    void find_answer_for_known();
    void ask_store();
    void open_tunnel();
    [[nodiscard]] bool compose();
    void take_instead(answer next);
    struct giver;
    [[nodiscard]] awaitable<ended_or_next> verify_client(answers::unverified& what);
    [[nodiscard]] awaitable<ended_or_next> look_on_disk();
    [[nodiscard]] awaitable<ended_or_next> send_composed();

    exchange_state x_;
    answer answer_ = answers::composed{};
    std::unique_ptr<disk_look_up> on_disk_;  // while the disk is asked
};

}  // namespace reprise::proxy::serve
