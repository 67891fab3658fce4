#pragma once
// A value that a test and a program under test have in common: one file, mapped by both.

#include "tests/support/temp_dir.hpp"

#include <fcntl.h>
#include <new>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace reprise::tests {

/// Value-initialised. Must outlive the program that was told of file().
template <class T>
class shared_value {
public:
    /// @throws std::runtime_error when its file cannot be mapped
    shared_value() {
        directory_.write("value", std::string(sizeof(T), '\0'));
        const int fd = ::open(file().c_str(), O_RDWR | O_CLOEXEC);
        void* const at =
            fd < 0 ? MAP_FAILED
                   : ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ::close(fd);
        if (at == MAP_FAILED) {
            throw std::runtime_error("a file cannot be mapped");
        }
        value_ = ::new (at) T{};
    }
    shared_value(const shared_value&) = delete;
    shared_value& operator=(const shared_value&) = delete;
    ~shared_value() { ::munmap(value_, sizeof(T)); }

    [[nodiscard]] std::string file() const { return directory_.file("value"); }
    [[nodiscard]] T& operator*() const noexcept { return *value_; }

private:
    temp_dir directory_;
    T* value_ = nullptr;
};

}  // namespace reprise::tests
