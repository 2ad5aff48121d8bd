"""`bench compare` with a known answer: real runs of a real engine, twice the same and once with 10 % planted (planted.py).

A round has two A/B runs (`bench run --ab`): A beside A, which must not say improved or regressed, and A beside B, every forward() of MNN 10 % longer,
which must say regressed. Rounds share no run, so their verdicts are independent. The engine is called through a program of the scenario, on all
sides the same one. With `--apart` a round has three runs of their own in random order, A, A again and B: what two sessions on this
machine can tell. Then more is undecided, and on a busy machine everything.

The median gap between tokens is the figure that other programs disturb least; rates and first tokens are judged beside it.
`--rounds N`, `--launches N`, `--seed N`, `--keep DIR`."""

import json
import math
import os
import random
import statistics
import sys
import tempfile
from pathlib import Path

from common import QUICK, ROOT, bench, machine, number, run_folder

APART = "--apart" in sys.argv
ROUNDS, LAUNCHES, SEED = number("--rounds", 1 if QUICK else 20), number("--launches", 6 if QUICK else 12), number("--seed", 1)
SLOWER = 1.10
METRICS = ("itl_p50_ms", "decode_tok_s", "ttft_ms")
PROMPT, GENERATED, QUERIES = 64, 64, 1 if QUICK else 2
# Large enough that a step is work and not Python: some 4 million weights, half a millisecond.
SHAPE = {"hidden": 256, "layers": 4, "heads": 4, "kv-heads": 2, "head-dim": 64, "ffn": 1024, "vocab": 1024}


def model(folder):
    lines = []
    for line in (ROOT / "scenarios/models/tiny-llama.toml").read_text().splitlines():
        key = line.split("=")[0].strip()
        lines.append(f"{key} = {SHAPE[key]}" if key in SHAPE and not QUICK else line)
    (folder / "model.toml").write_text("\n".join(lines) + "\n")


def scenario(folder, name, backend, command, launches):
    program = f"[backends.{backend}]\ncommand = {json.dumps(command)}\n" if command else ""
    path = folder / f"{name}.toml"
    path.write_text(f"""
name = "{name}"
[device]
local = true
[models.planted]
context = 160
geometry = "model.toml"
{program}
[matrix]
backend = "{backend}"
model = "planted"
quant = "w8"
prompt-tokens = {PROMPT}
gen-tokens = {GENERATED}
[measure]
queries = {QUERIES}
warmup = {{ min = 1, max = 1 }}
repetitions = {{ min = {launches}, max = {launches} }}
[verify]
reference = "none"
""")
    return path


def artifact(folder):
    """The model that bench makes for MNN, and the runner and Python that it takes for it."""
    run = run_folder(scenario(folder, "prepare", "mnn", None, 1), folder / "prepare", "--yes")
    key = next(iter(json.loads((run / "manifest.json").read_text())["cells"].values()))["artifact"]
    cache = Path(os.environ.get("BENCH_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bench")
    python = json.loads(next(run.glob("logs/local/*/measure-000/spec.json")).read_text())["argv"][0]
    return cache / "artifacts" / key / "config.json", python


def rows(a, b):
    found = json.loads(bench("compare", a, b, "--format", "json", *(w for m in METRICS for w in ("--metric", m))))
    return {row["metric"]: row for row in found["rows"]}


def interleaved(folder, paths, order):
    """One round: (rows of A beside A, rows of A beside B)."""
    found = {}
    for name in order.sample(("again", "slower"), 2):
        out = folder / name
        bench("run", "--ab", paths["plain"], paths[name], "--out", out, "--no-report")
        runs = {json.loads((path / "manifest.json").read_text())["scenario"]["name"]: path for path in out.iterdir() if path.is_dir()}
        found[name] = rows(runs["plain"], runs[name])
    return found["again"], found["slower"]


def apart(folder, paths, order):
    """The same from three runs."""
    runs = {name: run_folder(paths[name], folder / name) for name in order.sample(("plain", "again", "slower"), 3)}
    return rows(runs["plain"], runs["again"]), rows(runs["plain"], runs["slower"])


def tell(name, all_rows, wanted):
    for metric in METRICS:
        of_metric = [found[metric] for found in all_rows]
        counts = {word: sum(row["verdict"] == word for row in of_metric) for word in ("improved", "unchanged", "undecided", "regressed")}
        good = sum(counts[word] for word in wanted)
        target = math.ceil(0.95 * len(of_metric))
        ratios = [row["ratio"] for row in of_metric]
        half = [math.log(row["interval"][1] / row["ratio"]) for row in of_metric if row["interval"]]
        width = f"; half an interval {100 * statistics.median(half):.1f} %" if half else "; no interval"
        words = ", ".join(f"{n} {word}" for word, n in counts.items() if n)
        spread = f"; log ratios scatter by {100 * statistics.stdev(map(math.log, ratios)):.1f} %" if len(ratios) > 1 else ""
        print(f"{name} {metric:<12}: {words}; {' or '.join(wanted)} {good} of {len(of_metric)}, target {target}: {'met' if good >= target else 'NOT met'}")
        print(f"    B/A {statistics.geometric_mean(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}){spread}{width}", flush=True)


def main(folder):
    model(folder)
    config, python = artifact(folder)
    runner, planted = ROOT / "backends/mnn/runner/mnn_runner.py", ROOT / "tests/bench/planted.py"
    # bench resolves a program to its file, and Python finds its packages by the link's place.
    command = lambda factor: ["env", python, str(planted), str(runner), str(config), str(factor)]
    order, same, slower = random.Random(SEED), [], []
    factors = {"plain": 1.0, "again": 1.0, "slower": SLOWER}
    paths = {name: scenario(folder, name, "mnn-planted", command(factor), LAUNCHES) for name, factor in factors.items()}
    for at in range(ROUNDS):
        for found, all_rows in zip((apart if APART else interleaved)(folder / f"{at:02}", paths, order), (same, slower)):
            all_rows.append(found)
        words = [f"{metric} {same[-1][metric]['verdict']}/{slower[-1][metric]['verdict']}" for metric in METRICS]
        print(f"  round {at + 1} of {ROUNDS}: A-A/A-B {', '.join(words)}", file=sys.stderr, flush=True)
    weights = "tiny" if QUICK else "4 M weights"
    print(f"MNN w8, {weights}, {LAUNCHES} launches of {QUERIES} queries a run, {ROUNDS} rounds, {'three runs each' if APART else 'interleaved'}")
    tell("A against A again  ", same, ("unchanged", "undecided"))
    tell("A against B, +10 % ", slower, ("regressed",))


machine()
if "--keep" in sys.argv:
    kept = Path(sys.argv[sys.argv.index("--keep") + 1]).resolve()
    kept.mkdir(parents=True, exist_ok=True)
    main(kept)
else:
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
