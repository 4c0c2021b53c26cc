"""A toy decoder whose every probability and weight is written in a table, and plain searches."""

import itertools

import pytest
import torch

from regard.search import PerSentence

EOS = 0


class Table:
    """Log-probabilities and attention for every prefix of every sentence, drawn at random."""

    def __init__(self, seed=0, sentences=1, vocabulary=3, limit=4, keys=5, coarse=False):
        generator = torch.Generator().manual_seed(seed)
        self.vocabulary, self.limit, self.sentences, self.bos = vocabulary, limit, sentences, 99
        shape = sentences, (vocabulary + 1) ** limit
        logits = 2 * torch.randn(*shape, vocabulary, generator=generator, dtype=torch.float64)
        # Coarse scores tie all the time.
        self.scores = logits.abs().round().neg() if coarse else logits.log_softmax(-1)
        self.cross = torch.rand(*shape, 2, keys, generator=generator, dtype=torch.float64)
        self.cross = self.cross / self.cross.sum(-1, keepdim=True)
        self.own = torch.rand(*shape, limit, generator=generator, dtype=torch.float64)
        self.fed = []

    def state(self, sentences=None):
        which = torch.arange(self.sentences) if sentences is None else torch.tensor(sentences)
        return {"code": (torch.zeros_like(which), [0]), "of": PerSentence(which), "nothing": None}

    def step(self, tokens, state):
        (code, [position]), of = state["code"], state["of"].value
        assert len(tokens) == len(code) == len(of)
        assert ((tokens == self.bos) == (position == 0)).all()
        assert (tokens != EOS).all()
        self.fed.append(len(tokens))
        code = code if position == 0 else code * (self.vocabulary + 1) + tokens + 1
        weights = {"cross": self.cross[of, code], "own": self.own[of, code, : position + 1]}
        state = {"code": (code, [position + 1]), "of": state["of"], "nothing": None}
        return self.scores[of, code], state, weights

    def codes(self, tokens):
        code, codes = 0, [0]
        for token in tokens[:-1]:
            code = code * (self.vocabulary + 1) + token + 1
            codes.append(code)
        return codes

    def log_probabilities(self, sentence, tokens):
        pairs = zip(self.codes(tokens), tokens, strict=True)
        return [self.scores[sentence, code, token].item() for code, token in pairs]

    def attention(self, sentence, tokens):
        codes = self.codes(tokens)
        own = torch.zeros(len(codes), len(codes), dtype=torch.float64)
        for i, code in enumerate(codes):
            own[i, : i + 1] = self.own[sentence, code, : i + 1]
        return {"cross": self.cross[sentence, codes].transpose(0, 1), "own": own}

    def outputs(self, limit=None):
        """Every output within the limit, finished or cut off."""
        limit = limit or self.limit
        for n in range(1, limit + 1):
            for head in itertools.product(range(1, self.vocabulary), repeat=n - 1):
                yield [*head, EOS]
        yield from map(list, itertools.product(range(1, self.vocabulary), repeat=limit))

    def exhaustive(self, sentence, score, limit=None):
        """All outputs, the finished ones first, best first: (finished, score, tokens)."""
        found = []
        for tokens in self.outputs(limit):
            total = sum(self.log_probabilities(sentence, tokens))
            found.append((tokens[-1] == EOS, score(total, tokens, sentence), tokens))
        return sorted(found, key=lambda one: (not one[0], -one[1]))

    def plain_beam(self, sentence, width, score, limit=None):
        """Beam search to the last step in plain Python: (finished, score, tokens), best first."""
        live, done = [([], 0.0)], []
        for position in range(limit or self.limit):
            continued = [
                (total + self.log_probabilities(sentence, [*tokens, token])[-1], token, slot)
                for slot, (tokens, total) in enumerate(live)
                for token in range(self.vocabulary)
            ]
            chosen = sorted(continued, key=lambda one: (-one[0], one[1], one[2]))[:width]
            grown = [([*live[slot][0], token], total) for total, token, slot in chosen]
            done += [(True, score(n, t, sentence), t) for t, n in grown if t[-1] == EOS]
            live = [(tokens, total) for tokens, total in grown if tokens[-1] != EOS]
            if position + 1 == (limit or self.limit):
                done += [(False, score(total, tokens, sentence), tokens) for tokens, total in live]
        return sorted(done, key=lambda one: (not one[0], -one[1]))


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def table():
    return Table
