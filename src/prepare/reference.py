"""The decoder in plain numpy float32 with a KV cache: what every engine's greedy tokens are held against. It shares no code with the graphs."""

import numpy as np


class Reference:
    def __init__(self, g, w):
        self.g = g
        self.matrix = {name: m.array() for name, m in w.matrix.items()}
        self.gain = w.gain
        self.frequency = 1.0 / g.rope_theta ** (np.arange(0, g.head_dim, 2) / g.head_dim)
        self.context = []
        self.keys = [np.zeros((g.kv_heads, 0, g.head_dim), np.float32) for _ in range(g.layers)]
        self.values = [k.copy() for k in self.keys]

    def keep(self, count):
        """Forget all but the first `count` tokens of the context."""
        self.context = self.context[:count]
        self.keys, self.values = [k[:, :count] for k in self.keys], [v[:, :count] for v in self.values]

    def forward(self, ids):
        """Append `ids` to the context; the logits after the last of them."""
        g, m = self.g, self.matrix
        past, n = len(self.context), len(ids)
        self.context += ids
        angle = np.outer(np.arange(past, past + n), self.frequency)
        cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        hidden_from = np.where(np.arange(past + n)[None] > np.arange(past, past + n)[:, None], np.float32(-np.inf), np.float32(0))
        x = m["embed"][np.asarray(ids)]
        for layer in range(g.layers):
            p = f"layers.{layer}."
            h = self._norm(x, p + "attention_norm")
            q, k, v = (self._heads(h @ m[p + name]) for name in "qkv")
            q, k = _rotated(q, cos, sin), _rotated(k, cos, sin)
            keys = self.keys[layer] = np.concatenate([self.keys[layer], k], 1)
            values = self.values[layer] = np.concatenate([self.values[layer], v], 1)
            q = q.reshape(g.kv_heads, g.queries_per_kv, n, g.head_dim)
            scores = q @ keys[:, None].swapaxes(-1, -2) / np.float32(np.sqrt(g.head_dim)) + hidden_from
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            mixed = (scores / scores.sum(-1, keepdims=True)) @ values[:, None]
            x = x + mixed.reshape(g.heads, n, g.head_dim).swapaxes(0, 1).reshape(n, -1) @ m[p + "o"]
            h = self._norm(x, p + "ffn_norm")
            gate = h @ m[p + "gate"]
            x = x + (gate / (1 + np.exp(-gate)) * (h @ m[p + "up"])) @ m[p + "down"]
        return self._norm(x[-1:], "final_norm")[0] @ m["lm_head"]

    def greedy(self, ids, count, least=0.0):
        """`count` greedy tokens after `ids` with the margin of each (best minus second logit, in standard deviations of that step's logits).

        Stops early, with fewer tokens, at a margin below `least`."""
        # Prompts that are tried one after the other differ at their end only: what they share is not computed again.
        shared = next((i for i, (a, b) in enumerate(zip(self.context, ids)) if a != b), min(len(self.context), len(ids)))
        self.keep(min(shared, len(ids) - 1))
        tokens, margins = [], []
        logits = self.forward(ids[len(self.context) :])
        while True:
            second, best = np.partition(logits, -2)[-2:]
            margins.append(float((best - second) / logits.std()))
            tokens.append(int(logits.argmax()))
            if len(tokens) == count or margins[-1] < least:
                return tokens, margins
            logits = self.forward(tokens[-1:])

    def _heads(self, x):
        return x.reshape(len(x), -1, self.g.head_dim).swapaxes(0, 1)

    def _norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(self.g.norm_eps)) * self.gain[name]


def _rotated(x, cos, sin):
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)
