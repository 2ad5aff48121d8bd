"""Checks a trace against the rules of Chrome's Trace Event Format, as its viewers need them; a second reading of what `bench trace` writes.

    python3 tests/trace_check.py TRACE.json

Prints what it counted as JSON; exits with 1 and the reasons when a rule is broken.
"""

import collections
import json
import math
import sys
from fractions import Fraction


def check(path):
    wrong = []
    with open(path, encoding="utf-8") as file:
        # Times exactly as written; constants such as NaN are no JSON.
        trace = json.load(file, parse_float=Fraction, parse_constant=lambda word: wrong.append(f"{word} in the file"))
    events = trace["traceEvents"]
    processes, threads, used = set(), set(), set()
    slices, counters = collections.defaultdict(list), collections.Counter()
    phases = collections.Counter()

    def number(value):
        return isinstance(value, (int, float, Fraction)) and not isinstance(value, bool) and math.isfinite(value)

    for place, event in enumerate(events):
        phase, pid, tid = event.get("ph"), event.get("pid"), event.get("tid")
        phases[phase] += 1
        if not isinstance(pid, int) or not isinstance(event.get("name"), str):
            wrong.append(f"event {place}: pid or name: {event}")
            continue
        if any(ord(c) < 32 or ord(c) == 127 for c in event["name"]):
            wrong.append(f"event {place}: its name steers a terminal")
        if phase == "M":
            if event["name"] == "process_name":
                processes.add(pid)
                if not isinstance(event["args"]["name"], str):
                    wrong.append(f"event {place}: no name")
            elif event["name"] == "thread_name":
                if (pid, tid) in threads:
                    wrong.append(f"event {place}: thread {pid}/{tid} is named twice")
                threads.add((pid, tid))
            continue
        if not number(event.get("ts")) or event["ts"] < 0:
            wrong.append(f"event {place}: ts {event.get('ts')}")
            continue
        used.add((pid, None if phase == "C" else tid))
        if phase == "X":
            if not number(event.get("dur")) or event["dur"] < 0:
                wrong.append(f"event {place}: dur {event.get('dur')}")
            else:
                slices[pid, tid].append((event["ts"], event["dur"], place, event["name"]))
        elif phase == "C":
            if not event.get("args") or not all(number(value) for value in event["args"].values()):
                wrong.append(f"event {place}: a counter without numbers: {event}")
            counters[pid, event["name"]] += 1
        elif phase == "i":
            if event.get("s") not in ("t", "p", "g"):
                wrong.append(f"event {place}: scope {event.get('s')}")
        else:
            wrong.append(f"event {place}: phase {phase}")
    # On a thread two slices are apart, or one holds the other. Times are of whole ns: less than half of one is the rounding of a double.
    ns = Fraction(1, 1000)
    for track, all_slices in slices.items():
        stack = []
        for ts, dur, place, name in sorted(all_slices, key=lambda s: (s[0], -s[1], s[2])):
            begin, end = round(ts / ns), round((ts + dur) / ns)
            while stack and stack[-1] <= begin:
                stack.pop()
            if stack and end > stack[-1]:
                wrong.append(f"event {place}: {name!r} on {track} ends {end - stack[-1]} ns behind what holds it")
            stack.append(end)
    for pid, tid in used:
        if pid not in processes:
            wrong.append(f"process {pid} has no name")
        if tid is not None and (pid, tid) not in threads:
            wrong.append(f"thread {pid}/{tid} has no name")
    told = {
        "events": len(events),
        "spans": phases["X"],
        "instants": phases["i"],
        "counters": phases["C"],
        "processes": len(processes),
        "threads": len(threads),
        "counter_tracks": len(counters),
    }
    return told, wrong


if __name__ == "__main__":
    told, wrong = check(sys.argv[1])
    print(json.dumps(told))
    for reason in wrong[:20]:
        print(reason, file=sys.stderr)
    sys.exit(1 if wrong else 0)
