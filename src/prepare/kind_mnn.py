"""KIND mnn-llm: the folder that MNN's LLM engine loads.

MNN's own exporter needs PyTorch and a checkpoint. Here a graph with placeholder operators goes through its converter, which settles the
layout of everything around them; then the placeholders are replaced in the JSON form by what the LLM engine runs, and the weights are written beside."""

import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import mnn_format
from geometry import Unmakeable, argument
from tokenizer import plain, tokenizer_json
from weights import weights

_WEIGHT_BITS = {"fp32": 32, "fp16": 16, "w8": 8, "w4": 4}
_DOMAIN = "LlmExporter"


def make(g, args, out):
    quant = argument(args, "quant", str, choices=tuple(_WEIGHT_BITS))
    context = argument(args, "context", int, 2)
    group = argument(args, "group", int, 0, default=0)
    bits = _WEIGHT_BITS[quant]
    lm_head_bits = g.lm_head_bits if bits < 16 else bits
    if lm_head_bits not in (4, 8, 16, 32):
        raise Unmakeable(f"lm_head_bits {lm_head_bits} is not possible in MNN (4, 8 or 16)")
    # Groups run along the inputs of a matrix, so each of the widths that occur must be a whole number of them.
    if group and bits < 16 and any(n % group for n in (g.hidden, g.ffn, g.heads * g.head_dim)):
        raise Unmakeable(f"group {group} must divide hidden, ffn and heads*head_dim")

    w = weights(g)
    source, converted, as_json = (out / f"source.{suffix}" for suffix in ("onnx", "mnn", "json"))
    onnx.save(_placeholder_graph(g), source)
    _convert(converted, "-f", "ONNX", "--modelFile", source, "--MNNModel", converted, "--allowCustomOp", "--transformerFuse")
    _convert(as_json, "-f", "MNN", "--modelFile", converted, "--JsonFile", as_json)
    graph = json.loads(as_json.read_text())
    with mnn_format.WeightFile(out / "llm.mnn.weight") as weight_file:
        _replace(graph, g, w, weight_file, bits, lm_head_bits, group)
    as_json.write_text(json.dumps(graph))
    _convert(out / "llm.mnn", "-f", "JSON", "--modelFile", as_json, "--MNNModel", out / "llm.mnn")
    for path in (source, converted, as_json):
        path.unlink()

    mnn_format.bfloat16(w.matrix["embed"].array()).tofile(out / "embeddings_bf16.bin")
    (out / "tokenizer.txt").write_text(mnn_format.tokenizer_text([plain(p) for p in tokenizer_json(g)[1]]))
    _write(out / "llm_config.json", {
        "model_type": "llama", "hidden_size": g.hidden, "layer_nums": g.layers, "attention_mask": "float", "attention_type": "full",
        "is_mrope": False, "max_position_embeddings": context})
    # One thread: two of them on a busy two-core machine wait for each other. No KV reuse: a repeated prompt must be computed again.
    _write(out / "config.json", {
        "llm_model": "llm.mnn", "llm_weight": "llm.mnn.weight", "tokenizer_file": "tokenizer.txt", "backend_type": "cpu", "thread_num": 1,
        "precision": "high" if bits > 8 else "low", "memory": "normal" if bits > 8 else "low", "sampler_type": "greedy", "reuse_kv": False,
        "use_template": False, "max_new_tokens": context})
    scale = f"block {group}" if group else "per channel"
    return {
        "quant": quant, "quant_native": f"int{bits} {scale}, symmetric" if bits < 16 else quant, "context": context,
        "weight_bits": bits, "act_bits": 32 if bits > 8 else 8, "kv_bits": 32, "group": group if bits < 16 else 0,
        "lm_head_bits": lm_head_bits, "embedding_bits": 16, "parameters": w.count,
        "bits_per_weight": round((weight_file.stored_bits + 16 * w.matrix["embed"].codes.size) / (weight_file.stored + w.matrix["embed"].codes.size), 4),
        "config": "config.json",
    }


def _write(path, table):
    path.write_text(json.dumps(table, indent=1))


def _convert(result, *arguments):
    """One run of MNN's converter, inside this process: its console script would install another package and report home."""
    import _tools
    _tools.mnnconvert(["mnnconvert", *map(str, arguments)])
    if not result.exists() or not result.stat().st_size:  # its return value is True even then
        raise Unmakeable(f"MNN's converter did not make {result.name}; its reason is in make.log")


