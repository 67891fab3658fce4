#pragma once
// Rows that join a setting's name to a member of the options, and all that is done with rows.
// A table describes one JSON object and the struct it becomes. Reading, checking, keeping what
// wants a restart and describing are one walk each over the rows, so a new row is known to all
// four. Tables nest: a row may be an object with a table of its own, or a list of such objects.

#include "config/json.hpp"
#include "config/kinds.hpp"
#include "config/mistake.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace reprise::config {

/// Whether SIGHUP can change a setting.
enum class change { live, restart };

/// What people are told of one setting.
struct setting {
    std::string path;      ///< "timeouts.client_head", "listeners[].address"
    std::string type;      ///< "size"; "object" and "list of objects" have their members after them
    std::string unit;      ///< "bytes"; empty where the type says it all
    std::string standard;  ///< the default as JSON, or in words
    bool in_words = false;
    std::string bounds;  ///< "1KiB to 1MiB"; empty: none
    config::change changes = change::live;
    std::string_view why;  ///< what it is, what a larger value buys and what it costs
};

/// Which members an object had, for the checks that look at several.
class given {
public:
    void note(std::string_view name, bool well) { members_.emplace_back(name, well); }
    /// It was there, right or wrong.
    [[nodiscard]] bool has(std::string_view name) const {
        for (const auto& member : members_) {
            if (member.first == name) {
                return true;
            }
        }
        return false;
    }
    /// It was read without a mistake, or left at its default: a check may rely on it.
    [[nodiscard]] bool is_sound(std::string_view name) const {
        for (const auto& member : members_) {
            if (member.first == name && !member.second) {
                return false;
            }
        }
        return true;
    }

private:
    std::vector<std::pair<std::string_view, bool>> members_;
};

/// What a walk has put back, of what a file wants and what runs cannot change.
struct put_back {
    std::vector<std::string> names;  ///< by path, in the table's order
    /// What could change live waits too: it stands in an object that waits whole.
    bool all = false;

    [[nodiscard]] bool waits(change changes) const noexcept {
        return all || changes == change::restart;
    }
};

/// One member of an object that becomes a T.
template <class T>
struct row {
    std::string_view name;
    bool required = false;
    std::string_view standard_in_words{};  ///< where JSON has no word for the default; else empty
    std::function<void(const json_value& from, T& into, const place& here)> read;
    /// Puts back into `next` what differs and wants a restart, and names it.
    std::function<void(const T& before, T& next, const std::string& path, put_back& kept)> keep;
    std::function<void(const T& standard, const std::string& path, std::vector<setting>& out)>
        describe;
};

/// One object that becomes a T.
template <class T>
struct object_table {
    std::vector<row<T>> rows;
    /// The member that a plain text in the object's place stands for; empty: none.
    std::string_view short_for{};
    /// What must hold between members, after each was read. May change `into` where a wrong member
    /// would lead a check further out to a mistake that is none.
    std::function<void(T& into, const given& members, const place& here)> check{};
};

/// Reports a name that no row has, with the nearest that one has.
void report_unknown(std::string_view name,
                    const std::vector<std::string_view>& known,
                    const place& here);

template <class T>
void read_object(const object_table<T>& table, const json_value& from, T& into, const place& here) {
    given members;
    const auto read_row = [&](const row<T>& one, const json_value& value, const place& there) {
        const auto before = here.found().count();
        one.read(value, into, there);
        members.note(one.name, here.found().count() == before);
    };
    if (from.kind == json_kind::text && !table.short_for.empty()) {
        for (const auto& one : table.rows) {
            if (one.name == table.short_for) {
                read_row(one, from, here);
            }
        }
    } else if (from.kind == json_kind::object) {
        for (std::size_t i = 0; i < from.items.size(); ++i) {
            const auto& name = from.names[i];
            const row<T>* match = nullptr;
            std::vector<std::string_view> known;
            for (const auto& one : table.rows) {
                known.push_back(one.name);
                match = one.name == name ? &one : match;
            }
            if (!match) {
                report_unknown(name, known, here);
            } else if (members.has(name)) {
                here.member(name).wrong(from.items[i], "given twice in one object; keep one");
            } else {
                read_row(*match, from.items[i], here.member(name));
            }
        }
        for (const auto& one : table.rows) {
            if (one.required && !members.has(one.name)) {
                here.member(one.name).wrong("missing: it must be written");
            }
        }
    } else {
        here.wrong(from,
                   table.short_for.empty()
                       ? "must be an object: { ... }"
                       : "must be an object, or text: its \"" + std::string{table.short_for} + '"');
        return;
    }
    if (table.check) {
        table.check(into, members, here);
    }
}

template <class T>
void keep_in_object(const object_table<T>& table,
                    const T& before,
                    T& next,
                    const std::string& path,
                    put_back& kept) {
    for (const auto& one : table.rows) {
        one.keep(before, next, (path.empty() ? "" : path + '.') + std::string{one.name}, kept);
    }
}

template <class T>
void describe_object(const object_table<T>& table,
                     const T& standard,
                     const std::string& path,
                     std::vector<setting>& out) {
    for (const auto& one : table.rows) {
        const auto at = out.size();
        one.describe(standard, (path.empty() ? "" : path + '.') + std::string{one.name}, out);
        if (!one.standard_in_words.empty()) {
            out[at].standard = one.standard_in_words;
            out[at].in_words = true;
        }
    }
}

