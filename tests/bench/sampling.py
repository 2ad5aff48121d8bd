"""What the agent, sampling at 10 Hz, does to MNN's decode speed: one long decode, the agent switched off and on under it.

Two launches differ by 10 % on some machines, adjacent seconds of one decode by far less. So one real launch of `bench run` makes the model and
writes the job, and the same job with many more tokens then runs under the agent, which gets SIGSTOP and SIGCONT in a seeded order: pairs of slots
of about a second, one on and one off. A pair gives one ratio of decode speeds; a slot's speed is (N - 1) tokens over the time from its first to
its last, less the first moments after a switch. Slots differ in length, so that the agent's slow reads do not always fall into the same place.
The runner knows nothing of it: it is its own process and writes into a file.

It shows all that a living agent does (sampling, following the events, looking into the process) against an agent that exists but does not run. What
both have in common it can't show: the agent's memory, the queue in which the kernel notes writes to the event file, and the launch itself.
`--seconds N` sets the length, `--seed N` the order."""

import csv
import json
import math
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import QUICK, ROOT, interval, number, program, run_folder, show

SECONDS, SEED = number("--seconds", 2 if QUICK else 120), number("--seed", 1)
SLOT_S, EDGE_S, SETTLE_S, RATE_HZ = ((0.15, 0.25) if QUICK else (0.8, 1.2)), 0.05, (0.1 if QUICK else 1), 10.0
# About 70 million weights, so that a step takes milliseconds, as on a phone, and few layers and heads for keys and values, so that it does not
# take twice as long after some thousand tokens.
SHAPE = {"hidden": 1024, "layers": 4, "heads": 16, "kv-heads": 2, "head-dim": 64, "ffn": 4096, "vocab": 4096}
CONTEXT, PROMPT, TRIAL = (4096 if QUICK else 32768), 32, 65


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


