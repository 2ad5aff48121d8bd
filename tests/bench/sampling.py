"""What sampling at 10 Hz does to MNN's decode speed: the ratio on/off over interleaved pairs of launches.

One real launch of `bench run` makes the model and writes the job; the launches of the benchmark then repeat exactly that job under the agent,
with more tokens, once with and once without sampling, the order within a pair alternating. `--pairs N` sets their number."""

import json
import math
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from common import QUICK, ROOT, agent, run_folder, show

PAIRS = int(sys.argv[sys.argv.index("--pairs") + 1]) if "--pairs" in sys.argv else (1 if QUICK else 15)
WINDOW_S = 0.2 if QUICK else 14
# About 50 million weights: a step takes milliseconds, as on a phone, and is bound by memory as well as by arithmetic.
SHAPE = {"hidden": 768, "layers": 8, "heads": 12, "kv-heads": 4, "head-dim": 64, "ffn": 2048, "vocab": 4096}
CONTEXT, PROMPT, TRIAL = 4096, 32, 65


def scenario(folder):
    text = (ROOT / "scenarios/models/tiny-llama.toml").read_text()
    lines = []
    for line in text.splitlines():
        key = line.split("=")[0].strip()
        lines.append(f"{key} = {SHAPE[key]}" if key in SHAPE and not QUICK else line)
    (folder / "model.toml").write_text("\n".join(lines) + "\n")
    path = folder / "sampling.toml"
    path.write_text(f"""
name = "sampling"
[device]
local = true
[models.sampling]
context = {CONTEXT}
geometry = "model.toml"
[matrix]
backend = "mnn"
model = "sampling"
quant = "w8"
prompt-tokens = {PROMPT}
gen-tokens = {TRIAL}
[measure]
queries = 1
repetitions = {{ min = 1 }}
""")
    return path


def decode(events):
    """(tokens a second, seconds, median step in ms) of the last query: N tokens are N - 1 steps."""
    tokens = {}
    for line in events.read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "token":
            tokens.setdefault(event["query"], []).append(event["t_ns"])
    last = tokens[max(tokens)]
    seconds = (last[-1] - last[0]) / 1e9
    return (len(last) - 1) / seconds, seconds, statistics.median(b - a for a, b in zip(last, last[1:])) / 1e6


def main(folder):
    run = run_folder(scenario(folder), folder / "results", "--yes")
    logs = next(run.glob("logs/local/*/measure-000"))
    spec, job = json.loads((logs / "spec.json").read_text()), json.loads((logs / "job.json").read_text())
    manifest = json.loads((run / "manifest.json").read_text())
    key = next(iter(manifest["cells"].values()))["artifact"]
    cache = Path(os.environ.get("BENCH_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bench")
    work = folder / "work"
    shutil.copytree(cache / "artifacts" / key, work)
    shutil.copy(logs / "mnn_runner.py", work)
    trial, *_ = decode(logs / "events.jsonl")
    tokens = min(CONTEXT - PROMPT, math.ceil(WINDOW_S * trial))
    # A short query first, as in a run; then the long one that is measured.
    first, second = job["queries"][0] | {"gen_tokens": 8}, job["queries"][1] | {"gen_tokens": tokens}
    (work / "job.json").write_text(json.dumps(job | {"queries": [first, second]}))
    spec |= {"cwd": str(work), "out_dir": str(folder / "out"), "env": spec["env"] | {"HOME": str(work), "TMPDIR": str(work)}}

    def launch(rate):
        done = agent(spec | {"rate_hz": rate}, folder)
        return *decode(work / "events.jsonl"), done["samples"]

    launch(0.0)  # brings the files into memory
    speeds, steps, windows, ratios, typical = {0.0: [], 10.0: []}, {0.0: [], 10.0: []}, [], [], []
    for pair in range(PAIRS):
        for rate in (0.0, 10.0) if pair % 2 else (10.0, 0.0):
            speed, seconds, step, samples = launch(rate)
            assert (samples > 0) == (rate > 0), samples
            speeds[rate].append(speed)
            steps[rate].append(step)
            windows.append(seconds)
        ratios.append(speeds[10.0][-1] / speeds[0.0][-1])
        typical.append(steps[0.0][-1] / steps[10.0][-1])
        print(f"  pair {pair + 1} of {PAIRS}: {ratios[-1]:.4f}, of the median step {typical[-1]:.4f}", file=sys.stderr, flush=True)
    weights = "tiny" if QUICK else "53 M weights"
    print(f"MNN w8, {weights}, {tokens} tokens, decode windows of {min(windows):.1f} to {max(windows):.1f} s", flush=True)
    show("MNN decode, sampling off, tok/s", speeds[0.0], digits=2)
    show("MNN decode, sampling at 10 Hz, tok/s", speeds[10.0], digits=2)
    show("MNN decode, 10 Hz over off, ratio of pairs", ratios, digits=4, target="interval above 0.99")
    show("  the same of the median step (less hurt by other programs)", typical, digits=4)
    if len(ratios) > 2:
        print(f"  one pair scatters by {100 * statistics.stdev(ratios):.2f} %: the machine's noise, which sets the width of the interval", flush=True)


with tempfile.TemporaryDirectory() as temporary:
    main(Path(temporary))
