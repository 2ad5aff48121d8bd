#!/usr/bin/env bash
# tests/static-agent.sh: builds bench-agent as it goes onto devices and boards (one static file for each architecture), proves that it is
# static, and lets it supervise a command: on this machine for x86_64, under qemu-user for aarch64.
set -euo pipefail
cd "$(dirname "$0")/.."
tests/setup.sh qemu-user-static binutils
target=${CARGO_TARGET_DIR:-target}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

for arch in x86_64 aarch64; do
    # rust-lld and musl come with Rust: no cross compiler and no NDK is needed.
    RUSTFLAGS='-C linker=rust-lld -C link-self-contained=yes' cargo build -q --profile dist -p bench-agent --target "$arch-unknown-linux-musl"
    agent=$target/$arch-unknown-linux-musl/dist/bench-agent
    headers=$(readelf -lW "$agent")
    needed=$(readelf -dW "$agent" | grep NEEDED || true)
    if grep -q INTERP <<<"$headers" || [ -n "$needed" ]; then
        echo "error: $agent is not static: $needed" >&2
        exit 1
    fi
    emulator=()
    [ "$arch" = "$(uname -m)" ] || emulator=("qemu-$arch-static")
    rm -rf "$out/run"
    cat >"$out/spec.json" <<JSON
{"v": 1, "argv": ["/bin/sh", "-c", "echo heard; echo aside >&2; sleep 1; exit 7"], "env": {"PATH": "/usr/bin:/bin"}, "cwd": "$out", "out_dir": "$out/run",
 "timeout_ms": 60000, "grace_ms": 1000, "rate_hz": 10, "max_output_bytes": 65536}
JSON
    "${emulator[@]}" "$agent" run "$out/spec.json" </dev/null
    python3 - "$out/run" <<'PYTHON'
import json, pathlib, sys
out = pathlib.Path(sys.argv[1])
done = json.loads((out / "done.json").read_text())
wall = (done["end_ns"] - done["start_ns"]) / 1e9
checks = {
    "the exit status is 7": done["ended"] == {"reason": "exited", "code": 7, "signal": None, "message": None},
    "stdout is kept": (out / "stdout.txt").read_text() == "heard\n" and done["stdout_bytes"] == 6,
    "stderr is kept": (out / "stderr.txt").read_text() == "aside\n",
    "it took a second": 1 <= wall < 30,
    "it was sampled": done["samples"] >= 3 and done["peak_rss_kb"] > 0,
    "telemetry is a table": (out / "telemetry.csv").read_text().startswith("t_ns,source,name,value,unit\n"),
    "nothing is left over": done["survivors"] == [] and done["write_error"] is None,
}
wrong = [name for name, good in checks.items() if not good]
sys.exit(f"not so: {', '.join(wrong)}\n{json.dumps(done, indent=1)}" if wrong else 0)
PYTHON
    echo "bench-agent for $arch: static, $(stat -c %s "$agent") bytes, supervised a command${emulator[0]:+ under ${emulator[0]}}"
done
