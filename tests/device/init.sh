#!/bin/bash
# init.sh BASE DIR ADDRESS: process 1 of a test phone (see start.sh). Looks after adbd as Android's init does and obeys the commands.
set -u
here=$(dirname "$0")
. "$here/soc.sh"
base=$1 dir=$2 address=$3 root=$2/root
hostname testphone
# What is mounted later is seen by what runs already.
mount --make-rshared /
# The folder of the test phone itself stays as made: everything that is written goes to a layer of its own.
mount -t overlay overlay -o "lowerdir=$base,upperdir=$dir/upper,workdir=$dir/work" "$root" || exit 1
mount -t proc proc /proc && mount -t proc proc "$root/proc" || exit 1
mount -t devpts devpts "$root/dev/pts" -o newinstance,ptmxmode=666 || exit 1
for node in null zero urandom tty; do mount --bind "/dev/$node" "$root/dev/$node" || exit 1; done
# FastRPC's nodes are there and do nothing: other names for null.
for node in fastrpc-cdsp adsprpc-smd; do mount --bind /dev/null "$root/dev/$node" || exit 1; done

# Android's `shell`. Without root on the machine (one user only), and for programs of aarch64, in a user namespace.
as_shell=(/usr/sbin/chroot --userspec=2000:2000 "$root")
read -r _ _ users < /proc/self/uid_map
aarch64=()
if [ "${BENCH_PHONE_MACHINE:-}" = aarch64 ]; then
    aarch64=(--aarch64)
    rm "$root/system/bin/uname"
    printf '#!/system/bin/sh\ntoybox uname "$@" | sed s/x86_64/aarch64/\n' > "$root/system/bin/uname"
    chmod 755 "$root/system/bin/uname"
fi
if [ "$users" = 1 ] || [ ${#aarch64[@]} -gt 0 ]; then
    # Not the launcher that some machines have in the PATH: adbd's environment is a phone's.
    as_shell=("$(python3 -c 'import sys; print(sys.executable)')" "$here/enter.py" "${aarch64[@]}" "$root")
    why=$("${as_shell[@]}" /system/bin/true 2>&1) || { echo "init.sh: no user namespace for the phone: $why" >&2; exit 1; }
fi

adbd=
start() {
    env -i PATH=/system/bin:/vendor/bin ANDROID_DATA=/data ANDROID_ROOT=/system HOME=/ TERM=dumb HOSTNAME=testphone ADBD_PORT=5555 \
        "${as_shell[@]}" /usr/lib/android-sdk/platform-tools/adbd < /dev/null > "$dir/adbd.log" 2>&1 &
    adbd=$!
    # Ready when the port answers (state 0A in the kernel's table; 5555 is 15B3).
    for _ in $(seq 200); do
        grep -qs ':15B3 [0:]* 0A ' /proc/1/net/tcp /proc/1/net/tcp6 && return
        sleep 0.02
    done
}
end_adbd() {
    [ -n "$adbd" ] || return
    kill -KILL "$adbd" 2> /dev/null
    wait "$adbd" 2> /dev/null
    adbd=
}
end_all() {
    # Again and again, because a dying process can still fork.
    for _ in 1 2 3; do
        for p in /proc/[0-9]*; do
            p=${p#/proc/}
            [ "$p" = 1 ] || [ "$p" = "$BASHPID" ] || kill -KILL "$p" 2> /dev/null
        done
    done
}
boots=0
boot() {
    # The kernel's id is the host's: a phone that reboots shows another one.
    printf '%08x-0000-4000-8000-%012x\n' "$RANDOM$RANDOM" $((++boots)) > "$dir/boot_id"
    umount "$root/proc/sys/kernel/random/boot_id" 2> /dev/null
    mount --bind "$dir/boot_id" "$root/proc/sys/kernel/random/boot_id"
    start
}
# clock SECONDS: the phone's wall clock (of `date +%s` and of logcat) is ahead of this machine's by so much from now on.
clock=0
set_clock() { clock=$1; echo "$1" > "$root/data/misc/clock"; }
# log [BUFFER] [PID] LEVEL TAG: TEXT, or any text: into what the phone's logcat prints, with the time of now.
log() {
    local buffer=main pid=1000 level=I tag=bench text=$1
    if [[ $1 =~ ^((main|system|crash|kernel|events)\ )?(([0-9]+)\ )?([VDIWEF])\ ([^:]+):\ (.*)$ ]]; then
        buffer=${BASH_REMATCH[2]:-main} pid=${BASH_REMATCH[4]:-1000} level=${BASH_REMATCH[5]} tag=${BASH_REMATCH[6]} text=${BASH_REMATCH[7]}
    fi
    local now=${EPOCHREALTIME/,/.}
    printf '%s %s %s %s %s\t%s\t%s\n' "$((${now%.*} + clock)).${now#*.}" "$buffer" "$pid" "$pid" "$level" "${tag%% }" "$text" >> "$root/data/misc/logd/log"
}
# full [KB]: /data/local/tmp has this much space left (256 KB if not said). What is there moves into a file system of its own, once; later calls
# and `free` only change its size, so that running programs see it too.
data=$root/data/local/tmp
full() {
    if ! mountpoint -q "$data"; then
        mkdir -p "$dir/data" && mount -t tmpfs data "$dir/data" && cp -a "$data/." "$dir/data/" && mount --bind "$dir/data" "$data"
    fi
    # A little less than nothing would be refused.
    mount -o "remount,size=$(($(df -k --output=used "$data" | tail -n 1) + ${1:-256}))k" "$data"
}
free() { ! mountpoint -q "$data" || mount -o remount,size=50% "$data"; }

: > "$dir/truth.csv"
: > "$dir/rails.csv"
soc_start
boot
echo "ready $address"
line=
while :; do
    # A time-out of `read` is above 128 and may have half a line; anything else is the end of standard input.
    read -r -t 1 part
    status=$?
    line=$line$part
    case $status in
        0) command=$line line= ;;
        1) exit 0 ;;
        *) [ -z "$adbd" ] || kill -0 "$adbd" 2> /dev/null || start; soc_step; continue ;;
    esac
    soc_step
    case $command in
        kill) end_adbd; start ;;
        r18) end_adbd; end_all; start ;;
        down) end_adbd ;;
        up) [ -n "$adbd" ] || start ;;
        stop) kill -STOP "$adbd" ;;
        cont) kill -CONT "$adbd" ;;
        unplug) ip link set eth0 down ;;
        plug) ip link set eth0 up ;;
        reboot) end_adbd; end_all; boot ;;
        "log "*) log "${command#log }" ;;
        full | "full "*) full ${command#full} ;;
        free) free ;;
        "clock "*) set_clock "${command#clock }" ;;
        logd-hangs) touch "$root/data/misc/logd/hangs" ;;
        # shellcheck disable=SC2086
        "temp "*) soc_temp ${command#temp } ;;
        # shellcheck disable=SC2086
        "throttle "*) soc_throttle ${command#throttle } ;;
        # shellcheck disable=SC2086
        board | "board "*) soc_board ${command#board} ;;
        # shellcheck disable=SC2086
        "battery "*) soc_set_battery ${command#battery } ;;
        *) echo "unknown command $command"; continue ;;
    esac
    echo "ok $command"
done
