"""What a repetition over ADB costs beside the program that is measured: from one runner's end to the next runner's start.

Both times come from the agents' done.json. The phone is a name space of this machine, so that its clock is the same for all launches. Everything
between counts: noticing the end, evidence, fetching, the device's log, removing, parsing, journal, and staging and starting the next one. An
engine that takes no time gives the cost itself; one that sleeps shows how much later the end is noticed after a longer run. The test phone's logcat
is a Python program, a phone's is not: what its start takes is told apart."""

import json
import statistics

from common import QUICK, gaps_ms, interval, wall_ms
from phones import Phones

LAUNCHES, SLOW_LAUNCHES, PACE_MS = (4, 2, 500) if QUICK else (40, 8, 3000)


def report(name, gaps, note):
    low, high, real = interval(gaps)
    print(
        f"{'between two launches over ADB, ' + name + ', ms':<58} {statistics.median(gaps):.0f} [{low:.0f}, {high:.0f}]"
        f"  max {max(gaps):.0f}, n={len(gaps)}, {100 * real:.0f} %; {note}",
        flush=True,
    )


def shell_ms(phones, command):
    words = ["adb", "-s", phones.serials[0], "shell", command]
    return statistics.median(wall_ms(words, 5 if QUICK else 20, phones.env))


with Phones(1) as phones:
    _, _, (run,) = phones.run(phones.serials, LAUNCHES, ["bench/standin.py"], "short")
    report("no time", gaps_ms(run), "target < 250")
    _, _, (slow,) = phones.run(phones.serials, SLOW_LAUNCHES, ["standins/runner.py", "--pace", str(PACE_MS)], "long")
    report(f"{3 * PACE_MS / 1e3:.1f} s", gaps_ms(slow), "the poll's waiting included")
    log_ms = shell_ms(phones, "logcat -d") - shell_ms(phones, "true")
    print(f"of both, logcat of the test phone: {log_ms:.0f} ms", flush=True)
    trips = json.loads((run / "manifest.json").read_text())["device_says"]["adb_round_trips"]
    launches = len(list(run.glob("logs/**/done.json")))
    print(f"adb round trips: {trips / launches:.1f} a launch, staging and facts included ({trips} in {launches} launches)", flush=True)
