#pragma once
// Rows that join a setting's name to a member of the options, and all that is done with rows.
// A table describes one JSON object and the struct it becomes. Reading, checking, keeping what
// wants a restart and describing are one walk each over the rows, so a new row is known to all
// four. Tables nest: a row may be an object with a table of its own, or a list of such objects.

#include "config/json.hpp"
#include "config/kinds.hpp"
#include "config/mistake.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace reprise::config {

/// Whether SIGHUP can change a setting.
enum class change { live, restart };

/// What people are told of one setting; of type "object" or "list of objects" its members follow it.
struct setting : kind_facts {
    std::string path;      ///< "timeouts.client_head", "listeners[].address"
    std::string standard;  ///< the default as JSON, or in words
    bool in_words = false;
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
        return std::find(members_.begin(), members_.end(), std::pair{name, false}) ==
               members_.end();
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

/// What a row does with its member in each of the walks.
template <class T>
struct row_work {
    virtual ~row_work() = default;
    virtual void read(const json_value& from, T& into, const place& here) const = 0;
    /// Puts back into `next` what differs and wants a restart, and names it.
    virtual void keep(const T& before, T& next, const std::string& at, put_back& kept) const = 0;
    virtual void describe(const T& standard,
                          const std::string& at,
                          std::vector<setting>& out) const = 0;
};

/// What does not hang on the struct.
struct row_head {
    std::string_view name;
    bool required = false;
    std::string_view standard_in_words{};  ///< where JSON has no word for the default; else empty
};

/// One member of an object that becomes a T.
template <class T>
struct row : row_head {
    std::shared_ptr<const row_work<T>> work;
    void read(const json_value& from, T& into, const place& here) const {
        work->read(from, into, here);
    }
    void keep(const T& before, T& next, const std::string& at, put_back& kept) const {
        work->keep(before, next, at, kept);
    }
    void describe(const T& standard, const std::string& at, std::vector<setting>& out) const {
        work->describe(standard, at, out);
    }
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

/// Has `read` called for each member that a row is for, by the row's index, and reports the others.
/// Returns which there were, or none and a mistake reported where `from` is no object.
std::optional<given> read_members(
    const std::vector<row_head>& rows,
    std::string_view short_for,
    const json_value& from,
    const place& here,
    const std::function<void(std::size_t, const json_value&, const place&)>& read);

template <class T>
void read_object(const object_table<T>& table, const json_value& from, T& into, const place& here) {
    const std::vector<row_head> heads(table.rows.begin(), table.rows.end());
    const auto read_row = [&](std::size_t at, const json_value& value, const place& there) {
        table.rows[at].read(value, into, there);
    };
    const auto members = read_members(heads, table.short_for, from, here, read_row);
    if (members && table.check) {
        table.check(into, *members, here);
    }
}

inline std::string path_of(const std::string& object, std::string_view member) {
    return (object.empty() ? "" : object + '.') + std::string{member};
}

template <class T>
void keep_in_object(
    const object_table<T>& table, const T& before, T& next, const std::string& at, put_back& kept) {
    for (const auto& one : table.rows) {
        one.keep(before, next, path_of(at, one.name), kept);
    }
}

template <class T>
void describe_object(const object_table<T>& table,
                     const T& shown,
                     const std::string& at,
                     std::vector<setting>& out) {
    for (const auto& one : table.rows) {
        const auto first = out.size();
        one.describe(shown, path_of(at, one.name), out);
        if (!one.standard_in_words.empty()) {
            out[first].standard = one.standard_in_words;
            out[first].in_words = true;
        }
    }
}

// What a member can be: a value, an object, one or none, a list of them; or what another row is of.
namespace detail {

template <class M>
struct one_value {
    kind<M> of;
    change changes;
    std::string_view why;

    void read(const json_value& from, M& into, const place& here) const {
        if (auto found = of.read(from, here)) {
            into = std::move(*found);
        }
    }
    void keep(const M& before, M& next, const std::string& at, put_back& kept) const {
        if (kept.waits(changes) && before != next) {
            next = before;
            kept.names.push_back(at);
        }
    }
    void describe(const M& standard, const std::string& at, std::vector<setting>& out) const {
        out.push_back({of, at, of.show(standard), false, changes, why});
    }
};

template <class T>
struct one_object {
    object_table<T> table;
    std::string_view why;

    void read(const json_value& from, T& into, const place& here) const {
        read_object(table, from, into, here);
    }
    void keep(const T& before, T& next, const std::string& at, put_back& kept) const {
        keep_in_object(table, before, next, at, kept);
    }
    void describe(const T& standard, const std::string& at, std::vector<setting>& out) const {
        out.push_back({{"object"}, at, "{}", false, change::live, why});
        describe_object(table, standard, at, out);
    }
};

template <class T, class Maybe = std::optional<T>>
struct object_or_none {
    object_table<T> table;
    std::string_view why;

