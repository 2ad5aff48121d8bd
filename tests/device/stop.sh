#!/bin/bash
# stop.sh [INDEX]: clears away what a phone leaves behind whose start.sh was killed (namespace, link, files). All such phones without INDEX.
# A running phone ends at the end of its start.sh's standard input and needs no stop.sh.
set -euo pipefail
state=${BENCH_PHONES:-/var/tmp/bench-phones}
[ -d "$state" ] || exit 0
for dir in "$state"/${1:-*}; do
    [ -d "$dir" ] || continue
    index=${dir##*/}
    exec 8> "$dir/lock"
    flock -n 8 || { echo "stop.sh: phone $index is running: end its start.sh" >&2; continue; }
    ip link del "bphone$index" 2> /dev/null || true
    ip netns del "bench-phone-$index" 2> /dev/null || true
    rm -rf "$dir"
done
