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
[ "$(id -u)" != 0 ] || chown 2000:2000 data/local/tmp
chmod 0771 data/local data/local/tmp

# Instead of links to toybox, not through them.
cp -a --remove-destination "$here/phone/." .

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
# The clusters of an 8 Gen 3: two small cores, three and two big ones, one prime.
policy() {
    local dir=sys/devices/system/cpu/cpufreq/policy$1
    mkdir -p "$dir"
    echo "$2" > "$dir/related_cpus"
    echo "$3" | tee "$dir/cpuinfo_min_freq" "$dir/scaling_min_freq" > "$dir/scaling_cur_freq"
    echo "$4" | tee "$dir/cpuinfo_max_freq" > "$dir/scaling_max_freq"
    echo walt > "$dir/scaling_governor"
    for c in $2; do
        mkdir -p "sys/devices/system/cpu/cpu$c"
        ln -sfn "../cpufreq/policy$1" "sys/devices/system/cpu/cpu$c/cpufreq"
    done
    mkdir -p "sys/class/thermal/cooling_device$1"
    echo "thermal-cpufreq-$1" > "sys/class/thermal/cooling_device$1/type"
    echo 0 > "sys/class/thermal/cooling_device$1/cur_state"
    echo 4 > "sys/class/thermal/cooling_device$1/max_state"
}
policy 0 "0 1" 364800 2265600
policy 2 "2 3 4" 499200 3148800
policy 5 "5 6" 499200 2956800
policy 7 7 480000 3302400
echo 0-7 > sys/devices/system/cpu/online
file() { mkdir -p "$(dirname "sys/$1")" && echo "$2" > "sys/$1"; }
file class/thermal/cooling_device8/type cdsp_sw_hvx
file class/thermal/cooling_device8/cur_state 0
file class/thermal/cooling_device8/max_state 3
file class/thermal/cooling_device9/type kgsl
file class/thermal/cooling_device9/cur_state 0
file class/thermal/cooling_device9/max_state 9
file devices/system/cpu/bus_dcvs/DDR/cur_freq 547000
file devices/system/cpu/bus_dcvs/LLCC/cur_freq 300000
file devices/system/cpu/bus_dcvs/DDRQOS/cur_freq 0
file devices/system/cpu/bus_dcvs/DDR/available_frequencies "547000 768000 1555000 1708000 2092000 2736000 3187000 3686000 4224000"
file class/power_supply/battery/type Battery
file class/power_supply/usb/type USB
file class/power_supply/usb/online 0
file class/power_supply/battery/capacity 83
file class/power_supply/battery/status Discharging
file class/power_supply/battery/health Good
file class/power_supply/battery/temp 310
file class/power_supply/battery/voltage_now 4120000
file class/power_supply/battery/current_now -350000
file class/power_supply/battery/charge_counter 4150000
file class/power_supply/battery/charge_full 4920000
file class/power_supply/battery/charge_full_design 5000000
file class/power_supply/battery/cycle_count 41
file class/kgsl/kgsl-3d0/gpuclk 231000000
file class/kgsl/kgsl-3d0/max_gpuclk 903000000
file class/kgsl/kgsl-3d0/gpu_busy_percentage "0 %"
file class/kgsl/kgsl-3d0/gpubusy "      0       0"
file class/kgsl/kgsl-3d0/gpu_model Adreno750v2
file class/kgsl/kgsl-3d0/temp 34000
file devices/soc0/machine "Snapdragon 8 Gen 3"
file devices/soc0/family Snapdragon
file devices/soc0/soc_id 557
file devices/soc0/revision 2.0
# Readable for everybody and writable for nobody but init, as the kernel's are.
chmod -R go-w sys
mkdir -p data/misc/logd data/misc/settings
chmod 777 data/misc/settings
: > data/misc/logd/log
echo 0 > data/misc/clock
# -c empties it.
chmod 666 data/misc/logd/log

# Devices: init.sh binds the machine's over these.
for n in null zero urandom tty fastrpc-cdsp adsprpc-smd; do : > "dev/$n"; done
ln -sfn pts/ptmx dev/ptmx
