#!/usr/bin/env bash
# The module of filter/plugins/nginx in a real nginx of two workers: what it lets into the cache, by the cache's own files,
# and what outlives a reload, a kill, a restart and a new binary. Everybody listens on sockets below $work.
source "$(dirname "${BASH_SOURCE[0]}")/../clients/harness.sh"
needs nginx curl python3
module=$BUILD/filter/plugins/nginx/ngx_http_reprise_module.so
if [[ ! -f $module ]]; then
    echo "skipped: there is no $module: nginx-dev is not installed"
    exit 77
fi

start_origin slow --max-age 3600 --delay-ms 200
slow=$port
start_origin pages --max-age 3600
mkdir -p "$work/logs" "$work/tmp" "$work/state" "$work/files/sliced"
head -c 4000 /dev/zero >"$work/files/sliced/4000"
daemon=off master=on zone='objects=100k' state="state=$work/state/seen save=1s" more=''

# write_conf: nginx's configuration, with a zone "one" of $zone and $state, and further lines of http in $more.
write_conf() {
    local part temporary=''
    for part in client_body proxy fastcgi uwsgi scgi; do
        temporary+="${part}_temp_path $work/tmp/$part; "
    done
    cat >"$work/nginx.conf" <<END
load_module $module;
$( ((EUID != 0)) || echo 'user root;')
worker_processes 2;
daemon $daemon;
master_process $master;
pid $work/nginx.pid;
lock_file $work/nginx.lock;
error_log $work/logs/error.log notice;
events { worker_connections 512; }
http {
  access_log off;
  $temporary
  proxy_cache_path $work/cache keys_zone=kept:10m;
  fastcgi_cache_path $work/fastcgi keys_zone=fastcgi:1m;
  uwsgi_cache_path $work/uwsgi keys_zone=uwsgi:1m;
  scgi_cache_path $work/scgi keys_zone=scgi:1m;
  reprise_admission zone=one $zone $state;
  $more
  proxy_cache_key \$request_uri\$slice_range;
  fastcgi_cache_key \$request_uri;
  uwsgi_cache_key \$request_uri;
  scgi_cache_key \$request_uri;
  server {
    listen unix:$work/nginx.sock;
    reprise_zone one;
    add_header X-Cache \$upstream_cache_status always;
    add_header X-Seen "\$reprise_seen \$reprise_ruling" always;
    proxy_cache kept;
    fastcgi_cache fastcgi;
    uwsgi_cache uwsgi;
    scgi_cache scgi;
    location / { proxy_pass http://127.0.0.1:$port; }
    location /picky/ { proxy_pass http://unix:$work/picky.sock; }
    location /user/ { proxy_pass http://127.0.0.1:$port/hello?x=; proxy_no_cache \$cookie_user; }
    location /unbuffered/ { proxy_pass http://127.0.0.1:$port/hello?x=; proxy_buffering off; }
    location /off/ { proxy_pass http://127.0.0.1:$port/hello?x=; reprise_zone off; }
    location /sliced/ { slice 1k; proxy_set_header Range \$slice_range; proxy_http_version 1.1; proxy_cache_valid 206 1h; proxy_pass http://unix:$work/picky.sock; }
    location /behind/ { proxy_pass http://unix:$work/picky.sock; proxy_cache_use_stale updating; proxy_cache_background_update on; }
    location /locked/ { proxy_pass http://127.0.0.1:$slow/hello?x=; proxy_cache_lock on; proxy_cache_lock_timeout 1m; proxy_cache_lock_age 1m; }
    location /mirroring/ { mirror /mirrored; reprise_zone off; proxy_pass http://127.0.0.1:$port/hello?x=; }
    location = /mirrored { internal; proxy_pass http://127.0.0.1:$port/hello?mirrored; proxy_cache_key mirrored; }
    location /fastcgi/ { fastcgi_pass unix:$work/fastcgi.sock; fastcgi_param REQUEST_URI \$request_uri; fastcgi_param REQUEST_METHOD \$request_method; }
    location /uwsgi/ { uwsgi_pass unix:$work/uwsgi.sock; uwsgi_param REQUEST_URI \$request_uri; }
    location /scgi/ { scgi_pass unix:$work/scgi.sock; scgi_param REQUEST_URI \$request_uri; }
    location /closed/ { proxy_pass http://unix:$work/picky.sock; proxy_cache_valid any 1m; }
    location /intercepted/ { proxy_pass http://unix:$work/picky.sock:/picky/missing; proxy_intercept_errors on; error_page 404 = @own; }
    location /accelerated/ { proxy_pass http://unix:$work/picky.sock; }
    location @own { return 200 "nginx's own\n"; }
    location /late/ {
      proxy_pass http://127.0.0.1:$port/hello?x=;
      add_header X-Cache \$upstream_cache_status always;
      add_header X-No 1;
      proxy_no_cache \$sent_http_x_no;
    }
    location = /status { reprise_status; }
    location = /metrics { reprise_status prometheus; }
  }
  # The same cache without admission.
  server {
    listen unix:$work/plain.sock;
    proxy_cache kept;
    location / { proxy_pass http://unix:$work/picky.sock; }
  }
  server {
    listen unix:$work/picky.sock;
    location /sliced/ { root $work/files; access_log $work/sliced.requests; }
    location /picky/private { add_header Cache-Control private always; return 200 "yours\n"; }
    location /picky/failed { add_header Cache-Control max-age=60 always; return 500 "failed\n"; }
    location /picky/missing { add_header Cache-Control max-age=60 always; return 404 "missing\n"; }
    location /closed/ { return 444; }
    location /accelerated/ { add_header Cache-Control max-age=60; add_header X-Accel-Redirect @own; return 200 "elsewhere\n"; }
    location /picky/old { add_header Cache-Control max-age=1; return 200 "old soon\n"; }
    location /behind/ { add_header Cache-Control max-age=1; return 200 "old soon\n"; }
    location /picky/varies { add_header Cache-Control max-age=60; add_header Vary Accept-Language; return 200 "in your tongue\n"; }
    location /picky/silent { return 200 "no word\n"; }
  }
}
END
}

start_nginx() {
    rm -f "$work/nginx.pid" "$work"/*.sock.taken "$work/nginx.sock" "$work/plain.sock" "$work/picky.sock"
    start nginx "$(command -v nginx)" -p "$work" -e "$work/logs/error.log" -c "$work/nginx.conf"
    nginx_pid=$pid
    within 20 "there is nginx" test -s "$work/nginx.pid"
    within 20 "nginx answers" get_quietly /status
}
stop_nginx() {
    local status=0
    kill -TERM "$nginx_pid"
    if ! grep -q '^daemon off' "$work/nginx.conf"; then
        within 20 "nginx ends" test ! -d "/proc/$nginx_pid"
        return
    fi
    wait "$nginx_pid" || status=$?
    check "nginx ends well when it is told to" 0 "$status"
}
children_of() {
    tr ' ' '\n' <"/proc/$1/task/$1/children" | sed '/^$/d'
}
kill_nginx() {
    local all
    mapfile -t all < <(children_of "$nginx_pid")
    kill -KILL "$nginx_pid" "${all[@]}"
    wait "$nginx_pid" 2>/dev/null || true
    for pid in "${all[@]}"; do
        within 20 "a killed worker has gone" has_gone "$pid"
    done
}
has_gone() {
    [[ ! -d /proc/$1 || $(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null || true) == [ZX] ]]
}
has_lived_for() {
    (($(ps -o etimes= -p "$nginx_pid") > $1))
}
# reload_nginx: until no worker of before is left.
reload_nginx() {
    local before
    before=$(children_of "$nginx_pid" | sort)
    kill -HUP "$nginx_pid"
    within 20 "the workers are new" workers_are_new "$before"
}
workers_are_new() {
    local now
    now=$(children_of "$nginx_pid" | sort)
    [[ -z $(comm -12 <(echo "$1") <(echo "$now")) && $(wc -l <<<"$now") -ge 2 ]]
}

get_quietly() {
    curl -sS --max-time 5 --unix-socket "${at:-$work/nginx.sock}" -o /dev/null "http://any$1" 2>/dev/null
}
# get PATH [option...]: "STATUS SEEN RULING", as nginx says.
get() {
    curl -sS --max-time 10 --unix-socket "${at:-$work/nginx.sock}" -D "$work/head" -o "$work/body" "${@:2}" "http://any$1"
    tr -d '\r' <"$work/head" | awk -F': ' '$1 == "X-Cache" { cache = $2 } $1 == "X-Seen" { seen = $2 } END { sub(/ *$/, "", seen); print cache (seen == "" ? "" : " " seen) }'
}
figure() {
    curl -sS --max-time 5 --unix-socket "$work/nginx.sock" "http://any/status" |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["zones"][sys.argv[2]][sys.argv[1]])' "$1" "${2:-one}"
}
is_more_than() {
    (($(figure "$1") > $2))
}
# await_save: until what was seen before is on disk. A save may be under way as this begins, so the second counts.
await_save() {
    local saves
    for _ in 1 2; do
        saves=$(figure saves)
        get "/hello?save=$((++unique))" >"$work/saved"
        within 20 "saved" is_more_than saves "$saves"
    done
}
unique=0
files_kept() {
    find "$work/cache" -type f | wc -l
}
# are_kept COUNT: so many. A file has its name a moment after the answer has gone out.
are_kept() {
    [[ $(files_kept) == "$1" ]]
}
# many FIRST LAST: asks for these pages, several at once; prints how many answers were not 200.
many() {
    curl -sS --no-progress-meter --max-time 60 --parallel --parallel-max 8 --unix-socket "$work/nginx.sock" -o /dev/null \
        -w '%{http_code}\n' "http://any/hello?page=[$1-$2]" | grep -vc '^200$' || true
}
said() {
    grep -cF -- "$1" "$work/logs/error.log" || true
}

echo "--- options"
refused() {
    local out
    zone=$1 state=${3:-} write_conf
    out=$(nginx -t -p "$work" -e "$work/logs/test.log" -c "$work/nginx.conf" 2>&1) && fail "taken: $1 ${3:-}"
    check_matches "refused: ${1:0:40} ${3:-}" "$2" "$out"
}
refused 'objects=many' "'objects=many' is not understood: right would be a number of keys such as objects=10M"
refused 'objects=0' 'objects is 0: it must be 1 to 10,000,000,000'
refused 'hits=1' 'hits is 1: it must be 2 \(the second request stores\) to 16'
refused 'rate=2' 'rate is 2: it must be 0.000000001 to 0.5'
refused 'age=long' "'age=long' is not understood: right would be a time such as age=50h"
refused 'save=never' '"save=never" is not understood: right would be a time'
refused 'forget=all' '"forget=all" is not understood: right would be zone=, objects=, age=, rate=, hits=, state= and save='
refused 'hits=2 hits=3' '"hits=3" is not understood: right would be each word once'
refused 'hits=3 zone=two' '"zone=two" is not understood: right would be each word once'
refused 'objects=10G' 'zone "one" would take [0-9]+ bytes, and this machine has [0-9]+: right would be fewer objects='
refused '' '"state=/nowhere/at/all/seen" is not understood: right would be a file in a folder' state=/nowhere/at/all/seen
refused '' 'right would be a file, such as state=' state=
refused '' 'right would be a regular file' state=/dev/null
refused "'$(printf 'x%.0s' {1..3000})'" 'is not understood'
more="reprise_admission zone=two state=$work/s;" refused '' 'is zone "two"'\''s too|is zone "one"'\''s too' "state=$work/s"
more='reprise_admission zone=one;' refused '' 'zone "one" is declared twice'
more='reprise_admission objects=5;' refused '' 'reprise_admission has no name: right would be zone=NAME'
more='reprise_admission "zone=a b";' refused '' '"a b" is no name of a zone'
more='reprise_zone other;' refused '' '"reprise_zone other" in .*nginx.conf:[0-9]+: there is no such zone'
more='server { location / { reprise_status xml; } }' refused '' '"reprise_status xml" is not understood: right would be json, prometheus'
zone='objects=100k' state="state=$work/state/seen save=1s"
write_conf
check "a test of the configuration writes nothing" "" "$(nginx -t -q -p "$work" -e "$work/logs/test.log" -c "$work/nginx.conf" 2>&1; ls "$work/state")"

echo "--- a filter that is smaller than a page"
zone='objects=1' state='' write_conf
start_nginx
check "is one all the same" "MISS 0 refused, MISS 1 admitted, HIT 1" "$(get /hello), $(get /hello), $(get /hello)"
stop_nginx
rm -r "$work/cache"
write_conf

echo "--- three requests"
start gateways python3 "$(dirname "${BASH_SOURCE[0]}")/gateways.py" "$work"
await "$work/gateways.ready" "$pid"
start_nginx
check "the first is not stored" "MISS 0 refused" "$(get '/hello?three')"
check "the second is" "MISS 1 admitted" "$(get '/hello?three')"
check "the third is a hit" "HIT 1" "$(get '/hello?three')"
check "the origin was asked for two" 2 "$(asked pages '/hello\?three')"
within 20 "one file is kept" are_kept 1
for gateway in fastcgi uwsgi scgi; do
    for expected in "MISS 0 refused" "MISS 1 admitted" "HIT 1"; do
        check "$gateway: $expected" "$expected" "$(get "/$gateway/x")"
    done
    check "$gateway was asked twice" 2 "$(grep -c "^$gateway " "$work/gateways.requests")"
done

echo "--- alternates"
in_tongue() {
    get "$1" -H "Accept-Language: $2"
}
check "one of two alternates" "MISS 0 refused, MISS 1 admitted, HIT 1" \
    "$(in_tongue /picky/varies de), $(in_tongue /picky/varies de), $(in_tongue /picky/varies de)"
check "the other was seen with it" "MISS 1 admitted, HIT 1" "$(in_tongue /picky/varies fr), $(in_tongue /picky/varies fr)"
check "and so it is where neither was stored" "MISS 0 refused, MISS 1 admitted" \
    "$(in_tongue '/picky/varies?x' de), $(in_tongue '/picky/varies?x' fr)"

echo "--- what is no sight"
before=$(files_kept)
check "a HEAD tells nothing" "MISS 0 refused" "$(get '/hello?head' --head)"
check "so a GET is the first" "MISS 0 refused" "$(get '/hello?head')"
check "a HEAD of what is known may store it" "MISS 1 admitted" "$(get '/hello?head' --head)"
check "so a GET is a hit" "HIT 1" "$(get '/hello?head')"
sights=$(figure first_sights)
for _ in 1 2; do
    check "private" "MISS 0" "$(get /picky/private)"
    check "a failure with a lifetime, which is nginx's to judge" 0 "$(get /picky/failed | grep -c refused || true)"
    check "no lifetime" "MISS 0" "$(get /picky/silent)"
    check "another rule's" "MISS 0" "$(get '/user/a' --cookie user=me)"
    check "not buffered, so never stored" "MISS 0" "$(get '/unbuffered/a')"
    get '/hello?posted' --data x >"$work/posted"
done
for path in /closed/a /accelerated/a /intercepted/a; do
    for _ in 1 2; do
        check "$path: an answer of nginx's own is not asked for" "" "$(get "$path" | grep -E 'refused|admitted' || true)"
    done
done
check "none of these is a sight" "$sights" "$(figure first_sights)"
for _ in 1 2 3; do
    check "what forbids it may come to be known after the module" MISS "$(get '/late/a')"
done
check "where admission is off, the first is stored" "MISS HIT" "$(get /off/a) $(get /off/a)"
check "a missing page is an object" "MISS 0 refused, MISS 1 admitted, HIT 1" "$(get /picky/missing), $(get /picky/missing), $(get /picky/missing)"
sights=$(figure first_sights)
check "what mirrors is served" "MISS" "$(get /mirroring/a)"
within 20 "the mirror was asked" grep -q '?mirrored' "$work/pages.requests"
check "which tells nothing" "$sights" "$(figure first_sights)"
curl -sS --no-progress-meter --max-time 60 --parallel --parallel-immediate --unix-socket "$work/nginx.sock" -o /dev/null \
    "http://any/locked/x#[1-10]" || fail "ten at once under a lock"
check "ten at once under a lock: two fetches" 2 "$(asked slow '/hello\?x=x')"
is_old() {
    [[ $(get "$1") == "$2"* ]]
}
for expected in /picky/old:EXPIRED /behind/old:STALE; do
    path=${expected%:*}
    at=$work/plain.sock get "$path" >"$work/plain"
    sights=$(figure first_sights)
    within 20 "$expected: stored elsewhere, it grows old" is_old "$path" "${expected#*:}"
    within 20 "and is replaced" is_old "$path" HIT
    check "which asks nothing" "$sights" "$(figure first_sights)"
done
check "slices are objects each" 0 "$(
    for _ in 1 2 3; do get /sliced/4000 >>"$work/slices"; wc -c <"$work/body"; done | grep -vc '^4000$' || true)"
check "each was fetched twice" 8 "$(grep -c ' 206 ' "$work/sliced.requests")"
check "the third time all come from the cache" "HIT" "$(tail -n 1 "$work/slices" | cut -d' ' -f1)"

echo "--- a hundred that come once"
before=$(files_kept)
check "all are answered" 0 "$(many 1 100)"
check "none is stored" "$before" "$(files_kept)"
check "two at once of one page are one object" 0 "$(many 1 100)"
within 20 "each is, the second time" are_kept $((before + 100))

echo "--- figures"
curl -sS --unix-socket "$work/nginx.sock" -D "$work/head" http://any/status >"$work/status.json"
check_matches "JSON by name" 'application/json' "$(<"$work/head")"
python3 - "$work/status.json" <<'END'
import json, sys
one = json.load(open(sys.argv[1]))["zones"]["one"]
names = """objects_not_stored bytes_not_stored objects_admitted bytes_admitted hits_lost refreshes first_sights repeats
young_fill old_fill strangers_known remembers_for memory""".split()
missing = [name for name in names if name not in one]
assert not missing, missing
assert one["objects_admitted"] >= 100 and one["hits_lost"] >= 100 and one["bytes_not_stored"] > 0, one
END
echo "ok: every name of the ledger is there"
curl -sS --unix-socket "$work/nginx.sock" -D "$work/head" http://any/metrics >"$work/status.prom"
check_matches "Prometheus' text by name" 'text/plain; version=0.0.4' "$(<"$work/head")"
check "every line is one of Prometheus'" "" "$(grep -vE '^# (HELP|TYPE) reprise_[a-z_]+ .+$|^reprise_[a-z_]+\{zone="one"\} [0-9.e+-]+$' "$work/status.prom" || true)"
check "no name is explained twice" "" "$(grep '^# TYPE' "$work/status.prom" | awk '{ print $3 }' | sort | uniq -d)"
for form in '?format=prometheus' '?format=json' '?format=xml' ''; do
    curl -sS --unix-socket "$work/nginx.sock" -H 'Accept: text/plain;version=0.0.4' -o "$work/body" -w '%{http_code} ' "http://any/status$form"
    head -c 1 "$work/body"
    echo
done >"$work/forms"
check "the form is the argument's, or what is accepted" "200 #,200 {,400 <,200 #" "$(paste -sd, "$work/forms")"
check "nobody posts to it" 405 "$(curl -sS --unix-socket "$work/nginx.sock" -o /dev/null -w '%{http_code}' --data x http://any/status)"

echo "--- a reload under load"
before=$(files_kept)
many 1001 3000 >"$work/failed" &
loading=$!
for _ in 1 2 3; do
    reload_nginx
done
wait "$loading"
check "no answer was lost" 0 "$(<"$work/failed")"
check "nothing was stored" "$before" "$(files_kept)"
many 1001 3000 >"$work/failed"
within 20 "all was known: each is stored now" are_kept $((before + 2000))

echo "--- killed"
check "first" 0 "$(many 4001 4100)"
await_save
before=$(files_kept)
kill_nginx
start_nginx
check "seen before, asked again" 0 "$(many 4001 4100)"
within 20 "all are stored at once" are_kept $((before + 100))

echo "--- stopped"
check "first" 0 "$(many 4101 4200)"
stop_nginx
start_nginx
before=$(files_kept)
check "seen before, asked again" 0 "$(many 4101 4200)"
within 20 "all are stored at once" are_kept $((before + 100))

echo "--- a new binary"
# A process in the foreground would ignore the signal: its parent stays.
stop_nginx
daemon=on write_conf
start_nginx
nginx_pid=$(<"$work/nginx.pid")
started+=("$nginx_pid")
check "first" 0 "$(many 4201 4300)"
await_save
kill -USR2 "$nginx_pid"
await "$work/nginx.pid.oldbin" "$nginx_pid"
await "$work/nginx.pid" "$nginx_pid"
old=$nginx_pid
nginx_pid=$(<"$work/nginx.pid")
started+=("$nginx_pid")
check "seen since the last save" 0 "$(many 4401 4410)"
kill -QUIT "$old"
within 20 "the old one has gone" test ! -d "/proc/$old"
before=$(files_kept)
check "seen before, asked again" 0 "$(many 4201 4300)"
within 20 "all are stored at once" are_kept $((before + 100))

echo "--- other options"
zone='objects=200k' write_conf
reload_nginx
check "they are said" 1 "$(said 'zone "one" has other options than before, and begins anew')"
check "the state of the other ones is named" 1 "$(said "zone \"one\": $work/state/seen: not used, the filter begins empty")"
check "the zone is empty" "MISS 0 refused" "$(get '/hello?page=4199&anew')"
check "and of that size" 200000 "$(figure objects)"
kill_nginx

echo "--- a damaged state"
head -c 5000 /dev/urandom >"$work/state/seen"
zone='objects=100k' write_conf
start_nginx
check "it is named" 1 "$(said "zone \"one\": $work/state/seen: not used, the filter begins empty: not an admission state")"
check "the zone is empty" 0 "$(figure repeats)"
check "and works" "MISS 0 refused, MISS 1 admitted, HIT 1" "$(get '/hello?damaged'), $(get '/hello?damaged'), $(get '/hello?damaged')"
stop_nginx
state="state=$work/made/seen save=1s" write_conf
start_nginx
check "a folder that is not there is made" 1 "$(find "$work/made" -maxdepth 0 -perm 0700 | wc -l)"
stop_nginx
check "and used" 1 "$(find "$work/made" -type f -name seen -perm 0600 | wc -l)"
start_nginx
state="state=$work/fresh/seen save=1h" write_conf
reload_nginx
check "a reload's is made as well" 1 "$(find "$work/fresh" -maxdepth 0 -perm 0700 | wc -l)"
stop_nginx
check "and used" 1 "$(find "$work/fresh" -type f -name seen -perm 0600 | wc -l)"

echo "--- one process"
master=off state="state=$work/single/first save=1h" write_conf
start_nginx
check "asked for" "MISS 0 refused" "$(get '/hello?single')"
# Longer than the timer's first second, in which it has looked what is due.
within 20 "its timer has looked" has_lived_for 2
master=off state="state=$work/single/second save=1s" write_conf
kill -HUP "$nginx_pid"
within 20 "a shorter save is heard of by a reload" test -s "$work/single/second"
stop_nginx
check "nothing went wrong in nginx" "" "$(grep -E '\[(alert|crit|emerg)\]|signal 11' "$work/logs/error.log" || true)"
