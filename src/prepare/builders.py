"""How graph.decoder's tensors are stored: as floats, or as integers between QuantizeLinear and DequantizeLinear."""

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

from geometry import Unmakeable

OPSET, IR = 21, 10  # the first with 4-bit integers and 16-bit QuantizeLinear in the standard domain
_LIMIT = 1_900_000_000  # protobuf refuses 2 GiB


class FloatBuilder:
    """float32 or float16, as `dtype` says."""

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)
        self.nodes, self.initializers, self.inputs, self.outputs = [], {}, {}, {}
        self.weight_bits_stored = self.weights_stored = 0

    def input(self, name, shape):
        self.inputs[name] = helper.make_tensor_value_info(name, self._io_type(name), shape)

    def output(self, name, shape):
        self.outputs[name] = helper.make_tensor_value_info(name, self._io_type(name), shape)

    def tensor(self, name):
        """A graph input as operators read it."""
        return name

    def integers(self, values):
        """A constant of shapes or axes; equal ones are stored once."""
        name = "int_" + "_".join(map(str, values)).replace("-", "m")
        self._store(name, np.array(values, np.int64))
        return name

    def constant(self, name, values):
        self._store(name, np.asarray(values, self.dtype))
        return name

    def matrix(self, name, grid):
        self._store(name, grid.array(self.dtype), counted=True)
        return name

    def embedding(self, name, grid, ids):
        return self.op("Gather", [self.matrix(name, grid), ids], f"{name}/gather", axis=0)

    def op(self, kind, inputs, name, out=None, **attributes):
        """One operator. `name` is also its output's, unless `out` names a graph output."""
        result = out or name
        self.nodes.append(helper.make_node(kind, inputs, [result], name=name, **attributes))
        return result

    def split(self, x, name, size):
        halves = [f"{name}/0", f"{name}/1"]
        self.nodes.append(helper.make_node("Split", [x, self.integers([size, size])], halves, name=name, axis=-1))
        return halves

    def as_cache(self, x, cache):
        return x

    def model(self, name):
        graph = helper.make_graph(self.nodes, name, list(self.inputs.values()), list(self.outputs.values()), list(self.initializers.values()))
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
        if made.ByteSize() > _LIMIT:
            raise Unmakeable(f"the graph has {made.ByteSize() / 1e9:.1f} GB; this version makes graphs up to {_LIMIT / 1e9:.1f} GB")
        checker.check_model(made)
        return made

    def _io_type(self, name):
        return TensorProto.INT32 if name == "input_ids" else helper.np_dtype_to_tensor_dtype(self.dtype)

    def _store(self, name, array, counted=False):
        if name not in self.initializers:
            self.initializers[name] = tensor = numpy_helper.from_array(np.ascontiguousarray(array), name)
            if counted:
                self.weights_stored += array.size
                self.weight_bits_stored += 8 * len(tensor.raw_data)


@dataclass(frozen=True)
class Encoding:
    """real = (stored - zero_point) * scale"""

    dtype: np.dtype
    scale: float
    zero_point: int

    @staticmethod
    def covering(low, high, dtype=np.uint16):
        """The unsigned encoding of a range, widened to hold zero exactly."""
        most = int(np.iinfo(dtype).max)
        low, high = min(float(low), 0.0), max(float(high), 0.0)
        scale = float(np.float32(max(high - low, 1e-8) / most))
        return Encoding(np.dtype(dtype), scale, int(np.clip(round(-low / scale), 0, most)))

    @staticmethod
    def symmetric(peak, dtype=np.uint16):
        """-peak..peak around the middle code, as Genie's own files have it for the cache and the position tables."""
        half = np.iinfo(dtype).max // 2
        return Encoding(np.dtype(dtype), float(np.float32(peak / half)), half + 1)

    def stored(self, values):
        info = np.iinfo(self.dtype)
        return np.clip(np.rint(np.asarray(values, np.float64) / self.scale) + self.zero_point, info.min, info.max).astype(self.dtype)


# Operators that move values without changing them keep their input's encoding: another one would be a hidden requantisation.
_MOVES = ("Reshape", "Transpose", "Split", "Gather")


