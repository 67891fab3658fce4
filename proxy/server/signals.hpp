#pragma once
// The signals that tell this program something, read one after the other.
//
// From where this is made to the program's end every thread blocks them, and they are read from a
// descriptor (signalfd(2)). So there is no moment, and no thread, in which one is taken as the
// system would take it, which is the end of the program by that signal: not on a thread that was
// begun meanwhile, and not while it ends.

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <functional>
#include <initializer_list>

namespace reprise::proxy::server {

/// Threads  io's; made before any other thread is begun, since these have its mask. Children must be
///          begun with a mask of their own.
class signals {
public:
    using told = std::function<void(int number)>;

    /// Those that come from now on wait until somebody is told of them.
    /// @throws std::system_error
    signals(boost::asio::io_context& io, std::initializer_list<int> which);

    /// Who is told of each from now on, on io's thread; whoever was told before no longer is.
    void tell(told who);

private:
    void wait();

    boost::asio::posix::stream_descriptor from_;
    told who_;
};

}  // namespace reprise::proxy::server
