"""Test phones (tests/device) behind an adb server of their own, and runs of `bench` on them with a stand-in engine. Needs root and adb."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import PROGRAMS, ROOT, program

TARGET = "x86_64-unknown-linux-musl"


def static_agent():
    """The agent for the phones, where the tests build it too; `BENCH_TEST_AGENT` names one that is there."""
    if os.environ.get("BENCH_TEST_AGENT"):
        return Path(os.environ["BENCH_TEST_AGENT"])
    folder = PROGRAMS.parent / "tmp/agent"
    build = ["cargo", "build", "--quiet", "-p", "bench-agent", "--target", TARGET, "--target-dir", folder]
    subprocess.run(build, cwd=ROOT, env={**os.environ, "RUSTFLAGS": "-C linker=rust-lld -C link-self-contained=yes"}, check=True)
    return folder / TARGET / "debug/bench-agent"


class Phones:
    """So many phones, as a context; they and the server end with it."""

    def __init__(self, count):
        self.count, self.phones, self.folder = count, [], Path(tempfile.mkdtemp())
        libexec = self.folder / "libexec" / TARGET
        libexec.mkdir(parents=True)
        shutil.copy(static_agent(), libexec / "bench-agent")

    def __enter__(self):
        start = ROOT / "tests/device/start.sh"
        for _ in range(self.count):
            self.phones.append(subprocess.Popen([start], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        self.serials = [phone.stdout.readline().split()[1] for phone in self.phones]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        address = f"tcp:localhost:{port}"
        self.env = {
            **os.environ, "HOME": str(self.folder), "ADB_SERVER_SOCKET": address, "ADB_LOCAL_TRANSPORT_MAX_PORT": "5554",
            "BENCH_CACHE": str(self.folder / "cache"), "BENCH_LIBEXEC": str(self.folder / "libexec"),
        }
        # USB devices of this machine are not this server's business; it ends with us, also when we are killed, as the phones do.
        hide = '[ ! -d /dev/bus/usb ] || mount -t tmpfs none /dev/bus/usb; exec setpriv --pdeathsig KILL adb -L "$0" nodaemon server'
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.server = subprocess.Popen(["unshare", "--mount", "sh", "-c", hide, address], env=self.env, **quiet)
        until = time.monotonic() + 60
        # Not before the server is there: adb would start one of its own.
        while socket.socket().connect_ex(("127.0.0.1", port)) and time.monotonic() < until:
            time.sleep(0.02)
        for serial in self.serials:
            while "connected" not in self.adb("connect", serial) or self.adb("-s", serial, "shell", "echo up") != "up":
                if time.monotonic() > until:
                    sys.exit(f"{serial} does not come up")
                time.sleep(0.1)
        return self

    def __exit__(self, *_):
        for phone in self.phones:
            phone.stdin.close()
        for phone in self.phones:
            phone.wait()
        self.server.kill()
        self.server.wait()
        shutil.rmtree(self.folder)

    def adb(self, *words):
        done = subprocess.run(["adb", *words], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        return done.stdout.strip()

    def run(self, serials, launches, command, name):
        """One `bench run` on these phones, with an engine of tests/: (seconds, resources that `bench` used, run folders)."""
        folder = self.folder / name
        folder.mkdir()
        shutil.copy(ROOT / "tests" / command[0], folder / "runner.py")
        scenario = folder / "scenario.toml"
        scenario.write_text(f"""
name = "phones"
[device]
serial = {json.dumps(serials)}
[models.standin]
context = 256
geometry = {json.dumps(str(ROOT / "scenarios/models/tiny-llama.toml"))}
[backends.standin]
command = {json.dumps(["python3", "./runner.py", *command[1:]])}
[matrix]
backend = "standin"
model = "standin"
quant = "fp32"
prompt-tokens = 16
gen-tokens = 8
[measure]
queries = 2
repetitions = {{ min = {launches}, max = {launches} }}
""")
        begun = time.monotonic()
        child = subprocess.Popen(
            [program("bench"), "run", scenario, "--out", folder / "results", "--no-report"],
            env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        said = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.monotonic() - begun
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit(f"bench run: exit {child.returncode}\n{said[-3000:]}")
        runs = [p.parent for p in (folder / "results").glob("*/manifest.json")]
        if len(runs) != len(serials):
            sys.exit(f"{len(runs)} runs of {len(serials)} phones\n{said[-3000:]}")
        return seconds, usage, runs
