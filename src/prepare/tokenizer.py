"""An ASCII tokenizer and ASCII prose, both made from the seed.

Every token is ASCII: a model with random weights emits any id, and with a usual byte-level vocabulary that is invalid UTF-8, on which
Genie withholds text and MNN crashes. The merges build whole words from their left end, and every word starts with its space. So byte-pair
encoding, longest match and a scan all give the same ids, whichever a runtime implements.
"""

import json

from geometry import Unmakeable
from weights import hashed, uniform_ints

_SUBJECTS = "farmer baker sailor teacher doctor child painter gardener driver miller writer hunter singer stranger neighbour captain".split()
_VERBS = "found carried watched opened painted followed mended counted lifted washed sold kept moved visited remembered crossed".split()
_OBJECTS = "river bridge lantern basket garden window letter market harbour ladder blanket kettle mirror orchard saddle mountain".split()
_QUALITIES = "old small bright quiet heavy green narrow early gentle broken distant warm empty wooden patient silver".split()
_PLACES = "near behind under beside above beyond".split()
_OPENERS = "The A One Every Another This That Some".split()
_GLUE = "the a and of in to it was with then again while every one his her".split()
_SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]

_SPACE = "\u0120"  # how byte-level BPE writes a space in its vocabulary
_NEWLINE = "\u010a"
_ALPHABET = [_NEWLINE, _SPACE, *(chr(c) for c in range(33, 127))]


def _words():
    """Words in the order in which they get tokens: the prose's own, then made-up ones without end, for large vocabularies."""
    yield from _GLUE
    yield from _OPENERS
    # In turn from each class, so that a small vocabulary still can say something with each.
    for row in zip(_SUBJECTS, _VERBS, _OBJECTS, _QUALITIES):
        yield from row
    yield from _PLACES
    count = len(_SYLLABLES)
    number = 0
    while True:
        n, word = number, ""
        while n or len(word) < 4:
            word += _SYLLABLES[n % count]
            n //= count
        number += 1
        yield word


def tokenizer_json(g):
    """The text of tokenizer.json, with exactly `g.vocab` entries, and the entries in id order."""
    wanted = g.vocab - len(g.specials)
    if wanted < len(_ALPHABET) + 64:
        raise Unmakeable(f"geometry.vocab ({g.vocab}) is too small for an ASCII tokenizer: at least {len(_ALPHABET) + 64 + len(g.specials)}")
    pieces, merges, known = list(_ALPHABET), [], set(_ALPHABET)
    for word in _words():
        if len(pieces) == wanted:
            break
        piece = _SPACE
        for letter in word:
            if piece + letter not in known:
                if len(pieces) == wanted:
                    break
                merges.append([piece, letter])
                pieces.append(piece + letter)
                known.add(piece + letter)
            piece += letter
    ordinary = iter(pieces)
    entries = [g.specials[i] if i in g.specials else next(ordinary) for i in range(g.vocab)]
    added = [{"id": i, "content": name, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
             for i, name in sorted(g.specials.items())]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    document = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None, "pre_tokenizer": byte_level,
        "post_processor": None, "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": {piece: i for i, piece in enumerate(entries)}, "merges": merges},
    }
    return json.dumps(document, ensure_ascii=True, indent=0), entries


def plain(piece):
    """A vocabulary entry as the text that it stands for."""
    return piece.replace(_SPACE, " ").replace(_NEWLINE, "\n")


class Prose:
    """Endless English-like sentences; `variant` picks another text."""

    def __init__(self, seed, variant):
        self._seed, self._stream, self._block, self._queue = seed, f"prose.{variant}", 0, []

    def pick(self, choices):
        if not self._queue:
            self._queue = [int(x) >> 16 for x in hashed(self._seed, f"{self._stream}.{self._block}", 256)]
            self._block += 1
        return choices[self._queue.pop() % len(choices)]

    def sentence(self):
        words = [self.pick(_OPENERS)]
        if self.pick((True, False)):
            words.append(self.pick(_QUALITIES))
        words += [self.pick(_SUBJECTS), self.pick(_VERBS), self.pick(("the", "a", "one", "every", "his", "her")), self.pick(_QUALITIES), self.pick(_OBJECTS)]
        if self.pick((True, False)):
            words += [self.pick(_PLACES), "the", self.pick(_OBJECTS)]
        return words


ENDING = 16


def exact_text(tokenizer, seed, variant, ending, count):
    """Prose that `tokenizer` encodes in exactly `count` ids, as (text, ids). Another `ending` changes only about the last ENDING ids."""
    prose, text, ids = Prose(seed, variant), "", []
    begun = False

    def encode(piece):
        return tokenizer.encode(piece, add_special_tokens=False).ids

    # Words are encoded one by one, as no merge crosses a space; the whole is encoded again below, because only that is what counts.
    while len(ids) < count:
        if not begun and len(ids) >= count - ENDING:
            prose, begun = Prose(seed, f"{variant}.{ending}"), True
        sentence = prose.sentence()
        pieces = [(" " if text or i else "") + word for i, word in enumerate(sentence)]
        pieces[-1] += "."
        for piece in pieces:
            more = encode(piece)
            if len(ids) + len(more) > count:
                # Here, at the end, fill up with words that are one token each (with a letter where there is no text yet).
                piece = " " + prose.pick(_GLUE[:8]) if text else prose.pick("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
                more = encode(piece)
            text, ids = text + piece, ids + more
            if len(ids) >= count:
                break
    if len(ids) != count or encode(text) != ids:
        raise Unmakeable(f"no text of exactly {count} tokens was found")
    return text, ids
