"""make.py KIND ARGS.json OUTDIR - makes the synthetic model files of one kind and, last, OUTDIR/meta.json.

The vendors' libraries write to stdout and stderr as they please, so both go to OUTDIR/make.log; a failure is one line on the real stderr."""

import importlib
import json
import os
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

sys.dont_write_bytecode = True  # the folder of these scripts may be a read-only or hash-checked cache
from geometry import Unmakeable, parse_geometry  # noqa: E402

# A module is imported only when its kind is asked for: MNN and ONNX Runtime are slow to load and must not be needed for each other.
KINDS = {"text": "kind_text", "qnn-context": "kind_qnn", "mnn-llm": "kind_mnn"}
_PACKAGES = ("numpy", "tokenizers", "onnx", "onnxruntime", "onnxruntime-qnn", "mnn")


def main(argv):
    if len(argv) != 4 or argv[1] not in KINDS:
        raise Unmakeable(f"usage: make.py {'|'.join(KINDS)} ARGS.json OUTDIR")
    kind, out = argv[1], Path(argv[3]).resolve()
    try:
        args = json.loads(Path(argv[2]).read_text())
    except (OSError, ValueError) as e:
        raise Unmakeable(f"{argv[2]}: {e}") from e
    if not isinstance(args, dict):
        raise Unmakeable(f"{argv[2]}: expected a table")
    g = parse_geometry(args.get("geometry"))
    _empty(out)
    log = os.open(out / "make.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    started = time.monotonic()
    facts = importlib.import_module(KINDS[kind]).make(g, args, out)
    meta = {"kind": kind, "args": args, **facts, "files": _sizes(out), "tools": _versions(), "make_seconds": round(time.monotonic() - started, 3)}
    # Written last and renamed: a meta.json means that everything before it is complete.
    (out / "meta.json.part").write_text(json.dumps(meta, indent=1))
    (out / "meta.json.part").rename(out / "meta.json")


def _empty(out):
    """An empty folder at `out`. What an earlier run left is unlinked, not overwritten: its files may be hard-linked into other places."""
    out.mkdir(parents=True, exist_ok=True)
    left = list(out.iterdir())
    if left and not (out / "make.log").exists():
        raise Unmakeable(f"{out} holds files that are not this tool's: choose an empty folder")
    for path in left:
        if path.is_dir():
            raise Unmakeable(f"{path} is in the way")
        path.unlink()


def _sizes(out):
    return {str(p.relative_to(out)): p.stat().st_size for p in sorted(out.rglob("*")) if p.is_file() and p.name not in ("make.log", "meta.json.part")}


def _versions():
    found = {"python": sys.version.split()[0]}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            pass
    return found


def run(argv):
    stderr = os.dup(2)
    try:
        main(argv)
        return 0
    except Unmakeable as e:
        message = str(e)
    except ModuleNotFoundError as e:
        message = f"the Python package {e.name} is not installed: install requirements.lock"
    except Exception as e:  # one line for the user, the rest in make.log
        import traceback
        traceback.print_exc()
        message = f"{type(e).__name__}: {e}"
    os.write(stderr, ("make.py: " + " ".join(message.split())[:600] + "\n").encode())
    return 1


if __name__ == "__main__":
    status = run(sys.argv)
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: tearing down the QNN plugin and MNN in one interpreter can crash after the work is done and complete.
    os._exit(status)
