#!/usr/bin/env bash
# tests/browser.sh: prints the Python interpreter that drives the browser of tests/page_check.py, and installs its packages where they are
# missing: playwright (whose wheel has its own driver; Chromium is the system's, none is downloaded) and axe, as axe-playwright-python has it.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
home=$target/browser
packages='playwright==1.65.2 axe-playwright-python==0.1.8'
mkdir -p "$target"
exec 9>"$home.lock"
flock 9
if [ "$(cat "$home/complete" 2>/dev/null)" != "$packages" ]; then
    [ -z "${BENCH_TEST_OFFLINE:-}" ] || { echo "error: BENCH_TEST_OFFLINE is set, and $home is not installed" >&2; exit 1; }
    rm -rf "$home"
    python3 -m venv "$home" >&2
    # shellcheck disable=SC2086 # several packages
    "$home/bin/pip" install --quiet --disable-pip-version-check $packages >&2
    echo "$packages" >"$home/complete"
fi
echo "$home/bin/python3"
