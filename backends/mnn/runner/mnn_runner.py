"""mnn_runner.py JOB.json - the runner of MNN's LLM engine: runner protocol 1, see backends/protocol.

It needs the Python packages numpy and MNN, nothing else. Files: `config` (MNN's config.json). Options: OPTIONS below, passed to MNN's
set_config. One forward() takes the prompt, one more each token; what is timed stands in the note `step`.

Every result goes into the events file: MNN prints on stdout as it pleases."""

import collections
import contextlib
import ctypes
import gc
import json
import os
import re
import sys
import time

VERSION = 1
# What MNN's engine knows (llm config, MNN 3.6). It takes any other name for "automatic", in silence.
BACKENDS = ("cpu", "opencl", "metal", "cuda", "opengl", "vulkan", "npu", "hexagon")
# Of its configuration, what may matter for speed; MNN ignores a name that it does not know. The value is JSON, or else a string.
OPTIONS = (
    "backend_type", "precision", "memory", "power", "thread_num", "use_mmap", "kvcache_mmap", "tmp_path", "chunk", "chunk_limits",
    "attention_mode", "dynamic_option",
)
# A backend's library, which is in the process if the backend is: (file name, unit).
LIBRARIES = (("libQnnHtp.so", "npu"), ("libOpenCL.so", "gpu"), ("libvulkan.so", "gpu"))
LOAD_LOG = "mnn_load.log"
FALLBACK = re.compile(r"Can't Find type=\d+ backend, use \d+ instead")
INTERNAL_ERROR = 4  # MNN's LlmStatus

JOB = {
    "v": int, "model": dict, "runtime": dict, "queries": list, "threads": (int, None), "unit": (str, None), "perf_profile": (str, None),
    "profile": str, "options": dict, "soak_ms": (int, None),
    "idle_ms": int,
}
MODEL = {
    "context": int, "chunk": int, "vocab": int, "layers": (int, None), "kv_heads": (int, None), "head_dim": (int, None),
    "rope_theta": (float, None), "bos": (int, None), "pad": (int, None), "files": dict,
}
QUERY = {"query": int, "ids": list, "gen_tokens": int}
DEFAULTS = {
    "runtime": {}, "threads": None, "unit": None, "perf_profile": None, "profile": "off", "options": {}, "layers": None, "kv_heads": None,
    "head_dim": None, "rope_theta": None, "bos": None, "pad": None, "soak_ms": None, "idle_ms": 0,
}


class Failure(Exception):
    """kind is usage, model or runtime."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


class Events:
    """JSON lines, one write a line. `now` writes at once; `defer` waits for the next `now`, so that nothing is written inside a timed stretch."""

    def __init__(self, path):
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self._deferred = []
        self.compact = False  # tokens of a query in one line, for soaks

    def now(self, event, t_ns=None, **fields):
        self.flush()
        self._write(event, time.monotonic_ns() if t_ns is None else t_ns, fields)

    def defer(self, event, t_ns, **fields):
        self._deferred.append((event, t_ns, fields))

    def defer_phase(self, phase, begin, end, **fields):
        self.defer("phase_begin", begin, phase=phase, **fields)
        fields.pop("i", None)
        self.defer("phase_end", end, phase=phase, **fields)

    def flush(self):
        waiting, self._deferred = self._deferred, []
        # In a soak only tokens are deferred, those of one query, in order.
        for at in range(0, len(waiting), 1024) if self.compact else ():
            (_, t_ns, first), part = waiting[at], waiting[at : at + 1024]
            times, ids = [t for _, t, _ in part], [fields["id"] for _, _, fields in part]
            gaps = [b - a for a, b in zip(times, times[1:])]
            self._write("tokens", t_ns, {"query": first["query"], "i": first["i"], "gaps_ns": gaps, "ids": ids})
        for line in () if self.compact else waiting:
            self._write(*line)

    def _write(self, event, t_ns, fields):
        os.write(self._fd, (json.dumps({"v": VERSION, "event": event, "t_ns": t_ns, **fields}) + "\n").encode())


def table(where, raw, fields):
    """The fields of a JSON object, checked; one that is unknown, missing or of another type is the caller's mistake."""
    if not isinstance(raw, dict):
        raise Failure("usage", f"{where}: expected an object")
    if unknown := sorted(set(raw) - set(fields)):
        raise Failure("usage", f"{where}: unknown field {unknown[0]}")
    values = {}
    for name, kind in fields.items():
        if name not in raw and name not in DEFAULTS:
            raise Failure("usage", f"{where}: {name} is missing")
        value = raw.get(name, DEFAULTS.get(name))
        kind, optional = (kind[0], True) if isinstance(kind, tuple) else (kind, False)
        if kind is float and type(value) is int:
            value = float(value)
        if not (type(value) is kind or (optional and value is None)):
            raise Failure("usage", f"{where}.{name}: expected {kind.__name__}, found {value!r}")
        values[name] = value
    return values