    void read(const json_value& from, Maybe& into, const place& here) const {
        read_object(table, from, into.emplace(), here);
    }
    void keep(const Maybe& before, Maybe& next, const std::string& at, put_back& kept) const {
        if (!kept.all || (!before && !next)) {
            return;
        }
        if (before && next) {
            keep_in_object(table, *before, *next, at, kept);
        } else {
            next = before;
            kept.names.push_back(at);
        }
    }
    void describe(const Maybe&, const std::string& at, std::vector<setting>& out) const {
        out.push_back({{"object"}, at, "", false, change::live, why});
        describe_object(table, T{}, at, out);
    }
};

template <class T, class List = std::vector<T>>
struct object_list {
    object_table<T> table;
    std::size_t least, most;
    change changes;
    std::string_view why;
    void (*check)(List& list, const place& here);

    void read(const json_value& from, List& into, const place& here) const {
        if (is_list(from, least, most, here)) {
            into.clear();
            for (std::size_t i = 0; i < from.items.size(); ++i) {
                read_object(table, from.items[i], into.emplace_back(), here.element(i));
            }
        }
        if (check) {
            check(into, here);
        }
    }
    void keep(const List& before, List& next, const std::string& at, put_back& kept) const {
        if (before.size() != next.size()) {
            if (kept.waits(changes)) {
                next = before;
                kept.names.push_back(at);
            }
            return;
        }
        for (std::size_t i = 0; i < before.size(); ++i) {
            const auto here = at + '[' + std::to_string(i) + ']';
            const auto wanted = next[i];
            const auto before_it = kept.names.size();
            keep_in_object(table, before[i], next[i], here, kept);
            if (changes == change::restart && !kept.all && kept.names.size() != before_it) {
                kept.names.resize(before_it);
                next[i] = wanted;
                kept.all = true;
                keep_in_object(table, before[i], next[i], here, kept);
                kept.all = false;
            }
        }
    }
    void describe(const List& standard, const std::string& at, std::vector<setting>& out) const {
        const auto* shown = standard.empty() ? "[]" : "[{}]";
        const auto number = std::to_string(least) + " to " + std::to_string(most) + " of them";
        out.push_back({{"list of objects", "", number}, at, shown, false, changes, why});
        describe_object(table, T{}, at + "[]", out);
    }
};

}  // namespace detail

/// A row whose member is left to `of`, which has the functions of a row_work<M>.
template <class T, class M, class Of>
row<T> row_of(row_head head, M T::*member, Of of) {
    struct member_work final : row_work<T> {
        M T::*member;
        Of of;

        member_work(M T::*to, Of is) : member{to}, of{std::move(is)} {}
        void read(const json_value& from, T& into, const place& here) const override {
            of.read(from, into.*member, here);
        }
        void keep(const T& before, T& next, const std::string& at, put_back& kept) const override {
            of.keep(before.*member, next.*member, at, kept);
        }
        void describe(const T& standard,
                      const std::string& at,
                      std::vector<setting>& out) const override {
            of.describe(standard.*member, at, out);
        }
    };
    const row_work<T>* work = new member_work{member, std::move(of)};
    return {head, std::shared_ptr<const row_work<T>>{work}};
}

/// A single value.
template <class T, class M>
row<T> value(std::string_view name,
             M T::*member,
             std::type_identity_t<kind<M>> of,
             change changes,
             std::string_view why) {
    return row_of({name}, member, detail::one_value<M>{std::move(of), changes, why});
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

/// A row of a part as one of the whole: in the file it stands among the whole's own.
template <class T, class Part>
row<T> within(Part T::*part, const row<Part>& one) {
    return row_of(one, part, one);
}

/// An object within the object.
template <class T, class Inner>
row<T> object(std::string_view name,
              Inner T::*member,
              object_table<Inner> table,
              std::string_view why) {
    return row_of({name}, member, detail::one_object<Inner>{std::move(table), why});
}

/// An object that may be left out, with nothing in its place. Its members change live.
template <class T, class Inner>
row<T> optional_object(std::string_view name,
                       std::optional<Inner> T::*member,
                       object_table<Inner> table,
                       std::string_view why) {
    return row_of({name}, member, detail::object_or_none<Inner>{std::move(table), why});
}

/// A list of objects. What the file writes takes the place of all that were there. When `changes`
/// is restart another number of them wants one, and so does a whole object of which a member does: what
/// stands in its place in the file may be another. All that differs in it is named then. `check`
/// is for what must hold between the objects.
/// @pre by default the list is empty or has one object, which is Inner{}
template <class T, class Inner>
row<T> objects(std::string_view name,
               std::vector<Inner> T::*member,
               object_table<Inner> table,
               std::size_t least,
               std::size_t most,
               change changes,
               std::string_view why,
               void (*check)(std::vector<Inner>& list, const place& here) = nullptr) {
    return row_of({name},
                  member,
                  detail::object_list<Inner>{std::move(table), least, most, changes, why, check});
}

}  // namespace reprise::config
