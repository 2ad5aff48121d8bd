"""CPU that bench-agent uses beside a process of 1 GB, as a share of one core, at 10 Hz and without sampling, alternating."""

import os
import tempfile
from pathlib import Path

from common import QUICK, agent, show

BYTES = (1 << 28) if QUICK else 10**9
SECONDS, ROUNDS = (2, 2) if QUICK else (20, 6)
COMMAND = f"""
import time
held = bytearray({BYTES})
for i in range(0, len(held), 4096): held[i] = 1
time.sleep({SECONDS})
"""

shares = {0.0: [], 10.0: []}
with tempfile.TemporaryDirectory() as folder:
    for _ in range(ROUNDS):
        for rate in shares:
            done = agent(
                {
                    "v": 1, "argv": ["python3", "-c", COMMAND], "env": {"PATH": os.environ["PATH"]}, "cwd": folder,
                    "out_dir": str(Path(folder) / "out"), "timeout_ms": 120_000, "grace_ms": 1000, "rate_hz": rate, "max_output_bytes": 1 << 20,
                },
                folder,
            )
            if rate and done["peak_rss_kb"] * 1024 < BYTES:
                raise SystemExit(f"the agent saw {done['peak_rss_kb']} KiB of {BYTES} bytes")
            shares[rate].append(100 * done["agent_cpu_s"] / ((done["end_ns"] - done["start_ns"]) / 1e9))
show(f"bench-agent without sampling, {SECONDS} s, % of a core", shares[0.0])
show(f"bench-agent at 10 Hz, {BYTES / 1e9:.1f} GB, {SECONDS} s, % of a core", shares[10.0], target="< 1")
