#include "tools/replay/sweep.hpp"

#include "config/options.hpp"
#include "config/quantity.hpp"

#include <algorithm>

namespace reprise::replay {

namespace {

// What there is to store in.
struct room {
    cache_size size;
    std::optional<disk_choice> disk;
};

disk_choice disk_of(const sweep_words& asked) {
    auto out = asked.disk;
    const auto when = asked.write == "admission"  ? std::optional{write_when::admission}
                      : asked.write == "eviction" ? std::optional{write_when::eviction}
                                                  : std::nullopt;
    out.write = must(when, "--write", asked.write);
    return out;
}

// A room for each memory beside each disk.
std::vector<room> divided_rooms(const sweep_words& asked) {
    auto memories = asked.memory;
    if (memories.empty()) {
        memories.push_back(config::size_to_string(config::options{}.memory.size));
    }
    std::vector<room> out;
    for (const auto& text : memories) {
        const auto memory = bytes_named(text, "--memory");
        if (asked.disks.empty()) {
            out.push_back({{.bytes = memory}, std::nullopt});
        }
        for (const auto& disk : asked.disks) {
            auto choice = disk_of(asked);
            choice.memory_bytes = memory;
            out.push_back({{.bytes = memory + bytes_named(disk, "--disk")}, choice});
        }
    }
    return out;
}

std::vector<room> rooms_of(const sweep_words& asked) {
    const auto is_share = [](const std::string& text) { return text.ends_with('%'); };
    const bool shares = std::any_of(asked.memory.begin(), asked.memory.end(), is_share);
    if (!asked.disks.empty() || (!asked.memory.empty() && !shares)) {
        if (!asked.sizes.empty()) {
            throw std::runtime_error{"--size says what --memory and --disk are together: with it, "
                                     "--memory is a share (20%) and --disk is not named"};
        }
        return divided_rooms(asked);
    }
    const auto sizes = asked.sizes.empty() ? std::vector<std::string>{"1%", "10%"} : asked.sizes;
    std::vector<room> out;
    for (const auto& text : sizes) {
        const auto size = must(cache_size_of(text), "--size", text);
        if (asked.memory.empty()) {
            out.push_back({size, std::nullopt});
        }
        for (const auto& share : asked.memory) {
            auto choice = disk_of(asked);
            choice.memory = must(share_of(share), "--memory", share);
            out.push_back({size, choice});
        }
    }
    return out;
}

}  // namespace

std::optional<objective> objective_of(const std::string& text) {
    for (const auto one : {objective::requests, objective::bytes, objective::seconds}) {
        if (text == to_string(one)) {
            return one;
        }
    }
    return std::nullopt;
}

std::uint64_t bytes_named(const std::string& text, const std::string& option) {
    const auto size = must(cache_size_of(text), option, text);
    if (size.bytes == 0) {
        throw std::runtime_error{option + ": \"" + text + "\" is to be bytes, such as 1GiB"};
    }
    return size.bytes;
}

std::vector<setup> setups_of(const sweep_words& asked) {
    std::vector<setup> out;
    for (const auto& [size, disk] : rooms_of(asked)) {
        for (const auto& policy : asked.policies) {
            for (const auto& admission : asked.admissions) {
                for (const auto& probation : asked.probations) {
                    setup one;
                    one.size = size;
                    one.policy = must(policy_choice_of(policy), "--policy", policy);
                    one.admission = must(admission_choice_of(admission), "--admission", admission);
                    one.probation = must(share_of(probation), "--probation", probation);
                    one.disk = disk;
                    one.wanted = must(objective_of(asked.wanted), "--objective", asked.wanted);
                    one.scaled = asked.scaled;
                    one.remember_objects = asked.scaled ? 0 : asked.objects;
                    one.counts_overhead = asked.counts_overhead;
                    one.remembers_automatically = asked.remembers_automatically;
                    if (one.admission.what == admission_choice::kind::always) {
                        one.probation = disk ? one.probation : 0;
                    }
                    if (one.admission.what == admission_choice::kind::automatic) {
                        if (asked.scaled || one.policy.exponent || !one.policy.kind) {
                            throw std::runtime_error{
                                "--admission: \"auto\" is the proxy's: neither scaled, nor with "
                                "another policy than it has, or an exponent of one's own"};
                        }
                        one.probation = 1;  // as it begins
                    }
                    if (std::find(out.begin(), out.end(), one) == out.end()) {
                        out.push_back(one);
                    }
                }
            }
        }
    }
    return out;
}

}  // namespace reprise::replay
