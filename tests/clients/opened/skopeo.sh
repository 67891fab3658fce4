#!/usr/bin/env bash
# skopeo through opened tunnels (lab.sh): one image of one layer, from a registry that is plain files.
# shellcheck source=lab.sh
. "$(dirname "$0")/lab.sh"
needs skopeo sha256sum

image=$site/v2/thing
mkdir -p "$image/blobs" "$image/manifests"
# blob FILE: into the registry, under its name there, in $digest, and with its length in $length.
blob() {
    digest=sha256:$(sha256sum <"$1" | cut -d' ' -f1)
    length=$(stat -c %s "$1")
    cp "$1" "$image/blobs/$digest"
}
head -c 300000 /dev/urandom >"$work/data"
tar -C "$work" -cf "$work/layer.tar" data
unpacked=sha256:$(sha256sum <"$work/layer.tar" | cut -d' ' -f1)
gzip -n "$work/layer.tar"
blob "$work/layer.tar.gz"
docker=application/vnd.docker
layer="\"mediaType\": \"$docker.image.rootfs.diff.tar.gzip\", \"size\": $length, \"digest\": \"$digest\""
given=("layer=${digest#sha256:}")
echo "{ \"architecture\": \"amd64\", \"os\": \"linux\", \"config\": {}," \
    "\"rootfs\": { \"type\": \"layers\", \"diff_ids\": [\"$unpacked\"] } }" >"$work/config.json"
blob "$work/config.json"
cat >"$image/manifests/1" <<END
{ "schemaVersion": 2, "mediaType": "$docker.distribution.manifest.v2+json",
  "config": { "mediaType": "$docker.container.image.v1+json", "size": $length, "digest": "$digest" },
  "layers": [ { $layer } ] }
END
locations="location = /v2/ { default_type application/json; return 200 '{}'; }
    location /v2/thing/manifests/ { types { } default_type $docker.distribution.manifest.v2+json; }"

download() {
    # Who must have signed it is a question of its own.
    SSL_CERT_FILE=$trusted skopeo --insecure-policy copy "docker://$authority/thing:1" dir:got
}
compare() {
    cmp "got/${layer:?}" "$site/v2/thing/blobs/sha256:$layer"
}

start_lab
opened_three_times 4
refuses_outside 'not permitted by any constraint'
without_ca fails
stop_proxy
