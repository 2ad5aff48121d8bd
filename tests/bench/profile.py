"""`bench parse` of profiles of a gigabyte, QNN's CSV and ONNX Runtime's trace: rate and peak memory, beside the same files read by Python.

profile.py [--mb N] [--ops N]: the files are made first, of --ops operations an execution. What comes out is compared with what went in."""

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import QUICK, number, program, show

# What is read in pieces is more than 256 MiB.
MB = number("--mb", 270 if QUICK else 1000)
OPS = number("--ops", 463)
HEADER = "Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier\n"


def names():
    return [f"/model/layers.{i // 16}/self_attn/part_{i % 16}/MatMul:OpId_{i + 20}" for i in range(OPS)]


def profile(path):
    """A CSV as the execution provider writes it; returns how many executions, and the sum of each operation's cycles."""
    every, sums, executions = names(), [0] * OPS, 0
    with path.open("w") as out:
        out.write(HEADER)
        out.write("0,FINALIZE,560000,US,BACKEND,ROOT,QNN (finalize) time\n")
        while out.tell() < MB * 1_000_000:
            cycles = [(executions * 7919 + i * 104729) % 100_000 for i in range(OPS)]
            rows = ["0,BACKEND,4,COUNT,BACKEND,ROOT,Number of HVX threads used\n"]
            rows.append(f"0,BACKEND,{sum(cycles)},CYCLES,BACKEND,ROOT,Accelerator (execute) time (cycles)\n")
            rows.extend(f"0,NODE,{value},CYCLES,BACKEND,SUB-EVENT,{name} (cycles)\n" for name, value in zip(every, cycles))
            rows.append(f"0,BACKEND,{20000 + executions % 100},US,BACKEND,ROOT,Accelerator (execute) time\n")
            rows.append(f"0,EXECUTE,{21000 + executions % 100},US,BACKEND,ROOT,QNN (execute) time\n")
            out.write("".join(rows))
            sums = [a + b for a, b in zip(sums, cycles)]
            executions += 1
    return executions, sums


def trace(path):
    """A trace as ONNX Runtime writes it, one event a line; the same for microseconds."""
    every, sums, executions, at = names(), [0] * OPS, 0, 0
    shape = [{"float": [1, 1, 4096]}, {"float": [4096, 4096]}]
    with path.open("w") as out:
        out.write('[\n{"cat" : "Session","pid" :7,"tid" :7,"dur" :40000,"ts" :2,"ph" : "X","name" :"session_initialization","args" : {}}')
        while out.tell() < MB * 1_000_000:
            took = [(executions * 7919 + i * 104729) % 1000 for i in range(OPS)]
            rows = []
            for i, (name, value) in enumerate(zip(every, took)):
                args = {"thread_scheduling_stats": "", "output_type_shape": shape[:1], "input_type_shape": shape, "parameter_size": "33554432",
                        "activation_size": "16384", "node_index": str(i), "provider": "CPUExecutionProvider", "op_name": "MatMul"}  # fmt: skip
                at += value
                rows.append(f',\n{{"cat" : "Node","pid" :7,"tid" :7,"dur" :{value},"ts" :{at},"ph" : "X","name" :"{name}_kernel_time","args" : {json.dumps(args)}}}')
            rows.append(f',\n{{"cat" : "Session","pid" :7,"tid" :7,"dur" :{sum(took)},"ts" :{at},"ph" : "X","name" :"model_run","args" : {{}}}}')
            out.write("".join(rows))
            sums = [a + b for a, b in zip(sums, took)]
            executions += 1
        out.write("\n]\n")
    return executions, sums


def read(backend, path):
    """Seconds, MB of peak memory, and what was read."""
    begun = time.perf_counter()
    running = subprocess.Popen([program("bench"), "parse", backend, str(path)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    text = running.stdout.read()
    _, status, usage = os.wait4(running.pid, 0)
    seconds = time.perf_counter() - begun
    if status != 0:
        sys.exit(f"bench parse {backend} {path.name}: status {status}")
    return seconds, usage.ru_maxrss * 1024 / 1e6, json.loads(text)


def by_python(path):
    """Seconds for the same sums, by the standard library."""
    begun, sums = time.perf_counter(), {}
    with path.open(newline="") as lines:
        if path.suffix == ".csv":
            for row in csv.reader(lines):
                if row[1] == "NODE":
                    sums[row[6]] = sums.get(row[6], 0.0) + float(row[2])
        else:
            for line in lines:
                event = json.loads(line.strip("[],\n") or "{}")
                if event.get("cat") == "Node":
                    sums[event["name"]] = sums.get(event["name"], 0.0) + event["dur"]
    return time.perf_counter() - begun


def main():
    with tempfile.TemporaryDirectory() as folder:
        for backend, path, make in (("qnn", Path(folder) / "profile.csv", profile), ("ort-qnn", Path(folder) / "trace.json", trace)):
            executions, sums = make(path)
            size = path.stat().st_size / 1e6
            print(f"{path.name}: {size:.0f} MB, {executions} executions of {OPS} operations", flush=True)
            runs = [read(backend, path) for _ in range(2 if QUICK else 6)]
            layers = runs[0][2]["layers"]
            wrong = [layer["name"] for layer, total in zip(layers, sums) if abs(layer["value"] * executions / total - 1) > 1e-9 or layer["count"] != executions]
            if len(layers) != OPS or wrong:
                sys.exit(f"{len(layers)} of {OPS} operations, wrong: {wrong[:3]}")
            show(f"bench parse {backend}: rate", [size / seconds for seconds, *_ in runs[1:]], "MB/s", 0, "150 MB/s")
            show("its peak memory", [peak for _, peak, _ in runs[1:]], "MB", 1, "does not grow with the file")
            show("rate over Python's", [by_python(path) / runs[-1][0] for _ in range(1 if QUICK else 2)], "", 1)
            path.unlink()


main()
