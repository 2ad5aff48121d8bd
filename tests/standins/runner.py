"""runner.py [--pace MS] [--slower FACTOR] [--drift FILE] JOB: a stand-in for an inference engine that speaks the runner protocol, with no dependency.

The job's variant says what goes wrong; `ok` does everything right. Tokens are a formula of the prompt, and time stamps lie at fixed distances
behind the real start, so that a test can compute every token and every metric by itself:

    load 0.7 ms; first token 5 ms after the prompt; then one token every 1 ms; 0.5 ms between queries.

It idles as the job's `idle_ms` asks; the variant `restless` does not know that word, and
`strict` refuses the job for it. A soak repeats the list; its variants are `late-wrong` (other tokens from 1.5 s on), `late-crash` (a crash at
2.5 s), `late-clock` (from 2.5 s on another clock) and `deaf` (no soak).
A prompt of more than LONG tokens is what `long-crash` dies of and `long-eos` answers too shortly; `jumbled` answers the last query first.

`phases` tells parts: 0.2 ms of the load `read`, then 0.4 ms `prepare`; of a query 1 ms `h2d`, then 3.5 ms `execute` up to 0.5 ms before the first
token, and 0.75 ms `execute` up to each further one. `odd-phases` tells all kinds of nonsense about parts, and does the rest right.

An event is written once its moment has passed, so that all of them lie within the life of the process.
--state FILE is where the variant `drifting` counts its launches.
--pace sleeps that many milliseconds a query, so that there is time for an interruption; it changes nothing in the output.
--slower makes first token and gaps that much longer. --drift counts the launches in a file: each is 1 % slower than the one before, with a
noise of 1 %, the same in every run of the same launches; runners that share the file share the device."""

import json
import os
import random
import signal
import sys
import time

US = 1_000
LONG = 12
FIRST, GAP, LOAD, PAUSE = 5000 * US, 1000 * US, 700 * US, 500 * US


def option(name):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None


factor = float(option("--slower") or 1)
if counter := option("--drift"):
    with open(counter, "a") as file:
        count = file.tell()
        file.write(".")
    factor *= 1.01**count * random.Random(count).lognormvariate(0, 0.01)
FIRST, GAP = round(FIRST * factor), round(GAP * factor)

job = json.load(open(sys.argv[-1]))
variant = job.get("options", {}).get("variant", "ok")
pace = float(option("--pace") or 0) / 1e3
path = os.environ["BENCH_EVENTS"]
out = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
now = time.monotonic_ns()


def token(prompt, i):
    return 3 + (sum(prompt) * 31 + i * 7) % (job["model"]["vocab"] - 3)


def line(event, t, **fields):
    while (rest := t - time.monotonic_ns()) >= 0:
        time.sleep(rest / 1e9)
    if variant == "wall-clock":
        t += time.time_ns() - time.monotonic_ns()
    os.write(out, (json.dumps({"v": 1, "event": event, "t_ns": t, **fields}) + "\n").encode())


