"""Options of tagging."""

from dataclasses import dataclass
from typing import Annotated, Any

from regard.options import PROPORTION, between, check_fields
from regard.tasks.shared.pretrained import pretrained_options
from regard.tasks.shared.vector_options import check_vectors

TRAINING_DEFAULTS: dict[str, Any] = {
    "epochs": 20,
    "patience": 20,  # a cosine schedule pays off at its end
    "batch_tokens": 1024,
    "min_batches": 100,
    "learning_rate": 2e-3,
    "schedule": "cosine",
    "label_smoothing": 0.1,
    "average": 3,
}
PRETRAINED_DEFAULTS: dict[str, Any] = {**pretrained_options.ENCODER_DEFAULTS, "crf": False}


@dataclass(frozen=True)
class TaggingData:
    """Tagged sentences."""

    data: list[str] | None = None
    """CoNLL columns, tables, or vectors (x.npy tags.txt) (default: the built-in sentences)."""
    valid: list[str] | None = None
    """Validation data in the same format (default: a part of the data is held out)."""
    text: str | None = None
    """Column with the words."""
    label: str | None = None
    """Column with the tags."""
    vocabulary: Annotated[int, between(1, 10**7)] = 30000
    """Maximum number of words in the vocabulary."""
    lowercase: bool = True
    """Look words up in lower case; character features keep the case."""
    vectors: str | None = None
    """File of pretrained word vectors: GloVe text, .vec, or gzip of either."""
    freeze: bool = False
    """Keep pretrained word vectors fixed."""
    word_dropout: Annotated[float, PROPORTION] = 0.3
    """Probability that a word is replaced by the unknown token in training."""
    pretrained: str | None = None
    """Folder of a pretrained encoder of the BERT family to train further. It determines the
    tokenizer and the sizes, and changes defaults: 3 epochs, learning rate 1e-4 with linear decay,
    dropout 0.1, no CRF."""
    freeze_layers: Annotated[int, between(0, 1000)] = 0
    """Number of lowest blocks of a pretrained encoder that are frozen, with its word vectors."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_vectors(self)