/// A single value. `member` is a pointer to a member of T, or a function from T& to the value that
/// also takes a const T&.
template <class T, class Member>
row<T> value(std::string_view name,
             Member member,
             kind<std::remove_cvref_t<std::invoke_result_t<Member, T&>>> of,
             change changes,
             std::string_view why) {
    row<T> made;
    made.name = name;
    made.read = [member, read = of.read](const json_value& from, T& into, const place& here) {
        if (auto found = read(from, here)) {
            std::invoke(member, into) = std::move(*found);
        }
    };
    made.keep = [member,
                 changes](const T& before, T& next, const std::string& path, put_back& kept) {
        if (kept.waits(changes) && std::invoke(member, before) != std::invoke(member, next)) {
            std::invoke(member, next) = std::invoke(member, before);
            kept.names.push_back(path);
        }
    };
    made.describe = [member, of, changes, why](
                        const T& standard, const std::string& path, std::vector<setting>& out) {
        out.push_back({path,
                       of.type,
                       of.unit,
                       of.show(std::invoke(member, standard)),
                       false,
                       of.bounds,
                       changes,
                       why});
    };
    return made;
}

template <class T, class M>
row<T> value(std::string_view name,
             M T::*member,
             std::type_identity_t<kind<M>> of,
             change changes,
             std::string_view why) {
    return value<T, M T::*>(name, member, std::move(of), changes, why);
}

template <class T>
row<T> required(row<T> one) {
    one.required = true;
    one.standard_in_words = "must be written";
    return one;
}

/// A row whose default, left unwritten, means what no JSON says.
template <class T>
row<T> by_default(std::string_view words, row<T> one) {
    one.standard_in_words = words;
    return one;
}

/// An object within the object.
template <class T, class Inner>
row<T> object(std::string_view name,
              Inner T::*member,
              object_table<Inner> table,
              std::string_view why) {
    row<T> made;
    made.name = name;
    made.read = [member, table](const json_value& from, T& into, const place& here) {
        read_object(table, from, into.*member, here);
    };
    made.keep = [member, table](const T& before, T& next, const std::string& path, put_back& kept) {
        keep_in_object(table, before.*member, next.*member, path, kept);
    };
    made.describe = [member, table, why](
                        const T& standard, const std::string& path, std::vector<setting>& out) {
        out.push_back({path, "object", "", "{}", false, "", change::live, why});
        describe_object(table, standard.*member, path, out);
    };
    return made;
}

/// An object that may be left out, with nothing in its place. Its members change live.
template <class T, class Inner>
row<T> optional_object(std::string_view name,
                       std::optional<Inner> T::*member,
                       object_table<Inner> table,
                       std::string_view why) {
    row<T> made;
    made.name = name;
    made.read = [member, table](const json_value& from, T& into, const place& here) {
        read_object(table, from, (into.*member).emplace(), here);
    };
    made.keep = [member, table](const T& before, T& next, const std::string& path, put_back& kept) {
        const auto& was = before.*member;
        auto& is = next.*member;
        if (!kept.all || (!was && !is)) {
            return;
        }
        if (was && is) {
            keep_in_object(table, *was, *is, path, kept);
        } else {
            is = was;
            kept.names.push_back(path);
        }
    };
    made.describe = [table, why](const T&, const std::string& path, std::vector<setting>& out) {
        out.push_back({path, "object", "", "", false, "", change::live, why});
        describe_object(table, Inner{}, path, out);
    };
    return made;
}

/// A list of objects. What the file writes takes the place of all that were there. When `changes`
/// is restart another number of them wants one, and so does a whole object of which a member does: what
/// stands in its place in the file may be another. All that differs in it is named then.
/// @pre by default the list is empty or has one object, which is Inner{}
template <class T, class Inner>
row<T> objects(std::string_view name,
               std::vector<Inner> T::*member,
               object_table<Inner> table,
               std::size_t least,
               std::size_t most,
               change changes,
               std::string_view why) {
    row<T> made;
    made.name = name;
    made.read = [member, table, least, most](const json_value& from, T& into, const place& here) {
        if (!detail::is_list(from, least, most, here)) {
            return;
        }
        auto& list = into.*member;
        list.clear();
        for (std::size_t i = 0; i < from.items.size(); ++i) {
            read_object(table, from.items[i], list.emplace_back(), here.element(i));
        }
    };
    made.keep = [member, table, changes](
                    const T& before, T& next, const std::string& path, put_back& kept) {
        const auto& was = before.*member;
        auto& is = next.*member;
        if (was.size() != is.size()) {
            if (kept.waits(changes)) {
                is = was;
                kept.names.push_back(path);
            }
            return;
        }
        for (std::size_t i = 0; i < was.size(); ++i) {
            const auto here = path + '[' + std::to_string(i) + ']';
            const auto wanted = is[i];
            const auto before_it = kept.names.size();
            keep_in_object(table, was[i], is[i], here, kept);
            if (changes == change::restart && !kept.all && kept.names.size() != before_it) {
                kept.names.resize(before_it);
                is[i] = wanted;
                kept.all = true;
                keep_in_object(table, was[i], is[i], here, kept);
                kept.all = false;
            }
        }
    };
    made.describe = [member, table, least, most, changes, why](
                        const T& standard, const std::string& path, std::vector<setting>& out) {
        const auto& list = standard.*member;
        out.push_back({path,
                       "list of objects",
                       "",
                       list.empty() ? "[]" : "[{}]",
                       false,
                       std::to_string(least) + " to " + std::to_string(most) + " of them",
                       changes,
                       why});
        describe_object(table, Inner{}, path + "[]", out);
    };
    return made;
}

}  // namespace reprise::config
