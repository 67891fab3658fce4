#pragma once
// Where the frames of coroutines come from: free blocks of the thread, in a list for each size.
// A first request has some eighteen frames while it waits for its origin. Asio keeps a few for a
// thread in one list of all sizes, takes the first that is large enough, frees one where none is,
// and keeps none above 1,020 bytes: with 32 such requests under way nearly every frame was the
// heap's. So its two members that do this are specialised for the one executor that is used here.
// Included by net/asio.hpp alone: whoever says `awaitable` has it.

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>

namespace reprise::proxy::net {

/// Any thread; what is taken on one may be given back on another.
/// @throws std::bad_alloc
[[nodiscard]] void* take_frame(std::size_t size);
/// @param size  as it was taken
void give_frame_back(void* frame, std::size_t size) noexcept;

}  // namespace reprise::proxy::net

template <>
inline void* boost::asio::detail::awaitable_frame_base<
    boost::asio::io_context::executor_type>::operator new(std::size_t size) {
    return reprise::proxy::net::take_frame(size);
}

template <>
inline void
boost::asio::detail::awaitable_frame_base<boost::asio::io_context::executor_type>::operator delete(
    void* frame, std::size_t size) {
    reprise::proxy::net::give_frame_back(frame, size);
}
