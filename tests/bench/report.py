"""`bench report` of a large run: wall time, peak memory and size of the page, beside the same aggregation by pandas.

report.py [--cells N] [--telemetry ROWS] [--layers ROWS] [--keep FOLDER]: the run folder is made first; --keep leaves it there. All telemetry is of
first launches, which the page draws, so that no reader can pass over any of it. What is planted in it (a peak of memory, a dip of a clock, each one
sample long) has to be on the page. BENCH_PANDAS names a Python with pandas; otherwise a venv is made, once, in ~/.cache/bench."""

import csv
import datetime
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from common import QUICK, ROOT, number, program, show
from history import CELLS, cells, columns, measured

TELEMETRY = number("--telemetry", 50_000 if QUICK else 1_000_000)
LAYERS = number("--layers", 10_000 if QUICK else 200_000)
LAUNCHES, QUERIES, TOKENS = 12, 2, 24
PANDAS = "pandas==2.3.3"
RUN = "20260101T020000Z-large-0a1b2c"
# What a phone shows: source, name, unit, level, scatter.
SERIES = [("thermal", f"cpu-0-{i}", "C", 55, 2) for i in range(6)] + [("thermal", f"nsphvx-{i}", "C", 60, 2) for i in range(3)] + [
    ("thermal", "skin-msm-therm", "C", 36, 0.2), ("thermal", "gpuss-0", "C", 48, 1), ("thermal", "ddr", "C", 46, 1),
    ("cpufreq", "policy0", "MHz", 2000, 150), ("cpufreq", "policy0_cap", "MHz", 2265, 0), ("cpufreq", "policy7", "MHz", 3000, 200),
    ("cpufreq", "policy7_cap", "MHz", 3302, 0), ("npu", "q6_clock", "MHz", 1000, 20), ("npu", "q6_pct", "%", 80, 6),
    ("gpu", "clock", "MHz", 300, 10), ("gpu", "busy_pct", "%", 4, 1), ("ddr", "DDR", "MHz", 4000, 90), ("cpu", "busy_pct", "%", 22, 4),
    ("process", "rss_kb", "kB", 1_800_000, 900), ("process", "dmabuf_kb", "kB", 700_000, 0), ("process", "anon_kb", "kB", 300_000, 700),
]  # fmt: skip
# In each cell: a sample of this value. RSS in kB of 1,024 bytes: 3072.0 MB of 10^6 bytes on the page.
PEAK_KB, PEAK_MB, DIP_MHZ = 3_000_000, "3072", 547
PARTS = [("norm", "norm"), ("q_proj", "matmul"), ("k_proj", "matmul"), ("v_proj", "matmul"), ("rope", "rope"), ("attention", "attention"),
         ("attention", "softmax"), ("o_proj", "matmul"), ("residual", "elementwise"), ("mlp", "matmul"), ("kv_cache", "copy"), ("lm_head", "matmul")]  # fmt: skip
SAMPLES_HEAD = "format_version,run,device,device_class,cell,backend,model,quant,pass,launch,query,query_kind,status,ttft_ms,decode_tok_s"
TOKENS_HEAD = "format_version,run,device,cell,pass,launch,query,i,id,t_ms,itl_ms"
TELEMETRY_HEAD = "format_version,t_ms,device,cell,pass,launch,source,name,value,unit"
LAYERS_HEAD = (
    "format_version,run,device,device_class,cell,backend,graph,phase,index,name,op_type,block,part,part_by,op_kind,op_class,unit,value,value_unit,"
    "value_means,folded,share,count,graph_total,details,method"
)


def plan(every):
    """So that the selection knows the cells: each is the example's first one with its names."""
    head, pattern = (ROOT / "results/example-pc/plan.toml").read_text().split("[[cells]]")[:2]
    pattern = re.sub(r"^launch_group = .*\n", "", pattern, flags=re.M)

    def planned(cell):
        text = pattern
        for name, value in (("id", cell["cell"]), ("backend", cell["backend"]), ("name", cell["model"]), ("quant", cell["quant"])):
            text = re.sub(rf'^{name} = ".*"', f'{name} = "{value}"', text, flags=re.M)
        for name in ("prompt_tokens", "gen_tokens"):
            text = re.sub(rf"^{name} = .*", f"{name} = {cell[name]}", text, flags=re.M)
        return "[[cells]]" + text

    return head + "".join(planned(cell) for cell in every)


