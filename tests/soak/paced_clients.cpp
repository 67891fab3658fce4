#include "tests/soak/paced_clients.hpp"

#include "tests/support/message.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace reprise::tests {

namespace {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;
using boost::system::error_code;
constexpr auto as_values = asio::as_tuple(asio::use_awaitable);

int status_in(std::string_view start_line) {
    const auto text = start_line.substr(start_line.find(' ') + 1, 3);
    return static_cast<int>(number_in(text).value_or(0));
}

class asking {
public:
    asking(const paced_clients& of, const std::vector<planned_request>& all)
        : of_{of},
          all_{all},
          out_(all.size()),
          idle_(of.ports.size()) {}

    std::vector<asked_request> run() {
        asio::co_spawn(io_, begin_each(), asio::detached);
        io_.run();
        return std::move(out_);
    }

private:
    using shared_socket = std::shared_ptr<tcp::socket>;

    awaitable<void> begin_each() {
        const auto begun = std::chrono::steady_clock::now();
        asio::steady_timer timer{io_};
        for (std::size_t i = 0; i < all_.size(); ++i) {
            out_[i].due = begun + all_[i].at;
            if (std::chrono::steady_clock::now() < out_[i].due) {
                timer.expires_at(out_[i].due);
                co_await timer.async_wait(as_values);
            }
            asio::co_spawn(io_, ask(all_[i], out_[i]), asio::detached);
        }
    }

    awaitable<void> ask(const planned_request& what, asked_request& became) {
        became.begun = std::chrono::steady_clock::now();
        bool again = false;
        do {
            shared_socket to;
            auto& idle = idle_[what.node];
            const bool kept = !again && !idle.empty();
            if (kept) {
                to = std::move(idle.back());
                idle.pop_back();
            } else {
                to = std::make_shared<tcp::socket>(io_);
            }
            asio::steady_timer timer{io_, became.begun + of_.patience};
            // One that is in the loop's queue already is not cancelled any more.
            const auto late = std::make_shared<bool>(false);
            timer.async_wait([to, late](const error_code& cancelled) {
                if (!cancelled) {
                    *late = true;
                    error_code ignored;
                    to->close(ignored);
                }
            });
            const bool silent = co_await exchange(what, kept, *to, became);
            timer.cancel();
            again = kept && silent && !*late;
            if (*late) {
                became.what = asking_outcome::timed_out;
            } else if (to->is_open()) {
                idle.push_back(std::move(to));
            }
        } while (again);
        became.ended = std::chrono::steady_clock::now();
    }

    // True: not a byte of an answer came. The socket is open behind it where it serves again.
    awaitable<bool> exchange(const planned_request& what,
                             bool kept,
                             tcp::socket& to,
                             asked_request& became) {
        const auto fail = [&](asking_outcome as, const error_code& why) {
            became.what = as;
            became.trouble = why.message();
            error_code ignored;
            to.close(ignored);
        };
        if (!kept) {
            const tcp::endpoint end{asio::ip::address_v4::loopback(), of_.ports[what.node]};
            const auto [refused] = co_await to.async_connect(end, as_values);
            if (refused) {
                fail(asking_outcome::no_answer, refused);
                co_return true;
            }
            to.set_option(tcp::no_delay{true});
        }
        const auto request = "GET " + of_.url(what.url) + " HTTP/1.1\r\nHost: origin\r\n\r\n";
        const auto wire = asio::buffer(request);
        const auto [unsent, put] = co_await asio::async_write(to, wire, as_values);
        (void)put;
        if (unsent) {
            fail(asking_outcome::no_answer, unsent);
            co_return true;
        }
        std::string buffer, body;
        std::optional<message_head> head;
        body_reader reading;
        for (bool goes_on = true; goes_on;) {
            char room[32 << 10];
            const auto into = asio::buffer(room);
            const auto [ended, got] = co_await to.async_read_some(into, as_values);
            buffer.append(room, got);
            if (ended) {
                const bool silent = !head && buffer.empty();
                if (head && ended == asio::error::eof) {
                    reading.end_of_stream();
                }
                if (!head || !reading.is_complete()) {
                    fail(head ? asking_outcome::cut : asking_outcome::no_answer, ended);
                    co_return silent;
                }
                to.close();
            }
            while (!head && (head = take_head(buffer))) {
                became.status = status_in(head->start_line);
                if (became.status < 200) {
                    head.reset();
                } else {
                    reading = body_of_response("GET", became.status, head->fields);
                }
            }
            if (head) {
                reading.feed(buffer, body);
                goes_on = !reading.is_complete() && reading.error().empty();
            }
        }
        if (!reading.is_complete()) {
            fail(asking_outcome::cut, asio::error::make_error_code(asio::error::invalid_argument));
            became.trouble = reading.error();
            co_return false;
        }
        judge(what, *head, body, became);
        if (lower(head->fields.get("Connection")) == "close" && to.is_open()) {
            to.close();
        }
        co_return false;
    }

    void judge(const planned_request& what,
               const message_head& head,
               const std::string& body,
               asked_request& became) const {
        const auto status = head.fields.all("Cache-Status");
        const auto last = status.substr(status.rfind(',') + 1);
        became.own_hit = last.find("; hit") != std::string::npos;
        became.is_first_sight = status.find("detail=first-request") != std::string::npos;
        became.by_another = !became.own_hit &&
                            head.fields.all("Via").find(',') != std::string::npos;
        if (became.status != 200) {
            became.what = asking_outcome::error;
            became.trouble = head.start_line + " " + head.fields.all("Proxy-Status");
        } else {
            became.what = of_.is_body(what.url, body) ? asking_outcome::right
                                                      : asking_outcome::wrong;
        }
    }

    const paced_clients& of_;
    const std::vector<planned_request>& all_;
    asio::io_context io_{1};
    std::vector<asked_request> out_;
    std::vector<std::vector<shared_socket>> idle_;
};

}  // namespace

std::string_view to_string(asking_outcome of) noexcept {
    switch (of) {
    case asking_outcome::right: return "right";
    case asking_outcome::wrong: return "wrong bytes";
    case asking_outcome::error: return "an error";
    case asking_outcome::cut: return "cut short";
    case asking_outcome::no_answer: return "no answer";
    case asking_outcome::timed_out: return "no answer in time";
    }
    return "";
}

std::vector<asked_request> paced_clients::ask(const std::vector<planned_request>& all) const {
    asking one{*this, all};
    return one.run();
}

}  // namespace reprise::tests
