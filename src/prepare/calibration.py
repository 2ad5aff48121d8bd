"""The encodings of every activation: its range on prompts that fill the whole context, found on the CPU in float32."""

import numpy as np
from onnx import helper

from builders import Encoding, FloatBuilder
from graph import MASKED, chunk_inputs, decoder, io_shapes
from weights import uniform_ints

_HEADROOM = 1.15  # over the ranges seen, for prompts not seen
_PROMPTS = 3
# Below the best score by this much a softmax is zero in 16 bits. Cutting masked scores off here spends the 16 bits on the others.
_SCORES_BELOW = 40.0


def encodings(g, w, chunk, context, cache_bits):
    """{tensor name in the float graph: Encoding}; graph outputs and inputs included, past_*_in equal to past_*_out."""
    found = {}
    for name, (low, high) in _ranges(g, w, chunk, context).items():
        found[name] = Encoding.covering(low * _HEADROOM, high * _HEADROOM)
        if name.endswith(".masked"):
            found[name] = Encoding.covering(-_SCORES_BELOW, high * _HEADROOM)
        elif name.endswith("sigmoid"):
            found[name] = Encoding(np.dtype(np.uint16), 1 / 65536, 0)  # the only one that the HTP's 16-bit sigmoid takes
        elif name.endswith("softmax"):
            found[name] = Encoding.covering(0, 1)
        elif name.startswith("past_"):
            found[name] = Encoding.symmetric(max(-low, high) * _HEADROOM, np.uint8 if cache_bits == 8 else np.uint16)
    for i in range(g.layers):
        for what in ("key", "value"):
            found[f"past_{what}_{i}_in"] = found[f"past_{what}_{i}_out"]
        # A Concat of past and new must not requantise either.
        found[f"layers.{i}.keys"], found[f"layers.{i}.values"] = found[f"past_key_{i}_out"], found[f"past_value_{i}_out"]
    found["attention_mask"] = Encoding(np.dtype(np.uint16), float(np.float32(-MASKED / 65535)), 65535)
    found["position_ids_cos"] = found["position_ids_sin"] = Encoding.symmetric(1.0)
    return found


def _ranges(g, w, chunk, context):
    """(lowest, highest) of every float tensor over some prompts of `context` tokens."""
    import onnxruntime as ort
    b = FloatBuilder(np.float32)
    decoder(b, g, w, chunk, context)
    model = b.model("calibration")
    known = {o.name for o in model.graph.output}
    moves = ("Reshape", "Transpose", "Split")
    seen = [o for n in model.graph.node if n.op_type not in moves for o in n.output if o not in known]
    # The minimum and maximum are taken inside the graph: copying every activation out would cost more than computing it.
    names = seen + [o for o in known if o != "logits"] + ["logits"]
    for i, name in enumerate(names):
        for kind in ("ReduceMin", "ReduceMax"):
            model.graph.node.append(helper.make_node(kind, [name], [f"{kind}.{i}"], keepdims=0))
            model.graph.output.append(helper.make_tensor_value_info(f"{kind}.{i}", 1, []))
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    extremes = [f"{kind}.{i}" for i in range(len(names)) for kind in ("ReduceMin", "ReduceMax")]
    shapes, cache_names = io_shapes(g, chunk, context)[0], [n for n in io_shapes(g, chunk, context)[1] if n != "logits"]
    lows, highs = np.full(len(names), np.inf), np.full(len(names), -np.inf)
    for prompt in range(_PROMPTS):
        ids = [g.bos, *_ordinary(g, f"calibration.{prompt}", context - 1)]
        keys = [np.zeros((*shapes["past_key_0_in"][:3], context), np.float32) for _ in range(g.layers)]
        values = [np.zeros((g.kv_heads, 1, context, g.head_dim), np.float32) for _ in range(g.layers)]
        for past in range(0, context, chunk):
            part = ids[past : past + chunk]
            results = session.run(cache_names + extremes, chunk_inputs(g, part, past, chunk, context, keys, values))
            for name, new in zip(cache_names, results):
                layer = int(name.split("_")[2])
                if "key" in name:
                    keys[layer][..., past : past + len(part)] = new[..., : len(part)]
                else:
                    values[layer][:, :, past : past + len(part)] = new[:, :, : len(part)]
            found = np.array(results[len(cache_names) :], np.float64).reshape(-1, 2)
            lows, highs = np.minimum(lows, found[:, 0]), np.maximum(highs, found[:, 1])
    return {name: (lows[i], highs[i]) for i, name in enumerate(names)}


def _ordinary(g, stream, count):
    ordinary = [t for t in range(g.vocab) if t not in g.specials]
    return [ordinary[i] for i in uniform_ints(g.seed, stream, count, len(ordinary))]
