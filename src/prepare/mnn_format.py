"""MNN's file formats, as far as the decoder needs them: graph operators in the converter's JSON, weights, tokenizer."""

import base64

import numpy as np


def operator(kind, inputs, outputs, name, table, fields):
    """One operator of the JSON form of an .mnn file."""
    return {"type": kind, "main_type": table, "main": fields, "name": name, "inputIndexes": inputs, "outputIndexes": outputs, "defaultDimentionFormat": "NHWC"}


def attributes(op):
    """What the ONNX node of a custom operator carried, by name."""
    return {a["key"]: a for a in op["main"]["attr"]}


def attention(op):
    layer = attributes(op)["layer_index"].get("i", 0)  # the JSON leaves zeros out
    return operator("Attention", op["inputIndexes"], op["outputIndexes"], op["name"], "AttentionParam",
                    {"kv_cache": True, "layer_index": layer, "kv_shared_layer_index": -1})


def rms_norm(op, gain, eps):
    return operator("LayerNorm", op["inputIndexes"], op["outputIndexes"], op["name"], "LayerNorm",
                    {"axis": [-1], "epsilon": eps, "useRMSNorm": True, "gamma": [float(x) for x in gain], "beta": [0.0] * len(gain)})


def linear(op, name, new_tensor, shape, external, quant):
    """A matrix product as MNN's LLM engine has it: a 1x1 convolution between two changes of layout."""
    outputs, inputs = shape
    flat, packed, product, unpacked = (new_tensor(f"{name}/{part}") for part in ("flat", "packed", "product", "unpacked"))
    common = {"dilateX": 1, "dilateY": 1, "strideX": 1, "strideY": 1, "kernelX": 1, "kernelY": 1, "padX": 0, "padY": 0, "group": 1, "outputCount": outputs,
              "relu": False, "padMode": "CAFFE", "relu6": False, "inputCount": inputs, "hasOutputShape": False}
    convolution = {"common": common, "external": external} | ({"quanParameter": quant} if quant else {})
    return [
        operator("Reshape", op["inputIndexes"], flat, f"{name}/flat", "Reshape", {"dims": [-1, inputs, 1, 1], "dimType": "NCHW"}),
        operator("ConvertTensor", flat, packed, f"{name}/packed", "TensorConvertInfo", {"source": "NCHW", "dest": "NC4HW4"}),
        operator("Convolution", packed, product, name, "Convolution2D", convolution),
        operator("ConvertTensor", product, unpacked, f"{name}/unpacked", "TensorConvertInfo", {"source": "NC4HW4", "dest": "NCHW"}),
        operator("Reshape", unpacked, op["outputIndexes"], f"{name}/out", "Reshape", {"dims": [1, -1, outputs], "dimType": "NCHW"}),
    ]


class WeightFile:
    """llm.mnn.weight: the matrices one after the other; the graph refers to them by offset and lengths."""

    def __init__(self, path):
        self._file, self._offset, self.stored_bits, self.stored = open(path, "wb"), 0, 0, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def add(self, grid, bits, group):
        """Write a Grid [outputs, inputs] in `bits`; (external, quanParameter) of its convolution. `group` 0: one scale an output channel."""
        outputs, inputs = grid.codes.shape
        if bits == 32:
            # Uncompressed weights need an explicit bias.
            parts, quant = [grid.array().tobytes(), np.zeros(outputs, np.float32).tobytes()], None
        elif bits == 16:
            parts, quant = [grid.array(np.float16).tobytes(), b"", b""], {"type": 3}
        else:
            step, factor = (grid.step, 1) if bits == 4 else (grid.step / 18, 18)
            half = 1 << (bits - 1)
            codes = (grid.codes.astype(np.int16) * factor + half).astype(np.uint8).ravel()
            packed = codes[0::2] << 4 | codes[1::2] if bits == 4 else codes
            # Header: number of dimensions, dimensions, and the table of values that a code stands for (its length is 0 for 256).
            wide = max(outputs, inputs) > 32767
            table = bytes([2]) + np.array([outputs, inputs], np.int32 if wide else np.int16).tobytes() + bytes([(2 * half) & 255]) + np.arange(-half, half).astype(np.int8).tobytes()
            scales = np.full(outputs * (inputs // group if group else 1), step, np.float32)
            parts = [table + packed.tobytes(), scales.tobytes(), b""]
            quant = {"quantScale": 1.0, "scaleIn": 0.0, "scaleOut": 0.0, "useInt32": False, "has_scaleInt": False, "shapeInt32": wide, "type": 1,
                     "aMaxOrBits": bits, "aMin": 0, "readType": 0, "weightSize": 0}
        external = [self._offset, *map(len, parts)] + ([0] if bits != 32 else [])
        for part in parts:
            self._file.write(part)
            self._offset += len(part)
        self.stored += grid.codes.size
        self.stored_bits += 8 * sum(map(len, parts[:2] if bits != 32 else parts[:1]))
        return external, quant


def tokenizer_text(pieces):
    """tokenizer.txt of the longest-match type. No stop tokens are declared: a benchmark must generate the tokens that it asked for."""
    magic, longest_match = 430, 1
    lines = [f"{magic} {longest_match}", "0 0 0", "", str(len(pieces))]
    return "\n".join(lines + [base64.b64encode(p.encode()).decode() for p in pieces]) + "\n"


def bfloat16(values):
    """float32 cut to bfloat16 (exact for the grid)."""
    return (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
