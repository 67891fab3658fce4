#!/usr/bin/env bash
# No core dump has the private keys that the program was given: of the CA for intercepted hosts, and of a
# listener. Looked for in what gcore writes, which leaves out what the kernel would leave out.
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
needs curl openssl gcore python3

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=proxy \
    -addext subjectAltName=IP:127.0.0.1 -keyout "$work/proxy.key" -out "$work/proxy.pem" 2>/dev/null
chmod 600 "$work/proxy.key"
settings=$work/names.json
cat >"$settings" <<EOF
{ "intercept": { "hosts": ["a.test"], "ca_certificate": "$work/private/ca.pem", "ca_key": "$work/private/ca.key" } }
EOF
"$MAKE_CA" root --out "$work/root" >"$work/make-ca.log"
"$MAKE_CA" for "$settings" --root "$work/root" --out "$work/private" >>"$work/make-ca.log"
# shellcheck disable=SC2034  # start_proxy's
listener="\"tls\": { \"certificate\": \"$work/proxy.pem\", \"key\": \"$work/proxy.key\" } }, { \"address\": \"127.0.0.1:0\""
start_proxy "\"intercept\": { \"hosts\": [\"a.test\"], \"ca_certificate\": \"$work/private/ca.pem\",
    \"ca_key\": \"$work/private/ca.key\" }"
plain_proxy=$(sed -n 's/.*"listeners": *\["[^"]*", *"\([^"]*\)".*/\1/p' "$work/ports")

# Both keys sign.
curl -sS --max-time 20 --proxy "https://$proxy" --proxy-cacert "$work/proxy.pem" -o /dev/null http://127.0.0.1:1/ || true
curl -sS --max-time 20 --proxy "http://$plain_proxy" --cacert "$work/root/root.pem" -o /dev/null \
    -w '%{http_code}\n' https://a.test/ >"$work/status" 2>"$work/curl.log"
check "a leaf was made, and the request judged inside" 502 "$(<"$work/status")"

gcore -o "$work/core" "$proxy_pid" >"$work/gcore.log" 2>&1 || {
    echo "skipped: no core can be written here: $(tail -n 1 "$work/gcore.log")"
    exit 77
}
cat >"$work/look.py" <<'EOF'
import re, subprocess, sys
core = open(sys.argv[1], "rb").read()
found = 0
for path in sys.argv[2:]:
    text = subprocess.run(["openssl", "pkey", "-in", path, "-text", "-noout"], capture_output=True, text=True).stdout
    key = bytes.fromhex(re.sub(r"[\s:]", "", re.search(r"priv:\n((?:\s+[0-9a-f:]+\n)+)", text).group(1)))[-32:]
    line = open(path).read().split("\n")[1].encode()
    for name, form in ("big-endian", key), ("little-endian", key[::-1]), ("PEM", line[:40]):
        count = core.count(form)
        found += count
        if count:
            print(path, name, count, "times")
# What is looked for can be found: the certificate's name is there.
print("found:", found, "names:", core.count(b"a.test") > 0)
EOF
check "no key is in the core" "found: 0 names: True" \
    "$(python3 "$work/look.py" "$work/core.$proxy_pid" "$work/proxy.key" "$work/private/ca.key")"
echo "ok: no key in a core"