def _placeholder_graph(g):
    nodes, constants = [], {}

    def integers(*values):
        name = "int_" + "_".join(map(str, values))
        constants[name] = numpy_helper.from_array(np.array(values, np.int64), name)
        return name

    def op(kind, inputs, name, domain="", out=None, **attributes):
        nodes.append(helper.make_node(kind, inputs, [out or f"{name}/o"], name=name, domain=domain, **attributes))
        return out or f"{name}/o"

    def linear(x, name, out=None):
        op("FakeLinear", [x], name, _DOMAIN, out)
        nodes[-1].attribute.append(helper.make_attribute("name", name))
        return nodes[-1].output[0]

    def norm(x, name):
        op("FakeRMSNorm", [x], name, _DOMAIN)
        nodes[-1].attribute.append(helper.make_attribute("name", name))
        return nodes[-1].output[0]

    def rotate(x, name):
        half, last = integers(g.head_dim // 2), integers(3)
        first = op("Slice", [x, integers(0), half, last], f"{name}/first")
        second = op("Slice", [x, half, integers(g.head_dim), last], f"{name}/second")
        turned = op("Concat", [op("Neg", [second], f"{name}/minus"), first], f"{name}/turned", axis=3)
        return op("Add", [op("Mul", [x, cos], f"{name}/x_cos"), op("Mul", [turned, sin], f"{name}/t_sin")], f"{name}/out")

    frequency = (1.0 / g.rope_theta ** (np.arange(0, g.head_dim, 2) / g.head_dim)).astype(np.float32)
    constants["frequency"] = numpy_helper.from_array(frequency.reshape(1, 1, 1, -1), "frequency")
    position = op("Reshape", [op("Cast", ["position_ids"], "position", to=TensorProto.FLOAT), integers(1, -1, 1, 1)], "position/column")
    angle = op("Mul", [position, "frequency"], "angle/half")
    angle = op("Concat", [angle, angle], "angle", axis=3)
    cos, sin = op("Cos", [angle], "cos"), op("Sin", [angle], "sin")

    x = op("Reshape", ["input_ids", integers(1, -1, g.hidden)], "embed")  # MNN looks embeddings up itself: these are vectors
    for i in range(g.layers):
        p = f"layers.{i}."
        h = norm(x, p + "attention_norm")
        q = op("Reshape", [linear(h, p + "q"), integers(1, -1, g.heads, g.head_dim)], p + "q/heads")
        k = op("Reshape", [linear(h, p + "k"), integers(1, -1, g.kv_heads, g.head_dim)], p + "k/heads")
        v = op("Reshape", [linear(h, p + "v"), integers(1, -1, g.kv_heads, g.head_dim)], p + "v/heads")
        mixed = op("FusedAttention", [rotate(q, p + "q/rope"), rotate(k, p + "k/rope"), v, "attention_mask"], p + "attention", _DOMAIN,
                   output_dim=g.heads * g.head_dim, kv_cache=1, layer_index=i, kv_shared_layer_index=-1, head_dim=g.head_dim)
        x = op("Add", [x, linear(mixed, p + "o")], p + "after_attention")
        h = norm(x, p + "ffn_norm")
        gate, up = linear(h, p + "gate"), linear(h, p + "up")
        silu = op("Mul", [gate, op("Sigmoid", [gate], p + "sigmoid")], p + "silu")
        x = op("Add", [x, linear(op("Mul", [silu, up], p + "gated"), p + "down")], p + "after_ffn")
    # logits_index is where the wanted rows begin: after a prefill only the last.
    begin = op("Cast", ["logits_index"], "logits_begin", to=TensorProto.INT64)
    x = op("Slice", [x, begin, integers(2**31 - 1), integers(1)], "last")
    linear(norm(x, "final_norm"), "lm_head", out="logits")

    value = helper.make_tensor_value_info
    inputs = [value("input_ids", TensorProto.FLOAT, ["n", 1, g.hidden]), value("attention_mask", TensorProto.FLOAT, [1, 1, "n", "n"]),
              value("position_ids", TensorProto.INT32, [1, "n"]), value("logits_index", TensorProto.INT32, [1])]
    graph = helper.make_graph(nodes, g.name, inputs, [value("logits", TensorProto.FLOAT, [1, "m", g.vocab])], list(constants.values()))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15), helper.make_opsetid(_DOMAIN, 1)], ir_version=8)


def _replace(graph, g, w, weight_file, bits, lm_head_bits, group):
    def new_tensor(name):
        graph["tensorName"].append(name)
        return [len(graph["tensorName"]) - 1]

    operators = []
    for op in graph["oplists"]:
        kind = op["main"].get("type") if op["type"] == "Extra" else None
        if kind == "FusedAttention":
            operators.append(mnn_format.attention(op))
        elif kind == "FakeRMSNorm":
            operators.append(mnn_format.rms_norm(op, w.gain[_name(op)], g.norm_eps))
        elif kind == "FakeLinear":
            name = _name(op)
            grid = w.matrix[name].T  # MNN stores [outputs, inputs]
            external, quant = weight_file.add(grid, lm_head_bits if name == "lm_head" else bits, group)
            operators += mnn_format.linear(op, name, new_tensor, grid.codes.shape, external, quant)
        else:
            operators.append(op)
    graph["oplists"] = operators


def _name(op):
    return mnn_format.attributes(op)["name"]["s"]
