"""Options of classification."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from regard.errors import OptionError
from regard.options import PROPORTION, between, check_fields
from regard.tasks.shared.pretrained import pretrained_options
from regard.tasks.shared.vector_options import check_vectors

TRAINING_DEFAULTS: dict[str, Any] = {
    "epochs": 15,
    "patience": 5,
    "batch_tokens": 1024,
    "min_batches": 16,
    "warmup": 100,
    "label_smoothing": 0.1,
    "average": 5,
    "word_ngrams": 2,
}
PRETRAINED_DEFAULTS: dict[str, Any] = {**pretrained_options.ENCODER_DEFAULTS, "word_ngrams": 0}


@dataclass(frozen=True)
class ClassificationData:
    """Labelled texts and their tokenization."""

    data: list[str] | None = None
    """Tables with a text and a label, fastText lines, or vectors (x.npy labels.txt) (default: the
    built-in reviews)."""
    valid: list[str] | None = None
    """Validation data in the same format (default: a part of the data is held out)."""
    text: str | None = None
    """Column with the text."""
    label: str | None = None
    """Column with the label."""
    several: bool = False
    """Multi-label classification: any number of labels per text."""
    separator: str = ","
    """Separator of labels in a cell and in the output, with --several."""
    tokenizer: Literal["word", "whitespace", "bpe", "unigram", "character", "bytes"] = "word"
    """Kind of tokens."""
    vocabulary: Annotated[int, between(1, 10**7)] = 20000
    """Maximum vocabulary size."""
    lowercase: bool = True
    """Ignore case."""
    max_tokens: Annotated[int, between(1, 10**6)] = 400
    """Longer texts are truncated; their number is reported."""
    vectors: str | None = None
    """File of pretrained word vectors: GloVe text, .vec, or gzip of either."""
    freeze: bool = False
    """Keep pretrained word vectors fixed."""
    word_dropout: Annotated[float, PROPORTION] = 0.2
    """Probability that a word is replaced by the unknown token in training."""
    word_ngrams: Annotated[int, between(0, 4)] = 0
    """Maximum length of the word n-grams that vote on the label of a text by naive Bayes, in
    addition to the network, which is weighted on the validation data; 0 for the network alone."""
    class_weights: Literal["none", "balanced"] = "none"
    """Weights of labels in the loss; balanced: rare labels count as much as frequent ones."""
    pretrained: str | None = None
    """Folder of a pretrained encoder of the BERT family to train further. It determines the
    tokenizer and the sizes, and changes defaults: 3 epochs, learning rate 1e-4 with linear decay,
    dropout 0.1."""
    freeze_layers: Annotated[int, between(0, 1000)] = 0
    """Number of lowest blocks of a pretrained encoder that are frozen, with its word vectors."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_vectors(self, self.tokenizer)
        if not self.separator:
            raise OptionError("separator", "expected a text, got an empty one")
