"""Attention between words: where in a model it is read, and the tokens of each word."""

from collections.abc import Mapping
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from regard.data.tokenizers.tokenizer import Encoded
from regard.data.tokenizers.words import token_to_word
from regard.tasks.shared.trace_sides import word_spans


@dataclass(frozen=True, order=True)
class AttentionPlace:
    """Where in a translator alignments are read: a layer, a head, and the row of a word."""

    layer: int
    head: int | None
    """None: the mean of all heads."""
    shift: int = 0
    """0: the row that predicts the word; 1: the row after it, which has read the word."""

    def __str__(self) -> str:
        head = "mean of heads" if self.head is None else f"head {self.head}"
        return f"layer {self.layer}, {head}, {'reading' if self.shift else 'predicting'} each word"

    def of(self, weights: Mapping[str, Tensor]) -> Float[Tensor, "b t k"]:
        """The weights of this place, one row per step."""
        layer = source_attention(weights)[self.layer]
        return layer.mean(1) if self.head is None else layer[:, self.head]


def source_attention(weights: Mapping[str, Tensor]) -> list[Float[Tensor, "b h t k"]]:
    """Attention from target to source, layer by layer."""
    return [tensor for name, tensor in weights.items() if name.split(".")[-1] == "source"]


def tokens_of_words(text: str, encoded: Encoded) -> list[list[int]]:
    """The tokens of each word between spaces."""
    spans = word_spans(text)
    tokens: list[list[int]] = [[] for _ in spans]
    for token, word in enumerate(token_to_word(encoded.offsets, spans)):
        if word is not None:
            tokens[word].append(token)
    return tokens
