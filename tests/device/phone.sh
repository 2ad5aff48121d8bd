#!/bin/bash
# phone.sh DIR: dresses an unpacked adbd as a phone with a Snapdragon 8 Gen 3: Android's folders, shell and tools, getprop, and the
# thermal zones, frequencies and battery that /sys has there. Called by make.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$1
cd "$root"

mkdir -p system/bin system/etc vendor/lib64 data/local/tmp sys proc dev/pts sdcard tmp run etc
# As on Android: /bin is /system/bin, sh is mksh, and nearly everything else is toybox.
rm -f bin
ln -s system/bin bin
cp -a usr/bin/mksh system/bin/sh
cp -a usr/bin/toybox system/bin/toybox
loader=(lib64/ld-linux-x86-64.so.2 --library-path usr/lib/x86_64-linux-gnu)
for tool in $("${loader[@]}" usr/bin/toybox); do
    [ -e "system/bin/$tool" ] || ln -s toybox "system/bin/$tool"
done
printf 'root:x:0:0::/data:/bin/sh\nshell:x:2000:2000:shell:/data/local/tmp:/bin/sh\n' > etc/passwd
printf 'root:x:0:\nshell:x:2000:\n' > etc/group
chmod 1777 tmp
chown 2000:2000 data/local/tmp
chmod 0771 data/local data/local/tmp

cp -a "$here/phone/." .

zones="aoss-0 cpuss-0 cpuss-1 cpuss-2 cpuss-3 cpu-2-0-0 cpu-2-0-1 cpu-2-1-0 cpu-2-1-1 cpu-2-2-0 cpu-2-2-1 cpu-1-0-0 cpu-1-0-1 cpu-1-1-0
 cpu-1-1-1 cpu-0-0-0 cpu-0-1-0 cpu-0-2-0 cpu-0-3-0 gpuss-0 gpuss-1 gpuss-2 gpuss-3 gpuss-4 gpuss-5 gpuss-6 gpuss-7 nsphvx-0 nsphvx-1
 nsphvx-2 nsphmx-0 nsphmx-1 nsphmx-2 nsphmx-3 ddr camera-0 camera-1 video mdmss-0 mdmss-1 mdmss-2 mdmss-3 battery xo-therm
 skin-msm-therm cpu-hotplug pm8550-tz pm8550vs-tz quiet-therm usb-therm"
i=0
for name in $zones; do
    zone=sys/class/thermal/thermal_zone$i
    mkdir -p "$zone"
    echo "$name" > "$zone/type"
    echo $((34000 + 137 * i)) > "$zone/temp"
    i=$((i + 1))
done
for c in 0 1 2 3 4 5 6 7; do
    cpu=sys/devices/system/cpu/cpu$c/cpufreq
    mkdir -p "$cpu"
    echo 1804800 > "$cpu/scaling_cur_freq"
    echo 364800 > "$cpu/cpuinfo_min_freq"
    echo 3052800 > "$cpu/cpuinfo_max_freq"
    echo walt > "$cpu/scaling_governor"
done
echo 0-7 > sys/devices/system/cpu/online
battery=sys/class/power_supply/battery
mkdir -p "$battery" sys/class/kgsl/kgsl-3d0 sys/devices/soc0
echo 83 > "$battery/capacity"
echo Discharging > "$battery/status"
echo 312 > "$battery/temp"
echo 4120000 > "$battery/voltage_now"
echo -512000 > "$battery/current_now"
echo 231000000 > sys/class/kgsl/kgsl-3d0/gpuclk
echo "Snapdragon 8 Gen 3" > sys/devices/soc0/machine
echo 557 > sys/devices/soc0/soc_id

node() { [ -e "dev/$1" ] || mknod -m 666 "dev/$1" c "$2" "$3"; }
node null 1 3
node zero 1 5
node urandom 1 9
node tty 5 0
ln -sfn pts/ptmx dev/ptmx
