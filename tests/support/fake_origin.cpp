#include "tests/support/fake_origin.hpp"

#include "tests/support/complaint.hpp"
#include "tests/support/tls_carrier.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace reprise::tests {

namespace {

// What waits for the other side waits for as long as it takes: stop() ends every connection.
constexpr std::chrono::hours ever{24};

std::string_view path_of(std::string_view target) {
    if (const auto scheme = target.find("://"); scheme != std::string_view::npos) {
        const auto slash = target.find('/', scheme + 3);
        target = slash == std::string_view::npos ? "/" : target.substr(slash);
    }
    return target.substr(0, target.find('?'));
}

}  // namespace

origin_connection::origin_connection(fake_origin& origin, stream connection, unsigned number)
    : origin_{origin},
      stream_{std::move(connection)},
      number_{number} {}

origin_connection::origin_connection(origin_connection&&) noexcept = default;
origin_connection::~origin_connection() = default;

std::string_view origin_request::path() const {
    return path_of(target);
}

bool origin_connection::shake_hands(const made_certificate& identity) {
    auto peer = tls_peer::server(stream_.release(), identity, origin_.options_.tls);
    if (!peer.shake_hands()) {
        return false;
    }
    const std::lock_guard lock{origin_.mutex_};
    tls_ = std::make_unique<tls_carrier>(std::move(peer));
    stream_ = tls_->plain_end();
    return goes_on();
}

bool origin_connection::send(std::string_view bytes, std::chrono::milliseconds limit) {
    return open_ && stream_.send(bytes, limit);
}

std::size_t origin_connection::send_until_stalled(std::string_view bytes,
                                                  std::chrono::milliseconds stalled) {
    return open_ ? stream_.send_until_stalled(bytes, stalled) : 0;
}

void origin_connection::close() {
    open_ = false;
}

void origin_connection::truncate() {
    open_ = false;
    tls_->leave(false);
}

void origin_connection::reset() {
    open_ = false;
    const std::lock_guard lock{origin_.mutex_};  // stop() may be looking at the socket
    stream_.reset();
}

void origin_connection::finish_sending() {
    stream_.finish_sending();
}

bool origin_connection::has_ended() const {
    return !open_ || stream_.has_ended();
}

bool origin_connection::goes_on() const {
    return !origin_.stopping_;
}

read_end origin_connection::read_some(std::string& into, std::chrono::milliseconds limit) {
    if (!buffer_.empty()) {
        into += std::exchange(buffer_, {});
        return read_end::data;
    }
    return stream_.read_some(into, limit);
}

bool origin_connection::is_closed_by_proxy(std::chrono::milliseconds limit) {
    std::string dropped;
    const auto until = std::chrono::steady_clock::now() + limit;
    for (auto left = limit; left.count() > 0; left = std::chrono::ceil<std::chrono::milliseconds>(
                                                  until - std::chrono::steady_clock::now())) {
        const auto end = stream_.read_some(dropped, left);
        if (end == read_end::closed || end == read_end::reset) {
            return goes_on();
        }
        dropped.clear();
    }
    return false;
}

void origin_connection::read_body(origin_request& request) {
    request.framed_by = body_.how();
    body_.feed(buffer_, request.body);
    while (!body_.is_complete() && body_.error().empty()) {
        const auto end = stream_.read_some(buffer_, ever);
        if (end == read_end::closed || end == read_end::reset) {
            break;
        }
        body_.feed(buffer_, request.body);
    }
    request.body_complete = body_.is_complete();
    request.trailers = body_.trailers();
    request.chunk_lines_are_canonical = body_.chunk_lines_are_canonical();
}

fake_origin::fake_origin(origin_options options)
    : options_{std::move(options)},
      acceptor_{options_.address, options_.port} {
    fallback_.handler = [](origin_request&, origin_connection& connection) {
        connection.send(answer("404 Not Found", "", "no such page at this origin\n"));
    };
    accepts_ = std::thread{[this] { accept_all(); }};
}

fake_origin::~fake_origin() {
    stop();
    open_gates();
    for (auto& connection : connections_) {
        connection.thread_.join();
    }
}

void fake_origin::stop() {
    if (stopping_.exchange(true)) {
        return;
    }
    acceptor_.stop();
    accepts_.join();
    const std::lock_guard lock{mutex_};
    for (auto& connection : connections_) {
        connection.stream_.close_both_ways();
    }
}

std::string fake_origin::authority() const {
    const auto& address = options_.address;
    const auto host = address.find(':') == std::string::npos ? address : "[" + address + "]";
    return host + ":" + std::to_string(port());
}

std::string fake_origin::url(std::string_view path) const {
    return "http://" + authority() + std::string{path};
}

origin_handler sends(std::string raw_answer) {
    return [raw = std::move(raw_answer)](origin_request&, origin_connection& connection) {
        connection.send(raw);
    };
}

void fake_origin::on(const std::string& path, origin_handler handler) {
    const std::lock_guard lock{mutex_};
    routes_[path] = {std::move(handler), false};
}

void fake_origin::on_head(const std::string& path, origin_handler handler) {
    const std::lock_guard lock{mutex_};
    routes_[path] = {std::move(handler), true};
}

void fake_origin::otherwise(origin_handler handler) {
    const std::lock_guard lock{mutex_};
    fallback_ = {std::move(handler), false};
}

std::vector<origin_request> fake_origin::requests() const {
    const std::lock_guard lock{mutex_};
    return requests_;
}

