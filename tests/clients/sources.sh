# shellcheck shell=bash
# What apt and git fetch, made here, and an apt that is the test's own. Sourced after harness.sh.
: "${work:?is set by harness.sh}"

# apt_repository FOLDER: with one package, reprise-sample, whose content does not compress away.
apt_repository() {
    local package=$work/package
    mkdir -p "$package/DEBIAN" "$package/usr/share/reprise-sample" "$1"
    cat >"$package/DEBIAN/control" <<'END'
Package: reprise-sample
Version: 1.0
Architecture: all
Maintainer: nobody <nobody@example.org>
Description: a package to fetch
END
    head -c 400000 /dev/urandom >"$package/usr/share/reprise-sample/data"
    dpkg-deb --root-owner-group -b "$package" "$1/reprise-sample_1.0_all.deb" >/dev/null
    (
        cd "$1" || exit
        apt-ftparchive packages . >Packages
        gzip -k Packages
        apt-ftparchive release . >"$work/Release"
        mv "$work/Release" .
    )
}
# apt_client FOLDER URL SETTINGS: an apt in that folder that neither reads nor touches the machine's.
apt_client() {
    mkdir -p "$1"/{etc/apt.conf.d,etc/preferences.d,etc/sources.list.d,etc/trusted.gpg.d} \
        "$1"/{state/lists/partial,cache/archives/partial,log,download,root/var/lib/dpkg}
    : >"$1/root/var/lib/dpkg/status"
    echo "deb [trusted=yes] $2 ./" >"$1/etc/sources.list"
    cat >"$1/apt.conf" <<END
Dir::State "$1/state";
Dir::State::status "$1/root/var/lib/dpkg/status";
Dir::Cache "$1/cache";
Dir::Etc "$1/etc";
Dir::Log "$1/log";
Acquire::Retries "0";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
Acquire::Languages "none";
APT::Sandbox::User "$(id -un)";
DPkg::Options { "--root=$1/root"; "--log=$1/log/dpkg.log"; };
$3
END
}
# apt_get FOLDER WORD...: what it downloads is in FOLDER/download.
apt_get() {
    (cd "$1/download" && APT_CONFIG=$1/apt.conf apt-get -qq "${@:2}")
}

# pip_index FOLDER FILE: an index there (PEP 503) with one wheel, reprise-sample, of which the file is `data`; $wheel
# is its path below the folder.
pip_index() {
    wheel=files/reprise_sample-1.0-py3-none-any.whl
    mkdir -p "$1/files" "$1/simple/reprise-sample"
    python3 - "$1/$wheel" "$2" <<'END'
import sys, zipfile
about = 'reprise_sample-1.0.dist-info/'
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    wheel.write(sys.argv[2], 'reprise_sample/data')
    wheel.writestr('reprise_sample/__init__.py', '')
    wheel.writestr(about + 'METADATA', 'Metadata-Version: 2.1\nName: reprise-sample\nVersion: 1.0\n')
    wheel.writestr(about + 'WHEEL', 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    wheel.writestr(about + 'RECORD', ''.join(name + ',,\n' for name in wheel.namelist()))
END
    echo "<a href=\"../../$wheel#sha256=$(sha256sum <"$1/$wheel" | cut -d' ' -f1)\">${wheel#*/}</a>" \
        >"$1/simple/reprise-sample/index.html"
}
# npm_registry FOLDER URL FILE: what a registry of that URL says of one package, reprise-sample, and the package, of
# which the file is `data`.
npm_registry() {
    local integrity tarball=files/reprise-sample-1.0.0.tgz
    mkdir -p "$work/npm/package" "$1/files"
    cp "$3" "$work/npm/package/data"
    echo '{ "name": "reprise-sample", "version": "1.0.0" }' >"$work/npm/package/package.json"
    tar -C "$work/npm" -czf "$1/$tarball" package
    integrity=$(openssl dgst -sha512 -binary "$1/$tarball" | base64 -w 0)
    cat >"$1/reprise-sample" <<END
{ "name": "reprise-sample", "dist-tags": { "latest": "1.0.0" }, "versions": { "1.0.0": {
    "name": "reprise-sample", "version": "1.0.0", "dist": { "integrity": "sha512-$integrity",
        "tarball": "$2/$tarball" } } } }
END
}

# git_repository FOLDER COMMITS: with as many files; $seed is a working copy of it, and FOLDER/project.git
# lies ready to be read as plain files.
git_repository() {
    local number
    export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0
    seed=$work/seed
    git init -q -b main "$seed"
    git -C "$seed" config user.name nobody
    git -C "$seed" config user.email nobody@example.org
    for number in $(seq 1 "$2"); do
        head -c 20000 /dev/urandom >"$seed/file$number"
        git -C "$seed" add .
        git -C "$seed" commit -q -m "commit $number"
    done
    mkdir -p "$1"
    git clone -q --bare "$seed" "$1/project.git"
    git -C "$1/project.git" repack -q -a -d
    git -C "$1/project.git" update-server-info
}
