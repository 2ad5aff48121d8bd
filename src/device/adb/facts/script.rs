//! The one script that asks a device everything. It has to run in mksh with toybox (Android) and in any POSIX shell (boards): what fails leaves
//! no answer, or one with the reason. Commands that ask a service have a time limit of their own, since a service may hang.

use std::fmt::Write as _;

use super::super::shell::quote;

/// The properties that are asked for, each its own key.
const PROPERTIES: [&str; 13] = [
    "ro.product.model",
    "ro.product.manufacturer",
    "ro.soc.model",
    "ro.board.platform",
    "ro.build.version.release",
    "ro.build.version.sdk",
    "ro.build.version.security_patch",
    "ro.build.fingerprint",
    "ro.build.type",
    "ro.product.cpu.abi",
    "ro.boot.qemu",
    "ro.kernel.qemu",
    "ro.hardware",
];

/// Device nodes of FastRPC, old names and new ones, and the library behind which QNN and Genie reach them.
pub const NODES: [&str; 6] = [
    "/dev/fastrpc-cdsp",
    "/dev/fastrpc-cdsp-secure",
    "/dev/fastrpc-cdsp1",
    "/dev/adsprpc-smd",
    "/dev/adsprpc-smd-secure",
    "/vendor/lib64/libcdsprpc.so",
];

/// Where the version of the compute DSP's firmware can stand: Android's list of images, the vendor kernel's, mainline's (root only).
pub const FIRMWARE: [&str; 3] =
    ["/vendor/firmware_mnt/verinfo/ver_info.txt", "/sys/devices/soc0/images", "/sys/kernel/debug/qcom_socinfo/cdsp/name"];

/// `f KEY FILE`: its first line. `n FILE`: mode, owner, group and what this user may do. `w KEY FILE`: the firmware's version in it.
/// `s TABLE NAME`: a setting. Battery currents and clocks are printed as the kernel gives them; units are the reader's.
const SCRIPT: &str = r#"
f() { if x=$(head -n 1 -- "$2" 2>&1); then echo "$1=$x"; else echo "$1!$x"; fi; }
n() {
  if x=$(stat -L -c '%a %U %G' -- "$1" 2>&1); then
    r=; [ -r "$1" ] && r=r; [ -w "$1" ] && r=${r}w
    echo "node.$1=$x ${r:--}"
  else echo "node.$1!$x"; fi
}
w() {
  x=$(grep -m 1 -o 'CDSP\.[A-Za-z0-9._-]*' "$1" 2>&1)
  case $? in
    0) echo "firmware=$1 $x"; return 0;;
    1) echo "firmware!$1: names no CDSP version";;
    *) echo "firmware!$x";;
  esac
  return 1
}
s() { x=$(timeout 2 settings get "$1" "$2" 2>/dev/null) && echo "setting.$2=$x"; }
g() { x=$(cat -- "$1" 2>/dev/null); echo "${x:--}"; }

echo "kernel=$(uname -r 2>/dev/null)"
echo "kernel_build=$(uname -v 2>/dev/null)"
echo "arch=$(uname -m 2>/dev/null)"
echo "machine=$(cat /sys/devices/soc0/machine 2>/dev/null)"
echo "present=$(cat /sys/devices/system/cpu/present 2>/dev/null)"
echo "nproc=$(nproc 2>/dev/null)"
echo "uid=$(id -u 2>/dev/null)"
echo "su=$(command -v su 2>/dev/null)"
echo "selinux=$(getenforce 2>/dev/null)"
echo "boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)"
while read -r k v u; do case $k in
  MemTotal:|MemAvailable:|SwapTotal:|SwapFree:) echo "$k=$v";;
esac; done < /proc/meminfo
f zram /sys/block/zram0/disksize
f ddr /sys/devices/system/cpu/bus_dcvs/DDR/hw_max_freq

for d in /sys/class/power_supply/*; do
  t=$(cat "$d/type" 2>/dev/null)
  [ "$t" = Battery ] || [ "${d##*/}" = battery ] || continue
  for k in capacity status temp voltage_now current_now; do f "supply.${d##*/}.$k" "$d/$k"; done
done
timeout 3 dumpsys battery 2>/dev/null | sed -n 's/^ *\([A-Za-z ]*\): */battery.\1=/p'
timeout 3 dumpsys thermalservice 2>/dev/null | sed -n 's/^ *Thermal Status: */thermal=/p'
timeout 3 dumpsys power 2>/dev/null | sed -n 's/^ *mWakefulness=/wakefulness=/p'
s system screen_off_timeout
s global stay_on_while_plugged_in
s global airplane_mode_on
s global low_power

set -- /sys/devices/system/cpu/cpufreq/policy*
[ -e "$1" ] || set -- /sys/devices/system/cpu/cpu[0-9]*/cpufreq
for d in "$@"; do
  [ -e "$d" ] || continue
  p=${d%/cpufreq}
  echo "policy=${p##*/} $(g "$d/scaling_governor") $(g "$d/scaling_min_freq") $(g "$d/scaling_max_freq") $(g "$d/cpuinfo_max_freq")"
done

f cpuset /proc/$$/cpuset
f stat /proc/$$/stat
f oom_score_adj /proc/$$/oom_score_adj
f domain /proc/$$/attr/current
sed 's/^/cgroup=/' /proc/$$/cgroup 2>/dev/null
sed -n 's/^Cpus_allowed_list:[[:space:]]*/affinity=/p' /proc/$$/status 2>/dev/null
"#;

/// The whole script; `root` is the work root, which need not exist.
pub fn script(root: &str) -> String {
    let mut out = String::from(SCRIPT);
    for name in PROPERTIES {
        let _ = writeln!(out, "echo \"{name}=$(getprop {name} 2>/dev/null)\"");
    }
    for node in NODES {
        let _ = writeln!(out, "n {}", quote(node));
    }
    let tries: Vec<String> = FIRMWARE.iter().map(|file| format!("w {}", quote(file))).collect();
    let _ = writeln!(out, "{} || :", tries.join(" || "));
    // Available blocks and their size; the nearest folder that exists.
    let _ = writeln!(
        out,
        "d={}; while [ ! -e \"$d\" ] && [ -n \"$d\" ]; do d=${{d%/*}}; done; echo \"free=$(stat -f -c '%a %S' \"${{d:-/}}\" 2>/dev/null)\"",
        quote(root)
    );
    out
}
