// Asio and Beast in one translation unit, so that no other has to compile them.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
