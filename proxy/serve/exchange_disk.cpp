#include "proxy/http/conditional.hpp"
#include "proxy/serve/exchange.hpp"

#include <atomic>
#include <memory>

// What the disk tier answers: a look-up that has to wait, a body that is sent while it is read.

namespace reprise::proxy::serve {

namespace {
constexpr std::size_t batch = 128u << 10;  // of a body, handed to the kernel at once
}  // namespace

// A purge is answered when a restart would know of it.
awaitable<bool> exchange::answer_kept_purge() {
    const auto kept = std::make_shared<std::atomic<bool>>(false);
    auto tell = [kept, sleeper = s_.arrived.handle()] {
        kept->store(true);
        sleeper.notify();
    };
    w_.common.store.keep_purges(std::move(tell));
    const auto until = steady_now() + purge_patience;
    while (!kept->load() && steady_now() < until) {
        const bool signalled = co_await s_.arrived.wait(until);
        if (!signalled) {
            break;
        }
    }
    if (!kept->load()) {
        purged_ = {purge_not_kept_status, std::string{purge_not_kept}};
    }
    const auto after = answer_local(
        purged_.json, kept->load() ? "application/json" : "text/plain", purged_.status);
    co_return co_await finish_composed(after);
}

awaitable<bool> exchange::serve_from_disk() {
    while (lookup_ && !lookup_->step(head_->fields)) {
        const bool more = co_await wait_for_news();
        if (!more) {
            lookup_.reset();
            keep_ = false;
            ledger_.how = outcome::client_gone;
            co_return false;
        }
    }
    if (adopt_from_disk()) {
        const auto after = send_composed();
        co_return co_await finish_composed(after);
    }
    co_return co_await serve_from_fetch();
}

// Sends what is composed and, behind it, the body from disk. Until a first piece of that is there
// nothing goes out, so that a body that proves unreadable is fetched as if it were not stored;
// after that the rest is asked of the origin under the validator of what was sent, or the reply
// breaks off.
awaitable<bool> exchange::send_outside() {
    const auto reader = std::move(outside_);
    const auto stored = sending_;
    std::vector<cache::slice> pieces;
    while (reader->offset() < outside_end_) {
        pieces.clear();
        const auto what = reader->next(outside_end_, batch, pieces);
        if (what == cache::outside_reader::news::waiting) {
            const bool more = co_await wait_for_news();
            if (!more) {
                co_return break_off(outcome::client_gone, ledger_.reason);
            }
            continue;
        }
        if (what == cache::outside_reader::news::lost) {
            (void)w_.common.store.drop(key_, url_, stored);
        }
        if (what != cache::outside_reader::news::data) {
            if (!s_.client.reply_under_way()) {
                s_.parts.clear();
                sending_ = nullptr;
                stored_ = {};
                verdict_ = cache::judge(stored_, facts_, head_->fields, resident_now());
                co_return co_await serve_from_fetch();
            }
            if (ledger_.status != 200) {
                co_return break_off(outcome::cut_short, "disk");
            }
            co_return co_await resume_from_origin(*stored, *reader);
        }
        std::size_t size = 0;
        for (const auto& piece : pieces) {
            size += piece.size;
        }
        ledger_.note_body(body_source::store, size);
        for (const auto& piece : pieces) {
            s_.parts.emplace_back(piece.view().data(), piece.size);
        }
        const bool sent = co_await send_rest();
        if (!sent) {
            co_return false;
        }
    }
    end_reply();
    co_return true;
}

// The rest of a 200 whose body can be read no further, by a range request under its strong ETag.
awaitable<bool> exchange::resume_from_origin(const cache::stored_response& stored,
                                             const cache::outside_reader& reader) {
    auto head = std::make_shared<cache::fetched_head>();
    head->status = stored.status;
    head->length = stored.size();
    const auto lines = stored.fields();
    if (const auto* etag = http::find(lines, http::field_id::etag);
        etag != nullptr && http::is_strong(etag->value) && etag->value.starts_with('"')) {
        head->strong_etag = etag->value;
    }
    const cache::head_ptr known = std::move(head);
    co_return co_await go_on_alone(known, reader.offset(), "disk");
}

}  // namespace reprise::proxy::serve