std::vector<origin_request> fake_origin::requests(std::string_view path) const {
    const std::lock_guard lock{mutex_};
    std::vector<origin_request> out;
    std::copy_if(requests_.begin(),
                 requests_.end(),
                 std::back_inserter(out),
                 [&](const auto& request) { return path_of(request.target) == path; });
    return out;
}

std::size_t fake_origin::count(std::string_view path) const {
    const std::lock_guard lock{mutex_};
    return static_cast<std::size_t>(
        std::count_if(requests_.begin(), requests_.end(), [&](const auto& request) {
            return path_of(request.target) == path;
        }));
}

unsigned fake_origin::connections() const {
    const std::lock_guard lock{mutex_};
    return accepted_;
}

unsigned fake_origin::open_connections() const {
    const std::lock_guard lock{mutex_};
    return static_cast<unsigned>(std::count_if(
        connections_.begin(), connections_.end(), [](const auto& one) { return !one.done_; }));
}

gate& fake_origin::make_gate() {
    const std::lock_guard lock{mutex_};
    return gates_.emplace_back();
}

gate& fake_origin::hold(const std::string& path, std::string raw_answer) {
    auto& go = make_gate();
    on(path, [&go, raw = std::move(raw_answer)](origin_request&, origin_connection& connection) {
        (void)go.wait(6 * patience);  // who gathers before it has patience, too, and more than once
        connection.send(raw);
    });
    return go;
}

void fake_origin::identify_as(made_certificate identity) {
    const std::lock_guard lock{mutex_};
    options_.identity = std::move(identity);
}

void fake_origin::open_gates() {
    const std::lock_guard lock{mutex_};
    for (auto& one : gates_) {
        one.open();
    }
}

void fake_origin::otherwise_at_head(origin_handler handler) {
    const std::lock_guard lock{mutex_};
    fallback_ = {std::move(handler), true};
}

fake_origin::route fake_origin::route_of(const std::string& target) const {
    const std::lock_guard lock{mutex_};
    const auto found = routes_.find(path_of(target));
    return found == routes_.end() ? fallback_ : found->second;
}

void fake_origin::accept_all() {
    while (!stopping_) {
        auto connection = acceptor_.accept(ever);
        if (!connection.is_open()) {
            continue;
        }
        const std::lock_guard lock{mutex_};
        // A thread that has ended keeps its stack until it is joined: tens of thousands are too
        // many.
        constexpr std::size_t enough = 64;
        if (connections_.size() >= enough) {
            std::erase_if(connections_, [](auto& one) {
                if (one.done_) {
                    one.thread_.join();
                }
                return one.done_;
            });
        }
        connections_.push_back(origin_connection{*this, std::move(connection), accepted_++});
        auto& kept = connections_.back();
        kept.thread_ = std::thread{[this, &kept] { serve(kept); }};
    }
}

void fake_origin::serve(origin_connection& connection) {
    unsigned number = 0;
    std::optional<made_certificate> identity;
    {
        const std::lock_guard lock{mutex_};
        identity = options_.identity;
    }
    bool goes_on = !identity || connection.shake_hands(*identity);
    while (goes_on && connection.open_ && !stopping_) {
        goes_on = serve_one(connection, number++);
    }
    {
        const std::lock_guard lock{mutex_};
        connection.stream_.close();
    }
    if (connection.tls_) {
        connection.tls_->finish();
        connection.tls_.reset();
    }
    const std::lock_guard lock{mutex_};
    connection.done_ = true;
}

bool fake_origin::serve_one(origin_connection& connection, unsigned number) {
    auto head = take_head(connection.buffer_);
    while (!head) {
        const auto end = connection.stream_.read_some(connection.buffer_, ever);
        if (end == read_end::closed || end == read_end::reset || stopping_) {
            return false;
        }
        head = take_head(connection.buffer_);
    }
    origin_request request;
    const std::string_view line = head->start_line;
    const auto first = std::min(line.find(' '), line.size());
    const auto last = std::max(std::min(line.rfind(' '), line.size()), first);
    request.method = line.substr(0, first);
    request.target = line.substr(std::min(first + 1, last), last - std::min(first + 1, last));
    request.version = line.substr(std::min(last + 1, line.size()));
    request.fields = head->fields;
    request.head = std::move(*head);
    request.connection = connection.number_;
    request.number = number;
    connection.body_ = body_of_request(request.fields);
    request.framed_by = connection.body_.how();

    const auto how = route_of(request.target);
    if (!how.at_head) {
        connection.read_body(request);
    }
    asked_.fetch_add(1, std::memory_order_relaxed);
    if (options_.remembers) {
        const std::lock_guard lock{mutex_};
        requests_.push_back(request);
    }
    // A handler that throws fails its test by name. It would end the program, and all its other
    // tests, if it left this thread.
    try {
        how.handler(request, connection);
    } catch (const std::exception& error) {
        complain("the handler of " + request.target + " threw: " + error.what());
        return false;
    } catch (...) {  // a REQUIRE's: it has failed the test already
        return false;
    }
    return connection.open_;
}

std::string http_date(std::chrono::seconds from_now) {
    return http_date_of(std::time(nullptr) + from_now.count());
}

std::string http_date_of(std::time_t when) {
    std::tm parts{};
    ::gmtime_r(&when, &parts);
    char text[64];
    const auto size = std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    return {text, size};
}

std::string answer(std::string_view status_line, std::string_view fields, std::string_view body) {
    std::string out = "HTTP/1.1 ";
    out += status_line;
    out += "\r\nDate: " + http_date() + "\r\n";
    out += fields;
    out += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    out += body;
    return out;
}

std::string ok(std::string_view fields, std::string_view body) {
    return answer("200 OK", fields, body);
}

}  // namespace reprise::tests
