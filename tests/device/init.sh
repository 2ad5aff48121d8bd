#!/bin/bash
# init.sh BASE DIR ADDRESS: process 1 of a test phone (see start.sh). Looks after adbd as Android's init does and obeys the commands.
set -u
base=$1 dir=$2 address=$3 root=$2/root
hostname testphone
# The folder of the test phone itself stays as made: everything that is written goes to a layer of its own.
mount -t overlay overlay -o "lowerdir=$base,upperdir=$dir/upper,workdir=$dir/work" "$root" || exit 1
mount -t proc proc /proc && mount -t proc proc "$root/proc" || exit 1
mount -t devpts devpts "$root/dev/pts" -o newinstance,ptmxmode=666 || exit 1

adbd=
start() {
    env -i PATH=/system/bin:/vendor/bin ANDROID_DATA=/data ANDROID_ROOT=/system HOME=/ TERM=dumb HOSTNAME=testphone ADBD_PORT=5555 \
        /usr/sbin/chroot --userspec=2000:2000 "$root" /usr/lib/android-sdk/platform-tools/adbd < /dev/null > "$dir/adbd.log" 2>&1 &
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
        *) [ -z "$adbd" ] || kill -0 "$adbd" 2> /dev/null || start; continue ;;
    esac
    case $command in
        kill) end_adbd; start ;;
        r18) end_adbd; end_all; start ;;
        down) end_adbd ;;
        up) [ -n "$adbd" ] || start ;;
        stop) kill -STOP "$adbd" ;;
        cont) kill -CONT "$adbd" ;;
        unplug) ip link set eth0 down ;;
        plug) ip link set eth0 up ;;
        disk\ *)
            mkdir -p "$root/data/local/tmp/bench"
            mount -t tmpfs tmpfs "$root/data/local/tmp/bench" -o "size=${command#disk },uid=2000,gid=2000,mode=0770"
            ;;
        reboot) end_adbd; end_all; boot ;;
        *) echo "unknown command $command"; continue ;;
    esac
    echo "ok $command"
done
