#!/usr/bin/env bash
# cargo through opened tunnels (lab.sh): one crate, and the "sparse" registry that has it.
# shellcheck source=lab.sh
. "$(dirname "$0")/lab.sh"
needs cargo sha256sum

mkdir -p "$work/reprise-sample-1.0.0/src" "$site/crates/reprise-sample/1.0.0" "$site/index/re/pr"
printf '[package]\nname = "reprise-sample"\nversion = "1.0.0"\n' >"$work/reprise-sample-1.0.0/Cargo.toml"
: >"$work/reprise-sample-1.0.0/src/lib.rs"
head -c 300000 /dev/urandom >"$work/reprise-sample-1.0.0/data"
crate=$site/crates/reprise-sample/1.0.0/download
tar -C "$work" -czf "$crate" reprise-sample-1.0.0
echo '{ "dl": "https://@authority@/crates" }' >"$site/index/config.json"
echo '{ "name": "reprise-sample", "vers": "1.0.0", "deps": [], "features": {}, "yanked": false,' \
    "\"cksum\": \"$(sha256sum <"$crate" | cut -d' ' -f1)\" }" >"$site/index/re/pr/reprise-sample"
given=("crate=$crate")
# That of rustup looks for the compiler in its owner's home.
[[ ! -d ${RUSTUP_HOME:-$owners_home/.rustup} ]] || given+=("RUSTUP_HOME=${RUSTUP_HOME:-$owners_home/.rustup}")

download() {
    mkdir -p .cargo src
    : >src/lib.rs
    printf '[package]\nname = "asks"\nversion = "1.0.0"\n[dependencies]\nreprise-sample = "1"\n' >Cargo.toml
    cat >.cargo/config.toml <<END
[source.crates-io]
replace-with = "lab"
[source.lab]
registry = "sparse+https://$authority/index/"
END
    CARGO_HTTP_CAINFO=$trusted cargo fetch
}
compare() {
    cmp .cargo/registry/cache/*/reprise-sample-1.0.0.crate "${crate:?}"
}

start_lab
opened_three_times 3
refuses_outside 'permitted subtree violation'
without_ca fails
stop_proxy