def read_job(path):
    try:
        with open(path, encoding="utf-8") as file:
            raw = json.load(file)
    except (OSError, ValueError) as e:
        raise Failure("usage", f"{path}: {e}") from e
    job = table("job", raw, JOB)
    if job["v"] != VERSION:
        raise Failure("usage", f"version {job['v']} of the job: this runner speaks {VERSION}")
    model = job["model"] = table("model", job["model"], MODEL)
    if job["threads"] is not None and job["threads"] < 1:
        raise Failure("usage", "threads is below 1")
    if not job["queries"]:
        raise Failure("usage", "no queries")
    job["queries"] = [table(f"queries.{i}", q, QUERY) for i, q in enumerate(job["queries"])]
    for q in job["queries"]:
        if q["gen_tokens"] < 1 or not q["ids"]:  # an empty prompt kills MNN by a division by zero
            raise Failure("usage", f"query {q['query']}: no prompt, or no token to make")
        if not all(type(i) is int and 0 <= i < model["vocab"] for i in q["ids"]):
            raise Failure("usage", f"query {q['query']}: a token is outside the vocabulary of {model['vocab']}")
    return job


def settings(job):
    """What set_config is given. `async` and `reuse_kv` are ours: a query must be complete when it returns and start from nothing."""
    config = {"async": False, "reuse_kv": False, "thread_num": job["threads"] or 1}
    for name, text in job["options"].items():
        if name not in OPTIONS:
            raise Failure("usage", f"unknown option {name}: one of {', '.join(OPTIONS)}")
        try:
            config[name] = json.loads(text)
        except ValueError:
            config[name] = text
    if "backend_type" not in config and job["unit"] is not None:
        default = {"cpu": "cpu", "gpu": "opencl"}.get(job["unit"])
        if default is None:
            raise Failure("usage", f"unit {job['unit']}: name the backend_type, npu or hexagon")
        config["backend_type"] = default
    if config.get("backend_type", "cpu") not in BACKENDS:
        raise Failure("usage", f"backend_type {config['backend_type']!r}: one of {', '.join(BACKENDS)}")
    if job["profile"] == "layers":
        config["enable_debug"] = True  # has to stand before the load
    return config


@contextlib.contextmanager
def stdout_into(path):
    """Sends what is printed on file descriptor 1, also by C code, into a file, and afterwards that file to the real stdout.

    A file, not a pipe: it takes any amount while the interpreter's lock is held, and it stays if MNN kills the process."""
    flush = ctypes.CDLL(None).fflush
    flush(None)
    real = os.dup(1)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(file, 1)
    os.close(file)
    try:
        yield
    finally:
        flush(None)
        os.dup2(real, 1)
        os.close(real)
        with open(path, "rb") as file:
            os.write(1, file.read())


def check_files(path, vocab):
    """The content of the config file. MNN dies of one that is not JSON, and takes a missing or short embedding for zeros."""
    try:
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        folder = os.path.dirname(path)
        with open(os.path.join(folder, config.get("llm_config", "llm_config.json")), encoding="utf-8") as file:
            shape = json.load(file)
        if "tie_embeddings" not in shape:
            embedding = os.path.join(folder, config.get("embedding_file", "embeddings_bf16.bin"))
            found, wanted = os.path.getsize(embedding), 2 * vocab * shape.get("hidden_size", 0)
            if "bf16" in embedding and found < wanted:
                raise Failure("model", f"{embedding}: {found} bytes where the job's model has {wanted}")
        return config
    except (OSError, ValueError, AttributeError, TypeError) as e:
        raise Failure("model", f"{path}: {e}") from e


