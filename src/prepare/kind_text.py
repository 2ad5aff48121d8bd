"""KIND text: tokenizer, prompts of exact length, and the greedy tokens that every engine should give for them."""

import json

from geometry import Unmakeable, argument
from reference import Reference
from tokenizer import ENDING, exact_text, tokenizer_json
from weights import weights

# A prompt whose reference runs into a near tie would blame an engine for its rounding. Candidates are tried until every margin is this
# many standard deviations of the logits (an 8-bit KV cache moves logits by 0.015 to 0.04, fp16 by 0.005), or until the work is worth this many multiply-adds.
MARGIN = 0.25
_SEARCH_MACS = 3e10
_MOST_CANDIDATES = 256
_ENDINGS = 16


def make(g, args, out):
    lengths = args.get("lengths")
    if not isinstance(lengths, list) or not lengths or not all(type(n) is int for n in lengths):
        raise Unmakeable("lengths: expected a list of token counts")
    if min(lengths) < 2:
        raise Unmakeable(f"a prompt of {min(lengths)} tokens can't be made: the least is 2, BOS and one token")
    per_length = argument(args, "prompts_per_length", int, 1)
    count = argument(args, "gen_tokens", int, 1)
    context = argument(args, "context", int, 2, default=0)
    if context and max(lengths) + count > context:
        raise Unmakeable(f"a prompt of {max(lengths)} tokens and {count} generated ones do not fit a context of {context}")

    document, _ = tokenizer_json(g)
    (out / "tokenizer.json").write_text(document)
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
    if tokenizer.get_vocab_size() != g.vocab:
        raise Unmakeable(f"the tokenizer has {tokenizer.get_vocab_size()} entries instead of {g.vocab}")

    w = weights(g)
    reference = Reference(g, w)
    prompts, expected = {}, {}
    for length in sorted(set(lengths)):
        chosen = _chosen(g, w, tokenizer, reference, length, per_length, count)
        prompts[str(length)] = [{"ids": ids, "text": text} for ids, text, _, _ in chosen]
        expected[str(length)] = [{"tokens": tokens, "margin": [round(x, 4) for x in margins]} for _, _, tokens, margins in chosen]
    (out / "prompts.json").write_text(json.dumps(prompts, indent=1))
    (out / "reference.json").write_text(json.dumps(expected, indent=1))
    every = [m for answers in expected.values() for a in answers for m in a["margin"]]
    return {
        "tokenizer": "tokenizer.json", "prompts": "prompts.json", "reference": "reference.json", "lengths": sorted(set(lengths)),
        "prompts_per_length": per_length, "gen_tokens": count, "parameters": w.count, "least_margin": min(every),
        "margin_unit": "standard deviations of the step's logits", "margin_wanted": MARGIN,
    }


def _chosen(g, w, tokenizer, reference, length, per_length, count):
    cost = w.count * (min(length, ENDING) + count)
    tries = max(1, min(_MOST_CANDIDATES, int(_SEARCH_MACS / cost / per_length)))
    chosen, beginnings, variant = [], set(), 0
    for _ in range(per_length):
        best, found = None, 0
        while found < tries:
            # First another ending, which is cheap; then, now and then, another text.
            text, ids = exact_text(tokenizer, g.seed, f"{length}.{variant}", found % _ENDINGS, length - 1)
            ids = [g.bos, *ids]
            if _beginning(ids) in beginnings:
                variant += 1
                if variant > _MOST_CANDIDATES * (per_length + 1):
                    raise Unmakeable(f"no more than {len(beginnings)} different prompts of {length} tokens were found")
                continue
            found += 1
            variant += found % _ENDINGS == 0
            floor = min(best[3]) if best else 0.0
            tokens, margins = reference.greedy(ids, count, floor)
            if len(tokens) == count and (best is None or min(margins) > floor):
                best = (ids, text, tokens, margins)
            if min(best[3]) >= MARGIN:
                break
        variant += 1
        emitted = set(best[2]) & set(g.specials)
        if emitted:
            raise Unmakeable(f"the reference generates special token {min(emitted)}: choose another geometry.seed")
        beginnings.add(_beginning(best[0]))
        chosen.append(best)
    return chosen


def _beginning(ids):
    """What must differ between prompts of one length, so that no runtime can reuse a cached prefix: the first ids after BOS."""
    return tuple(ids[1:4])
