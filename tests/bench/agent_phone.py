"""What bench-agent costs on the test phone beside a process of 1 GB, with all sources at their own rates, and whether it keeps them.

CPU: `agent_cpu_s` over the wall time; the thermal service's watcher and the `dumpsys` that it runs every five seconds count, and stand apart too,
since the test phone's is a shell script. Period: the mean distance of a row to the next one of the same name against what it should be. What
a phone's drivers take for a reading is not in it: the test phone's nodes are files. They are rewritten while they are read: a reading in between finds
nothing and is no row, which shows as a gap of a single name."""

import csv
import json
import statistics
import subprocess
import sys
from collections import defaultdict

from common import QUICK, interval
from phones import Phones

BYTES = (1 << 28) if QUICK else 10**9
SECONDS, ROUNDS = (3, 1) if QUICK else (30, 4)
FAST_HZ = 10.0
# Seconds between the rows of a name that stands for its lane.
PERIODS = {
    ("process", "rss_kb"): 1 / FAST_HZ,
    ("thermal", "nsphvx-0"): 1 / FAST_HZ,
    ("ddr", "DDR"): 1 / FAST_HZ,
    ("battery", "battery/current_now"): 0.2,
    ("battery", "battery/capacity"): 1,
    ("thermal", "skin-msm-therm"): 1,
    ("cooling", "cdsp_sw_hvx"): 1,
}
FOLDER = "/data/local/tmp/agent-bench"
COMMAND = f"""
import time
held = bytearray({BYTES})
for i in range(0, len(held), 4096): held[i] = 1
time.sleep({SECONDS})
"""


def launch(phones):
    """One run of the agent on the phone: done.json and times by name, s."""
    serial = phones.serials[0]
    shell = lambda words: phones.adb("-s", serial, "shell", words)
    spec = {
        "v": 1, "argv": ["python3", "-c", COMMAND], "env": {"PATH": "/system/bin:/usr/bin"}, "cwd": FOLDER, "out_dir": f"{FOLDER}/out",
        "timeout_ms": 120_000, "grace_ms": 1000, "rate_hz": FAST_HZ, "max_output_bytes": 1 << 20,
    }
    (phones.folder / "spec.json").write_text(json.dumps(spec))
    phones.adb("-s", serial, "push", str(phones.folder / "spec.json"), f"{FOLDER}/spec.json")
    said = shell(f"{FOLDER}/bench-agent run {FOLDER}/spec.json 2>&1")
    done = json.loads(shell(f"cat {FOLDER}/out/done.json") or sys.exit(f"no done.json: {said}"))
    if done["ended"]["code"] != 0 or done["peak_rss_kb"] * 1024 < BYTES:
        sys.exit(f"{done['ended']}, {done['peak_rss_kb']} KiB: {shell(f'cat {FOLDER}/out/stderr.txt')}")
    times = defaultdict(list)
    for row in csv.DictReader(shell(f"cat {FOLDER}/out/telemetry.csv").splitlines()):
        times[row["source"], row["name"]].append(int(row["t_ns"]) / 1e9)
    return done, times


def line(name, values, unit, note):
    low, high, _ = interval(values)
    print(f"{name:<66} {statistics.median(values):.3f} [{low:.3f}, {high:.3f}] {unit}  n={len(values)}; {note}", flush=True)


shares, watchers, nodes, samples, overruns = [], [], [], 0, 0
errors, jitter = defaultdict(list), defaultdict(list)
with Phones(1) as phones:
    phones.adb("-s", phones.serials[0], "shell", f"mkdir -p {FOLDER}")
    program = phones.folder / "libexec/x86_64-unknown-linux-musl/bench-agent"
    subprocess.run(["adb", "-s", phones.serials[0], "push", program, f"{FOLDER}/bench-agent"], env=phones.env, check=True, capture_output=True)
    for _ in range(ROUNDS):
        done, times = launch(phones)
        wall_s = (done["end_ns"] - done["start_ns"]) / 1e9
        shares.append(100 * done["agent_cpu_s"] / wall_s)
        watchers.append(100 * done["watcher_cpu_s"] / wall_s)
        nodes.append(len(times))
        samples, overruns = samples + done["samples"], overruns + done["overruns"]
        for key, period in PERIODS.items():
            gaps = [b - a for a, b in zip(times[key], times[key][1:])]
            if len(gaps) < 2:
                sys.exit(f"{key}: {len(gaps) + 1} rows in {wall_s:.1f} s")
            errors[key].append(100 * abs(statistics.mean(gaps) / period - 1))
            jitter[key].append(100 * statistics.quantiles([abs(gap / period - 1) for gap in gaps], n=20)[-1])
if min(nodes) < 60:
    sys.exit(f"only {min(nodes)} names were sampled")
size = f"{min(nodes)} names, {BYTES / 1e9:.1f} GB, {SECONDS} s"
line(f"bench-agent on the test phone, {size}", shares, "% of a core", "target < 1")
line("of it the thermal service's watcher and dumpsys", watchers, "% of a core", "a shell script here")
for (source, name), found in errors.items():
    late = statistics.median(jitter[source, name])
    line(f"period of {source} {name}, off its {PERIODS[source, name]:g} s by", found, "%", f"target < 1; 95 % of the gaps within {late:.2f} %")
print(f"missed periods of the fast lane: {overruns} of {samples + overruns}", flush=True)
