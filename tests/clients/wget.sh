#!/usr/bin/env bash
# wget -r: a small tree, mirrored again and again. The third time the origin hears nothing.
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
needs wget

tree=$work/tree
mkdir -p "$tree/a" "$tree/b/c"
echo '<a href="a/">a</a> <a href="b/">b</a> <a href="one%20file.txt">one</a>' >"$tree/index.html"
echo '<a href="../">up</a> <a href="data.bin">data</a>' >"$tree/a/index.html"
echo '<a href="c/deep.txt">deep</a> <a href="c/ümlaut.txt">raw</a>' >"$tree/b/index.html"
echo one >"$tree/one file.txt"
echo deep >"$tree/b/c/deep.txt"
echo raw >"$tree/b/c/ümlaut.txt"
head -c 300000 /dev/urandom >"$tree/a/data.bin"

start_origin files --root "$tree"
start_proxy ''

# mirror NUMBER: the tree into a folder of its own.
mirror() {
    wget -q -r -nH -P "$work/mirror$1" -e robots=off -e use_proxy=yes -e "http_proxy=http://$proxy" \
        --restrict-file-names=nocontrol --timeout 20 --tries 1 "http://127.0.0.1:$port/"
    diff -r "$tree" "$work/mirror$1" || fail "mirror $1 differs"
    echo "ok: mirror $1 is the tree"
}

mirror 1
first=$(asked files '^GET ')
check "every file was asked for" 7 "$first"
mirror 2
check "and again, to be stored" 14 "$(asked files '^GET ')"
mirror 3
check "the third mirror came from the cache" 14 "$(asked files '^GET ')"
stop_proxy
