#!/usr/bin/env bash
# apt: three clients, each with a state of its own, take one package from a repository on loopback.
# Two requests for it reach the origin; the third client has it from the cache, and installs it.
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
needs apt-get apt-ftparchive dpkg-deb

# A repository with one package in it, whose content does not compress away.
package=$work/package repository=$work/repository
mkdir -p "$package/DEBIAN" "$package/usr/share/reprise-sample" "$repository"
cat >"$package/DEBIAN/control" <<'END'
Package: reprise-sample
Version: 1.0
Architecture: all
Maintainer: nobody <nobody@example.org>
Description: a package to fetch
END
head -c 400000 /dev/urandom >"$package/usr/share/reprise-sample/data"
dpkg-deb --root-owner-group -b "$package" "$repository/reprise-sample_1.0_all.deb" >/dev/null
(
    cd "$repository"
    apt-ftparchive packages . >Packages
    gzip -k Packages
    apt-ftparchive release . >"$work/Release"
    mv "$work/Release" .
)
start_origin repository --root "$repository"
start_proxy ''

# client NAME: an apt that neither reads nor touches the machine's.
client() {
    local own=$work/$1
    mkdir -p "$own"/{etc/apt.conf.d,etc/preferences.d,etc/sources.list.d,etc/trusted.gpg.d} \
        "$own"/{state/lists/partial,cache/archives/partial,log,download,root/var/lib/dpkg}
    : >"$own/root/var/lib/dpkg/status"
    echo "deb [trusted=yes] http://127.0.0.1:$port/ ./" >"$own/etc/sources.list"
    cat >"$own/apt.conf" <<END
Dir::State "$own/state";
Dir::State::status "$own/root/var/lib/dpkg/status";
Dir::Cache "$own/cache";
Dir::Etc "$own/etc";
Dir::Log "$own/log";
Acquire::http::Proxy "http://$proxy";
Acquire::Retries "0";
Acquire::http::Timeout "20";
Acquire::Languages "none";
APT::Sandbox::User "$(id -un)";
DPkg::Options { "--root=$own/root"; "--log=$own/log/dpkg.log"; };
END
}
# apt_get NAME WORD...
apt_get() {
    (cd "$work/$1/download" && APT_CONFIG=$work/$1/apt.conf apt-get -qq "${@:2}") >>"$work/$1.log" 2>&1
}

for name in one two three; do
    client "$name"
    apt_get "$name" update
    apt_get "$name" download reprise-sample
    cmp "$work/$name/download/reprise-sample_1.0_all.deb" "$repository/reprise-sample_1.0_all.deb"
    echo "ok: client $name has the package"
done
check "the package was asked of the origin twice" 2 "$(asked repository '\.deb 200 ')"
check "so was the index" 2 "$(asked repository '/Packages(\.gz)? 200 ')"

if ((EUID == 0)); then
    PATH=$PATH:/usr/sbin:/sbin apt_get three install -y reprise-sample
    cmp "$work/three/root/usr/share/reprise-sample/data" "$package/usr/share/reprise-sample/data"
    check "client three installs it from the cache" 2 "$(asked repository '\.deb 200 ')"
else
    echo "not shown: apt-get install into a root of its own wants to be root"
fi
stop_proxy
