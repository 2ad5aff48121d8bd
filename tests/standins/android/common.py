"""What every stand-in shares: how options are taken, where libraries are looked for, and failures on demand. No code of an adapter is used.

A tool is packed with this file by make-sdk.sh into one executable. TARGET is the SDK folder that it belongs to: `aarch64-android` insists on
the stub and the skel of the Hexagon version, as a phone does; `x86_64-linux-clang` is the emulator, which has neither.
"""

import json
import mmap
import os
import re
import sys
from pathlib import Path

TARGET = "@TARGET@" if "@" not in "@TARGET@" else os.environ.get("STANDIN_TARGET", "aarch64-android")
NAME = Path(sys.argv[0]).name
VERSION = "v2.37.0.250724175447_124859"
EM = {"aarch64-android": 183, "x86_64-linux-clang": 62, "hexagon": 164}


class Exit(Exception):
    """Ends the tool with a status."""

    def __init__(self, status):
        super().__init__(status)
        self.status = status


def knobs():
    """What a test asks for: standin.json in the working folder, beside the tool, in the root of its SDK, or in /data/local/tmp."""
    tool = Path(sys.argv[0]).resolve().parent
    for folder in (Path.cwd(), Path(sys.argv[0]).absolute().parent, tool, tool.parent.parent, Path("/data/local/tmp")):
        if (folder / "standin.json").is_file():
            return json.loads((folder / "standin.json").read_text())
    return {}


def failure(known):
    """The failure that is asked for: STANDIN_FAIL=NAME or TOOL:NAME, or `fail` in standin.json: {"TOOL": "NAME"}. One nobody knows is an error."""
    asked = os.environ.get("STANDIN_FAIL") or knobs().get("fail", {}).get(NAME)
    tool, colon, name = (asked or "").rpartition(":")
    if colon and tool != NAME:
        return None
    if name and name not in known:
        print(f"stand-in {NAME}: no failure {name}; there are {', '.join(sorted(known))}", file=sys.stderr)
        raise Exit(99)
    return name or None


def run(main):
    """Runs a tool; what it raises as Exit is its status."""
    try:
        status = main(sys.argv[1:]) or 0
    except Exit as end:
        status = end.status
    except BrokenPipeError:
        status = 141
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def segfault():
    """Dies as a C++ program does, after what it printed."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.kill(os.getpid(), 11)


def options(words, values, flags, bad, prefix="--"):
    """`--name value`, `--name=value` and `--flag`; anything else, and a value that is missing, goes to `bad(word, why)`."""
    told, rest = {}, list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word in flags:
            told[flags[word] if isinstance(flags, dict) else word] = True
        elif name in values:
            if not equals:
                if not rest or (rest[0] in values or rest[0] in flags):
                    bad(word, "value")
                value = rest.pop(0)
            told[values[name] if isinstance(values, dict) else name] = value
        else:
            bad(word, "unknown")
    return told


def number(text, low=0):
    """A whole number of at least `low`, or None."""
    return int(text) if re.fullmatch(r"\d+", text or "") and int(text) >= low else None


def machine(path):
    """The ELF machine of a library, or None where it is no ELF file."""
    with open(path, "rb") as file:
        head = file.read(20)
    return int.from_bytes(head[18:20], "little") if head[:4] == b"\x7fELF" else None


def library(name, folders=None):
    """Where the loader finds a library: (path, None), or (None, the loader's words). A name with a slash is a path."""
    found = folders if folders is not None else os.environ.get("LD_LIBRARY_PATH", "").split(":")
    tried = [Path(name)] if "/" in name else [Path(f or ".") / name for f in found]
    for path in tried:
        if path.is_file():
            is_for, wanted = machine(path), EM["hexagon" if "Skel" in name else TARGET]
            if is_for is None:
                return None, f'dlopen failed: "{path}" has bad ELF magic'
            # In the test phone a program for the phone is a script, and the libraries of the emulator are this machine's.
            if is_for not in (wanted, 62):
                return None, f'dlopen failed: "{path}" is for EM {is_for} instead of EM {wanted}'
            return path, None
    return None, f'dlopen failed: library "{name}" not found' if TARGET == "aarch64-android" else f"{name}: cannot open shared object file: No such file or directory"


def hexagon(version=None):
    """The Hexagon version whose stub is in LD_LIBRARY_PATH: (`75`, None), or (None, what is missing: `stub` or `skel`)."""
    if TARGET != "aarch64-android":
        return "75", None
    stubs = set()
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        stubs |= {m[1] for f in Path(folder or ".").glob("libQnnHtpV*Stub.so") if (m := re.fullmatch(r"libQnnHtpV(\d+)Stub\.so", f.name))}
    if version:
        stubs &= {version}
    if not stubs:
        return None, "stub"
    adsp = [f for f in os.environ.get("ADSP_LIBRARY_PATH", "").split(";") if f]
    for stub in sorted(stubs):
        if library(f"libQnnHtpV{stub}Skel.so", adsp)[0]:
            return stub, None
    return None, "skel"


IN_USE = []


def use(*libraries):
    """Leaves the traces of a program that computes on the NPU: libraries mapped for execution and, on a phone, FastRPC's node open."""
    for path in libraries:
        with open(path, "rb") as file:
            IN_USE.append(mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC))
    node = Path("/dev/fastrpc-cdsp")
    if TARGET == "aarch64-android" and node.exists():
        IN_USE.append(open(node, "rb"))


def read_json(path):
    """A JSON file: (value, None) or (None, why not)."""
    try:
        return json.loads(Path(path).read_text()), None
    except OSError as error:
        return None, error.strerror
    except ValueError as error:
        return None, str(error)


def context_binary(path):
    """What can be told from a context binary without a library: the QNN build, tensor names in and out. None if it is none.

    The names are the words in its bytes: enough to insist that an input list names inputs that are there.
    """
    data = Path(path).read_bytes()
    words = {w.decode() for w in re.findall(rb"[\x21-\x7e]{4,}", data)}
    build = next((w for w in sorted(words) if re.fullmatch(r"v\d+\.\d+\.\d+\.\d+(_\d+)?", w)), None)
    if build is None:
        return None
    plain = {w for w in words if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", w)}
    return {"build": build, "words": plain, "outputs": sorted({w for w in plain if w.endswith("_out") or w == "logits"})}
