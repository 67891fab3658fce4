#pragma once
// Nodes that know each other, to which one after another something happens: they are killed, stopped, cut off, or have
// another clock.

#include "tests/soak/new_urls_plan.hpp"
#include "tests/soak/paced_clients.hpp"
#include "tests/support/proxy_process.hpp"
#include "tests/support/stepped_clock.hpp"
#include "tests/support/wide_link.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace reprise::tests::new_urls {

class troubled_fleet {
public:
    troubled_fleet(const plan& of, bool know_each_other);

    [[nodiscard]] std::vector<std::uint16_t> ports() const;

    /// Does to one node after another what the plan says, until it is stopped; all is well then.
    void make_trouble(const std::stop_token& stop);

    /// Its node was killed meanwhile.
    [[nodiscard]] bool is_excused(unsigned node, const asked_request& by) const {
        return plan_.trouble == "kill" && was_troubled(node, by);
    }
    /// What a request took is not the fleet's doing.
    [[nodiscard]] bool was_troubled(unsigned node, const asked_request& by) const;
    [[nodiscard]] const std::vector<absence>& troubles() const noexcept { return troubles_; }

    /// Nothing is on its way anywhere, and no node says that anything is. What is left otherwise.
    [[nodiscard]] std::string what_is_left() const;
    /// Of all nodes, the sum of what lies there in /stats, or in it under each name.
    [[nodiscard]] std::int64_t sum(const std::string& place, const std::string& each = "") const;

private:
    struct node {
        json settings;
        std::vector<std::string> environment;
        std::uint16_t port = 0;
        std::unique_ptr<proxy_process> process;
        std::vector<std::unique_ptr<wide_link>> ways;  // of this node to each other; null to itself
    };

    [[nodiscard]] bool by_links() const {
        return plan_.trouble == "partition" || plan_.link_delay > 0;
    }
    [[nodiscard]] json settings_of(unsigned i) const;
    void meet();
    [[nodiscard]] bool knows_all(const node& one) const;
    void cut(unsigned victim, bool now);

    const plan& plan_;
    temp_dir files_;
    stepped_clock clock_;
    std::vector<std::unique_ptr<node>> nodes_;
    std::vector<absence> troubles_;
};

}  // namespace reprise::tests::new_urls
