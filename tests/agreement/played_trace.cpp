#include "tests/agreement/played_trace.hpp"

#include "tools/replay/trace.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <stdexcept>

namespace reprise::tests {

namespace {

/// Numbers objects by first appearance and sums them up.
void finish(played_trace& trace) {
    std::vector<std::uint32_t> number;
    for (auto& one : trace.requests) {
        if (one.object >= number.size()) {
            number.resize(one.object + 1, 0);
        }
        if (number[one.object] == 0) {
            number[one.object] = ++trace.objects;
            trace.unique_bytes += one.bytes;
        }
        one.object = number[one.object] - 1;
    }
}

}  // namespace

played_trace read_trace(const std::string& path, std::uint64_t most, std::uint64_t scale) {
    replay::trace in{{path}, replay::log_format::trace};
    played_trace out;
    out.name = path.substr(path.rfind('/') + 1);
    std::vector<replay::request> batch;
    while (out.requests.size() < most) {
        in.next(batch, std::min<std::uint64_t>(most - out.requests.size(), 4096));
        if (batch.empty()) {
            break;
        }
        for (const auto& one : batch) {
            const auto bytes = std::clamp<std::uint64_t>(one.bytes / scale, 1, UINT32_MAX);
            out.requests.push_back({one.object, static_cast<std::uint32_t>(bytes)});
        }
    }
    finish(out);
    return out;
}

played_trace made_trace(std::uint32_t requests) {
    std::mt19937_64 random{1998};
    // Two thirds of the requests are for what is popular, by Zipf's law with exponent 0.9; the
    // others are for objects that nobody asks for again.
    const std::uint32_t popular = std::max<std::uint32_t>(requests / 20, 10);
    std::vector<double> weights(popular);
    for (std::uint32_t rank = 0; rank < popular; ++rank) {
        weights[rank] = std::pow(rank + 1.0, -0.9);
    }
    std::discrete_distribution<std::uint32_t> by_popularity{weights.begin(), weights.end()};
    std::lognormal_distribution<double> size{8.3, 1.3};
    std::vector<std::uint32_t> bytes;
    const auto bytes_of = [&](std::uint32_t object) {
        while (bytes.size() <= object) {
            bytes.push_back(static_cast<std::uint32_t>(std::clamp(size(random), 16.0, 200e3)));
        }
        return bytes[object];
    };
    played_trace out;
    out.name = "made";
    std::uint32_t once = popular;
    for (std::uint32_t i = 0; i < requests; ++i) {
        const auto object = random() % 3 == 0 ? once++ : by_popularity(random);
        out.requests.push_back({object, bytes_of(object)});
    }
    finish(out);
    return out;
}

void write_trace(const played_trace& trace,
                 const std::string& path,
                 const std::function<std::uint64_t(std::uint32_t)>& charge) {
    std::ofstream out{path};
    std::uint64_t second = 0;
    for (const auto& one : trace.requests) {
        out << second++ << ',' << one.object + 1 << ',' << charge(one.bytes) << '\n';
    }
    if (!out.flush()) {
        throw std::runtime_error("can't write " + path);
    }
}

}  // namespace reprise::tests
