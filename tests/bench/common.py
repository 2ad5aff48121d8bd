"""What the benchmarks share: where the programs are, how a figure is printed, and the few statistics. Standard library only."""

import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(os.environ.get("BENCH_PROGRAMS") or Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug")
QUICK = "--quick" in sys.argv[1:]


def number(flag, default):
    """The whole number behind a flag of the command line."""
    return int(sys.argv[sys.argv.index(flag) + 1]) if flag in sys.argv else default


def program(name):
    path = PROGRAMS / name
    if not path.is_file():
        sys.exit(f"{path} is missing: run `cargo build --workspace`, or set BENCH_PROGRAMS to the programs' folder")
    return str(path)


def bench(*arguments, codes=(0,)):
    """Runs `bench`, quietly unless it fails."""
    done = subprocess.run([program("bench"), *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode not in codes:
        sys.exit(f"bench {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def run_folder(scenario, folder, *arguments):
    """Runs a scenario into `folder` and returns its run folder."""
    bench("run", scenario, "--out", folder, "--no-report", *arguments)
    return next(p.parent for p in Path(folder).glob("*/manifest.json"))


def agent(spec, folder):
    """Runs bench-agent with a spec (a dict) and returns its done.json. A command that failed ends the benchmark."""
    path = Path(folder) / "spec.json"
    path.write_text(json.dumps(spec))
    subprocess.run([program("bench-agent"), "run", str(path)], check=True, stdin=subprocess.DEVNULL)
    out = Path(spec["out_dir"])
    done = json.loads((out / "done.json").read_text())
    if done["ended"]["code"] != 0:
        sys.exit(f"{spec['argv']}: {done['ended']}\n{(out / 'stderr.txt').read_text()[-2000:]}")
    return done


def gaps_ms(run):
    """Times from one runner's end to the next one's start in a run, in ms."""
    done = [json.loads(p.read_text()) for p in Path(run).glob("logs/**/done.json")]
    # Cells that share a process have its evidence each.
    done = sorted({d["start_ns"]: d for d in done}.values(), key=lambda d: d["start_ns"])
    boots = {d["boot_id"] for d in done}
    if len(boots) > 1:
        sys.exit(f"{run}: launches of {len(boots)} boots")
    return [(after["start_ns"] - before["end_ns"]) / 1e6 for before, after in zip(done, done[1:])]


def interval(values, confidence=0.95):
    """Order-statistics interval of the median: (low, high, its real confidence). The widest one there is when the values are few."""
    values, n = sorted(values), len(values)
    share = [math.comb(n, k) / 2**n for k in range(n + 1)]
    best = (values[0], values[-1], 1 - 2 * share[0])
    for k in range(1, n // 2):
        real = 1 - 2 * sum(share[: k + 1])
        if real < confidence:
            break
        best = (values[k], values[n - 1 - k], real)
    return best


def show(name, values, unit="", digits=3, target=None):
    """A line with the median, its interval and the number of values."""
    low, high, real = interval(values)
    text = f"{name:<58} {statistics.median(values):.{digits}f} [{low:.{digits}f}, {high:.{digits}f}] {unit}".rstrip()
    print(f"{text}  n={len(values)}, {100 * real:.0f} %" + (f"; target {target}" if target else ""), flush=True)


def machine():
    model = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "unknown")
    load = " ".join(Path("/proc/loadavg").read_text().split()[:3])
    print(f"machine: {model}, {os.cpu_count()} CPUs, load {load} (a load near 0 before the start makes the figures worth keeping)", flush=True)


def wall_ms(command, times, env=None):
    """Wall times of a command in ms, after one run that is thrown away."""
    found = []
    for _ in range(times + 1):
        begun = time.perf_counter_ns()
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        found.append((time.perf_counter_ns() - begun) / 1e6)
        if done.returncode != 0:
            sys.exit(f"{command}: exit {done.returncode}: {done.stderr.decode()[-500:]}")
    return found[1:]
