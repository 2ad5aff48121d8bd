"""Packs tools into one executable file each: a Python archive behind two lines of shell. A line of input is `TARGET FOLDER TOOL...`.

The shell finds Python where it is: the test phone has it outside the PATH, as no phone has one.
"""

import io
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
START = b'#!/bin/sh\nexec "$(command -v python3 || echo /usr/bin/python3)" "$0" "$@"\n'

for line in sys.stdin:
    target, folder, *tools = line.split()
    for tool in tools:
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("__main__.py", (HERE / tool).read_text())
            file.writestr("common.py", (HERE / "common.py").read_text().replace("@TARGET@", target))
            if tool.startswith("genie"):
                file.writestr("genie.py", (HERE / "genie.py").read_text())
        path = Path(folder, tool)
        path.write_bytes(START + archive.getvalue())
        path.chmod(0o755)
