"""Options of translation."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from regard.errors import OptionError
from regard.options import Bounds, between, check_fields
from regard.tasks.shared.pretrained import pretrained_options

Quantization = Literal["none", "int8"]

TRAINING_DEFAULTS: dict[str, Any] = {
    "epochs": 20,
    "patience": 4,
    "batch_tokens": 1024,
    "min_batches": 16,
    "label_smoothing": 0.1,
    "average": 5,
}
PRETRAINED_DEFAULTS: dict[str, Any] = dict(pretrained_options.DEFAULTS)
del PRETRAINED_DEFAULTS["word_dropout"]


@dataclass(frozen=True)
class TranslationData:
    """Sentence pairs and their tokenization."""

    data: list[str] | None = None
    """Two text files, or tables with both sides (default: the built-in pairs)."""
    valid: list[str] | None = None
    """Validation data in the same format (default: a part of the data is held out)."""
    source: str | None = None
    """Column or file extension of the source language."""
    target: str | None = None
    """Column or file extension of the target language."""
    tokenizer: Literal["word", "whitespace", "bpe", "unigram", "character", "bytes"] = "bpe"
    """Kind of tokens."""
    vocabulary: Annotated[int | None, between(1, 10**7)] = None
    """Maximum vocabulary size of each side (default: 6 · √words of the side, from 1,000 to 16,000;
    30,000 for words)."""
    joint: bool = False
    """One vocabulary for both sides, whose word vectors source and target share, and the output
    too unless the model is not tied (three-way tying); for languages in one script."""
    lowercase: bool = False
    """Lowercase both sides."""
    max_tokens: Annotated[int, between(1, 10**6)] = 200
    """Longer sentences are skipped in training and truncated in prediction, with a report."""

    alignments: str | None = None
    """Word alignments of the data in Pharaoh format, one line per pair, to guide the attention;
    links may have weights, as from `regard align --soft`."""
    align_loss: Annotated[float, between(0, 1000)] = 0.1
    """Weight of the alignment loss."""
    align_layer: int | None = None
    """Transformer layer whose head is guided, counted from 0 (default: the last but one)."""
    align_head: int = 0
    """Head that is guided, counted from 0."""

    pretrained: str | None = None
    """Folder of a pretrained translator (BART, Marian or T5) to train further. It determines the
    tokenizers and the sizes, and changes defaults: 3 epochs, learning rate 5e-5 with linear
    decay."""
    freeze_layers: Annotated[int, between(0, 1000)] = 0
    """Number of lowest encoder blocks of a pretrained model that are frozen, with its word
    vectors."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.alignments is not None and self.data is None:
            raise OptionError("alignments", "requires data, which was not given")


@dataclass(frozen=True)
class TranslationEvaluation:
    """Translation."""

    beam: Annotated[int, between(1, 1000)] = 5
    """Beam width."""
    no_repeat: Annotated[int, between(0, 1000)] = 0
    """Write no sequence of so many tokens twice; 0 allows repetitions."""
    copy_numbers: bool = False
    """Replace numbers that the source lacks with those of the source, by attention."""
    lowercase: bool = False
    """Compare in lower case."""
    quantize: Quantization = "none"
    """Decode with weights in int8: faster, and slightly less exact."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Decoding:
    """Translation."""

    beam: Annotated[int, between(1, 1000)] = 5
    """Beam width; 1 is greedy search."""
    nbest: Annotated[int, between(1, 1000)] = 1
    """Number of translations per text."""
    length_penalty: Annotated[float, between(-10, 10)] = 1.0
    """α in log p(y) / |y|^α, by which finished translations are ranked; 0 ranks by log p(y)."""
    coverage: Annotated[float, between(0, 1000)] = 0.0
    """β of the penalty for source words without attention (Wu et al., 2016)."""
    no_repeat: Annotated[int, between(0, 1000)] = 0
    """Write no sequence of so many tokens twice; 0 allows repetitions."""
    temperature: Annotated[float | None, between(0, 1000)] = None
    """Sample instead of searching, at this temperature."""
    top_k: Annotated[int | None, between(1, 10**7)] = None
    """Sample among the k most likely tokens."""
    top_p: Annotated[float | None, Bounds(0, 1, low_open=True)] = None
    """Sample among the most likely tokens whose probabilities sum to p."""
    repetition_penalty: Annotated[float | None, between(0.001, 1000)] = None
    """Sample, and divide the probability of tokens generated earlier by this factor."""
    seed: Annotated[int, Bounds(0, 2**63, high_open=True)] = 0
    """Random seed; the sample of a text does not depend on its position in the input."""
    copy_numbers: bool = False
    """Replace numbers that the source lacks with those of the source, by attention."""
    replace_unknown: bool = False
    """Replace unknown tokens with the most attended source token."""
    return_tokens: bool = False
    """Return the tokens and their log-probabilities."""
    weights: bool = False
    """Return the attention weights."""
    exact: bool = False
    """Search until no better translation is possible, even after a full beam has finished."""
    quantize: Quantization = "none"
    """Decode with weights in int8: faster, and slightly less exact."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.nbest > self.beam and not self.sampled:
            raise OptionError("nbest", f"expected at most {self.beam}, the width of the beam")

    @property
    def sampled(self) -> bool:
        """Whether translations are sampled rather than searched for."""
        options = (self.temperature, self.top_k, self.top_p, self.repetition_penalty)
        return any(value is not None for value in options)
