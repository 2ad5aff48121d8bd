"""The weights of the synthetic decoder: one function, the same numbers for every engine.

Every weight matrix lies on a grid of 15 levels, `code * step` with code in -7..7, and every step has a mantissa of five bits. So the
matrices are exact in 4 and 8 bits, in bfloat16, float16 and float32 alike: a fp16, w8 or w4 build of one geometry computes the same
function. Token agreement with the float32 reference then tests the engine (its kernels, KV cache, mask, positions), with the noise
of activations only, and does not blend in the loss of a quantiser that this project does not benchmark.
"""

import math
import zlib
from dataclasses import dataclass

import numpy as np

LEVELS = 7
_GRID_RMS = math.sqrt(sum(c * c for c in range(-LEVELS, LEVELS + 1)) / (2 * LEVELS + 1))
# How strongly the current token's own embedding shows in the logits, in standard deviations of a logit (keyed by tied embeddings). It
# widens the margin between the best two tokens, yet leaves about every third or fourth token to the whole context: enough for a
# wrong cache, mask or position to show within a few tokens. Tied, the favoured token is the current one itself, hence less of it.
_RESIDUAL_SIGMA = {False: 5.0, True: 3.0}


def hashed(seed, stream, count):
    """`count` uniform uint64 by SplitMix64 in counter mode. Not numpy.random: its streams may change between versions, these can't."""
    with np.errstate(over="ignore"):
        start = np.uint64(zlib.crc32(stream.encode())) << np.uint64(32) ^ np.uint64(seed & 0xFFFFFFFF) ^ _mixed(np.uint64(seed >> 32))
        z = _mixed(start) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        return _mixed(z)


def _mixed(z):
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniform_ints(seed, stream, count, n):
    """`count` integers in 0..n-1."""
    return ((hashed(seed, stream, count) >> np.uint64(32)) * np.uint64(n) >> np.uint64(32)).astype(np.int64)


@dataclass(frozen=True)
class Grid:
    """A matrix `codes * step`, codes int8 in -7..7."""

    codes: np.ndarray
    step: float

    def array(self, dtype=np.float32):
        return (self.codes.astype(np.float32) * np.float32(self.step)).astype(dtype)

    @property
    def T(self):
        return Grid(np.ascontiguousarray(self.codes.T), self.step)


def short_mantissa(x):
    """x with its mantissa cut to five bits: times a code of three bits it is still exact in bfloat16."""
    mantissa, exponent = math.frexp(x)
    return math.ldexp(round(mantissa * 32), exponent - 5)


@dataclass(frozen=True)
class Weights:
    """`matrix[name]` is [inputs, outputs] (embed: [vocab, hidden]); `gain[name]` the RMSNorm factors, exact multiples of 1/16."""

    matrix: dict
    gain: dict

    @property
    def count(self):
        return sum(m.codes.size for m in self.matrix.values())


def weights(g):
    """All weights of geometry `g`, from its seed alone."""
    matrix, gain = {}, {}

    def grid(name, rows, columns, rms):
        codes = uniform_ints(g.seed, name, rows * columns, 2 * LEVELS + 1) - LEVELS
        matrix[name] = Grid(codes.astype(np.int8).reshape(rows, columns), short_mantissa(rms / _GRID_RMS))

    def norm(name):
        gain[name] = (12 + uniform_ints(g.seed, name, g.hidden, 9)).astype(np.float32) / 16

    # Blocks add up to about rms 1 over all layers, whatever the depth; the embedding is `_RESIDUAL_SIGMA` over sqrt(hidden) of that.
    block = 1 / math.sqrt(2 * g.layers)
    attention, inner = 1.6 / math.sqrt(g.heads * g.head_dim), 2.4 / math.sqrt(g.ffn)
    grid("embed", g.vocab, g.hidden, _RESIDUAL_SIGMA[g.tied_embeddings] / math.sqrt(g.hidden))
    for layer in range(g.layers):
        p = f"layers.{layer}."
        norm(p + "attention_norm")
        # Queries and keys a little larger than unit make the attention pick tokens instead of averaging them.
        grid(p + "q", g.hidden, g.heads * g.head_dim, 1.4 / math.sqrt(g.hidden))
        grid(p + "k", g.hidden, g.kv_heads * g.head_dim, 1.4 / math.sqrt(g.hidden))
        grid(p + "v", g.hidden, g.kv_heads * g.head_dim, 1 / math.sqrt(g.hidden))
        grid(p + "o", g.heads * g.head_dim, g.hidden, block * attention)
        norm(p + "ffn_norm")
        grid(p + "gate", g.hidden, g.ffn, 1 / math.sqrt(g.hidden))
        grid(p + "up", g.hidden, g.ffn, 1 / math.sqrt(g.hidden))
        grid(p + "down", g.ffn, g.hidden, block * inner)
    norm("final_norm")

    # A special token must never be generated. Its row has only codes -1 and 1: as a column of the LM head its logit stays within a
    # quarter of the usual size, far below the best of hundreds. (Not zero: a zero row through RMSNorm is 0/0 where eps underflows.)
    embed = matrix["embed"]
    for token in g.specials:
        embed.codes[token] = uniform_ints(g.seed, f"special.{token}", g.hidden, 2) * 2 - 1
    matrix["lm_head"] = embed.T if g.tied_embeddings else Grid(embed.codes[_successors(g)].T.copy(), short_mantissa(4 / math.sqrt(g.hidden) / _GRID_RMS))
    return Weights(matrix, gain)


def _successors(g):
    """For each column of an untied LM head the token whose embedding it repeats: one cycle through all ordinary tokens.

    The current token thus favours one other token (with tied embeddings: itself), so that greedy text does not stick to one token."""
    ordinary = [t for t in range(g.vocab) if t not in g.specials]
    cycle = [ordinary[i] for i in np.argsort(hashed(g.seed, "cycle", len(ordinary)), kind="stable")]
    column = np.arange(g.vocab)
    column[cycle] = np.roll(cycle, 1)
    return column
