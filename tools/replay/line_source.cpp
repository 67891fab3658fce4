#include "tools/replay/line_source.hpp"

#include "tools/replay/unpacker.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace reprise::replay {

namespace {

constexpr std::size_t piece = 1u << 20;
constexpr std::size_t longest_line = 16u << 20;

}  // namespace

struct line_source::inside {
    std::string path;
    int file = -1;
    std::uint64_t read_so_far = 0;
    std::uint64_t length = 0;

    std::vector<char> raw = std::vector<char>(piece);  // as read; of a plain file unused
    std::size_t raw_from = 0, raw_to = 0;
    bool at_end = false;               // of the file
    std::unique_ptr<unpacker> packed;  // null: a plain file

    std::vector<char> text = std::vector<char>(piece);  // text[from, to) is not yet given out
    std::size_t from = 0, to = 0;

    ~inside() {
        if (file > STDERR_FILENO) {
            ::close(file);
        }
    }

    [[noreturn]] void fail(const std::string& why) const {
        throw std::runtime_error{path + ": " + why};
    }

    std::size_t read_some(char* into, std::size_t most) {
        for (;;) {
            const auto got = ::read(file, into, most);
            if (got >= 0) {
                at_end = got == 0;
                read_so_far += static_cast<std::uint64_t>(got);
                return static_cast<std::size_t>(got);
            }
            if (errno != EINTR) {
                fail(std::generic_category().message(errno));
            }
        }
    }

    void open() {
        file = path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (file < 0) {
            fail(std::generic_category().message(errno));
        }
        struct stat status {};
        if (::fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
            length = static_cast<std::uint64_t>(status.st_size);
        }
        while (raw_to < unpacker::telling_bytes && !at_end) {
            raw_to += read_some(raw.data() + raw_to, raw.size() - raw_to);
        }
        packed = unpacker::for_stream({raw.data(), raw_to});
    }

    // More text behind `to`; false at the end.
    bool refill() {
        if (from != 0) {
            std::memmove(text.data(), text.data() + from, to - from);
            to -= from;
            from = 0;
        }
        if (to == text.size()) {
            text.resize(2 * text.size());
        }
        if (!packed) {
            std::size_t got = 0;
            if (raw_from != raw_to) {  // what was read to look for the magic number
                got = std::min(raw_to - raw_from, text.size() - to);
                std::memcpy(text.data() + to, raw.data() + raw_from, got);
                raw_from += got;
            } else if (!at_end) {
                got = read_some(text.data() + to, text.size() - to);
            }
            to += got;
            return got != 0;
        }
        std::size_t made = 0;
        while (made == 0) {
            if (raw_from == raw_to) {
                raw_from = 0;
                raw_to = at_end ? 0 : read_some(raw.data(), raw.size());
                if (raw_to == 0) {
                    if (!packed->may_end()) {
                        fail("the " + std::string{packed->name()} + " stream is cut off");
                    }
                    return false;
                }
            }
            made = unpack_some();
        }
        return true;
    }

    std::size_t unpack_some() {
        try {
            const auto done = packed->unpack({raw.data() + raw_from, raw_to - raw_from},
                                             {text.data() + to, text.size() - to});
            raw_from += done.taken;
            to += done.made;
            return done.made;
        } catch (const std::runtime_error& error) {
            fail(error.what());
        }
    }
};

line_source::line_source(const std::string& path) : inside_{std::make_unique<inside>()} {
    inside_->path = path;
    inside_->open();
}

line_source::~line_source() = default;
line_source::line_source(line_source&&) noexcept = default;
line_source& line_source::operator=(line_source&&) noexcept = default;

bool line_source::next(std::string_view& line) {
    auto& in = *inside_;
    std::size_t searched = 0;  // of text behind `from`
    for (;;) {
        const auto* const begin = in.text.data() + in.from;
        const auto length = in.to - in.from;
        const auto* const end = static_cast<const char*>(
            std::memchr(begin + searched, '\n', length - searched));
        if (end != nullptr) {
            line = {begin, static_cast<std::size_t>(end - begin)};
            in.from += line.size() + 1;
            return true;
        }
        searched = length;
        if (length >= longest_line || !in.refill()) {
            line = {in.text.data() + in.from, in.to - in.from};
            in.from = in.to;
            return !line.empty();
        }
    }
}

std::uint64_t line_source::bytes_read() const noexcept {
    return inside_->read_so_far;
}

std::uint64_t line_source::bytes_in_all() const noexcept {
    return inside_->length;
}

}  // namespace reprise::replay
