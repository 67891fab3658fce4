#include "tests/support/cache_model.hpp"

#include <algorithm>
#include <cstdlib>
#include <ctime>

namespace reprise::tests {

namespace {

std::string trimmed(const std::string& text) {
    const auto first = text.find_first_not_of(" \t");
    const auto last = text.find_last_not_of(" \t");
    return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::string lowered(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
        return c < 128 ? static_cast<char>(std::tolower(c)) : static_cast<char>(c);
    });
    return text;
}

std::vector<std::string> members(const std::string& list) {
    std::vector<std::string> out;
    std::string one;
    bool quoted = false;
    for (const char c : list) {
        quoted = quoted != (c == '"');
        if (c == ',' && !quoted) {
            out.push_back(trimmed(one));
            one.clear();
        } else {
            one += c;
        }
    }
    out.push_back(trimmed(one));
    std::erase(out, "");
    return out;
}

/// Directives by name; the first of equal ones.
std::map<std::string, std::string> directives(const field_lines& fields) {
    std::map<std::string, std::string> out;
    for (const auto& member : members(fields.all("Cache-Control"))) {
        const auto equals = member.find('=');
        auto value = equals == std::string::npos ? "" : member.substr(equals + 1);
        if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
            value = value.substr(1, value.size() - 2);
        }
        out.emplace(lowered(member.substr(0, equals)), value);
    }
    return out;
}

bool is_number(const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

/// 1.2.2; more than 2^31 is 2^31.
model_time seconds_in(const std::string& text) {
    if (!is_number(text)) {
        return 0;
    }
    return text.size() > 10 ? 2147483648
                            : std::min<model_time>(std::atoll(text.c_str()), 2147483648);
}

std::optional<model_time> date_in(const std::string& text) {
    std::tm parts{};
    const char* const end = ::strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    return end != nullptr && *end == '\0' ? std::optional<model_time>{::timegm(&parts)}
                                          : std::nullopt;
}

model_time date_of(const cache_model::kept& it) {
    return date_in(it.response.fields.get("Date")).value_or(it.response_time);
}

bool has_validator(const field_lines& fields) {
    return fields.has("ETag") || date_in(fields.get("Last-Modified")).has_value();
}

// 4.2.1
model_time lifetime_of(const cache_model::kept& it) {
    const auto& fields = it.response.fields;
    const auto says = directives(fields);
    for (const char* const name : {"s-maxage", "max-age"}) {
        if (const auto found = says.find(name); found != says.end()) {
            return seconds_in(found->second);
        }
    }
    if (fields.has("Expires")) {
        const auto expires = date_in(fields.get("Expires"));
        return expires ? std::max<model_time>(0, *expires - date_of(it)) : 0;
    }
    const auto modified = date_in(fields.get("Last-Modified"));
    const bool heuristic = it.response.status == 200 || it.response.status == 203 ||
                           it.response.status == 301 || says.contains("public");
    if (modified && heuristic && *modified < date_of(it)) {
        return std::min<model_time>((date_of(it) - *modified) / 10, 24 * 3600);
    }
    return 0;
}

// 4.2.3, with no time between asking and hearing.
model_time age_of(const cache_model::kept& it, model_time now) {
    const auto apparent = std::max<model_time>(0, it.response_time - date_of(it));
    const auto stated = is_number(it.response.fields.get("Age"))
                            ? seconds_in(it.response.fields.get("Age"))
                            : 0;
    return std::max(apparent, stated) + (now - it.response_time);
}

/// Without field names: with them it is about those fields alone (5.2.2.4, 5.2.2.7).
bool says_plainly(const std::map<std::string, std::string>& says, const std::string& name) {
    const auto found = says.find(name);
    return found != says.end() && found->second.empty();
}

// 4.2.4
bool forbids_stale(const field_lines& fields) {
    const auto says = directives(fields);
    return says_plainly(says, "no-cache") || says.contains("must-revalidate") ||
           says.contains("proxy-revalidate") || says.contains("s-maxage");
}

// 3.5
bool is_its_askers_alone(const field_lines& request,
                         const std::map<std::string, std::string>& says) {
    return request.has("Authorization") && !says.contains("public") && !says.contains("s-maxage") &&
           !says.contains("must-revalidate");
}

// 3
bool is_storable(const field_lines& request, const cache_model::kept& it) {
    const auto says = directives(it.response.fields);
    if (directives(request).contains("no-store") || says.contains("no-store") ||
        says_plainly(says, "private")) {
        return false;
    }
    if (is_its_askers_alone(request, says)) {
        return false;
    }
    const bool is_explicit = says.contains("max-age") || says.contains("s-maxage") ||
                             it.response.fields.has("Expires");
    const bool heuristic = it.response.status == 200 || it.response.status == 203 ||
                           it.response.status == 301 || it.response.status == 404 ||
                           it.response.status == 410 || says.contains("public");
    if (!is_explicit && !heuristic) {
        return false;
    }
    // What arrived stale is of use to a max-stale or a stale-if-error alone.
    const auto lifetime = lifetime_of(it);
    const bool usable = !says_plainly(says, "no-cache") &&
                        (age_of(it, it.response_time) < lifetime ||
                         (lifetime > 0 && !forbids_stale(it.response.fields)));
    return usable || has_validator(it.response.fields);
}

std::map<std::string, std::string> selecting_of(const field_lines& request,
                                                const field_lines& response) {
    std::map<std::string, std::string> out;
    for (const auto& name : members(response.all("Vary"))) {
        out[lowered(name)] = request.all(name);
    }
    return out;
}

bool selects(const field_lines& request, const cache_model::kept& it) {
    return std::all_of(it.selecting.begin(), it.selecting.end(), [&](const auto& one) {
        return request.all(one.first) == one.second;
    });
}

std::string tag_of(const cache_model::kept& it) {
    const auto tag = it.response.fields.all("ETag");
    return tag.starts_with("W/") ? tag.substr(2) : tag;
}

bool have_one_tag(const cache_model::kept& a, const cache_model::kept& b) {
    return !tag_of(a).empty() && tag_of(a) == tag_of(b);
}

bool is_near(model_time a, model_time b) {
    return std::abs(a - b) <= 1;
}

}  // namespace

