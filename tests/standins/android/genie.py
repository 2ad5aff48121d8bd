"""The engine of the genie stand-ins.

Where `libGenie.so` is a real library of this machine (the emulator's, which the Python package onnxruntime-qnn brings), [`Library`] calls it:
tokens, times and profile are real. Where it is a placeholder, [`Fake`] counts the prompt's tokens with the config's tokenizer, answers
tokens made from it by arithmetic, and makes times from standin.json (`prefill_us`, `decode_us` a token).
"""

import ctypes as c
import json
import re
import time
import zlib
from pathlib import Path

from common import EM, TARGET, context_binary, hexagon, knobs, library, machine, read_json, use

# What a dialog's config must and may have (formats/genie.md). Unknown keys are refused where the real library is known to refuse them: QnnHtp.
MUST = {"context": "version bos-token eos-token size n-vocab".split(), "QnnHtp": "version spill-fill-bufsize mmap-budget use-mmap cpu-mask poll".split()}
QNN_HTP = MUST["QnnHtp"] + ("kv-dim pos-id-dim rope-theta enable-graph-switching allow-async-init kv-update-method shared-engine "
                            "graph-switching-lora-policy skip-lora-validation data-alignment-size").split()
DIALOG = "version type max-num-tokens stop-sequence context sampler tokenizer engine embedding ssd-q1 lade".split()
TYPES = "basic ssd-q1 spd lade kv-share eaglet multistream".split()


class Failed(Exception):
    """What the library says when something does not work, line by line; the last one is the tool's."""

    def __init__(self, *lines, status=-1):
        super().__init__(*lines)
        self.lines, self.status = lines, status


def check_config(text):
    """The dialog's config, or Failed as the library words it."""
    try:
        dialog = json.loads(text)["dialog"]
    except ValueError as error:
        raise Failed(str(error), "Failed to create the dialog config.") from None
    except KeyError:
        raise Failed("Missing field: dialog", "Failed to create the dialog config.") from None

    def field(table, where, name):
        if name not in table:
            raise Failed(f"Missing {where} field: {name}", "Failed to create the dialog config.")
        return table[name]

    for key in dialog:
        if key not in DIALOG:
            raise Failed(f"Unknown dialog config key: {key}", "Failed to create the dialog config.")
    for name in ("version", "type", "context", "tokenizer", "engine"):
        field(dialog, "dialog", name)
    if dialog["type"] not in TYPES:
        raise Failed(f"Invalid dialog config: unsupported type: {dialog['type']}", "Failed to create the dialog config.")
    for name in MUST["context"]:
        field(dialog["context"], "context", name)
    field(dialog["tokenizer"], "tokenizer", "path")
    backend = field(dialog["engine"], "engine", "backend")
    kind = field(backend, "backend", "type")
    if kind == "QnnHtp":
        htp = field(backend, "backend", "QnnHtp")
        for name in MUST["QnnHtp"]:
            field(htp, "QnnHtp", name)
        for key in htp:
            if key not in QNN_HTP:
                raise Failed(f"Unknown QnnHtp config key: {key}", "Failed to create the dialog config.")
    elif kind not in ("QnnGenAiTransformer", "QnnGpu"):
        raise Failed(f"Invalid backend config: unsupported type: {kind}", "Failed to create the dialog config.")
    return dialog


def check_libraries(dialog, asked, say):
    """The libraries and files that creating a dialog opens; in the order in which the real one does."""
    backend = dialog["engine"]["backend"]
    if backend["type"] != "QnnHtp":
        return
    no_model = ("Failure to initialize model.", "Failed to create the dialog.")
    if backend.get("extensions"):
        found, _ = library("libQnnHtpNetRunExtensions.so")
        config, why = read_json(backend["extensions"])
        if not found or why:
            say("ERROR", "Unable to load backend extensions interface config.")
            say("ERROR", "Unable to initialize backend extensions.")
            say("WARN", "Failure in initializing backend extensions.")
    for name in ("libQnnHtp.so", "libQnnSystem.so"):
        found, why = library(name)
        if not found:
            say("ERROR", f"Unable to load backend. dlerror(): {why}")
            raise Failed(*no_model)
    if asked == "no-valid-interface":
        say("ERROR", "Unable to find a valid interface.")
        say("ERROR", "Qnn getQnnInterface FAILED!")
        raise Failed(*no_model)
    stub, missing = hexagon()
    if missing or asked == "open-session":
        for line in (["DspTransport.openSession qnn_open failed, 0x80000406", "IDspTransport: Unknown rpc status 0x00000006",
                      "DspTransport failed,cannot open session, error 0xffffffff", "Failed to retrieve skel build id: err: 1003"]
                     if missing != "stub" else ["Unable to load Remote symbols 4000", "Failed to load skel, error: 4000"]):
            say("ERROR", f" <E> {line}")
        say("ERROR", "Failed to create device: 14001")
        say("ERROR", "Device Creation failure")
        raise Failed(*no_model)
    use(library("libQnnHtp.so")[0], library("libGenie.so")[0])
    say("INFO", "Using create From Binary")
    for i, name in enumerate(dialog["engine"]["model"].get("binary", {}).get("ctx-bins", [])):
        if not Path(name).is_file():
            say("ERROR", f"Failed to open file {name}")
            raise Failed(*no_model)
        if asked == "err5005" or context_binary(name) is None:
            say("ERROR", f"Could not create context from binary for context index = {i} : err 5005")
            say("ERROR", "Create From Binary FAILED!")
            raise Failed(*no_model)