class QdqBuilder(FloatBuilder):
    """Integer tensors: every operator reads DequantizeLinear and ends in QuantizeLinear, the form that the QNN EP fuses.

    `encodings` gives every tensor's by the name it has in the float graph, so that prefill and decode graphs get the same ones."""

    def __init__(self, encodings, weight_bits, lm_head_bits, embedding_bits):
        super().__init__(np.float32)
        self.encodings, self.bits = encodings, {"lm_head": lm_head_bits, "embed": embedding_bits}
        self.weight_bits = weight_bits
        self._encoding = {}  # of each dequantized tensor that an operator may read

    def input(self, name, shape):
        super().input(name, shape)
        if name != "input_ids":
            self._dequantize(name, f"{name}/float", self.encodings[name])

    def tensor(self, name):
        return f"{name}/float"

    def constant(self, name, values):
        values = np.asarray(values, np.float32)
        encoding = Encoding.covering(values.min(), values.max())
        self._store(f"{name}/stored", encoding.stored(values))
        return self._dequantize(f"{name}/stored", name, encoding)

    def matrix(self, name, grid):
        bits = self.bits.get(name, self.weight_bits)
        # The grid has 15 levels: as they are in 4 bits, times 18 to use the range of 8.
        self._encoding[name] = None
        if bits == 4:
            values, count = _packed(grid.codes), grid.codes.size
            self.initializers[f"{name}/stored"] = helper.make_tensor(f"{name}/stored", TensorProto.INT4, grid.codes.shape, values, raw=True)
            self.weights_stored += count
            self.weight_bits_stored += 8 * len(values)
            zero, step = helper.make_tensor(f"{name}/zero", TensorProto.INT4, [], b"\0", raw=True), grid.step
        elif bits == 8:
            self._store(f"{name}/stored", grid.codes * np.int8(18), counted=True)
            zero, step = numpy_helper.from_array(np.array(0, np.int8), f"{name}/zero"), grid.step / 18
        else:
            raise Unmakeable(f"{name}: {bits} bits are not possible in a quantised QNN graph (4 or 8)")
        self.initializers[f"{name}/zero"] = zero
        self.initializers[f"{name}/scale"] = numpy_helper.from_array(np.array(step, np.float32), f"{name}/scale")
        self.nodes.append(helper.make_node("DequantizeLinear", [f"{name}/stored", f"{name}/scale", f"{name}/zero"], [name], name=f"{name}/dequantize"))
        return name

    def embedding(self, name, grid, ids):
        bits = self.bits[name]
        if bits not in (8, 16):
            raise Unmakeable(f"embedding_bits {bits} is not possible in a quantised QNN graph (8 or 16)")
        step = 18 if bits == 8 else 4096
        encoding = Encoding(np.dtype(np.uint8 if bits == 8 else np.uint16), float(np.float32(grid.step / step)), 1 << (bits - 1))
        codes = grid.codes.astype(np.int32) * step + encoding.zero_point
        self._store(f"{name}/stored", codes.astype(encoding.dtype), counted=True)
        x = super().op("Gather", [self._dequantize(f"{name}/stored", name, encoding), ids], f"{name}/gather/raw", axis=0)
        x = self._requantized(x, f"{name}/gather/stored", f"{name}/gather", encoding)
        # The residual stream is 16-bit: an Add of two widths would not be one QNN operator.
        return x if bits == 16 else self._requantized(x, f"{name}/wide/stored", f"{name}/wide", self.encodings[f"{name}/gather"])

    def op(self, kind, inputs, name, out=None, **attributes):
        raw = super().op(kind, inputs, name + "/raw", **attributes)
        encoding = self._encoding[inputs[0]] if kind in _MOVES else self.encodings[out or name]
        graph_output = out or (name if name in self.outputs else None)
        return self._requantized(raw, graph_output or f"{name}/stored", f"{graph_output}/float" if graph_output else name, encoding)

    def split(self, x, name, size):
        raw = super().split(x, name + "/raw", size)
        return [self._requantized(half, f"{name}/{i}/stored", f"{name}/{i}", self._encoding[x]) for i, half in enumerate(raw)]

    def as_cache(self, x, cache):
        return self._requantized(x, f"{cache}/narrow/stored", f"{cache}/narrow", self.encodings[cache])

    def _io_type(self, name):
        return TensorProto.INT32 if name == "input_ids" else helper.np_dtype_to_tensor_dtype(self.encodings[name].dtype)

    def _requantized(self, x, stored, name, encoding):
        self.nodes.append(helper.make_node("QuantizeLinear", [x, *self._parameters(encoding)], [stored], name=f"{stored}/quantize"))
        return self._dequantize(stored, name, encoding)

    def _dequantize(self, stored, name, encoding):
        self._encoding[name] = encoding
        self.nodes.append(helper.make_node("DequantizeLinear", [stored, *self._parameters(encoding)], [name], name=f"{name}/dequantize"))
        return name

    def _parameters(self, encoding):
        key = f"{encoding.dtype.name}_{encoding.scale!r}_{encoding.zero_point}"
        self._store(f"scale_{key}", np.array(encoding.scale, np.float32))
        self._store(f"zero_{key}", np.array(encoding.zero_point, encoding.dtype))
        return f"scale_{key}", f"zero_{key}"


def _packed(codes):
    """4-bit codes two a byte, the first in the low half."""
    flat = codes.reshape(-1).astype(np.uint8) & 15
    if len(flat) % 2:
        flat = np.append(flat, np.uint8(0))
    return (flat[0::2] | flat[1::2] << 4).tobytes()
