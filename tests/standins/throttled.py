"""throttled.py JOB: a stand-in for an engine whose speed follows the phone's cap on its prime core, for soaks.

A token takes 20 ms x (highest frequency / cap)^2 of one busy core, the first one 40 ms x the same, and 1 ms is between queries. Tokens are a
formula of the prompt. Time stamps are the moments at which things were due, as in runner.py."""

import json
import os
import sys
import time

POLICY = "/sys/devices/system/cpu/cpufreq/policy7/"
job = json.load(open(sys.argv[-1]))
out = os.open(os.environ["BENCH_EVENTS"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
highest = int(open(POLICY + "cpuinfo_max_freq").read())


def slowness():
    return (highest / int(open(POLICY + "scaling_max_freq").read())) ** 2


def spin(until):
    """Works until a moment. A machine that takes the core away meanwhile makes nothing late: what comes after is due from that moment on."""
    while time.monotonic_ns() < until:
        pass
    return until


def line(event, **fields):
    os.write(out, (json.dumps({"v": 1, "event": event, **fields}) + "\n").encode())


line("load_begin", t_ns=time.monotonic_ns())
line("load_end", t_ns=time.monotonic_ns(), unit="npu")
if job.get("idle_ms", 0):
    line("idle_begin", t_ns=time.monotonic_ns())
    time.sleep(job["idle_ms"] / 1e3)
    line("idle_end", t_ns=time.monotonic_ns())
begun = start = time.monotonic_ns()
place = 0
while place < len(job["queries"]) or time.monotonic_ns() < begun + job.get("soak_ms", 0) * 1_000_000:
    q = job["queries"][place % len(job["queries"])]
    line("prompt", t_ns=start, query=place, tokens=len(q["ids"]))
    t = spin(start + int(40e6 * slowness()))
    times = [t]
    for _ in range(q["gen_tokens"] - 1):
        t = spin(t + int(20e6 * slowness()))
        times.append(t)
    ids = [3 + (sum(q["ids"]) * 31 + i * 7) % (job["model"]["vocab"] - 3) for i in range(q["gen_tokens"])]
    line("tokens", t_ns=times[0], query=place, i=0, gaps_ns=[b - a for a, b in zip(times, times[1:])], ids=ids)
    line("query_end", t_ns=t, query=place, finish="length", prompt_tokens=len(q["ids"]), generated_tokens=q["gen_tokens"])
    start = spin(t + 1_000_000)
    place += 1
line("end", t_ns=time.monotonic_ns())
