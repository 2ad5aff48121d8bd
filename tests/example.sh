#!/usr/bin/env bash
# tests/example.sh [RUN]: makes the committed example again, on a machine that does nothing else: a run of scenarios/pc.toml by the README's first
# command (or RUN, a folder that it made), its tables in results/example-pc, its page and the picture of it in reports/example-pc.
set -euo pipefail
cd "$(dirname "$0")/.."
made=${1-}
bench=${CARGO_TARGET_DIR:-target}/debug/bench
if [ -z "$made" ]; then
    out=$(mktemp -d)
    "$bench" run scenarios/pc.toml --yes --out "$out/results" --reports "$out/reports"
    made=$(echo "$out"/results/*)
fi
rm -rf reports/example-pc
if [ "$(realpath "$made")" != "$PWD/results/example-pc" ]; then
    rm -rf results/example-pc
    mkdir -p results/example-pc
    # Its logs have this machine's paths in them, and the journal is told by the tables.
    cp "$made"/*.csv "$made/manifest.json" "$made/plan.toml" results/example-pc/
fi
"$bench" report results/example-pc
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1100,1500 --screenshot="$PWD/reports/example-pc/report.png" \
    "file://$PWD/reports/example-pc/index.html"
