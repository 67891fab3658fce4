#include "tools/replay/unpacker.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <zlib.h>
#include <zstd.h>

namespace reprise::replay {

namespace {

using namespace std::string_view_literals;

constexpr auto zstd_magic = "\x28\xb5\x2f\xfd"sv;
constexpr auto gzip_magic = "\x1f\x8b"sv;

class zstd_unpacker final : public unpacker {
public:
    zstd_unpacker() : stream_{ZSTD_createDStream()} {
        if (!stream_) {
            throw std::bad_alloc{};
        }
    }

    progress unpack(std::span<const char> from, std::span<char> into) override {
        ZSTD_inBuffer in{from.data(), from.size(), 0};
        ZSTD_outBuffer out{into.data(), into.size(), 0};
        owed_ = ZSTD_decompressStream(stream_.get(), &out, &in);
        if (ZSTD_isError(owed_) != 0) {
            throw std::runtime_error{std::string{"zstd: "} + ZSTD_getErrorName(owed_)};
        }
        return {in.pos, out.pos};
    }
    bool may_end() const noexcept override { return owed_ == 0; }
    std::string_view name() const noexcept override { return "zstd"; }

private:
    struct free_stream {
        void operator()(ZSTD_DStream* stream) const noexcept { ZSTD_freeDStream(stream); }
    };
    std::unique_ptr<ZSTD_DStream, free_stream> stream_;
    std::size_t owed_ = 1;  // 0: between frames
};

class gzip_unpacker final : public unpacker {
public:
    gzip_unpacker() {
        constexpr int gzip_only = 16;
        if (inflateInit2(&stream_, gzip_only + MAX_WBITS) != Z_OK) {
            throw std::bad_alloc{};
        }
    }
    ~gzip_unpacker() override { inflateEnd(&stream_); }

    progress unpack(std::span<const char> from, std::span<char> into) override {
        if (between_) {
            // Some fill up the last block behind a member with zeros.
            const auto zeros = static_cast<std::size_t>(
                std::find_if(from.begin(), from.end(), [](char c) { return c != 0; }) -
                from.begin());
            if (zeros != 0) {
                return {zeros, 0};
            }
            inflateReset(&stream_);
            between_ = false;
        }
        constexpr std::size_t most = std::numeric_limits<uInt>::max();
        // zlib reads it and writes nothing there.
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from.data()));
        stream_.avail_in = static_cast<uInt>(std::min(from.size(), most));
        stream_.next_out = reinterpret_cast<Bytef*>(into.data());
        stream_.avail_out = static_cast<uInt>(std::min(into.size(), most));
        const progress before{stream_.avail_in, stream_.avail_out};
        const auto answer = inflate(&stream_, Z_NO_FLUSH);
        switch (answer) {
        case Z_OK:
        case Z_BUF_ERROR: break;  // no progress was possible, which is no error
        case Z_STREAM_END: between_ = true; break;
        case Z_MEM_ERROR: throw std::bad_alloc{};
        default:
            throw std::runtime_error{std::string{"gzip: "} +
                                     (stream_.msg != nullptr ? stream_.msg : "damaged")};
        }
        return {before.taken - stream_.avail_in, before.made - stream_.avail_out};
    }
    bool may_end() const noexcept override { return between_; }
    std::string_view name() const noexcept override { return "gzip"; }

private:
    z_stream stream_{};
    bool between_ = false;  // members
};

}  // namespace

std::unique_ptr<unpacker> unpacker::for_stream(std::string_view begin) {
    if (begin.starts_with(zstd_magic)) {
        return std::make_unique<zstd_unpacker>();
    }
    if (begin.starts_with(gzip_magic)) {
        return std::make_unique<gzip_unpacker>();
    }
    return nullptr;
}

}  // namespace reprise::replay