def load(job, config, events):
    """The loaded model and its unit. The import belongs to the load: it is MNN's library that comes with it."""
    file = job["model"]["files"].get("config")
    if file is None:
        raise Failure("usage", "model.files.config is missing")
    opened = time.monotonic_ns()
    events.now("load_begin", opened)
    written = check_files(file, job["model"]["vocab"])
    begun = time.monotonic_ns()
    with stdout_into(LOAD_LOG):
        try:
            import MNN
            import MNN.llm
        except ImportError as e:
            raise Failure("runtime", f"{e}: pip install MNN") from e
        imported = time.monotonic_ns()
        model = MNN.llm.create(file)
        if model is None:
            raise Failure("model", f"{file}: MNN made no model of it")
        model.set_config(config)
        configured = time.monotonic_ns()
        # The wrapper's own load() has no result.
        loaded = model._c_obj.load()
    loaded_at = time.monotonic_ns()
    # MNN's load() reads the weights and makes its graphs in one call.
    times = (opened, begun, imported, configured, loaded_at)
    for phase, begin, end in zip(("read", "library", "init", "prepare"), times, times[1:]):
        events.defer_phase(phase, begin, end)
    events.now("note", key="runtime_version", value=MNN.version())
    events.now("note", key="import_us", value=str((imported - begun) // 1000))
    with open(LOAD_LOG, encoding="utf-8", errors="replace") as log:
        text = log.read()
    if not loaded:
        raise Failure("model", f"{file}: MNN did not load the model: {' '.join(text.split())[:500]}")
    dump = model._c_obj.dump_config()
    events.now("note", key="engine", value="llm")
    events.now("note", key="effective_options", value=json.dumps(json.loads(dump) if isinstance(dump, str) else dump))
    fallback = FALLBACK.search(text)
    if fallback:
        events.now("note", key="fallback", value=fallback.group())
    unit = proven_unit({**written, **config}, bool(fallback))
    events.now("load_end", loaded_at, unit=unit)
    return model, unit


class Operators:
    """Time of every operator of the engine's own forwards, by MNN's debug callback: it is called before and after each operator.

    Python's package does not pass Llm::setDebugCallback on, but its library exports it. What is called here are exported functions of the
    library, with GNU's layout of std::function, and only where the object is what it is taken for. The mode costs time (enable_debug):
    it belongs into a profiling pass, whose token times count for nothing."""

    METHOD = "mnn-callback"

    def __init__(self, model):
        import _mnncengine

        library = ctypes.CDLL(_mnncengine.__file__)
        # A Python object's head is followed by the pointer to the C++ object, which begins with its class's table of functions.
        self._llm = ctypes.c_void_p.from_address(id(model._c_obj) + object.__basicsize__).value
        functions = ctypes.addressof(ctypes.c_char.in_dll(library, "_ZTVN3MNN11Transformer3LlmE")) + 2 * ctypes.sizeof(ctypes.c_void_p)
        if not self._llm or ctypes.c_void_p.from_address(self._llm).value != functions:
            raise ValueError("the model is not a plain Llm of MNN")
        self._name, self._type = (library[f"_ZNK3MNN12OperatorInfo4{what}Ev"] for what in ("name", "type"))
        for function in (self._name, self._type):  # a std::string's first field is the address of its text
            function.argtypes, function.restype = [ctypes.c_void_p], ctypes.POINTER(ctypes.c_char_p)
        install = library["_ZN3MNN11Transformer3Llm16setDebugCallbackEOSt8functionIFbRKSt6vectorIPNS_6TensorESaIS5_EEPKNS_12OperatorInfoEEESF_"]
        install.argtypes, install.restype = [ctypes.c_void_p] * 3, None
        manager = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
        invoker = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))

        class Function(ctypes.Structure):
            _fields_ = [("data", ctypes.c_void_p * 2), ("manager", manager), ("invoker", invoker)]

        # Nothing is held, so that there is nothing to copy or to free.
        managed = manager(lambda *_: False)
        self._kept = [managed, invoker(self._before), invoker(self._after)]  # the library calls them as long as the process lives
        functions = [Function(manager=managed, invoker=called) for called in self._kept[1:]]
        install(self._llm, *map(ctypes.addressof, functions))
        self._forward, self._forwards, self._begun = [], {"prefill": [], "decode": []}, 0

    def _before(self, _data, _tensors, _info):
        self._begun = time.monotonic_ns()
        return True

    def _after(self, _data, _tensors, info):
        took = time.monotonic_ns() - self._begun
        self._forward.append((self._name(info[0])[0], self._type(info[0])[0], took))
        return True

    def forward(self, phase):
        """A forward begins; without a phase it is not counted."""
        self._forward = []
        if phase:
            self._forwards[phase].append(self._forward)

    def write(self, events):
        for phase, forwards in self._forwards.items():
            if not forwards:
                continue
            # Where MNN lays a graph out again, it has other operators: those of most forwards are told.
            names = [tuple(name for name, _, _ in forward) for forward in forwards]
            [(usual, _)] = collections.Counter(names).most_common(1)
            same = [forward for forward, of in zip(forwards, names) if of == usual]
            events.now("note", key="operators", value=f"{phase}: {len(usual)}, mean of {len(same)} of {len(forwards)} forwards, the discarded query apart")
            for operator in zip(*same):
                name, kind, _ = operator[0]
                events.now(
                    "layer", name=name.decode(errors="replace"), phase=phase, op=kind.decode(errors="replace"), unit="cpu",
                    duration_us=sum(took for _, _, took in operator) / len(operator) / 1000, count=len(operator), method=self.METHOD,
                )


