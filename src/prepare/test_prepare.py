"""python -m unittest (or this file), in an environment with requirements.lock. A few seconds; no NPU, no network."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np  # noqa: E402

import kind_text  # noqa: E402
import make  # noqa: E402
from builders import Encoding, FloatBuilder, QdqBuilder  # noqa: E402
from calibration import encodings  # noqa: E402
from geometry import Unmakeable, parse_geometry  # noqa: E402
from graph import chunk_inputs, decoder  # noqa: E402
from reference import Reference  # noqa: E402
from weights import LEVELS, weights  # noqa: E402

XS = {
    "name": "xs", "layers": 2, "hidden": 128, "heads": 4, "kv_heads": 2, "head_dim": 32, "ffn": 256, "vocab": 512, "rope_theta": 10000.0, "norm_eps": 1e-5,
    "tied_embeddings": False, "experts": 0, "lm_head_bits": 8, "embedding_bits": 16, "seed": 7, "bos": 0, "eos": 1, "pad": 2,
}
TEXT = {"lengths": [2, 9, 40], "prompts_per_length": 2, "gen_tokens": 6, "context": 64}


def made_text(geometry, **over):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        meta = kind_text.make(parse_geometry(geometry), TEXT | over, out)
        return meta, *((out / name).read_text() for name in ("tokenizer.json", "prompts.json", "reference.json"))


class Cpu:
    """The graph on ONNX Runtime's CPU provider: a second implementation, chunked prefill and all."""

    def __init__(self, g, builder, context, chunk, found=None):
        import onnxruntime as ort
        self.g, self.context, self.chunk, self.found, self.sessions = g, context, chunk, found, {}
        for ar in (chunk, 1):
            b = builder()
            decoder(b, g, weights(g), ar, context)
            self.sessions[ar] = ort.InferenceSession(b.model("test").SerializeToString(), providers=["CPUExecutionProvider"])

    def greedy(self, ids, count):
        g, dtype, empty = self.g, np.float32, 0
        if self.found:
            dtype, empty = self.found["past_key_0_in"].dtype, self.found["past_key_0_in"].zero_point
        keys = [np.full((g.kv_heads, 1, g.head_dim, self.context), empty, dtype) for _ in range(g.layers)]
        values = [np.full((g.kv_heads, 1, self.context, g.head_dim), empty, dtype) for _ in range(g.layers)]
        past, tokens = 0, []

        def call(part, ar):
            feed = chunk_inputs(g, part, past, ar, self.context, keys, values)
            if self.found:
                feed = {n: x if n.startswith("past") or n == "input_ids" else self.found[n].stored(x) for n, x in feed.items()}
            logits, *new = self.sessions[ar].run(None, feed)
            for i in range(g.layers):
                keys[i][..., past : past + len(part)] = new[2 * i][..., : len(part)]
                values[i][:, :, past : past + len(part)] = new[2 * i + 1][:, :, : len(part)]
            return int(logits[0, len(part) - 1].argmax())

        while past < len(ids):
            part = ids[past : past + self.chunk]
            best = call(part, self.chunk)
            past += len(part)
        while len(tokens) < count:
            tokens.append(best)
            best = call([best], 1)
            past += 1
        return tokens


class Prepare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.g = parse_geometry(XS)
        cls.meta, cls.tokenizer, prompts, reference = cls.text = made_text(XS)
        cls.prompts, cls.reference = json.loads(prompts), json.loads(reference)

    def test_prompts_have_exact_counts_and_differ_early(self):
        from tokenizers import Tokenizer
        tokenizer = Tokenizer.from_str(self.tokenizer)
        self.assertEqual(tokenizer.get_vocab_size(), XS["vocab"])
        for length, prompts in self.prompts.items():
            for p in prompts:
                self.assertEqual(len(p["ids"]), int(length))
                self.assertEqual(p["ids"], [XS["bos"], *tokenizer.encode(p["text"]).ids])
                self.assertEqual(tokenizer.decode(p["ids"]), p["text"])
                self.assertTrue(p["text"].isascii())
            self.assertEqual(len({tuple(p["ids"][:4]) for p in prompts}), len(prompts))

    def test_reference_has_no_special_token(self):
        for geometry in (XS, XS | {"tied_embeddings": True, "bos": 300, "eos": 301, "pad": 301}):
            g = parse_geometry(geometry)
            reference = json.loads(made_text(geometry)[3])
            for answers in reference.values():
                for a in answers:
                    self.assertEqual((len(a["tokens"]), len(a["margin"])), (6, 6))
                    self.assertFalse(set(a["tokens"]) & set(g.specials))

    def test_same_seed_same_result(self):
        self.assertEqual(self.text, made_text(XS))
        self.assertNotEqual(self.text[2:], made_text(XS | {"seed": 8})[2:])

    def test_weights_are_exact_in_every_format(self):
        for m in weights(self.g).matrix.values():
            exact = m.array()
            self.assertLessEqual(int(np.abs(m.codes).max()), LEVELS)
            np.testing.assert_array_equal(exact, m.array(np.float16).astype(np.float32))
            np.testing.assert_array_equal(exact.view(np.uint32) & 0xFFFF, np.zeros(exact.shape, np.uint32))  # bfloat16

    def test_float_graph_agrees_with_the_reference(self):
        self.agrees(Cpu(self.g, lambda: FloatBuilder(np.float32), 64, 16))

    def test_quantised_graphs_agree_with_the_reference(self):
        found = encodings(self.g, weights(self.g), 16, 64, 8)
        for bits, lm_head, embedding in ((8, 8, 16), (4, 4, 8)):
            with self.subTest(bits=bits):
                self.agrees(Cpu(self.g, lambda: QdqBuilder(found, bits, lm_head, embedding), 64, 16, found))

    def agrees(self, cpu):
        for length, prompts in self.prompts.items():
            for p, answer in zip(prompts, self.reference[length]):
                self.assertEqual(cpu.greedy(p["ids"], 6), answer["tokens"], f"prompt of {length}")

    def test_tokens_depend_on_cache_and_positions(self):
        """A check that a broken engine passes would be worth nothing."""
        right, turned = Reference(self.g, weights(self.g)), Reference(self.g, weights(self.g))
        turned.frequency = turned.frequency * 1.1
        ids = [p["ids"] for p in self.prompts["40"]]
        expected = [right.greedy(i, 6)[0] for i in ids]
        self.assertNotEqual(expected, [right.greedy(i[20:], 6)[0] for i in ids])
        self.assertNotEqual(expected, [turned.greedy(i, 6)[0] for i in ids])

    def test_encoding_holds_zero_exactly(self):
        e = Encoding.covering(-3.3, 7.1)
        self.assertEqual((int(e.stored(0.0)) - e.zero_point) * e.scale, 0.0)

    def test_refusals_are_one_clear_line(self):
        cases = [
            ({"experts": 8}, {}, "mixture-of-experts models are not made by this version"), ({"vocab": True}, {}, "geometry.vocab"),
            ({"kv_heads": 3}, {}, "multiple"), ({}, {"gen_tokens": 60}, "do not fit a context of 64"), ({}, {"lengths": [1]}, "can't be made"),
        ]
        for geometry, over, expected in cases:
            with self.assertRaisesRegex(Unmakeable, expected):
                made_text(XS | geometry, **over)
        with self.assertRaisesRegex(Unmakeable, "usage"):
            make.main(["make.py", "nothing"])


if __name__ == "__main__":
    unittest.main()
