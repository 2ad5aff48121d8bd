# Sourced by init.sh: a simulated chip and battery for the files in the phone's /sys. All numbers are made up: they move as a phone's do, so
# that sensors, limits and waiting can be tried, and say nothing about any phone.
#
# The load is the CPU time of the phone's processes, in cores. Every group of zones goes to a temperature that hangs on it, with a time
# constant (faster than a real phone's, so that tests see it):
#
#   group    at rest  a core adds  time constant
#   cpu      35 C     +30 C        6 s     above 95 C the highest frequency is lowered step by step, below 90 C it comes back
#   nsp      34 C     +25 C        8 s     load of vendor tools and our runners only; /dev/fastrpc-cdsp computes nothing
#   gpu      34 C     +4 C         10 s
#   skin     32 C     +5 C         60 s    thermal status: light from 40 C, moderate from 44 C, severe from 48 C
#   battery  31 C     +2 C         120 s   5000 mAh; 350 mA at rest, 1500 mA more for each core
#
# A lowered frequency also makes less heat, in proportion. `throttle` lets another group decide, with other limits and another way of heating;
# then the NPU's cooling device works too. What really happened is written, a line a step, to truth.csv beside the phone's folders, where
# nothing in the phone can see it: seconds of CLOCK_MONOTONIC (to 10 ms), temperatures in m degC, the prime core's highest frequency in kHz, the step.
#
# A step costs a millisecond or two and runs about once a second; files are written only when their value has changed.

declare -A REST=([cpu]=35000 [nsp]=34000 [gpu]=34000 [skin]=32000 [battery]=31000)
declare -A ADDS=([cpu]=30000 [nsp]=25000 [gpu]=4000 [skin]=5000 [battery]=2000)
declare -A CONSTANT=([cpu]=6000 [nsp]=8000 [gpu]=10000 [skin]=60000 [battery]=120000)
declare -A HEAT WRITTEN ZONES MIN MAX
CAPACITY=5000000 # uAh
STEPS=(3302400 2956800 2611200 2265600 1920000)
LIMIT=(cpu 95000 90000)
soc_load=0 soc_npu=0 soc_cap=0 soc_charge=$((CAPACITY * 83 / 100)) soc_battery=Discharging soc_all= soc_all_npu= soc_us= soc_board=

soc_start() {
    sys=$root/sys/
    local zone type policy
    for zone in "$sys"class/thermal/thermal_zone*; do
        read -r type < "$zone/type"
        case $type in
            cpu*) ZONES[cpu]+=" $zone/temp" ;;
            nsp*) ZONES[nsp]+=" $zone/temp" ;;
            gpu*) ZONES[gpu]+=" $zone/temp" ;;
            battery) ZONES[battery]+=" $zone/temp" ;;
            *) ZONES[skin]+=" $zone/temp" ;;
        esac
    done
    for policy in 0 2 5 7; do
        read -r "MIN[$policy]" < "${sys}devices/system/cpu/cpufreq/policy$policy/cpuinfo_min_freq"
        read -r "MAX[$policy]" < "${sys}devices/system/cpu/cpufreq/policy$policy/cpuinfo_max_freq"
    done
    for group in "${!REST[@]}"; do HEAT[$group]=${REST[$group]}; done
    soc_us=${EPOCHREALTIME//[.,]/}
    soc_show
}

# CPU time in ticks of all processes, and of those that work for the NPU. What has ended is in its parent's count, at the latest in init's.
soc_count() {
    local stat line comm rest f
    all=0 npu=0
    for stat in /proc/[0-9]*/stat; do
        read -r line 2> /dev/null < "$stat" || continue
        comm=${line#*(} comm=${comm%)*} rest=${line##*) }
        # shellcheck disable=SC2206
        f=($rest)
        ((all += f[11] + f[12] + f[13] + f[14]))
        case $comm in qnn-* | genie-* | bench-genie* | bench-ort* | python3 | onnx* | model_bench*) ((npu += f[11] + f[12] + f[13] + f[14])) ;; esac
    done
}

# The time since the last step passes.
soc_step() {
    local now=${EPOCHREALTIME//[.,]/} all npu dt group load
    dt=$(((now - soc_us) / 1000))
    [ $dt -ge 400 ] || return 0
    soc_us=$now
    soc_count
    # Ticks are 10 ms: thousandths of a core. A process whose time nobody kept makes it negative.
    soc_load=$(((all - ${soc_all:-$all}) * 10000 / dt)) soc_npu=$(((npu - ${soc_all_npu:-$npu}) * 10000 / dt))
    [ $soc_load -ge 0 ] || soc_load=0
    [ $soc_npu -ge 0 ] || soc_npu=0
    soc_all=$all soc_all_npu=$npu
    for group in "${!REST[@]}"; do
        [ "$group" = nsp ] && load=$soc_npu || load=$soc_load
        load=$((load * (STEPS[soc_cap] / 100) / (STEPS[0] / 100)))
        # One step of the exponential; all the way when the step is longer than the constant.
        ((HEAT[$group] += (REST[$group] + ADDS[$group] * load / 1000 - HEAT[$group]) * (dt < CONSTANT[$group] ? dt : CONSTANT[$group]) / CONSTANT[$group]))
    done
    [ ${HEAT[${LIMIT[0]}]} -le ${LIMIT[1]} ] || [ $soc_cap -ge 4 ] || ((soc_cap++))
    [ ${HEAT[${LIMIT[0]}]} -ge ${LIMIT[2]} ] || [ $soc_cap -le 0 ] || ((soc_cap--))
    case $soc_battery in
        Discharging) ((soc_charge -= (350 + 3 * soc_load / 2) * dt / 3600)) ;;
        Charging) ((soc_charge += 2000 * dt / 3600)) ;;
    esac
    soc_show
}

