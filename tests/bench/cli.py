"""How long `bench --help` takes, and `bench check` of a scenario with 1,000 cells."""

import json
import tempfile
from pathlib import Path

from common import QUICK, ROOT, bench, program, show, wall_ms

SCENARIO = f"""
name = "large"
[device]
local = true
[models.tiny-llama]
context = 1024
chunk = 32
geometry = {json.dumps(str(ROOT / "scenarios/models/tiny-llama.toml"))}
[matrix]
backend = ["genie", "ort-qnn"]
model = "tiny-llama"
quant = ["w8a16", "w4a16"]
prompt-tokens = [{", ".join(str(n) for n in range(1, 51))}]
gen-tokens = [{", ".join(str(n) for n in range(2, 7))}]
"""

with tempfile.TemporaryDirectory() as folder:
    scenario = Path(folder) / "large.toml"
    scenario.write_text(SCENARIO)
    cells = len(json.loads(bench("plan", scenario, "--format", "json"))["cells"])
    assert cells == 1000, cells
    times = 5 if QUICK else 40
    empty = wall_ms(["true"], times)
    show("starting /bin/true, for comparison, ms", empty, digits=1)
    show("bench --help, ms", wall_ms([program("bench"), "--help"], times), digits=1, target="< 20")
    show(f"bench check of {cells} cells, ms", wall_ms([program("bench"), "check", str(scenario)], times), digits=1, target="< 100")