def operators(model, job, unit, events):
    """The times of operators in a profiling pass, else None. A GPU or NPU computes after the callback: its times would mean nothing."""
    if job["profile"] != "layers":
        return None
    try:
        if unit != "cpu":
            raise ValueError("only on the CPU does an operator end before its callback")
        return Operators(model)
    except (ImportError, AttributeError, ValueError) as e:
        events.now("note", key="operators", value=f"no times of operators: {e}")
        return None


def proven_unit(config, fallback):
    """The unit that has the model, if that can be told. A context binary of QNN runs on the NPU although its backend is named cpu."""
    if fallback:
        return "cpu"
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        mapped = maps.read()
    for library, unit in LIBRARIES:
        if f"/{library}" in mapped:
            return unit
    return "cpu" if config.get("backend_type", "cpu") == "cpu" else None


def answer(model, query, job, events, profile=None):
    """Greedy; nothing ends it before gen_tokens."""
    import numpy

    number, ids, n, vocab = query["query"], query["ids"], query["gen_tokens"], job["model"]["vocab"]

    def step(i, tokens):
        if profile is not None:
            profile.forward(None if number == 0 and len(job["queries"]) > 1 else "prefill" if i == 0 else "decode")
        output = model.forward(tokens)
        ran = time.monotonic_ns()
        # The prefill gives the logits of the last position alone, or of all.
        logits = numpy.asarray(output.read()).reshape(-1)
        read = time.monotonic_ns()
        if logits.size not in (vocab, vocab * len(tokens)):
            raise Failure("model", f"query {number}: {logits.size} logits for {len(tokens)} tokens and a vocabulary of {vocab}")
        row = logits[-vocab:]
        token = int(row.argmax())
        # Damaged weights; a NaN is larger than nothing.
        if not (row[token] > row[token - 1] or row[token] > row[(token + 1) % vocab]):
            raise Failure("model", f"query {number}: the logits are all the same or no numbers")
        now = time.monotonic_ns()
        events.defer("token", now, query=number, i=i, id=token)
        steps.append((ran, read, now))
        return token

    model.generate_init()  # without reuse_kv it empties the KV cache
    failure, finish, steps = None, "length", []
    events.now("prompt", query=number, tokens=len(ids))
    begun = time.monotonic_ns()
    try:
        if len(ids) + n - 1 > job["model"]["context"]:
            finish = "context"
            raise Failure("usage", f"query {number}: {len(ids)} prompt tokens and {n} new ones do not fit a context of {job['model']['context']}")
        token = step(0, ids)
        for i in range(1, n):
            token = step(i, [token])
    except Failure as e:
        failure = e
    except Exception as e:
        failure = Failure("runtime", f"query {number}: {type(e).__name__}: {e}")
    ended = time.monotonic_ns()
    context = model._c_obj.get_context()
    if failure is None and context.get("status") == INTERNAL_ERROR:
        failure = Failure("runtime", f"query {number}: MNN says INTERNAL_ERROR")
    if failure is not None and finish == "length":
        finish = "error"
    calls, total = context.get("gen_seq_len", 0), context.get("all_seq_len", 0)
    sums = phases(number, begun, steps, events if job["profile"] == "layers" and not events.compact else None)
    events.now(
        "query_end", ended, query=number, finish=finish,
        # MNN counts its forwards and all tokens that went in: the prompt and, from the second forward on, one each.
        prompt_tokens=total - (calls - 1) if calls else None, generated_tokens=calls or None,
        # It keeps its times in generate() only; here they are 0, which is "not given".
        reported={name: context[name] for name in ("prefill_us", "decode_us", "sample_us") if context.get(name)} | sums,
    )
    if failure is not None:
        raise failure


