#!/bin/bash
# start.sh [INDEX]: runs one test phone in the foreground: the real adbd as uid 2000, in a chroot, in mount, pid and network namespaces of
# its own. Needs root (`run` does without). With BENCH_PHONE_MACHINE=aarch64 it says that it is one and runs such programs too, through
# this machine's qemu-aarch64-static (Linux 6.7 or newer). INDEX (0-62, the lowest free one if not given) gives it its address.
#
# Prints `ready ADDRESS:PORT` and then an `ok` for every command that it reads from standard input:
#   kill     adbd dies and is started again, as Android's init does; other processes of the phone live on
#   r18      the same, but init ends every process that adbd started, as on a real phone
#   down     adbd dies and stays away          up    it comes back
#   stop     adbd hangs (SIGSTOP)              cont  it goes on
#   unplug   the link is cut                   plug  it is back
#   reboot   everything on the phone ends, the boot id changes, adbd comes back
#   full [KB]   /data/local/tmp has 256 KB left, or as many    free  it has plenty again
#   log [BUFFER] [PID] LEVEL TAG: TEXT   a line for logcat; any other TEXT has the tag `bench`
#   clock SECONDS   its wall clock jumps: it is ahead of this machine's by so much (`date +%s`, logcat)
#   logd-hangs   logcat prints nothing and does not end
#   temp [cpu|nsp|gpu|skin|battery] C   it, or everything, has C degrees and goes on from there (soc.sh)
#   throttle GROUP ABOVE BELOW [ADDS CONSTANT]   above this temperature of the group it is slowed down step by step, below that one no more (soc.sh)
#   battery PERCENT [Charging|Discharging|Full]
#   board [gone]   it has no battery from now on, and power rails in hwmon; or these give nothing any more (soc.sh)
# At the end of standard input the phone vanishes with all its processes: nothing is left behind when a test dies.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ "$(id -u)" = 0 ] || { echo "start.sh: needs root for its namespaces" >&2; exit 77; }
base=$("$here/make.sh")
state=${BENCH_PHONES:-/var/tmp/bench-phones}
mkdir -p "$state"

# The lock is held for as long as the phone lives, also by its processes' parent only: a dead phone frees its index.
claim() { mkdir -p "$state/$1" && exec 8> "$state/$1/lock" && flock -n 8; }
if [ $# -gt 0 ]; then
    index=$1
    claim "$index" || { echo "start.sh: phone $index is already running" >&2; exit 1; }
else
    for ((index = 0; index < 63; index++)); do claim "$index" && break; done
    [ "$index" -lt 63 ] || { echo "start.sh: 63 phones are running" >&2; exit 1; }
fi
name=bench-phone-$index link=bphone$index dir=$state/$index
host=169.254.77.$((4 * index + 1)) phone=169.254.77.$((4 * index + 2))

clean() {
    ip link del "$link" 2>/dev/null || true
    ip netns del "$name" 2>/dev/null || true
    rm -rf "${dir:?}"/{upper,work,root}
}
clean
trap clean EXIT
# A link of its own instead of the loopback: adbd listens on every address and asks nobody for a key.
ip netns add "$name"
ip link add "$link" type veth peer name eth0 netns "$name"
ip addr add "$host/30" dev "$link"
ip link set "$link" up
ip -n "$name" addr add "$phone/30" dev eth0
ip -n "$name" link set lo up
ip -n "$name" link set eth0 up
mkdir -p "$dir"/{upper,work,root}
ip netns exec "$name" unshare --mount --pid --uts --fork --kill-child "$here/init.sh" "$base" "$dir" "$phone:5555" 8>&-
