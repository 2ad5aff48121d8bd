"""Many phones driven by one `bench run`, with an engine that sleeps: wall time over that of one phone, and the peak memory of `bench`.

A phone here is some processes of this machine. What 32 of them compute shares its processors, which 32 real phones do not, so launches
have to be about as long as real ones for a figure about `bench`. `--phones N` and `--rounds N` set the numbers."""

import statistics
import sys

from common import QUICK, number
from phones import Phones

COUNT, ROUNDS = number("--phones", 4 if QUICK else 32), number("--rounds", 1 if QUICK else 3)
LAUNCHES, PACE_MS = (1, 500) if QUICK else (2, 10_000)
ENGINE = ["standins/runner.py", "--pace", str(PACE_MS)]

ones, alls, memory, cpu = [], [], {1: [], COUNT: []}, {1: [], COUNT: []}
with Phones(COUNT) as phones:
    # The files are there before.
    phones.run(phones.serials, 1, ["standins/runner.py"], "staging")
    for i in range(ROUNDS):
        for serials, times in (phones.serials[:1], ones), (phones.serials, alls):
            print(f"  round {i + 1} of {ROUNDS}: {len(serials)} phones", file=sys.stderr, flush=True)
            seconds, used, _ = phones.run(serials, LAUNCHES, ENGINE, f"{len(serials)}-{i}")
            times.append(seconds)
            memory[len(serials)].append(used.ru_maxrss * 1024 / 1e6)
            cpu[len(serials)].append(used.ru_utime + used.ru_stime)
one, every = statistics.median(ones), statistics.median(alls)
# The engine sleeps after each of its three queries.
print(f"{COUNT} phones, {LAUNCHES} launches of {3 * PACE_MS / 1e3:.1f} s: one phone {one:.1f} s, all {every:.1f} s, medians of {ROUNDS} alternating runs")
print(f"  all over one: wall time {every / one:.3f} [{min(alls) / max(ones):.3f}, {max(alls) / min(ones):.3f}], n={ROUNDS}, range; target <= 1.2")
print(f"  peak memory of bench: {max(memory[COUNT]):.0f} MB (target < 300), {max(memory[COUNT]) / max(memory[1]):.2f} times that with one phone")
print(f"  CPU of bench: {statistics.median(cpu[1]):.1f} s with one phone, {statistics.median(cpu[COUNT]):.1f} s with all", flush=True)