# A reader never finds the file empty, as it does not in a real /sys: what is there is written over, and ends of lines cover the rest of it.
put() {
    local was=${WRITTEN[$1]-} rest
    [ "$was" != "$2" ] || return 0
    WRITTEN[$1]=$2
    [ -n "$was" ] || : > "$sys$1"
    printf -v rest '%*s' $((${#was} > ${#2} ? ${#was} - ${#2} : 0)) ''
    printf '%s\n%s' "$2" "${rest// /$'\n'}" 1<> "$sys$1"
}

soc_show() {
    local group tenths zone i max f current now
    for group in "${!REST[@]}"; do
        tenths=$((HEAT[$group] / 100)) i=0
        [ "${WRITTEN[$group]-}" = $tenths ] && continue
        WRITTEN[$group]=$tenths
        # Zones of a group differ a little, as sensors do.
        for zone in ${ZONES[$group]}; do printf '%d\n' $((tenths * 100 - 100 * (i++ % 7))) > "$zone"; done
    done
    for i in 0 2 5 7; do
        max=$((MAX[$i] < STEPS[soc_cap] ? MAX[$i] : STEPS[soc_cap]))
        put devices/system/cpu/cpufreq/policy$i/scaling_max_freq $max
        # In steps of 115200 kHz; one busy core is enough for the highest.
        f=$((MIN[$i] + (max - MIN[$i]) * soc_load / 1000 / 115200 * 115200))
        put devices/system/cpu/cpufreq/policy$i/scaling_cur_freq $((soc_load < 1000 ? f : max))
        put class/thermal/cooling_device$i/cur_state $soc_cap
    done
    [ "${LIMIT[0]}" != nsp ] || put class/thermal/cooling_device8/cur_state $((soc_cap < 3 ? soc_cap : 3))
    read -r now _ < /proc/uptime
    echo "$now,${HEAT[cpu]},${HEAT[nsp]},${HEAT[skin]},${HEAT[battery]},$((MAX[7] < STEPS[soc_cap] ? MAX[7] : STEPS[soc_cap])),$soc_cap" >> "$dir/truth.csv"
    put devices/system/cpu/bus_dcvs/DDR/cur_freq $((soc_load < 200 ? 547000 : soc_load < 800 ? 2092000 : 4224000))
    put class/kgsl/kgsl-3d0/temp ${HEAT[gpu]}
    if [ "$soc_board" ]; then soc_rails; return; fi
    case $soc_battery in Discharging) current=$((-(350 + 3 * soc_load / 2) * 1000)) ;; Charging) current=2000000 ;; *) current=0 ;; esac
    put class/power_supply/battery/current_now $current
    put class/power_supply/battery/charge_counter $soc_charge
    put class/power_supply/battery/capacity $((soc_charge * 100 / CAPACITY))
    put class/power_supply/battery/status "$soc_battery"
    put class/power_supply/battery/voltage_now $((4120000 - 40 * soc_load))
    put class/power_supply/battery/temp $((HEAT[battery] / 100))
}

# soc_board [gone]: from now on it is a board without a battery, and an INA231 shows two rails: the whole board's, 1.5 W at rest and 3 W for each core,
# and of it the processor's. `gone`: its inputs give nothing any more, as those of a driver that was taken away. rails.csv beside truth.csv has
# what was shown from when on: seconds of CLOCK_MONOTONIC (to 10 ms), uW of the two rails.
soc_board() {
    soc_board=${1:-on}
    rm -rf "${sys}class/power_supply"/*
    mkdir -p "${sys}class/hwmon/hwmon0"
    put class/hwmon/hwmon0/name ina231
    put class/hwmon/hwmon0/power1_label system
    put class/hwmon/hwmon0/power2_label processor
    soc_show
}

soc_rails() {
    local whole=$((1500000 + 3000 * soc_load)) now
    if [ "$soc_board" = gone ]; then
        : > "${sys}class/hwmon/hwmon0/power1_input"
        : > "${sys}class/hwmon/hwmon0/power2_input"
        return
    fi
    put class/hwmon/hwmon0/power1_input $whole
    put class/hwmon/hwmon0/power2_input $((whole - 1200000))
    read -r now _ < /proc/uptime
    echo "$now,$whole,$((whole - 1200000))" >> "$dir/rails.csv"
}

# soc_temp [GROUP] C: a group, or everything, has this temperature now, and goes on from there.
soc_temp() {
    local group
    for group in "${!REST[@]}"; do [ $# -gt 1 ] && [ "$1" != "$group" ] || HEAT[$group]=$((${!#} * 1000)); done
    soc_show
}

# soc_throttle GROUP ABOVE BELOW [ADDS CONSTANT]: the frequency falls step by step above that temperature (C) of the group and comes back below
# the other; a core adds so many C to it, with that time constant (s).
soc_throttle() {
    LIMIT=("$1" $(($2 * 1000)) $(($3 * 1000)))
    [ $# -lt 5 ] || ADDS[$1]=$(($4 * 1000)) CONSTANT[$1]=$(($5 * 1000))
    soc_show
}

# soc_set_battery PERCENT [Charging|Discharging|Full]
soc_set_battery() {
    soc_charge=$((CAPACITY * $1 / 100 + CAPACITY / 1000)) soc_battery=${2:-$soc_battery}
    soc_show
}