def flood(fd, block, total=1 << 30):
    block = block * (1 + (1 << 20) // len(block))
    written = 0
    while written < total:
        written += os.write(fd, block)


def daemon():
    """Forks twice, leaves the session and lives on."""
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    os.closerange(0, 3)
    open("daemon.pid", "w").write(str(os.getpid()))
    time.sleep(600)
    os._exit(0)


if variant == "garbage":
    os.write(out, bytes(range(256)) * 8 + b"\n{]\nnull\n[1,2]\n\"event\"\n")
    sys.exit(0)
if variant == "garbage-lines":
    flood(out, b"x\n", 6 << 20)
    sys.exit(0)
if variant == "no-events":
    print("all is well")
    sys.exit(0)
if variant == "flood-stdout":
    flood(1, b"the same line again and again\n")
    sys.exit(0)
if variant == "flood-events":
    flood(out, b'{"v":1,"event":"note","t_ns":1,"key":"k","value":"v"}\n')
    time.sleep(30)
    sys.exit(0)
if variant == "exit-3":
    print("licence server says no", file=sys.stderr)
    sys.exit(3)
if variant == "segv":
    print("about to fall", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)
if variant == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if variant in ("hang", "stubborn"):
    line("load_begin", now)
    time.sleep(600)
if variant == "leftover":
    daemon()

if variant == "strict" and "idle_ms" in job:
    line("error", now, kind="usage", message="job.json: unknown field `idle_ms`, expected one of `v`, `model`")
    sys.exit(1)

def part(phase, begin, end, **query):
    line("phase_begin", begin, phase=phase, **query)
    line("phase_end", end, phase=phase, **query)


if variant == "drifting":
    # Each launch is 4 % slower than the first was; the file of --state counts them.
    count = sys.argv[sys.argv.index("--state") + 1]
    before = int(open(count).read()) if os.path.exists(count) else 0
    open(count, "w").write(str(before + 1))
    GAP += GAP * 4 * before // 100
version = "1.2.3"
line("note", now, key="runtime_version", value=version)
line("load_begin", now)
if variant == "phases":
    part("read", now, now + 200 * US)
    part("prepare", now + 200 * US, now + 600 * US)
t = now + LOAD
line("load_end", t, unit="npu" if variant == "wrong-unit" else "cpu")
if job.get("idle_ms", 0) and variant != "restless":
    line("idle_begin", t)
    t += job["idle_ms"] * 1_000_000
    line("idle_end", t)
begun = t
queries = job["queries"]
if variant == "fewer-queries":
    queries = queries[:-1]
if variant == "jumbled":
    queries = queries[-1:] + queries[:-1]


def asked():
    """The queries of the job, in a soak again and again with rising numbers."""
    yield from queries
    place = len(queries)
    while variant != "deaf" and time.monotonic_ns() < begun + job.get("soak_ms", 0) * 1_000_000:
        yield {**queries[place % len(queries)], "query": place}
        place += 1


for q in asked():
    number, prompt, count = q["query"], q["ids"], q["gen_tokens"]
    if variant == "late-crash" and t > begun + 2_500_000 * US:
        os.kill(os.getpid(), signal.SIGSEGV)
    if variant == "late-clock" and t > begun + 2_500_000 * US:
        t -= 2_000_000 * US
    if variant == "long-crash" and len(prompt) > LONG:
        os.kill(os.getpid(), signal.SIGSEGV)
    off = 1 if variant == "late-wrong" and t > begun + 1_500_000 * US else 0
    if variant == "other-queries":
        number += 5
    if variant in ("fewer-tokens", "early-eos") or (variant == "long-eos" and len(prompt) > LONG):
        count -= 3
    if variant == "more-tokens":
        count += 1
    if variant != "overlap":
        t += PAUSE
    elif number:
        t -= GAP
    start = t
    # From the third query on as if half of the prompt were in the KV cache.
    first = FIRST // 2 if variant == "prefix-reused" and number > 1 else FIRST
    if variant == "warming":
        first += max(0, 3 - number) * FIRST
    if variant == "never-warm":
        first += max(0, 20 - number) * FIRST
    line("prompt", t, query=number, tokens=len(prompt) - (variant == "short-prompt"))
    if variant == "phases":
        part("h2d", start, start + 1000 * US, query=number)
        part("execute", start + 1000 * US, start + 4500 * US, query=number)
    if variant == "odd-phases":
        line("phase_end", start, phase="execute", query=number)
        line("phase_begin", start, phase="execute", query=number + 7)
        part("\x1b[31mred" * 100, start, start, query=number)
        line("phase_end", start - 1, phase="execute")
        part("sample", start + 1000 * US, start, query=number)
        line("phase_begin", start, phase="never ends")
    for i in range(count):
        t = start + first + i * GAP
        if variant == "phases" and i:
            part("execute", t - 750 * US, t, query=number)
        if variant == "backwards" and i == count - 1:
            t = start + first
        place = i + 1 if variant == "wrong-i" and i == count - 1 else i
        text = {"query": number, "i": place, "id": token(prompt, i) + off}
        if variant == "half-line" and q is queries[-1] and i == count - 1:
            os.write(out, json.dumps({"v": 1, "event": "token", "t_ns": t, **text}).encode()[:-9])
            sys.exit(0)
        line("token", t, **text)
    finish = {"early-eos": "eos", "finish-error": "error"}.get(variant, "length")
    reported = count + (variant == "miscounted")
    if variant == "no-query-end" and q is queries[-1]:
        continue
    absent = {"reported": None} if variant == "nulls" else {}
    line("query_end", t, query=number, prompt_tokens=len(prompt), generated_tokens=reported, finish=finish, **absent)
    if pace:
        time.sleep(pace)
if variant == "spoiler":
    open("weights.bin", "r+b").write(b"W")
if variant == "error-event":
    line("error", t, kind="model", message="the weights are those of another model")
    sys.exit(0)
if variant == "no-end":
    sys.exit(0)
if variant == "half-end":
    os.write(out, b'{"v":1,"event":"end","t_')
    sys.exit(0)
line("end", t)
if variant == "after-end":
    line("load_end", t)
