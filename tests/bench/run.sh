#!/usr/bin/env bash
# tests/bench/run.sh [--quick]: all benchmarks. --quick only shows that they run; its figures mean nothing.
# BENCH_PROGRAMS names the folder of bench and bench-agent (default: target/debug). Those over ADB need root and adb.
set -euo pipefail
cd "$(dirname "$0")"
export PYTHONDONTWRITEBYTECODE=1
[ "${1-}" = --quick ] || [ $# = 0 ] || { sed -n 2,3p "$0"; exit 2; }
python3 -c 'import common; common.machine()'
for name in cli history report profile harness agent sampling; do
    python3 "$name.py" "$@"
done
cargo bench --quiet --profile dev --bench nights -- "$@"
# Half an hour: on its own, on a machine that does nothing else.
[ "${1-}" != --quick ] || python3 compare_mnn.py --quick
if [ "$(id -u)" != 0 ] || ! command -v adb > /dev/null; then
    echo "skipped: those over ADB need root and adb"
    exit
fi
for name in agent_phone adb_overhead adb_farm; do
    python3 "$name.py" "$@"
done
# In the dev profile, as everything that README builds.
for name in adb_push adb_stage; do
    cargo bench --quiet --profile dev --bench "$name" -- "$@"
done
