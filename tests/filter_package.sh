#!/usr/bin/env bash
# The library, installed alone, serves a project that knows nothing of ours.
#
#   filter_package.sh <source root> <build directory>
set -euo pipefail

source=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "filter_package: $*" >&2
    exit 1
}

cmake --install "$build" --component reprise-filter --prefix "$work/prefix" >"$work/install.log"
[[ ! -e $work/prefix/bin ]] || fail "the component installs programs too"
include=$work/prefix/include/reprise/filter
[[ -e $include/counting.hpp ]] || fail "no <reprise/filter/counting.hpp>"
! grep -rn '#include "' "$include" || fail "installed headers include by our source tree's paths"
! grep -rln "$source" "$work/prefix/lib"*/cmake || fail "the package names the source tree"
! grep -rn -e '-Werror' -e xxhash "$work/prefix/lib"*/cmake || fail "our flags or xxHash leak out"

# Every header compiles in a stranger's program, with nothing but the target's own requirements.
cp -r "$source/tools/example_filter" "$work/example"
{
    for header in "$include"/*.hpp; do
        echo "#include <reprise/filter/$(basename "$header")>"
    done
    echo "int main() {}"
} >"$work/example/headers.cpp"
cat >>"$work/example/CMakeLists.txt" <<'END'
add_executable(headers headers.cpp)
target_link_libraries(headers PRIVATE reprise::filter)
END
cmake -S "$work/example" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/configure.log"
cmake --build "$work/build" >"$work/build.log" 2>&1 || {
    cat "$work/build.log" >&2
    fail "the example does not build"
}

# 2,000 different lines, each twice: a rate of 0.001 may cost a few of them, never add one.
seq 2000 >"$work/once"
cat "$work/once" "$work/once" | "$work/build/first_sights" >"$work/seen" 2>"$work/summary"
cat "$work/summary"
kept=$(wc -l <"$work/seen")
((kept >= 1980 && kept <= 2000)) || fail "$kept of 2000 lines"
[[ -z $(sort "$work/seen" | uniq -d) ]] || fail "a line came twice"

# The folder is a project of its own.
cmake -S "$source/filter" -B "$work/alone" >"$work/alone.log" 2>&1 || {
    cat "$work/alone.log" >&2
    fail "filter/ alone does not configure"
}
