"""KIND qnn-context: the decoder as two QNN context binaries (prefill and decode), for Genie and for ONNX Runtime's QNN EP alike."""

import numpy as np
import onnx

from builders import FloatBuilder, QdqBuilder
from calibration import encodings
from geometry import Unmakeable, argument, htp_arch
from graph import MASKED, decoder, io_shapes
from qnn import compile_context
from weights import weights

_WEIGHT_BITS = {"fp16": 16, "w8a16": 8, "w4a16": 4}


def make(g, args, out):
    context = argument(args, "context", int, 2)
    chunk = argument(args, "chunk", int, 1)
    quant = argument(args, "quant", str, choices=tuple(_WEIGHT_BITS))
    soc_model = argument(args, "soc_model", int, 1, default=57)
    arch = htp_arch(args)
    kv_bits = argument(args, "kv_bits", int, choices=(8, 16), default=8)
    # Otherwise the last chunk of a long prompt would need more room for its past than the prefill graph has.
    if chunk < 2 or chunk >= context or context % chunk:
        raise Unmakeable(f"chunk ({chunk}) must be at least 2, below the context ({context}) and divide it")

    w = weights(g)
    if quant == "fp16":
        found, bits = None, {"weight_bits": 16, "act_bits": 16, "kv_bits": 16, "lm_head_bits": 16, "embedding_bits": 16}
    else:
        found = encodings(g, w, chunk, context, kv_bits)
        bits = {"weight_bits": _WEIGHT_BITS[quant], "act_bits": 16, "kv_bits": kv_bits, "lm_head_bits": g.lm_head_bits, "embedding_bits": g.embedding_bits}
    graphs = {}
    for name, ar in (("prefill", chunk), ("decode", 1)):
        b = FloatBuilder(np.float16) if found is None else QdqBuilder(found, bits["weight_bits"], g.lm_head_bits, g.embedding_bits)
        decoder(b, g, w, ar, context)
        source = out / f"{name}.source.onnx"
        onnx.save(b.model(f"{name}_ar{ar}_cl{context}"), source)
        compile_context(source, out, name, soc_model, arch)
        source.unlink()
        inputs, outputs = io_shapes(g, ar, context)
        graphs[name] = {
            "tokens": ar, "binary": f"{name}.bin", "wrapper": f"{name}.onnx",
            "inputs": {n: _described(n, s, found) for n, s in inputs.items()}, "outputs": {n: _described(n, s, found) for n, s in outputs.items()},
        }
    return {
        "quant": quant,
        "quant_native": "float16" if found is None else f"QDQ int{bits['weight_bits']} per tensor, uint16 activations",
        "context": context, "chunk": chunk, "soc_model": soc_model, "htp_arch": arch, **bits,
        "group": 0, "parameters": w.count, "bits_per_weight": round(b.weight_bits_stored / b.weights_stored, 4),
        # 0 means "look", this means "do not"; on a quantised graph both go through the encoding of attention_mask (0 -> 65535, this -> 0).
        "mask_blocked": MASKED, "mask_allowed": 0.0, "graphs": graphs,
    }


def _described(name, shape, found):
    if name == "input_ids":
        return {"dtype": "int32", "shape": shape, "scale": None, "zero_point": None}
    if found is None:
        return {"dtype": "float16", "shape": shape, "scale": None, "zero_point": None}
    return {"dtype": found[name].dtype.name, "shape": shape, "scale": found[name].scale, "zero_point": found[name].zero_point}
