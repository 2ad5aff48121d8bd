"""planted.py RUNNER CONFIG FACTOR JOB.json - MNN's own runner, each of whose forward() calls takes FACTOR times the processor time.

A known answer for comparisons: MNN computes as ever, the result is read out, and then the processor is kept busy for the missing part of the processor
time that it took (MNN has one thread here, this one), so that a program that was made to wait is not made to wait more. What is timed and written down is the runner's own, which knows nothing of it. RUNNER is mnn_runner.py, CONFIG the model's config.json."""

import importlib.util
import json
import sys
import time

runner_path, config, factor, job_path = sys.argv[1:]
factor = float(factor)


class Slowed:
    """An MNN model whose forward() takes longer; all else is the model's."""

    def __init__(self, model):
        self._model = model

    def __getattr__(self, name):
        return getattr(self._model, name)

    def forward(self, tokens):
        begun = time.thread_time_ns()
        logits = self._model.forward(tokens)
        logits.read()  # whatever is lazy is done now
        until = begun + factor * (time.thread_time_ns() - begun)
        # With a factor of 1 the loop ends at once: both sides pay for this wrapper.
        while time.thread_time_ns() < until:
            pass
        return logits


spec = importlib.util.spec_from_file_location("mnn_runner", runner_path)
runner = importlib.util.module_from_spec(spec)
spec.loader.exec_module(runner)
load = runner.load


def slowed(*arguments):
    model, unit = load(*arguments)
    return Slowed(model), unit


runner.load = slowed

# What bench knows of a program of the scenario lacks the model's file, and has two options that MNN does not know.
with open(job_path, encoding="utf-8") as file:
    job = json.load(file)
job["model"]["files"] = {"config": config}
for name in ("quant", "variant"):
    job.get("options", {}).pop(name, None)
with open("planted_job.json", "w", encoding="utf-8") as file:
    json.dump(job, file)
sys.argv = [runner_path, "planted_job.json"]
status = runner.main()
sys.stdout.flush()
runner.ctypes.CDLL(None).fflush(None)
runner.os._exit(status)
