#pragma once
// Siblings asked for one object, best first, until one has it: the next where one has said no, and beside
// those that are silent.
//
// Most answer within a millisecond. One that has been silent for several times as long as it usually takes, its
// connection's making included (peer/benefit.hpp, patience), is stopped, cut off or at its disk, and may answer yet: it is
// not given up, and whoever comes next is asked as well. The first answer is taken. This is the hedged request of Dean and
// Barroso, "The Tail at Scale", CACM 56(2), 2013. One that has said that it is at work (102) is waited for
// alone; one that has said anything else has as long again for the rest.
//
// The query says when it has an answer or has nobody left to ask; a waiter may do without it at any
// moment.
//
// Threads   one worker's.
// Waits     each sibling's own (asked_sibling.hpp), and the patience with it.
// Bounds    most_at_once are asked at a time; of all questions few go out beside others (peer/hedges.hpp).

#include "proxy/fetch/asked_sibling.hpp"
#include "proxy/peer/sibling_table.hpp"

#include <boost/asio/steady_timer.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace reprise::proxy::fetch {

class sibling_query : public std::enable_shared_from_this<sibling_query> {
public:
    static constexpr std::size_t most_at_once = 3;

    /// `told` is called once, when it is over: from the loop, or within begin() where nobody is there to be asked.
    /// Not behind abandon(). @pre w outlives it
    sibling_query(thread::worker& w,
                  std::shared_ptr<const peer::peer_book> book,
                  const peer::candidates& whom,
                  sibling_question question,
                  std::function<void(const sibling_query&)> told);
    ~sibling_query();
    sibling_query(const sibling_query&) = delete;
    sibling_query& operator=(const sibling_query&) = delete;

    void begin();

    /// There is an answer, or nobody is left to ask.
    [[nodiscard]] bool is_over() const noexcept { return over_; }
    [[nodiscard]] bool has_answer() const noexcept { return answered_ != nullptr; }
    /// @pre has_answer()
    [[nodiscard]] std::unique_ptr<sibling_reply> take() noexcept;

    enum class reason : std::uint8_t {
        outrun,    ///< another source was faster
        unwanted,  ///< the clients have left, or no answer is of use any more
    };
    /// Ends the wait. `outrun`: those that were waited for in vain, or one that has answered since, count
    /// as late. `unwanted`: those being asked are not counted. @pre before take()
    void abandon(reason why);

private:
    void try_to_go_on();
    void go_on();
    void ask_next();
    [[nodiscard]] bool is_anybody_at_work() const noexcept;
    [[nodiscard]] steady_time patient_until() const noexcept;
    void go_on_at(steady_time then);
    void note_ended(asked_sibling& one);
    void leave_others(reason why);
    void end();

    thread::worker& w_;
    const std::shared_ptr<const peer::peer_book> book_;
    const peer::candidates whom_;
    const std::shared_ptr<const sibling_question> question_;
    std::function<void(const sibling_query&)> told_;
    asio::steady_timer timer_;
    std::size_t next_ = 0;                               // of whom_
    std::vector<std::shared_ptr<asked_sibling>> asked_;  // that have not ended
    std::shared_ptr<asked_sibling> answered_;
    bool over_ = false;
};

}  // namespace reprise::proxy::fetch
