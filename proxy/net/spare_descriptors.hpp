#pragma once
// File descriptors held for the moment when there are no others: whoever may not be kept out gives
// one back to the system, and takes it for what could not be opened.

#include <cstddef>
#include <vector>

namespace reprise::proxy::net {

/// Threads   one. Between give() and the use of what it gave another thread may be quicker: ask
///           again, as often as it gives.
class spare_descriptors {
public:
    explicit spare_descriptors(std::size_t most) : most_{most} { refill(); }
    ~spare_descriptors();
    spare_descriptors(const spare_descriptors&) = delete;
    spare_descriptors& operator=(const spare_descriptors&) = delete;

    /// Closes one; false: none is left.
    [[nodiscard]] bool give() noexcept;
    /// Takes as many as the system has, up to `most`. Nothing where all are there.
    void refill() noexcept;

private:
    std::size_t most_;
    std::vector<int> held_;
};

}  // namespace reprise::proxy::net
