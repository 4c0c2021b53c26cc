"""Options of language modelling."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from regard.errors import OptionError
from regard.options import PROPORTION, Bounds, between, check_fields
from regard.tasks.shared.pretrained import pretrained_options
from regard.tasks.shared.vector_options import check_vectors

TRAINING_DEFAULTS: dict[str, Any] = {
    "epochs": 10,
    "patience": 10,  # a cosine schedule pays off at its end
    "batch_tokens": 800,
    "min_batches": 16,
    "learning_rate": 2e-3,
    "schedule": "cosine",
    "ngrams": 5,
}
PRETRAINED_DEFAULTS: dict[str, Any] = {
    **pretrained_options.DEFAULTS,
    "batch_tokens": 1024,
    "window_tokens": 256,
    "ngrams": 0,
}
del PRETRAINED_DEFAULTS["word_dropout"]
CONDITION_DEFAULTS: dict[str, Any] = {"ngrams": 0}


@dataclass(frozen=True)
class LanguageData:
    """Text and its tokenization."""

    data: list[str] | None = None
    """Text files (default: the built-in stories)."""
    valid: list[str] | None = None
    """Validation data in the same format (default: a part of the data is held out)."""
    text: str | None = None
    """Column with the text, in tables."""
    condition: str | None = None
    """What each text is generated from: a column of labels, or a .npy file with one vector per
    line."""
    tokenizer: Literal["word", "whitespace", "bpe", "unigram", "character", "bytes"] = "bpe"
    """Kind of tokens."""
    vocabulary: Annotated[int | None, between(1, 10**7)] = None
    """Maximum vocabulary size (default: 6 · √words of the text, from 1,000 to 16,000; 30,000 for
    words)."""
    lowercase: bool = False
    """Lowercase the text."""
    window_tokens: Annotated[int, between(1, 10**6)] = 40
    """Length of truncated back-propagation through time; context length of a transformer."""
    vectors: str | None = None
    """File of pretrained word vectors: GloVe text, .vec, or gzip of either; needs the word
    tokenizer."""
    freeze: bool = False
    """Keep pretrained word vectors fixed."""
    sampled: Annotated[int | None, between(0, 10**7)] = None
    """Number of words sampled for the softmax in each training update; 0 for all (default: a tenth
    of a vocabulary of 16,000 or more, all of a smaller one)."""
    pretrained: str | None = None
    """Folder of a pretrained language model like GPT-2 or Llama to train further. It determines the
    tokenizer and the sizes, and changes defaults: 3 epochs, learning rate 5e-5 with linear decay,
    windows of 256 tokens."""
    freeze_layers: Annotated[int, between(0, 1000)] = 0
    """Number of lowest blocks of a pretrained model that are frozen, with its word vectors."""
    ngrams: Annotated[int, between(0, 9)] = 0
    """Maximum length of the n-grams of an interpolated Kneser-Ney model that predicts beside the
    network, weighed on the validation data; 0 for the network alone."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_vectors(self, self.tokenizer)
        if self.condition is not None and self.data is None:
            raise OptionError("condition", "requires data, which was not given")
        if self.ngrams and self.condition is not None:
            raise OptionError("ngrams", "does not apply to texts with conditions")
        if self.ngrams == 1:
            raise OptionError("ngrams", "expected 2 or more, or 0 for none")


@dataclass(frozen=True)
class ReadingOptions:
    """Attention to the text being read."""

    cache: Annotated[int, between(0, 10**6)] = 0
    """Number of past states of the text being read that are attended to: words that followed
    similar states become likelier (Grave et al., 2017); 0 for none."""
    cache_weight: Annotated[float, PROPORTION] = 0.1
    """Weight of these words beside the prediction of the model."""
    cache_sharpness: Annotated[float, between(0, 1000)] = 10.0
    """Factor of the cosine similarity of states before the softmax."""

    def __post_init__(self) -> None:
        check_fields(self)

    def cached(self) -> dict[str, Any] | None:
        """The arguments of `LanguageModel.empty_cache` but the batch; None without a cache."""
        if not self.cache:
            return None
        weight, sharpness = self.cache_weight, self.cache_sharpness
        return {"size": self.cache, "weight": weight, "sharpness": sharpness}


@dataclass(frozen=True)
class Sampling(ReadingOptions):
    """Text generation."""

    tokens: Annotated[int, between(1, 100_000)] = 100
    """Maximum number of tokens to generate."""
    temperature: Annotated[float, between(0, 1000)] = 1.0
    """Sampling temperature; 0 takes the most likely token every time."""
    top_k: Annotated[int | None, between(1, 10**7)] = None
    """Sample among the k most likely tokens."""
    top_p: Annotated[float, Bounds(0, 1, low_open=True)] = 1.0
    """Sample among the most likely tokens whose probabilities sum to p."""
    repetition_penalty: Annotated[float, between(0.001, 1000)] = 1.0
    """Divide the probability of tokens generated earlier by this factor."""
    seed: Annotated[int, Bounds(0, 2**63, high_open=True)] = 0
    """Random seed; the samples of a prompt do not depend on its position in the input."""

    def __post_init__(self) -> None:
        check_fields(self)

    def arguments(self) -> dict[str, Any]:
        """The arguments of a search by sampling."""
        return {
            "temperature": self.temperature,
            "top_k": self.top_k,
            "top_p": self.top_p,
            "repetition_penalty": self.repetition_penalty,
        }