def make(run):
    run.mkdir(parents=True)
    every, dice = list(cells()), random.Random(1)
    device = every[0]["device"]
    names, _, _ = columns()
    began = datetime.datetime(2026, 1, 1, 2, tzinfo=datetime.timezone.utc)
    manifest = {
        "format_version": 1, "run": RUN, "tool": {"version": "0.1.0"}, "scenario": {"name": "large", "sha256": "ab" * 32},
        "started_utc": f"{began:%Y-%m-%dT%H:%M:%S}.000Z", "finished_utc": f"{began:%Y-%m-%d}T04:00:00.000Z",
        "device": {"name": device, "class": "phone", "os": "android", "arch": "aarch64", "cpu": "SM8650", "cores": 8, "memory_mb": 16000,
                   "kernel": "6.1.57", "soc_model": 57, "htp_arch": 75},
        "runtimes": {"mnn": {"ready": {"version": "MNN 3.7.0"}}}, "host": {"load": "0.1"}, "seed": 1, "segments": [], "warnings": [],
    }  # fmt: skip
    (run / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    (run / "plan.toml").write_text(plan(every))
    with (run / "cells.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, names, restval="", extrasaction="ignore", lineterminator="\n")
        table.writeheader()
        for index, cell in enumerate(every):
            row = {**cell, "run": RUN}
            for metric, value in (("ttft_ms", 90 + index), ("decode_tok_s", 20 + 0.1 * index), ("peak_mem_mb", 1900), ("itl_p50_ms", 45)):
                row |= {metric: value, metric + "_lo": 0.99 * value, metric + "_hi": 1.01 * value, metric + "_mad": 0.01 * value, metric + "_n": LAUNCHES}
            table.writerow(row)
    with (run / "samples.csv").open("w") as samples, (run / "tokens.csv").open("w") as tokens:
        print(SAMPLES_HEAD, file=samples)
        print(TOKENS_HEAD, file=tokens)
        for index, cell in enumerate(every):
            for launch in range(LAUNCHES):
                for query in range(QUERIES):
                    kind, ttft = ("first_query" if query == 0 else "warm_query"), (90 + index) * (1 + dice.gauss(0, 0.01))
                    print(
                        f"1,{RUN},{device},phone,{cell['cell']},{cell['backend']},{cell['model']},w4a16,measure,{launch},{query},{kind},ok,{ttft:.6g},"
                        f"{20 + 0.1 * index + dice.gauss(0, 0.2):.6g}", file=samples
                    )  # fmt: skip
                    at = 1500 + query * 3000.0
                    for i in range(TOKENS):
                        gap = 45 + dice.gauss(0, 2)
                        at += gap
                        print(f"1,{RUN},{device},{cell['cell']},measure,{launch},{query},{i},{100 + i},{at:.6g},{f'{gap:.6g}' if i else ''}", file=tokens)
    with (run / "telemetry.csv").open("w") as file:
        print(TELEMETRY_HEAD, file=file)
        rounds = TELEMETRY // (len(every) * len(SERIES))
        for cell in every:
            keys, lines = f"{device},{cell['cell']},measure,0", []
            planted = {"rss_kb": dice.randrange(rounds // 4, rounds - 2), "DDR": dice.randrange(rounds // 4, rounds - 2)}
            for at in range(rounds):
                for offset, (source, name, unit, level, scatter) in enumerate(SERIES):
                    value = level + (dice.gauss(0, scatter) if scatter else 0)
                    if planted.get(name) == at:
                        value = PEAK_KB if name == "rss_kb" else DIP_MHZ
                    lines.append(f"1,{at * 100 + offset * 0.37:.6g},{keys},{source},{name},{value:.6g},{unit}\n")
            file.write("".join(lines))
    with (run / "layers.csv").open("w") as file:
        print(LAYERS_HEAD, file=file)
        each = LAYERS // len(every) // 2
        for cell in every:
            keys = f"1,{RUN},{device},phone,{cell['cell']},{cell['backend']}"
            for phase in ("prefill", "decode"):
                for at in range(each):
                    part, kind = PARTS[at % len(PARTS)]
                    block = at // len(PARTS)
                    print(
                        f"{keys},llama_{phase},{phase},{at},/model/layers.{block}/{part}/{kind}_{at}:OpId_{at + 20},{kind},{block},{part},name,{kind},"
                        f"{'movement' if kind == 'copy' else 'compute'},npu,{dice.lognormvariate(9, 1):.6g},cycles,thread-cycles,,,12,,,qnn-detailed", file=file
                    )  # fmt: skip


def aggregate(run):
    """What the page is made of, by pandas; the columns that are needed, as one would write it. Returns (seconds without the import, figures)."""
    import time

    import pandas as pd

    begun = time.perf_counter()
    key = ["device", "cell"]
    read = lambda name, wanted: pd.read_csv(run / name, usecols=wanted)  # noqa: E731
    cells = pd.read_csv(run / "cells.csv", low_memory=False)
    samples = read("samples.csv", [*key, "pass", "launch", "query", "query_kind", "status", "ttft_ms", "decode_tok_s"])
    counted = samples[(samples["pass"] == "measure") & (samples.status == "ok") & (samples.query_kind == "warm_query")]
    launches = counted.groupby([*key, "launch"])[["ttft_ms", "decode_tok_s"]].median()
    tokens = read("tokens.csv", [*key, "pass", "launch", "query", "t_ms", "itl_ms"])
    tokens = tokens[tokens["pass"] == "measure"]
    gaps = tokens.merge(counted[[*key, "launch", "query"]], on=[*key, "launch", "query"]).dropna(subset="itl_ms")
    gaps = gaps.groupby(key).itl_ms.quantile([0.5, 0.9, 0.99, 1.0])
    stretches = tokens[tokens.launch == 0].groupby([*key, "query"]).t_ms.agg(["min", "max"])
    telemetry = read("telemetry.csv", [*key, "pass", "launch", "t_ms", "source", "name", "value", "unit"])
    telemetry = telemetry[(telemetry["pass"] == "measure") & (telemetry.launch == 0)].sort_values("t_ms", kind="stable")
    series = telemetry.groupby([*key, "source", "name"])
    whole = series.value.agg(["count", "first", "min", "max", "last"])
    # The windows of the drawings: the extremes of each.
    window = (telemetry.t_ms / series.t_ms.transform("max").clip(lower=1e-9) * 119).astype("int32").rename("window")
    windows = telemetry.groupby([*key, "source", "name", window]).value.agg(["min", "max"])
    layers = read("layers.csv", [*key, "graph", "phase", "name", "op_type", "part", "op_kind", "op_class", "unit", "value", "value_unit", "value_means",
                                 "folded", "count", "method"])  # fmt: skip
    parts = layers.groupby([*key, "phase", "part", "op_kind", "op_class", "unit"], dropna=False).value.agg(["sum", "count"])
    largest = layers.sort_values("value", ascending=False).groupby([*key, "phase"]).head(10)
    seconds = time.perf_counter() - begun
    peak = whole.xs(("process", "rss_kb"), level=("source", "name"))["max"].max()
    dip = whole.xs(("ddr", "DDR"), level=("source", "name"))["min"].min()
    p99 = gaps.xs(0.99, level=-1).mean()
    return seconds, {"cells": len(cells), "launches": len(launches), "ttft_ms": launches.ttft_ms.sum(), "gaps": len(gaps), "p99_ms": p99, "stretches": len(stretches), "series": len(whole),
                     "rows": whole["count"].sum(), "drawn": len(windows) > 0, "parts": len(parts), "parts_sum": parts["sum"].sum(), "largest": len(largest),
                     "largest_sum": largest.value.sum(), "peak_kb": peak,
                     "dip_mhz": dip}  # fmt: skip


def aggregator():
    """The benchmark that has bench do the same (aggregate.rs), built in the dev profile."""
    built = subprocess.run(["cargo", "bench", "--profile", "dev", "--bench", "aggregate", "--no-run", "--message-format", "json"], cwd=ROOT, capture_output=True, text=True, check=True)  # fmt: skip
    found = [json.loads(line) for line in built.stdout.splitlines()]
    return next(one["executable"] for one in found if one.get("target", {}).get("name") == "aggregate" and one.get("executable"))


def python_with_pandas():
    """A Python that has pandas, or None: it is no part of bench, and a machine without a network has none."""
    if given := os.environ.get("BENCH_PANDAS"):
        return given
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bench" / PANDAS.replace("==", "-")
    python = home / "bin/python"
    if QUICK and not python.is_file():
        print("without pandas, which --quick does not install")
        return None
    if not python.is_file() or subprocess.run([python, "-c", "import pandas"], capture_output=True).returncode != 0:
        made = subprocess.run([sys.executable, "-m", "venv", "--clear", home], capture_output=True, text=True)
        made = made if made.returncode != 0 else subprocess.run([python, "-m", "pip", "install", "--quiet", PANDAS], capture_output=True, text=True)
        if made.returncode != 0:
            print(f"without pandas: {(made.stdout + made.stderr).strip()[-300:]}")
            return None
    return python


def main():
    keep = sys.argv[sys.argv.index("--keep") + 1] if "--keep" in sys.argv else None
    pandas = python_with_pandas()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(keep or temporary)
        run, out = folder / "runs" / RUN, folder / "reports"
        if not run.is_dir():
            make(run)
        rows = {path.stem: sum(1 for _ in path.open()) - 1 for path in sorted(run.glob("*.csv"))}
        print(f"{', '.join(f'{count} rows of {name}' for name, count in rows.items())}; {sum(path.stat().st_size for path in run.glob('*')) / 1e6:.0f} MB")
        report = [program("bench"), "report", str(run), "--out", str(out), "--format", "json"]
        measured(report)
        page = (out / RUN / "index.html").read_text()
        assert re.search(r'class="answer"><strong>[^<]*first in [^<]*resamples', page), "launches were drawn for the selection"
        # What was planted, one sample long each, is told and drawn: in the table of the strips, and 0 or the top of a strip's own scale.
        assert re.search(rf"resident \(RSS\)</t.>.*?>{PEAK_MB}\b", page, re.S) and re.search(rf"DDR</t.>.*?>{DIP_MHZ}\b", page, re.S), "the planted extremes"
        ours, theirs, alone, same, aggregate = [], [], [], [], aggregator()
        for _ in range(2 if QUICK else 7):
            ours.append(measured(report))
            if pandas:
                theirs.append(measured([pandas, __file__, "--aggregate", str(run)]))
                seconds, found = json.loads(theirs[-1][3])
                assert found["cells"] == rows["cells"] and found["peak_kb"] == PEAK_KB and found["dip_mhz"] == DIP_MHZ, found
                alone.append(seconds)
            seconds, figures = json.loads(measured([aggregate, str(run)])[3])
            same.append(seconds)
            if pandas:
                wrong = {name: (value, found[name]) for name, value in figures.items() if abs(value - found[name]) > 1e-9 * abs(found[name])}
                assert not wrong and figures.keys() == found.keys(), f"not what pandas has: {wrong}"
        show("bench report, s", [one[0] for one in ours], digits=2, target="< 5")
        show("bench report, CPU s", [one[1] for one in ours], digits=2)
        show("bench report, peak memory, MB", [one[2] for one in ours], digits=0, target="< 500")
        print(f"{'its page, MB':<58} {len(page.encode()) / 1e6:.2f}; target < 5")
        show("the aggregation alone, s", same, digits=2)
        if pandas:
            show("pandas, the aggregation alone, s", alone, digits=2)
            show("pandas, the process, s", [one[0] for one in theirs], digits=2)
            show("pandas, peak memory, MB", [one[2] for one in theirs], digits=0)
            show("pandas' aggregation over the same by bench", [a / b for a, b in zip(alone, same)], digits=2, target=">= 5")
            show("pandas' aggregation over the whole of bench report", [a / b[0] for a, b in zip(alone, ours)], digits=2)
            show("pandas' process over bench report", [a[0] / b[0] for a, b in zip(theirs, ours)], digits=2)
            show("peak memory over pandas'", [b[2] / a[2] for a, b in zip(theirs, ours)], digits=2)


if __name__ == "__main__":
    if "--aggregate" in sys.argv:
        seconds, figures = aggregate(Path(sys.argv[-1]))
        print(json.dumps([seconds, {name: float(value) for name, value in figures.items()}]))
    else:
        main()