cache_model::prediction cache_model::predict(const std::string& url,
                                             const field_lines& request,
                                             model_time now) const {
    prediction out;
    const auto found = resources_.find(url);
    if (found == resources_.end()) {
        return out;
    }
    for (const auto& it : found->second) {
        if (selects(request, it) &&
            (out.chosen == nullptr || it.response_time >= out.chosen->response_time)) {
            out.chosen = &it;
        }
    }
    if (out.chosen == nullptr) {
        return out;
    }
    out.age = age_of(*out.chosen, now);
    out.lifetime = lifetime_of(*out.chosen);
    auto asks = directives(request);
    if (!request.has("Cache-Control") && lowered(request.get("Pragma")) == "no-cache") {
        asks["no-cache"] = "";
    }
    const auto left = out.lifetime - out.age;
    out.certain = !is_near(left, 0);
    if (says_plainly(directives(out.chosen->response.fields), "no-cache") ||
        asks.contains("no-cache")) {
        out.certain = true;
        return out;
    }
    if (asks.contains("max-age")) {
        const auto most = seconds_in(asks["max-age"]);
        out.certain = out.certain && (most == 0 || !is_near(out.age, most));
        if (most == 0 || out.age > most) {
            return out;
        }
    }
    const bool has_min = is_number(asks.contains("min-fresh") ? asks["min-fresh"] : "");
    const auto min_fresh = has_min ? seconds_in(asks["min-fresh"]) : 0;
    if (has_min) {
        out.certain = out.certain && !is_near(left, min_fresh);
    }
    if (left > 0) {
        out.answers = left >= min_fresh;
        return out;
    }
    if (forbids_stale(out.chosen->response.fields)) {
        return out;
    }
    out.only_stale = true;
    if (min_fresh > 0) {
        return out;
    }
    if (asks.contains("max-stale")) {
        const auto& most = asks["max-stale"];
        if (most.empty()) {
            out.answers = true;
        } else if (is_number(most)) {
            out.certain = out.certain && !is_near(-left, seconds_in(most));
            out.answers = -left <= seconds_in(most);
        }
    }
    return out;
}

bool cache_model::heard(const std::string& url,
                        const field_lines& request,
                        const model_message& response,
                        model_time now) {
    kept it{response, now, selecting_of(request, response.fields)};
    if (response.fields.all("Vary") == "*" || !is_storable(request, it)) {
        return false;
    }
    auto& all = resources_[url];
    // By another Vary too: they would be found again when the newer one has gone. But not the very same.
    std::erase_if(all, [&](const kept& old) {
        return old.selecting == it.selecting || (selects(request, old) && !have_one_tag(old, it));
    });
    all.push_back(std::move(it));
    return true;
}

void cache_model::ended(const std::string& url, const field_lines& request) {
    std::erase_if(resources_.at(url), [&](const kept& one) { return selects(request, one); });
}

// 3.2 and 4.3.4
void cache_model::confirmed(const std::string& url,
                            const field_lines& request,
                            const kept& of,
                            const field_lines& not_modified,
                            model_time now) {
    auto& all = resources_.at(url);
    const auto place = std::find_if(
        all.begin(), all.end(), [&](const kept& one) { return &one == &of; });
    auto updated = *place;
    auto& lines = updated.response.fields.lines;
    // Date and Age were the old message's.
    std::erase_if(lines, [&](const field_line& line) {
        return lowered(line.name) == "date" || lowered(line.name) == "age" ||
               not_modified.has(line.name);
    });
    for (const auto& line : not_modified.lines) {
        lines.push_back(line);
    }
    updated.response_time = now;
    if (is_storable({}, updated)) {
        // 3.5: what is said to whoever logged in is for nobody else, as a 200 in its place would be.
        if (is_its_askers_alone(request, directives(updated.response.fields))) {
            return;
        }
        *place = std::move(updated);
    } else {
        all.clear();  // the leave to store was taken back
    }
}

bool cache_model::stands_in(const prediction& of) {
    if (of.chosen == nullptr || !of.only_stale || forbids_stale(of.chosen->response.fields)) {
        return false;
    }
    const auto says = directives(of.chosen->response.fields);
    const auto window = says.find("stale-if-error");
    return window != says.end() && of.age - of.lifetime < seconds_in(window->second);
}

}  // namespace reprise::tests
