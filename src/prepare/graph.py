"""The decoder as a static ONNX graph with an explicit KV cache, in the layout and with the names that Genie's QnnHtp engine reads.

    input_ids [1,AR] int32, attention_mask [1,1,AR,CL], position_ids_cos/sin [1,1,AR,hd/2],
    past_key_i_in [kv,1,hd,CL-AR], past_value_i_in [kv,1,CL-AR,hd]
 -> logits [1,AR,V], past_key_i_out [kv,1,hd,AR], past_value_i_out [kv,1,AR,hd]

AR is the number of tokens a call takes, CL the context. The new tokens stand in the last AR columns of the mask, after the past."""

import numpy as np

# What a mask holds where a token must not look, in the scores' own unit. Not -inf: the HTP adds it in fp16 or on a 16-bit grid.
MASKED = -100.0


def io_shapes(g, ar, context):
    """(inputs, outputs) of a graph as ordered {name: shape}."""
    past = context - ar
    inputs = {"input_ids": [1, ar], "attention_mask": [1, 1, ar, context]}
    inputs |= {name: [1, 1, ar, g.head_dim // 2] for name in ("position_ids_cos", "position_ids_sin")}
    outputs = {"logits": [1, ar, g.vocab]}
    for i in range(g.layers):
        inputs |= {f"past_key_{i}_in": [g.kv_heads, 1, g.head_dim, past], f"past_value_{i}_in": [g.kv_heads, 1, past, g.head_dim]}
        outputs |= {f"past_key_{i}_out": [g.kv_heads, 1, g.head_dim, ar], f"past_value_{i}_out": [g.kv_heads, 1, ar, g.head_dim]}
    return inputs, outputs


def decoder(b, g, w, ar, context):
    """Write the decoder into builder `b` (builders.FloatBuilder or QdqBuilder); the two differ only in how a tensor is stored."""
    inputs, outputs = io_shapes(g, ar, context)
    for name, shape in inputs.items():
        b.input(name, shape)
    for name, shape in outputs.items():
        b.output(name, shape)
    group, kv, hd = g.queries_per_kv, g.kv_heads, g.head_dim
    cos, sin = b.tensor("position_ids_cos"), b.tensor("position_ids_sin")
    scale = b.constant("score_scale", [hd**-0.5])
    eps = b.constant("norm_eps", [g.norm_eps])

    def norm(x, name):
        mean = b.op("ReduceMean", [b.op("Mul", [x, x], f"{name}/square"), b.integers([-1])], f"{name}/mean", keepdims=1)
        root = b.op("Sqrt", [b.op("Add", [mean, eps], f"{name}/add_eps")], f"{name}/root")
        return b.op("Mul", [b.op("Div", [x, root], f"{name}/normal"), b.constant(f"{name}/gain", w.gain[name])], f"{name}/out")

    def linear(x, name, **kw):
        return b.op("MatMul", [x, b.matrix(name, w.matrix[name])], f"{name}/matmul", **kw)

    def reshape(x, name, *shape):
        return b.op("Reshape", [x, b.integers(shape)], name)

    def transpose(x, name, *perm, **kw):
        return b.op("Transpose", [x], name, perm=perm, **kw)

    def rotate(x, name):
        first, second = b.split(x, f"{name}/halves", hd // 2)
        real = b.op("Sub", [b.op("Mul", [first, cos], f"{name}/fc"), b.op("Mul", [second, sin], f"{name}/ss")], f"{name}/real")
        imaginary = b.op("Add", [b.op("Mul", [second, cos], f"{name}/sc"), b.op("Mul", [first, sin], f"{name}/fs")], f"{name}/imaginary")
        return b.op("Concat", [real, imaginary], f"{name}/out", axis=-1)

    x = b.embedding("embed", w.matrix["embed"], "input_ids")
    for i in range(g.layers):
        p = f"layers.{i}."
        h = norm(x, p + "attention_norm")
        q = rotate(transpose(reshape(linear(h, p + "q"), p + "q/heads", 1, ar, g.heads, hd), p + "q/first", 0, 2, 1, 3), p + "q/rope")
        k = rotate(transpose(reshape(linear(h, p + "k"), p + "k/heads", 1, ar, kv, hd), p + "k/first", 0, 2, 1, 3), p + "k/rope")
        v = reshape(linear(h, p + "v"), p + "v/heads", 1, ar, kv, hd)
        # New keys and values leave the graph in the cache's own encoding: the host (or Genie) copies the bytes into the past as they are.
        k = transpose(b.as_cache(k, f"past_key_{i}_out"), f"past_key_{i}_out", 1, 0, 3, 2)
        v = transpose(b.as_cache(v, f"past_value_{i}_out"), f"past_value_{i}_out", 2, 0, 1, 3)
        keys = b.op("Concat", [b.tensor(f"past_key_{i}_in"), k], p + "keys", axis=3)
        values = b.op("Concat", [b.tensor(f"past_value_{i}_in"), v], p + "values", axis=2)
        # The queries that share one KV head are stacked along the rows: one MatMul per KV head, no copies of the cache.
        scores = b.op("MatMul", [reshape(q, p + "q/grouped", kv, 1, group * ar, hd), keys], p + "scores")
        scores = reshape(b.op("Mul", [scores, scale], p + "scaled"), p + "scores/grouped", kv, group, ar, context)
        scores = b.op("Softmax", [b.op("Add", [scores, b.tensor("attention_mask")], p + "masked")], p + "softmax", axis=-1)
        mixed = b.op("MatMul", [reshape(scores, p + "softmax/stacked", kv, 1, group * ar, context), values], p + "mixed")
        mixed = transpose(reshape(mixed, p + "mixed/heads", 1, g.heads, ar, hd), p + "mixed/first", 0, 2, 1, 3)
        x = b.op("Add", [x, linear(reshape(mixed, p + "mixed/flat", 1, ar, g.heads * hd), p + "o")], p + "after_attention")
        h = norm(x, p + "ffn_norm")
        gate = linear(h, p + "gate")
        silu = b.op("Mul", [gate, b.op("Sigmoid", [gate], p + "sigmoid")], p + "silu")
        x = b.op("Add", [x, linear(b.op("Mul", [silu, linear(h, p + "up")], p + "gated"), p + "down")], p + "after_ffn")
    linear(norm(x, "final_norm"), "lm_head", out="logits")


def chunk_inputs(g, ids, past, ar, context, keys, values):
    """The float inputs of one call: `ids` (at most AR) after `past` tokens of cache. Shorter chunks are filled with pad at the end."""
    mask = np.full((1, 1, ar, context), MASKED, np.float32)
    for row in range(ar):
        mask[0, 0, row, :past] = 0
        mask[0, 0, row, context - ar : context - ar + row + 1] = 0
    frequency = 1.0 / g.rope_theta ** (np.arange(0, g.head_dim, 2) / g.head_dim)
    angle = np.outer(past + np.arange(ar), frequency)[None, None]
    feed = {
        "input_ids": np.array([[*ids, *[g.pad] * (ar - len(ids))]], np.int32), "attention_mask": mask,
        "position_ids_cos": np.cos(angle).astype(np.float32), "position_ids_sin": np.sin(angle).astype(np.float32),
    }
    for i in range(g.layers):
        feed[f"past_key_{i}_in"], feed[f"past_value_{i}_in"] = keys[i][..., : context - ar], values[i][:, :, : context - ar]
    return feed
