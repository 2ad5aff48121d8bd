#!/usr/bin/env bash
# tests/run.sh: every test, with all the set-up that they need, on a Debian or Ubuntu (x86_64) that has Rust and Python 3.
# It installs Debian packages (python3-venv, a C compiler, Chromium for the page, adb), into target/ what drives Chromium (playwright and axe,
# 200 MB on disk) and, into the user's cache, the Python environment of `bench run`: about 200 MB, with Qualcomm libraries under Qualcomm's own
# licence. The last line says how many tests passed.
set -euo pipefail
cd "$(dirname "$0")/.."
tests/setup.sh python3 python3-venv gcc libc6-dev chromium fonts-dejavu-core adb iproute2 qemu-user-static
tests/browser.sh >/dev/null # prints where it is
# The test phone takes a static agent; `bench runtimes build` is tried for a phone.
! command -v rustup >/dev/null || rustup target add x86_64-unknown-linux-musl aarch64-unknown-linux-musl aarch64-linux-android
cargo build --workspace
python=$("${CARGO_TARGET_DIR:-target}/debug/bench" runtimes install python --yes)

out=$(mktemp)
trap 'rm -f "$out"' EXIT
failed=0
"$python" src/prepare/test_prepare.py </dev/null 2>&1 | tee -a "$out" || failed=1
BENCH=${CARGO_TARGET_DIR:-target}/debug/bench python3 tests/standins/android/test_standins.py </dev/null 2>&1 | tee -a "$out" || failed=1
[ "$(id -u)" != 0 ] || python3 tests/device/test_phone.py </dev/null 2>&1 | tee -a "$out" || failed=1
cargo test --workspace --no-fail-fast </dev/null 2>&1 | tee -a "$out" || failed=1

# `test result: ok. 3 passed; 0 failed; ...` of cargo, `Ran 14 tests in 5s` and `FAILED (failures=1, errors=1)` of Python.
awk -v failed=$failed '
    /^test result: / { passed += $4; bad += $6 }
    /^Ran [0-9]+ tests? in / { python = $2; passed += $2 }
    /^FAILED \(/ { n = 0; s = $0; while (match(s, /(failures|errors)=[0-9]+/)) { split(substr(s, RSTART, RLENGTH), a, "="); n += a[2]; s = substr(s, RSTART + RLENGTH) }; passed -= n; bad += n }
    END { if (failed && !bad) bad = 1; printf "%d passed, %d failed\n", passed, bad; exit bad > 0 }
' "$out"
