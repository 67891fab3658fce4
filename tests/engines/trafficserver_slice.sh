#!/usr/bin/env bash
# reprise_admission.so beside the server's own slice, which fetches a large object in blocks that are URLs of their own to the cache, and
# beside background_fetch and cache_promote where slices are: which sights count, and what is stored when.
# shellcheck source=../clients/harness.sh
. "$(dirname "$0")/../clients/harness.sh"
# shellcheck source=trafficserver_process.sh
. "$(dirname "$0")/trafficserver_process.sh"
for name in slice cache_range_requests cache_promote; do
    [[ -f $modules/$name.so ]] || {
        echo "skipped: this Traffic Server has no $name.so"
        exit 77
    }
done

mkdir "$work/files"
head -c 2500000 /dev/urandom >"$work/files/whole"
for name in asked inner both; do cp "$work/files/whole" "$work/files/$name"; done
start_origin files --root "$work/files"
files=127.0.0.1:$port

make_server one <<<"stats_over_http.so _stats"
slice="@plugin=slice.so @pparam=--blockbytes-test=1000000 @plugin=cache_range_requests.so"
promote="@plugin=cache_promote.so @pparam=--policy=lru @pparam=--hits=3 @pparam=--buckets=1000 @pparam=--internal-enabled"
ours="@plugin=$plugins/reprise_admission.so @pparam=objects=10k @pparam=refresh=1"
cat >"$work/one/etc/remap.config" <<END
map http://plain.test/ http://$files/ $slice $ours @pparam=name=plain
map http://each.test/ http://$files/ $slice $ours @pparam=name=each @pparam=internal=on
map http://both.test/ http://$files/ $slice $promote $ours @pparam=name=both @pparam=internal=on
END
start_server one
whole=$(sha256sum <"$work/files/whole")
part=$(head -c 1600000 "$work/files/whole" | tail -c 400000 | sha256sum)
# got URL [OPTION...]: "whole" or "part" where that came, and how many requests for the file have reached the origin.
got() {
    local sum
    sum=$(curl -s --max-time 20 -x "http://$server" "$@" | sha256sum)
    case $sum in
        "$whole") echo "whole $(asked files "GET /${1##*/}")" ;;
        "$part") echo "part $(asked files "GET /${1##*/}")" ;;
        *) echo "other bytes" ;;
    esac
}
is_figure() {
    [[ $(gate=$1 ledger "$2") == "$3" ]]
}
written_objects() {
    [[ $(stat proxy.process.cache.direntries.used) == "$1" ]]
}

check "slices are stored as they come, for it is slice that asks: three blocks, then hits" "whole 3 whole 3" \
    "$(got http://plain.test/whole) $(got http://plain.test/whole)"
within 10 "the cache has three entries" written_objects 3
check "with internal=on each slice is a URL that is asked for" "whole 3 whole 6 whole 6" \
    "$(got http://each.test/asked) $(got http://each.test/asked) $(got http://each.test/asked)"
within 10 "the cache has three more, one for each block" written_objects 6
within 10 "each of which was seen once before" is_figure each repeats 3
check "and the filter was asked for no whole" 3 "$(gate=each ledger first_sights)"
check "nor was it asked for what slice alone wanted" 0 "$(gate=plain ledger first_sights)"
check "the bytes of all blocks are counted, kept out and let in" "2500000 2500000" \
    "$(gate=each ledger bytes_not_stored) $(gate=each ledger bytes_admitted)"

check "a range is a sight of its blocks, and of the first, by which slice goes; a hit at its third request" "part 2 part 4 part 4" \
    "$(for _ in 1 2 3; do got http://each.test/inner -r 1200000-1599999; done | xargs)"
check "the whole has these two from the cache, sees the third, and stores it at its second request" "whole 5 whole 6 whole 6" \
    "$(for _ in 1 2 3; do got http://each.test/inner; done | xargs)"
within 10 "that makes six blocks" is_figure each objects_admitted 6

check "with cache_promote, which wants a third: what both let in" "whole 3 whole 6 whole 9 whole 9" \
    "$(for _ in 1 2 3 4; do got http://both.test/both; done | xargs)"
within 10 "three more entries" written_objects 12
stop_server
