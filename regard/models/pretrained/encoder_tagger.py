"""A pretrained encoder that labels words: a word is labelled at its first token."""

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.layers import CRF
from regard.layers.dropout import Dropout
from regard.models.output import Output
from regard.models.pretrained.architecture import EncoderArchitecture
from regard.models.pretrained.encoder import (
    FramedEmbedding,
    PretrainedEncoder,
    new_decision,
    place_tokens,
)
from regard.models.tagger import decode_tags, tag_loss, tag_probabilities


class PretrainedTagger(nn.Module):
    """Reads a sentence and labels each word.

    Weights are called encoder.0.self and so on, [b, h, n + 2, n + 2] for n tokens.
    """

    characters: None = None
    ngrams: None = None

    def __init__(
        self,
        architecture: EncoderArchitecture,
        labels: int,
        dropout: float,
        *,
        crf: bool = False,
        allowed: Bool[Tensor, "l l"] | None = None,
        allowed_start: Bool[Tensor, "l"] | None = None,
    ) -> None:
        """Build it with initial weights; the other arguments are those of `Tagger`."""
        super().__init__()
        self.architecture = architecture
        self.inputs = FramedEmbedding(architecture, dropout)
        self.encoder = PretrainedEncoder(architecture, dropout)
        self.dropout = Dropout(dropout)
        self.decision = new_decision(architecture.width, labels)
        self.crf = CRF(labels, allowed=allowed, allowed_start=allowed_start) if crf else None

    def forward(
        self,
        words: Int[Tensor, "b t"],
        lengths: Int[Tensor, "b"],
        tokens: Int[Tensor, "b t p"],
        *,
        need_weights: bool = False,
    ) -> Output:
        """Logits [b, t, labels] of each word by itself; the CRF decodes whole sentences.

        Args:
            words: the first token of each word; not used, since `tokens` has it too.
            lengths: number of words.
            tokens: all tokens of each word, padded with 0.
            need_weights: whether weights are returned.
        """
        placed = place_tokens(self.inputs.words(tokens), tokens)
        vectors = self.inputs(placed.vectors, placed.lengths)
        context = self.encoder(vectors, placed.lengths + 2, need_weights=need_weights)
        at_words = placed.starts.clamp(max=vectors.shape[1] - 2) + 1  # after the first token
        states = context.states.gather(1, at_words[:, :, None].expand(-1, -1, self.encoder.size))
        return Output(self.decision(self.dropout(states)), context.weights)

    def loss(
        self,
        logits: Float[Tensor, "b t l"],
        tags: Int[Tensor, "b t"],
        lengths: Int[Tensor, "b"],
        smoothing: float = 0.0,
    ) -> Float[Tensor, ""]:
        """Negative log-likelihood of the tags, per word."""
        return tag_loss(self.crf, logits, tags, lengths, smoothing)

    def decode(self, logits: Float[Tensor, "b t l"], lengths: Int[Tensor, "b"]) -> list[list[int]]:
        """The best labels of each sentence."""
        return decode_tags(self.crf, logits, lengths)

    def probabilities(
        self, logits: Float[Tensor, "b t l"], lengths: Int[Tensor, "b"]
    ) -> Float[Tensor, "b t l"]:
        """p(label) of each word: the marginals of the CRF, or the softmax without one."""
        return tag_probabilities(self.crf, logits, lengths)
