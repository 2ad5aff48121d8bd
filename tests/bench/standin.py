#!/usr/bin/env python3
"""The smallest program that speaks the runner protocol: an engine that takes no time."""

import json
import os
import sys
import time

job = json.load(open(sys.argv[1]))
with open(os.environ["BENCH_EVENTS"], "w") as file:

    def say(event, **fields):
        file.write(json.dumps({"v": 1, "event": event, "t_ns": time.monotonic_ns(), **fields}) + "\n")

    say("load_begin")
    say("load_end", unit="cpu")
    for query in job["queries"]:
        say("prompt", query=query["query"], tokens=len(query["ids"]))
        for i in range(query["gen_tokens"]):
            say("token", query=query["query"], i=i, id=i)
        say("query_end", query=query["query"], finish="length", prompt_tokens=len(query["ids"]), generated_tokens=query["gen_tokens"])
    say("end")
