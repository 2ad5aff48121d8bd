"""What the harness costs between two launches: from one runner's end to the next runner's start.

`harness.py` runs a stand-in engine that takes no time; `harness.py RUN...` reads the run folders that it is given. Both times come from the
agents' done.json (CLOCK_MONOTONIC, taken right before the spawn and when the runner was reaped), so that everything between counts: evidence,
fetching, parsing, checking, journal, staging, and the start of the next agent. Nothing waits here; settling will be taken off."""

import json
import statistics
import sys
import tempfile
from pathlib import Path

from common import QUICK, ROOT, gaps_ms, interval, run_folder

HERE = Path(__file__).resolve().parent


def report(name, gaps):
    low, high, real = interval(gaps)
    print(
        f"{'harness between two launches, ' + name + ', ms':<58} {statistics.median(gaps):.1f} [{low:.1f}, {high:.1f}]"
        f"  max {max(gaps):.1f}, n={len(gaps)}, {100 * real:.0f} %; target < 50",
        flush=True,
    )


def standin(folder):
    launches = 3 if QUICK else 15
    scenario = Path(folder) / "standin.toml"
    scenario.write_text(f"""
name = "standin"
[device]
local = true
[models.standin]
context = 256
geometry = {json.dumps(str(ROOT / "scenarios/models/tiny-llama.toml"))}
[backends.standin]
command = [{json.dumps(str(HERE / "standin.py"))}]
[matrix]
backend = "standin"
model = "standin"
quant = "fp32"
prompt-tokens = [16, 32, 64, 128]
gen-tokens = 64
[measure]
share-launches = false
queries = 3
repetitions = {{ min = {launches}, max = {launches} }}
""")
    return run_folder(scenario, Path(folder) / "results")


runs = [a for a in sys.argv[1:] if not a.startswith("-")]
for given in runs:
    report(Path(given).name, gaps_ms(given))
if not runs:
    with tempfile.TemporaryDirectory() as temporary:
        report("stand-in", gaps_ms(standin(temporary)))
