#!/usr/bin/env bash
# The libraries with a C face, installed alone, serve programs in C that know nothing of ours.
#
#   c_package.sh <source root> <build directory>
set -euo pipefail

source=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "c_package: $*" >&2
    exit 1
}

prefix=$work/prefix
cmake --install "$build" --component reprise-c --prefix "$prefix" >"$work/install.log"
! find "$prefix" -name '*.hpp' | grep . || fail "headers of C++ are installed"
! grep -rl "$source" "$prefix"/lib*/cmake || fail "a package names the source tree"
libraries=$(dirname "$(find "$prefix" -name libreprise-admission.so)")
for library in "$libraries"/libreprise-*.so; do
    ! readelf -d "$library" | grep -e libcrypto -e libssl || fail "$library links OpenSSL"
done

# By pkg-config, in C99 and in C++, with all warnings; each header by itself.
export PKG_CONFIG_PATH=$libraries/pkgconfig LD_LIBRARY_PATH=$libraries
for header in "$prefix"/include/reprise/*.h; do
    echo "#include <reprise/$(basename "$header")>" >"$work/header.c"
    cc -std=c99 -Wall -Wextra -Wpedantic -Werror -I"$prefix/include" -fsyntax-only "$work/header.c"
    c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -I"$prefix/include" -fsyntax-only -x c++ "$work/header.c"
done
for example in admission digest; do
    read -ra flags < <(pkg-config --cflags --libs "reprise-$example")
    for from in "$source/tools/example_$example"/*.c; do
        cc -std=c99 -Wall -Wextra -Wpedantic -Werror "$from" "${flags[@]}" -o "$work/by_pkg_config"
    done
    cmake -S "$source/tools/example_$example" -B "$work/$example" -DCMAKE_PREFIX_PATH="$prefix" >"$work/configure.log"
    cmake --build "$work/$example" >"$work/build.log" 2>&1 || {
        cat "$work/build.log" >&2
        fail "example_$example does not build"
    }
done

# Of two siblings each holds a half of 2,000 lines.
seq 2000 | "$work/digest/two_siblings" >"$work/asked" || fail "two_siblings ends with $?"
grep -q "2000 of 2000 found where they are" "$work/asked" || fail "two_siblings says $(cat "$work/asked")"

# 2,000 lines once: none came before, but for one in a thousand. After a restart each did.
seq 2000 | "$work/admission/second_sights" "$work/seen" objects=10k >"$work/first"
(($(wc -l <"$work/first") < 20)) || fail "$(wc -l <"$work/first") of 2000 first sights were taken for second ones"
seq 2000 | "$work/admission/second_sights" "$work/seen" objects=10k >"$work/second"
(($(wc -l <"$work/second") == 2000)) || fail "$(wc -l <"$work/second") of 2000 are known after a restart"
! "$work/admission/second_sights" "$work/seen" objects=many 2>"$work/why" </dev/null || fail "objects=many is taken"
grep -q "'objects=many' is not understood: right would be" "$work/why" || fail "it said $(cat "$work/why")"
echo damaged >"$work/seen"
seq 3 | "$work/admission/second_sights" "$work/seen" objects=10k 2>"$work/why" || fail "a damaged state ends it"
grep -q "$work/seen: not used, the filter begins empty: cut short" "$work/why" || fail "it said $(cat "$work/why")"
