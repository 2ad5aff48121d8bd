"""bad_op.py PREPARE GOOD OUT...: the float graphs of a made artifact again, uncompiled. With `--shrink` before OUT, the logits go through
Shrink with lambda 0 and bias 0, which changes no number and which the NPU does not have.

PREPARE is src/prepare, GOOD the folder of a made qnn-context artifact."""

import json
import shutil
import sys
from pathlib import Path

prepare, good = Path(sys.argv[1]), Path(sys.argv[2])
sys.path.insert(0, str(prepare))
sys.dont_write_bytecode = True
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from builders import FloatBuilder  # noqa: E402
from geometry import parse_geometry  # noqa: E402
from graph import decoder  # noqa: E402
from weights import weights  # noqa: E402

shrink = "--shrink" in sys.argv
out = Path(sys.argv[-1])
out.mkdir()
meta = json.loads((good / "meta.json").read_text())
g = parse_geometry(meta["args"]["geometry"])
for name, ar in (("prefill", meta["chunk"]), ("decode", 1)):
    b = FloatBuilder(np.float16)
    decoder(b, g, weights(g), ar, meta["context"])
    model = b.model(name)
    if shrink:
        for node in model.graph.node:
            node.output[:] = ["logits_before" if o == "logits" else o for o in node.output]
        model.graph.node.append(onnx.helper.make_node("Shrink", ["logits_before"], ["logits"], name="cpu_shrink", lambd=0.0, bias=0.0))
        onnx.checker.check_model(model)
    onnx.save(model, out / f"{name}.onnx")
shutil.copy(good / "meta.json", out)