def phases(query, begun, steps, events):
    """Sums by stage and phase, us, for `reported`; single stretches go into the events where there are any. They touch: what is between two
    calls of MNN, a microsecond of Python, is in the one that follows."""
    sums = {}
    for i, times in enumerate(steps):
        for phase, end in zip(("execute", "d2h", "sample"), times):
            name = f"{'decode' if i else 'prefill'}_{phase}_us"
            sums[name] = sums.get(name, 0) + (end - begun) / 1000
            if events is not None:
                events.defer_phase(phase, begun, end, query=query, i=i)
            begun = end
    return sums


def work(arguments, events):
    if len(arguments) != 1:
        raise Failure("usage", "one argument is expected: the job file")
    job = read_job(arguments[0])
    config = settings(job)
    model, unit = load(job, config, events)
    profile = operators(model, job, unit, events)
    if job["perf_profile"] is not None:
        events.now("note", key="ignored", value=f"perf_profile={job['perf_profile']}: MNN has none")
    events.now("note", key="step", value="a token = MNN forward() from Python, logits copied to numpy, argmax there; the first one over the whole prompt")
    if job["idle_ms"] > 0:
        events.now("idle_begin")
        time.sleep(job["idle_ms"] / 1000)
        events.now("idle_end")
    begun, count, number = time.monotonic_ns(), len(job["queries"]), 0
    events.compact = job["soak_ms"] is not None
    # A soak repeats the list with rising numbers until its time is over.
    while number < count or (events.compact and time.monotonic_ns() < begun + job["soak_ms"] * 1_000_000):
        query = job["queries"][number % count]
        answer(model, query if number < count else {**query, "query": number}, job, events, profile)
        number += 1
    if profile is not None:
        profile.write(events)


def main():
    path = os.environ.get("BENCH_EVENTS")
    if not path:
        print("error: the environment has no BENCH_EVENTS", file=sys.stderr)
        return 2
    events = Events(path)
    gc.disable()  # nothing here is circular, and a collection would fall on some token
    try:
        work(sys.argv[1:], events)
    except Failure as e:
        failure = e
    except Exception as e:
        import traceback

        traceback.print_exc()
        failure = Failure("runtime", f"{type(e).__name__}: {e}")
    else:
        events.now("end")
        return 0
    print(f"error: {failure}", file=sys.stderr)
    events.now("error", kind=failure.kind, message=str(failure))
    return 1


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # What MNN left in C's buffers must come out; its tear-down inside a dying interpreter must not decide the exit status.
    ctypes.CDLL(None).fflush(None)
    os._exit(status)