def spec_of_long_decode(folder):
    """The spec of a launch that `bench run` made, with tokens for about the wanted time: it slows down a little as the context grows."""
    run = run_folder(scenario(folder), folder / "results", "--yes")
    logs = next(run.glob("logs/local/*/measure-000"))
    spec, job = json.loads((logs / "spec.json").read_text()), json.loads((logs / "job.json").read_text())
    manifest = json.loads((run / "manifest.json").read_text())
    key = next(iter(manifest["cells"].values()))["artifact"]
    cache = Path(os.environ.get("BENCH_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bench")
    work = folder / "work"
    shutil.copytree(cache / "artifacts" / key, work)
    shutil.copy(logs / "mnn_runner.py", work)
    trial = decode(logs / "events.jsonl")
    tokens = min(CONTEXT - PROMPT, math.ceil((SECONDS + SETTLE_S) * (len(trial) - 1) / ((trial[-1] - trial[0]) / 1e9)))
    # A short query first, as in a run; then the long one that is measured.
    first, second = job["queries"][0] | {"gen_tokens": 8}, job["queries"][1] | {"gen_tokens": tokens}
    (work / "job.json").write_text(json.dumps(job | {"queries": [first, second]}))
    env = spec["env"] | {"HOME": str(work), "TMPDIR": str(work)}
    return spec | {"cwd": str(work), "out_dir": str(folder / "out"), "env": env, "rate_hz": RATE_HZ, "timeout_ms": int(1e3 * (SECONDS + 300))}


def decode(events):
    """Times of the last query's tokens, ns. The runner writes them when the query is over."""
    tokens = {}
    for line in events.read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "token":
            tokens.setdefault(event["query"], []).append(event["t_ns"])
    return tokens[max(tokens)]


def switch(agent):
    """Switches the agent until the time is over. Slots as (on, begin, end), ns, in pairs; a pair's halves are in random order."""
    order, slots, end = random.Random(SEED), [], time.monotonic() + SECONDS
    while time.monotonic() < end:
        length = order.uniform(*SLOT_S)
        for on in order.sample((True, False), 2):
            agent.send_signal(signal.SIGCONT if on else signal.SIGSTOP)
            begin = time.monotonic_ns()
            time.sleep(length)
            slots.append((on, begin, time.monotonic_ns()))
        print(f"\r  {max(0, end - time.monotonic()):4.0f} s left ", end="", file=sys.stderr, flush=True)
    print("\r", end="", file=sys.stderr)
    agent.send_signal(signal.SIGCONT)
    return slots


def speed(tokens, slot):
    """Tokens a second in a slot without its first moments; `None` if it has too few."""
    inside = [t for t in tokens if slot[1] + EDGE_S * 1e9 <= t <= slot[2]]
    return (len(inside) - 1) / ((inside[-1] - inside[0]) / 1e9) if len(inside) > 10 else None


def check_switching(table, slots):
    """The agent sampled at its rate while it was on, without making up for what it had missed, and not at all while it was off."""
    with open(table) as file:
        times = sorted({int(row["t_ns"]) for row in csv.DictReader(file) if row["source"] == "process"})
    for on, begin, end in slots:
        taken = sum(begin + EDGE_S * 1e9 <= t <= end for t in times)
        # One more than the slot has room for where it begins just before a sample, and one for a late one.
        most = RATE_HZ * (end - begin) / 1e9 + 2 if on else 0
        if taken > most:
            sys.exit(f"the agent took {taken} samples in {(end - begin) / 1e9:.2f} s while it was {'on' if on else 'off'}: the comparison is not one")


def main(folder):
    spec = spec_of_long_decode(folder)
    path, events, out = folder / "spec.json", Path(spec["cwd"]) / "events.jsonl", Path(spec["out_dir"])
    path.write_text(json.dumps(spec))
    begun = time.monotonic()
    with subprocess.Popen([program("bench-agent"), "run", str(path)], stdin=subprocess.DEVNULL) as agent:
        try:
            while not (events.exists() and events.read_text().count('"prompt"') == 2):
                if agent.poll() is not None:
                    sys.exit((out / "stderr.txt").read_text()[-2000:])
                time.sleep(0.05)
            time.sleep(SETTLE_S)
            slots = switch(agent)
            agent.wait()
            alive_s = time.monotonic() - begun
        except BaseException:
            agent.send_signal(signal.SIGCONT)
            agent.terminate()
            raise
    done = json.loads((out / "done.json").read_text())
    if done["ended"]["code"] != 0:
        sys.exit(f"{done['ended']}\n{(out / 'stderr.txt').read_text()[-2000:]}")
    check_switching(out / "telemetry.csv", slots)
    tokens = decode(events)
    pairs = [{slot[0]: speed(tokens, slot) for slot in pair} for pair in zip(slots[::2], slots[1::2])]
    pairs = [pair for pair in pairs if None not in pair.values()]
    if len(pairs) < 2 and QUICK:
        # On a busy machine the trial, from which the length is reckoned, may be much slower than the decode.
        print("MNN decode: over before two pairs of slots", flush=True)
        return
    if len(pairs) < 2:
        sys.exit(f"the decode was over after {(tokens[-1] - tokens[0]) / 1e9:.1f} s, in {len(pairs)} pairs of slots")
    ratios = [pair[True] / pair[False] for pair in pairs]
    on_s = alive_s - sum((end - begin) / 1e9 for on, begin, end in slots if not on)
    weights = "tiny" if QUICK else "69 M weights"
    print(f"MNN w8, {weights}, one decode of {len(tokens)} tokens in {(tokens[-1] - tokens[0]) / 1e9:.0f} s", flush=True)
    show("MNN decode, agent off, tok/s", [pair[False] for pair in pairs], digits=2)
    show("MNN decode, agent on, 10 Hz, tok/s", [pair[True] for pair in pairs], digits=2)
    show("MNN decode, on over off, ratio of pairs", ratios, digits=4, target="interval above 0.99")
    print(f"  interval above 0.99: {'yes' if interval(ratios)[0] > 0.99 else 'no'}")
    print(f"  one pair scatters by {100 * statistics.stdev(map(math.log, ratios)):.2f} %: the machine's noise, which sets the width of the interval")
    print(f"  the agent's own CPU while it was on: {100 * done['agent_cpu_s'] / on_s:.2f} % of a core, its start included", flush=True)


with tempfile.TemporaryDirectory() as temporary:
    main(Path(temporary))
