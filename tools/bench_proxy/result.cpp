#include "tools/bench_proxy/result.hpp"

#include <algorithm>

namespace reprise::bench {

double median_of(std::vector<double> values) {
    if (values.empty()) {
        return 0;
    }
    std::sort(values.begin(), values.end());
    const auto middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

const row* result::find(const std::string& name) const {
    const auto found = std::find_if(
        rows.begin(), rows.end(), [&](const row& one) { return one.name == name; });
    return found == rows.end() ? nullptr : &*found;
}

nlohmann::json to_json(const result& from) {
    auto rows = nlohmann::json::array();
    for (const auto& one : from.rows) {
        nlohmann::json out{{"name", one.name},
                           {"unit", one.unit},
                           {"median", median_of(one.rounds)},
                           {"rounds", one.rounds},
                           {"grain", one.grain},
                           {"judged", one.judged},
                           {"commit", one.commit.empty() ? from.commit : one.commit},
                           {"date", one.date.empty() ? from.date : one.date}};
        if (one.goal) {
            out["goal"] = *one.goal;
        }
        rows.push_back(std::move(out));
    }
    return {{"date", from.date},
            {"commit", from.commit},
            {"form", from.form},
            {"machine", from.machine},
            {"rows", std::move(rows)},
            {"skipped", from.skipped},
            {"notes", from.notes}};
}

result result_from(const nlohmann::json& from) {
    result out;
    from.at("date").get_to(out.date);
    from.at("commit").get_to(out.commit);
    from.at("form").get_to(out.form);
    from.at("machine").get_to(out.machine);
    from.at("skipped").get_to(out.skipped);
    from.at("notes").get_to(out.notes);
    for (const auto& one : from.at("rows")) {
        row next;
        one.at("name").get_to(next.name);
        one.at("unit").get_to(next.unit);
        one.at("rounds").get_to(next.rounds);
        one.at("grain").get_to(next.grain);
        one.at("judged").get_to(next.judged);
        one.at("commit").get_to(next.commit);
        one.at("date").get_to(next.date);
        if (one.contains("goal")) {
            next.goal = one.at("goal").get<double>();
        }
        out.rows.push_back(std::move(next));
    }
    return out;
}

result merged(result older, const result& newer) {
    auto rows = std::move(older.rows);
    for (auto& one : rows) {
        one.commit = one.commit.empty() ? older.commit : one.commit;
        one.date = one.date.empty() ? older.date : one.date;
    }
    for (auto one : newer.rows) {
        one.commit = newer.commit;
        one.date = newer.date;
        const auto found = std::find_if(
            rows.begin(), rows.end(), [&](const row& had) { return had.name == one.name; });
        if (found == rows.end()) {
            rows.push_back(std::move(one));
        } else {
            *found = std::move(one);
        }
    }
    auto out = newer;
    out.rows = std::move(rows);
    for (auto& note : older.notes) {
        if (std::find(out.notes.begin(), out.notes.end(), note) == out.notes.end()) {
            out.notes.push_back(std::move(note));
        }
    }
    return out;
}

}  // namespace reprise::bench
