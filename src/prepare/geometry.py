"""The shape of the synthetic decoder, as the caller writes it in ARGS.json."""

from dataclasses import dataclass


class Unmakeable(Exception):
    """The request can't be met. The message is the one line that the user reads."""


@dataclass(frozen=True)
class Geometry:
    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    rope_theta: float
    norm_eps: float
    tied_embeddings: bool
    experts: int
    lm_head_bits: int
    embedding_bits: int
    seed: int
    bos: int
    eos: int
    pad: int

    @property
    def specials(self):
        """Names of the special tokens by id. Two roles on one id (pad == eos is common) are one token; <unk> takes the lowest free id."""
        names = {}
        for token_id, name in ((self.bos, "<s>"), (self.eos, "</s>"), (self.pad, "<pad>")):
            names.setdefault(token_id, name)
        unknown = next(i for i in range(self.vocab) if i not in names)
        names[unknown] = "<unk>"
        return names

    @property
    def queries_per_kv(self):
        return self.heads // self.kv_heads


# (type, lowest value) of each field; a missing field is named in the error.
_FIELDS = {
    "name": (str, None), "layers": (int, 1), "hidden": (int, 8), "heads": (int, 1), "kv_heads": (int, 1), "head_dim": (int, 2), "ffn": (int, 8),
    "vocab": (int, 256), "rope_theta": (float, 1.0), "norm_eps": (float, 0.0), "tied_embeddings": (bool, None), "experts": (int, 0),
    "lm_head_bits": (int, 2), "embedding_bits": (int, 2), "seed": (int, 0), "bos": (int, 0), "eos": (int, 0), "pad": (int, 0),
}


def parse_geometry(raw):
    if not isinstance(raw, dict):
        raise Unmakeable("geometry: expected a table")
    values = {}
    for key, (kind, least) in _FIELDS.items():
        if key not in raw:
            raise Unmakeable(f"geometry.{key} is missing")
        values[key] = typed(f"geometry.{key}", raw[key], kind, least)
    g = Geometry(**values)
    if g.experts > 0:
        raise Unmakeable("mixture-of-experts models are not made by this version")
    if g.heads % g.kv_heads:
        raise Unmakeable(f"geometry.heads ({g.heads}) must be a multiple of geometry.kv_heads ({g.kv_heads})")
    if g.head_dim % 2:
        raise Unmakeable(f"geometry.head_dim ({g.head_dim}) must be even: RoPE turns pairs")
    for role in ("bos", "eos", "pad"):
        if getattr(g, role) >= g.vocab:
            raise Unmakeable(f"geometry.{role} ({getattr(g, role)}) is outside the vocabulary of {g.vocab}")
    if g.bos in (g.eos, g.pad):
        raise Unmakeable("geometry.bos must differ from eos and pad")
    return g


def typed(where, value, kind, least=None):
    """`value` as `kind`, refusing what JSON lets slip (true for 1, "3" for 3)."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not kind:
        raise Unmakeable(f"{where}: expected {kind.__name__}, found {value!r}")
    if least is not None and value < least:
        raise Unmakeable(f"{where}: {value} is below the least possible value {least}")
    return value


def argument(args, key, kind, least=None, default=None, choices=None):
    """One typed field of ARGS.json; `default` None means it must be there."""
    if key not in args:
        if default is None:
            raise Unmakeable(f"{key} is missing in the arguments")
        return default
    value = typed(key, args[key], kind, least)
    if choices and value not in choices:
        raise Unmakeable(f"{key}: {value!r} is not one of {', '.join(map(str, choices))}")
    return value


def htp_arch(args):
    """The Hexagon generation. QNN itself takes any number without a word, so one that does not exist is refused here."""
    return argument(args, "htp_arch", int, default=75, choices=(68, 69, 73, 75, 79, 81))
