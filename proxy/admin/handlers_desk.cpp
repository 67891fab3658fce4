#include "proxy/admin/handlers_desk.hpp"

#include "proxy/admin/admin_answers.hpp"
#include "proxy/admin/log_thrown.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>

namespace reprise::proxy::admin {

namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::milliseconds meanwhile_after{1000};

// One more of what is bounded, for as long as this is there.
struct counted {
    explicit counted(std::atomic<std::size_t>& of) : count{of} { ++count; }
    ~counted() { --count; }
    counted(const counted&) = delete;
    counted& operator=(const counted&) = delete;
    std::atomic<std::size_t>& count;
};

// True: what was waited for is there; false: it took too long.
template <class Slot, class Condition>
asio::awaitable<bool> wait_for(std::shared_ptr<Slot> slot,
                               std::chrono::milliseconds most,
                               Condition is_there) {
    slot->timer.expires_after(most);
    while (!is_there(*slot)) {
        error_code woken;
        co_await slot->timer.async_wait(asio::redirect_error(asio::use_awaitable, woken));
        if (!woken) {
            co_return is_there(*slot);
        }
    }
    co_return true;
}

}  // namespace

// What a connection's coroutine waits for, and owns alone: others have weak pointers.
struct handlers_desk::awaited_answer {
    explicit awaited_answer(asio::io_context& io) : timer{io} {}
    asio::steady_timer timer;
    std::optional<admin_response> answer;
    bool happened = false;  // what the answer was to wait for
};

asio::awaitable<admin_response> handlers_desk::call(const admin_route& route,
                                                    std::shared_ptr<const owned_request> asked) {
    admin_response late;
    const bool patient = !route.meanwhile;
    if (calls_ >= limits_.calls) {
        if (!patient) {
            co_return route.meanwhile();
        }
        late.status = 503;
        late.body = "busy: what was asked before takes long; nothing was done\n";
        co_return late;
    }
    const auto slot = std::make_shared<awaited_answer>(io_);
    post_call(route, std::move(asked), slot);
    const auto own = route.most > std::chrono::milliseconds{0} ? route.most : limits_.request;
    const auto most = patient ? own : std::min(own, meanwhile_after);
    const bool answered = co_await wait_for(
        slot, most, [](const awaited_answer& now) { return bool{now.answer}; });
    if (!answered && !patient) {
        co_return route.meanwhile();
    }
    if (!answered) {
        late.status = 504;
        late.body = "this takes long, or what was asked before does; it will be done yet\n";
        co_return late;
    }
    auto told = std::move(*slot->answer);
    if (const auto wait = std::exchange(told.wait, nullptr)) {
        if (waits_ >= limits_.waits) {
            co_return wait->otherwise;
        }
        const counted here{waits_};
        const bool happened = co_await wait_for(
            slot, wait->most, [](const awaited_answer& now) { return now.happened; });
        if (!happened) {
            co_return wait->otherwise;
        }
    }
    co_return told;
}

void handlers_desk::post_call(const admin_route& route,
                              std::shared_ptr<const owned_request> asked,
                              const std::weak_ptr<awaited_answer>& slot) {
    const auto one = std::make_shared<counted>(calls_);  // while it waits, or is being made
    thread_.post([this, &route, asked = std::move(asked), slot, box = box_, one] {
        if (stopping_) {
            return;
        }
        // Nobody takes what this thread would throw. Who asked is told that it takes too long.
        try {
            auto told = admin_answers::call(route, asked->view());
            if (told.wait) {
                told.wait->begin([slot, box] {
                    box->post([slot] {
                        if (const auto waiting = slot.lock()) {
                            waiting->happened = true;
                            waiting->timer.cancel();
                        }
                    });
                });
            }
            box->post([slot, told = std::move(told)]() mutable {
                if (const auto waiting = slot.lock()) {
                    waiting->answer = std::move(told);
                    waiting->timer.cancel();
                }
            });
        } catch (...) {
            static constinit log::seldom answer_threw;
            log_thrown(answer_threw, "an answer", std::current_exception());
        }
    });
}

}  // namespace reprise::proxy::admin
