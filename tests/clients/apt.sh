#!/usr/bin/env bash
# apt: three clients, each with a state of its own, take one package from a repository on loopback.
# Two requests for it reach the origin; the third client has it from the cache, and installs it.
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=sources.sh
. "$here/sources.sh"
needs apt-get apt-ftparchive dpkg-deb

repository=$work/repository
apt_repository "$repository"
start_origin repository --root "$repository"
start_proxy ''

# in_log NAME WORD...: that client's apt-get, with what it says in a log.
in_log() {
    apt_get "$work/$1" "${@:2}" >>"$work/$1.log" 2>&1
}
for name in one two three; do
    apt_client "$work/$name" "http://127.0.0.1:$port/" "Acquire::http::Proxy \"http://$proxy\";"
    in_log "$name" update
    in_log "$name" download reprise-sample
    cmp "$work/$name/download/reprise-sample_1.0_all.deb" "$repository/reprise-sample_1.0_all.deb"
    echo "ok: client $name has the package"
done
check "the package was asked of the origin twice" 2 "$(asked repository '\.deb 200 ')"
check "so was the index" 2 "$(asked repository '/Packages(\.gz)? 200 ')"

if ((EUID == 0)); then
    PATH=$PATH:/usr/sbin:/sbin in_log three install -y reprise-sample
    cmp "$work/three/root/usr/share/reprise-sample/data" "$work/package/usr/share/reprise-sample/data"
    check "client three installs it from the cache" 2 "$(asked repository '\.deb 200 ')"
else
    echo "not shown: apt-get install into a root of its own wants to be root"
fi
stop_proxy
