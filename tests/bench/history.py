"""`bench history` over many nights: wall time and peak memory, beside the same tables read by Python's csv module.

history.py [--nights N] [--cells N] [--keep FOLDER]: the folders are made first, as wide as `bench run` writes them; --keep leaves them there. One
step is planted in one backend's cells, and has to be found."""

import csv
import datetime
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import QUICK, ROOT, number, program, show

NIGHTS = number("--nights", 20 if QUICK else 500)
CELLS = number("--cells", 20 if QUICK else 200)
# A phone's cell without a battery: what is measured in every run.
MEASURED = 24
STEP = {"night": NIGHTS * 3 // 5, "backend": "mnn", "loss": 0.04}


def columns():
    """The columns of cells.csv, from the specification, and its metrics."""
    text = (ROOT / "results/README.md").read_text()
    part = text.split("### cells.csv\n", 1)[1].split("\n### ", 1)[0]
    fixed, metrics = part.split("Then, for each metric", 1)
    names = re.findall(r"^\| `(\w+)` \|", fixed, re.M)
    ends = ["", *dict.fromkeys(re.findall(r"`m(_\w+)`", metrics))]
    metrics = re.findall(r"^\| `(\w+)` \|", metrics, re.M)
    return names + [metric + end for metric in metrics for end in ends], metrics, ends


def cells():
    """(id, fixed fields) of each cell."""
    for index in range(CELLS):
        backend = ["genie", "ort-qnn", "mnn", "qnn"][index % 4]
        prompt = 128 * (1 + index // 4)
        identity = f"{backend}.llama-3.2-3b.w4a16.p{prompt}.g128-{index * 2654435761 % 2**32:08x}"
        yield {
            "format_version": 1, "device": "R5CX1234567", "device_class": "phone", "cell": identity, "backend": backend, "model": "llama-3.2-3b",
            "quant": "w4a16", "prompt_tokens": prompt, "gen_tokens": 128, "status": "ok", "launches": 20, "launches_failed": 0, "stop": "max",
            "stability": "stable", "unit_requested": "npu", "unit_found": "npu", "context": "4096", "threads": "n/a", "perf_profile": "burst",
            "check_count": "confirmed", "check_tokens": "confirmed", "check_unit": "confirmed", "token_agreement": 1, "ttft_scope": "ids",
            "ttft_method": "token_event", "artifact": f"user-{index % 4:016x}", "chunk": 128, "padded_prompt_tokens": prompt, "weight_bits": 4,
            "votes": "perf_profile=burst;rpc_control_latency_us=100;rpc_polling_time_us=9999;shared_buffer=1", "launch_context": "shell",
            "ambient_c": 23, "supply": "usb", "case": "none",
        }  # fmt: skip


def make(folder):
    names, metrics, ends = columns()
    absent = ";".join(f"{metric}=the gauge of this battery is not read on this device" for metric in metrics[MEASURED:])
    dice = random.Random(1)
    every = list(cells())
    levels = [20 + 0.1 * index for index in range(CELLS)]
    # What does not change from night to night is text made once; only the key metrics get figures of their own.
    moving = [metric for metric in ("decode_tok_s", "ttft_ms") if metric in metrics]
    still = {metric + end: "20" if end == "_n" else "123.456" for metric in metrics[:MEASURED] if metric not in moving for end in ends}
    begin = datetime.datetime(2025, 6, 1, 2, tzinfo=datetime.timezone.utc)
    for night in range(NIGHTS):
        started = begin + datetime.timedelta(days=night)
        name = f"{started:%Y%m%dT%H%M%SZ}-nightly-{night:06x}"
        run = folder / name
        run.mkdir(parents=True)
        versions = {"genie": "QAIRT 2.51", "ort-qnn": "onnxruntime 1.32.0", "mnn": "MNN 3.6.1" if night < STEP["night"] else "MNN 3.7.0", "qnn": "QAIRT 2.51"}
        facts = {"bits_per_weight": 4.5, "chunk": 128.0, "context": 4096.0, "weight_bits": 4.0, "act_bits": 16.0, "kv_bits": 8.0, "group": 32.0,
                 "lm_head_bits": 8.0, "embedding_bits": 16.0, "htp_arch": 75.0, "soc_model": 57.0}  # fmt: skip
        manifest = {
            "format_version": 1, "run": name, "tool": {"version": "0.1.0"}, "scenario": {"name": "nightly", "sha256": "ab" * 32},
            "started_utc": f"{started:%Y-%m-%dT%H:%M:%S}.000Z", "finished_utc": f"{started:%Y-%m-%d}T04:00:00.000Z",
            "device": {"name": "R5CX1234567", "class": "phone", "os": "android", "arch": "aarch64", "cpu": "SM8650", "cores": 8,
                       "memory_mb": 16000, "kernel": "6.1.57", "soc_model": 57, "htp_arch": 75},
            "device_says": {"firmware": {"dsp": "CDSP.HT.3.2"}, "properties": {"ro.build.fingerprint": "lab/phone/phone:14/AP1A/1:user"}},
            "runtimes": {backend: {"ready": {"version": version}} for backend, version in versions.items()},
            "cells": {cell["cell"]: {"device_class": "phone", "artifact": cell["artifact"], "facts": facts} for cell in every},
            "python_lock": "", "programs": {"genie:libGenie.so": "0" * 16}, "host": {"load": "0.1"}, "seed": 1, "segments": [], "warnings": [],
        }  # fmt: skip
        (run / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
        with (run / "cells.csv").open("w") as file:
            file.write(",".join(names) + "\n")
            tonight = dice.gauss(0, 0.003)
            for cell, level in zip(every, levels):
                loss = STEP["loss"] if cell["backend"] == STEP["backend"] and night >= STEP["night"] else 0.0
                value = level * (1 - loss) * (1 + tonight + dice.gauss(0, 0.007))
                row = {**still, **cell, "run": name, "runtime_version": versions[cell["backend"]], "absent": absent}
                for metric in moving:
                    text = f"{value if metric == 'decode_tok_s' else 9000 / value:.6g}"
                    row |= {metric + end: "20" if end == "_n" else text for end in ends} | {metric + "_mad": f"{0.02 * float(text):.6g}"}
                file.write(",".join(str(row.get(column, "")) for column in names) + "\n")


def read_in_python(folder):
    """The same tables through Python's csv module: one metric of all cells, in the runs' order."""
    found = {}
    for path in sorted(folder.glob("*/manifest.json")):
        manifest = json.loads(path.read_text())
        with (path.parent / "cells.csv").open(newline="") as file:
            for row in csv.DictReader(file):
                if row["status"] == "ok":
                    found.setdefault(row["cell"], []).append((manifest["started_utc"], float(row["decode_tok_s"])))
    return found


def measured(command):
    """Wall time in s, CPU time in s and peak memory in MB of a command, by the kernel's own account of it, and what it printed."""
    begun = time.perf_counter()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{command}: exit {child.returncode}\n{output.decode()[-2000:]}")
    return time.perf_counter() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000, output


def main():
    keep = sys.argv[sys.argv.index("--keep") + 1] if "--keep" in sys.argv else None
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(keep or temporary) / "runs"
        if not folder.is_dir():
            make(folder)
        size = sum(path.stat().st_size for path in folder.glob("*/*"))
        print(f"{NIGHTS} nights of {CELLS} cells, {size / 1e6:.0f} MB")
        found = json.loads(measured([program("bench"), "history", str(folder), "--format", "json"])[3])
        steps = found["metrics"][0]["steps"]
        # What it answers is what was made: a step in the cells of one backend, in its night but for a cell in ten at most, with its version.
        right = next(step for step in steps if step["at"] == STEP["night"])
        assert len(found["runs"]) == NIGHTS and len(found["metrics"][0]["cells"]) == CELLS
        assert len(right["cells"]) >= 0.9 * CELLS / 4 and "runtime of mnn" in [change["what"] for change in right["changed"]], right
        ours, theirs = [], []
        for _ in range(2 if QUICK else 7):
            ours.append(measured([program("bench"), "history", str(folder)]))
            theirs.append(measured([sys.executable, __file__, "--read", str(folder)]))
        near = sum(len(step["cells"]) for step in steps if 0 < abs(step["at"] - STEP["night"]) <= 2)
        other = sum(len(step["cells"]) for step in steps if abs(step["at"] - STEP["night"]) > 2)
        print(f"the step: {len(right['cells'])} of {CELLS // 4} cells in its night, {near} within 2 nights; steps that nobody made: {other} in {CELLS} cells")
        show("bench history, s", [one[0] for one in ours], digits=2, target="< 3")
        show("bench history, CPU s", [one[1] for one in ours], digits=2)
        show("bench history, peak memory, MB", [one[2] for one in ours], digits=0, target="< 500")
        show("time over reading the same with Python's csv", [a[0] / b[0] for a, b in zip(ours, theirs)], digits=3)
        show("peak memory over the same", [a[2] / b[2] for a, b in zip(ours, theirs)], digits=3)


if __name__ == "__main__":
    if "--read" in sys.argv:
        read_in_python(Path(sys.argv[-1]))
    else:
        main()
