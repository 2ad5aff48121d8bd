"""KIND bad-op: a network with one operator that the NPU can't run, between two that it can. For tests of how a fallback is reported.

The operator is Shrink, which QNN has no equivalent of. Whether that still holds for the installed version is proven here, not assumed."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import qnn
from builders import IR
from geometry import Unmakeable, argument, htp_arch
from weights import uniform_ints

_SIZE = 32


def make(g, args, out):
    soc_model = argument(args, "soc_model", int, 1, default=57)
    arch = htp_arch(args)
    matrix = (uniform_ints(g.seed, "bad-op", _SIZE * _SIZE, 15) - 7).astype(np.float16).reshape(_SIZE, _SIZE) / 16
    nodes = [
        helper.make_node("MatMul", ["x", "matrix"], ["product"], name="npu_matmul"),
        helper.make_node("Shrink", ["product"], ["shrunk"], name="cpu_shrink", lambd=0.5, bias=0.0),
        helper.make_node("Relu", ["shrunk"], ["y"], name="npu_relu"),
    ]
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [1, _SIZE]) for name in "xy"]
    graph = helper.make_graph(nodes, "bad_op", value[:1], value[1:], [numpy_helper.from_array(matrix.astype(np.float16), "matrix")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=IR)
    onnx.checker.check_model(model)
    onnx.save(model, out / "bad_op.onnx")
    try:
        qnn.session(out / "bad_op.onnx", soc_model, arch)
    except Exception as e:
        refusal = " ".join(str(e).split())
    else:
        raise Unmakeable("the installed QNN runs Shrink on the NPU: bad-op needs another operator")
    # With a fallback allowed the same session is made without a word.
    qnn.session(out / "bad_op.onnx", soc_model, arch, fallback=True)
    return {"model": "bad_op.onnx", "op": "Shrink", "node": "cpu_shrink", "refusal": refusal, "input": {"x": {"dtype": "float16", "shape": [1, _SIZE]}},
            "output": {"y": {"dtype": "float16", "shape": [1, _SIZE]}}}