class Tokenizer:
    """Byte-level BPE of a tokenizer.json, enough to count. Any other kind counts words."""

    SPLIT = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")

    def __init__(self, path):
        self.model = json.loads(Path(path).read_text()).get("model", {})
        self.ranks = {tuple(m.split(" ") if isinstance(m, str) else m): i for i, m in enumerate(self.model.get("merges", []))}
        self.words = {i: w for w, i in self.model.get("vocab", {}).items()} if isinstance(self.model.get("vocab"), dict) else {}

    def count(self, text):
        if not self.ranks:
            return len(text.split())
        total = 0
        for word in self.SPLIT.findall(text):
            parts = list(word.replace(" ", "Ġ").replace("\n", "Ċ"))
            while len(parts) > 1:
                rank, at = min((self.ranks.get((a, b), 1 << 30), i) for i, (a, b) in enumerate(zip(parts, parts[1:])))
                if rank == 1 << 30:
                    break
                parts[at:at + 2] = ["".join(parts[at:at + 2])]
            total += len(parts)
        return total

    def text(self, token):
        return self.words.get(token, f"<t{token}>").replace("Ġ", " ").replace("Ċ", "\n")


def now_us():
    return time.monotonic_ns() // 1000


def rate(us, n):
    """The rate as the library prints it: from a whole number of us a token."""
    return 1e6 / max(us // max(n, 1), 1) if us else 1.0


def event(kind, start, **metrics):
    stop = now_us()
    return {"type": kind, "duration": stop - start, "start": start, "stop": stop, **{k.replace("_", "-"): {"value": v, "unit": u} for k, (v, u) in metrics.items()}}


class Fake:
    """A dialog that computes nothing."""

    def __init__(self, config, asked, say):
        self.start = now_us()
        dialog = check_config(config)
        check_libraries(dialog, asked, say)
        if asked == "map-at":
            raise Failed("map::at:  key not found", "Failed to create the dialog.")
        try:
            self.tokenizer = Tokenizer(dialog["tokenizer"]["path"])
        except (OSError, ValueError) as error:
            raise Failed(f"Failed to open tokenizer: {error}", "Failed to create the dialog.") from None
        self.size, self.vocab = dialog["context"]["size"], dialog["context"]["n-vocab"]
        self.limit, self.asked, self.used = dialog.get("max-num-tokens"), asked, 0
        self.numbers = {"init_us": 20000, "prefill_us": 150, "decode_us": 2500, **knobs()}
        time.sleep(self.numbers["init_us"] / 1e6)
        say("INFO", "Allocated total size = 323453440 across 10 buffers")
        self.events = [event("GenieDialog_create", self.start, init_time=(now_us() - self.start, "us"))]

    def query(self, text=None, ids=None, told=print):
        start = now_us()
        n = 1 + (len(ids) if text is None else self.tokenizer.count(text))
        room = self.size - self.used - n
        if room < 1 or self.asked == "context-exceeded":
            raise Failed("Context Size was exceeded.", "Failed to query.", status=4)
        if self.asked == "query-failed":
            raise Failed("Failed to query.", status=-6)
        seed = zlib.crc32(text.encode() if text is not None else json.dumps(ids).encode())
        answer = [3 + (seed >> (i % 24)) * (i + 1) % (self.vocab - 3) for i in range(min(self.limit or room, room))]
        self.used += n + len(answer)
        time.sleep(n * self.numbers["prefill_us"] / 1e6)
        first = now_us()
        for i, token in enumerate(answer):
            if i:
                time.sleep(self.numbers["decode_us"] / 1e6)
            told(self.tokenizer.text(token) if text is not None else f"{token} ")
        ttft, decode = first - start, now_us() - first
        self.events.append(event(
            "GenieDialog_query", start, num_prompt_tokens=(n, ""), prompt_processing_rate=(rate(ttft, n), "toks/sec"), time_to_first_token=(ttft, "us"),
            num_generated_tokens=(len(answer), ""), token_generation_rate=(rate(decode, len(answer)), "toks/sec"), token_generation_time=(decode, "us")))

    def reset(self):
        self.used = 0

    def free(self):
        self.events.append(event("GenieDialog_free", now_us()))

    def profile(self):
        version = {"major": 0, "minor": 1, "patch": 0}
        return json.dumps({"header": {"header_version": version, "version": version, "artifact_type": "GENIE_PROFILE"}, "metadata": {"timestamp": self.start},
                           "components": [{"name": "dialog0", "type": "dialog", "events": self.events}]}, indent=2)


class Library:
    """A dialog of a real libGenie.so: the few of its functions that the tools need, by their exported names."""

    def __init__(self, path, config, level):
        self.lib = c.CDLL(str(path))
        self.config, self.dialog, self.recorder, log = c.c_void_p(), c.c_void_p(), c.c_void_p(), c.c_void_p()
        try:
            self.call("GenieDialogConfig_createFromJson", c.c_char_p(config.encode()), c.byref(self.config))
        except Failed:
            raise Failed("Failed to create the dialog config.") from None
        self.call("GenieLog_create", None, None, level, c.byref(log))
        self.call("GenieDialogConfig_bindLogger", self.config, log)
        self.call("GenieProfile_create", None, c.byref(self.recorder))
        self.call("GenieDialogConfig_bindProfiler", self.config, self.recorder)
        try:
            self.call("GenieDialog_create", self.config, c.byref(self.dialog))
        except Failed:
            raise Failed("Failed to create the dialog.") from None

    def call(self, name, *args):
        status = getattr(self.lib, name)(*args)
        if status != 0:
            raise Failed(*(["Context Size was exceeded."] if status == 4 else []), "Failed to query.", status=status)

    @classmethod
    def version(cls, path):
        lib = c.CDLL(str(path))
        return ".".join(str(getattr(lib, f"Genie_getApi{part}Version")()) for part in ("Major", "Minor", "Patch"))

    def query(self, text=None, ids=None, told=print):
        if text is not None:
            kind = c.CFUNCTYPE(None, c.c_char_p, c.c_int, c.c_void_p)
            back = kind(lambda word, code, user: told(word.decode(errors="replace")) if word else None)
            self.call("GenieDialog_query", self.dialog, c.c_char_p(text.encode()), 0, back, None)
        else:
            kind = c.CFUNCTYPE(None, c.POINTER(c.c_uint32), c.c_uint32, c.c_int, c.c_void_p)
            back = kind(lambda words, n, code, user: told("".join(f"{words[i]} " for i in range(n))))
            self.call("GenieDialog_tokenQuery", self.dialog, (c.c_uint32 * len(ids))(*ids), len(ids), 0, back, None)

    def reset(self):
        self.call("GenieDialog_reset", self.dialog)

    def free(self):
        self.call("GenieDialog_free", self.dialog)

    def profile(self):
        kept = []

        def allocate(size, out):
            kept.append(c.create_string_buffer(size))
            out[0] = c.addressof(kept[-1])

        text = c.c_char_p()
        self.call("GenieProfile_getJsonData", self.recorder, c.CFUNCTYPE(None, c.c_size_t, c.POINTER(c.c_void_p))(allocate), c.byref(text))
        return text.value.decode()


def real(path):
    """Whether the library can be loaded here: this machine's, and no placeholder."""
    return machine(path) == EM["x86_64-linux-clang"] and path.stat().st_size > 65536


def version(path):
    return Library.version(path) if real(path) else knobs().get("genie_version", "1.13.0")


def dialog(path, config, asked, level, say):
    """A dialog of the library at `path`. A failure that is asked for is shown by the fake one."""
    if real(path) and not asked:
        return Library(path, config, level)
    return Fake(config, asked, say)


def link_error(argv0):
    """The loader's words when libGenie.so is not found, and its status."""
    if TARGET == "aarch64-android":
        return f'CANNOT LINK EXECUTABLE "{argv0}": library "libGenie.so" not found: needed by main executable', 1
    return f"{argv0}: error while loading shared libraries: libGenie.so: cannot open shared object file: No such file or directory", 127
