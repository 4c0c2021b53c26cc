"""Translation: pairs of sentences, an encoder–decoder, beam search and BLEU."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from regard.data import DataReport, Pair, Source, Summary, read_pairs, resolve
from regard.data.batches import pad, shuffled_batches
from regard.data.corpus import Corpus, in_chunks
from regard.data.plausibility import check_not_numbers
from regard.data.tokenizers.tokenizer import BOS, EOS, Tokenizer
from regard.errors import OptionError
from regard.metrics import bleu, chrf, measure
from regard.models import Translator, TranslatorConfig
from regard.models.output import sum_losses
from regard.models.pretrained.architecture import TranslatorArchitecture
from regard.models.pretrained.encoder_decoder import PretrainedTranslator
from regard.search import Hypothesis
from regard.tasks.prediction import Prediction
from regard.tasks.shared.by_length import by_input_length
from regard.tasks.shared.extra_metrics import extra_metrics
from regard.tasks.shared.length_limits import check_max_length
from regard.tasks.shared.losses import balance_loss, next_token_loss
from regard.tasks.shared.pretrained.pretrained_encoder import PretrainedPart
from regard.tasks.shared.pretrained.pretrained_options import check_pretrained
from regard.tasks.shared.splits import (
    Read,
    Splits,
    make_splits,
    require_corpus,
    vocabulary_size,
)
from regard.tasks.shared.word_attention import AttentionPlace
from regard.tasks.task import Evaluation, Loss, Sample
from regard.tasks.translation.decode import BATCH_TOKENS, Pins, decode
from regard.tasks.translation.guided_alignment import (
    alignment_targets,
    attention_to_guide,
    guided_alignment_loss,
    guided_place,
    token_links,
    token_weights,
    with_links,
)
from regard.tasks.translation.pretrained_model import copy_translator, load_translator
from regard.tasks.translation.task_options import (
    Decoding,
    Quantization,
    TranslationData,
    TranslationEvaluation,
)
from regard.tasks.translation.translate_texts import translate_texts, with_copied_numbers


class Batch(NamedTuple):
    """Padded sources and targets; targets begin with the start token and end with the end token."""

    source: Tensor
    source_lengths: Tensor
    target: Tensor
    target_lengths: Tensor
    alignment: Tensor | None = None
    """Target distribution of the guided attention, [b, t, k]."""


@dataclass(frozen=True)
class Translation:
    """Translation between the languages of its two tokenizers."""

    config: TranslatorConfig
    source: Tokenizer
    target: Tokenizer
    max_tokens: int
    train: Corpus | None = None
    valid: Corpus | None = None
    guided: AttentionPlace | None = None
    """The attention that is trained on given alignments."""
    align_loss: float = 0.0
    pretrained: PretrainedPart | None = None
    joint: bool = False
    """Whether both sides have the same tokens, and share their vectors."""

    def build(self) -> Translator:
        """A translator with initial weights, or a pretrained one."""
        if self.pretrained is None:
            sizes = self.source.size, self.target.size
            return Translator(self.config, *sizes, joint=self.joint)
        network = PretrainedTranslator(self.pretrained.architecture, self.config.dropout)
        if self.train is not None:
            self.pretrained.start(network)
        return network

    def plan(self, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
        """Batches of similar length, in random order."""
        corpus = require_corpus(self.train)
        lengths = [corpus.lengths("source"), corpus.lengths("target") + 2]
        return shuffled_batches(np.stack(lengths, 1), budget, seed, epoch)

    def batch(self, examples: np.ndarray) -> Batch:
        """The tensors of one batch."""
        rows = require_corpus(self.train).rows(examples)
        sides = *pad(rows["source"]), *pad([_with_start_and_end(row) for row in rows["target"]])
        if self.guided is None:
            return Batch(*sides)
        steps, keys = sides[2].shape[1] - 1, sides[0].shape[1]
        return Batch(
            *sides,
            alignment_targets(
                rows["links"], steps, keys, self.guided.shift, rows.get("link_weights")
            ),
        )

    def count(self, batch: Batch) -> int:
        """The number of target tokens, including the end."""
        return int((batch.target_lengths - 1).sum())

    def loss(
        self, model: Translator, batch: Batch, smoothing: float, carried: list[Tensor]
    ) -> tuple[Loss, list[Tensor]]:
        """Cross-entropy of each next token, and of the guided attention to its alignment."""
        output = model(
            batch.source,
            batch.source_lengths,
            batch.target[:, :-1],
            batch.target_lengths - 1,
            need_weights=self.guided is not None,
        )
        tokens = next_token_loss(output.logits, batch.target[:, 1:], smoothing)
        links = None
        if self.guided is not None and batch.alignment is not None:
            before = model.frame[0]
            keys = slice(before, before + batch.source.shape[1])
            attention = self.guided.of(output.weights)[..., keys]
            links = self.align_loss * guided_alignment_loss(attention, batch.alignment)
        return Loss(tokens, sum_losses([balance_loss(output.balance), links])), carried

    @property
    def shares_validation(self) -> bool:
        """Processes share out the batches of its validation."""
        return True

    def validate(self, model: Translator) -> Evaluation:
        """BLEU of greedy translations of the validation data."""
        corpus = require_corpus(self.valid)
        columns = corpus.column("source_text"), corpus.column("target_text")
        pairs = [Pair(source, target) for source, target in zip(*columns, strict=True)]
        return self.evaluate(model, pairs, beam=1)

    def evaluate(
        self,
        model: Translator,
        examples: Sequence[Pair],
        *,
        metrics: Sequence[str] = (),
        **options: Any,
    ) -> Evaluation:
        """BLEU and chrF, by length too; `options` are those of `TranslationEvaluation`."""
        chosen = TranslationEvaluation(**options)
        sources = [pair.source for pair in examples]
        hypotheses = self.translate(
            model,
            sources,
            beam=chosen.beam,
            quantize=chosen.quantize,
            no_repeat=chosen.no_repeat,
        )
        texts = self.target.decode_batch([best.output for best in hypotheses])
        if chosen.copy_numbers:
            texts = with_copied_numbers(self, model, sources, hypotheses)
        references = [pair.target for pair in examples]
        metric = bleu(texts, references, lowercase=chosen.lowercase)
        extra = extra_metrics("texts", metrics, texts, references)
        return Evaluation(
            metrics={
                "bleu": measure(metric),
                "chrf": measure(chrf(texts, references, lowercase=chosen.lowercase)),
                **{name: measure(tally) for name, tally in extra.items()},
            },
            main="bleu",
            higher=True,
            samples=tuple(map(Sample, sources[:3], references[:3], texts[:3])),
            by_length=by_input_length(metric, [len(source.split()) for source in sources]),
            lines=tuple(
                {"source": pair.source, "reference": pair.target, "translation": text}
                for pair, text in zip(examples, texts, strict=True)
            ),
            tally=metric,
        )

    def predict(
        self,
        model: Translator,
        texts: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        force: Pins | None = None,
        **options: Any,
    ) -> list[Prediction]:
        """The best translation of each text, and its score; `options` are those of `Decoding`."""
        return translate_texts(self, model, texts, Decoding(**options), prefixes, force)

    def translate(
        self,
        model: Translator,
        texts: Sequence[str],
        *,
        beam: int = 5,
        budget: int = BATCH_TOKENS,
        need_weights: bool = False,
        quantize: Quantization = "none",
        no_repeat: int = 0,
    ) -> list[Hypothesis]:
        """The best translation of each text, in order."""
        options = Decoding(beam=beam, quantize=quantize, no_repeat=no_repeat)
        nbest = decode(self, model, texts, options, budget=budget, need_weights=need_weights)
        return [best for best, *_ in nbest]


def read(data: TranslationData, sources: Sequence[Source], summary: Summary) -> Iterator[Pair]:
    """The pairs of some files."""
    return read_pairs(sources, data.source, data.target, summary)


def check(data: TranslationData, config: TranslatorConfig) -> None:
    """Check that the model has positions for the longest sentence, and the head to be guided."""
    check_pretrained(
        data,
        config,
        data_options=("tokenizer", "vocabulary", "lowercase", "joint"),
        used=("dropout",),
    )
    if data.pretrained is not None:
        return
    check_max_length(config, "max_tokens", data.max_tokens)
    if data.alignments is not None:
        guided_place(attention_to_guide(config), data.align_layer, data.align_head)


def prepare(data: TranslationData, folder: Path, seed: int) -> DataReport:
    """Read the pairs, train the tokenizers, write the corpora; what was understood."""
    guided = data.alignments is not None and data.data is not None
    reader = _reader_with_links(data) if guided else read
    splits: Splits[Pair] = make_splits("english_french", data, reader, seed, folder=folder)
    next(splits.train(), None)  # which reads the header
    if guessed := splits.guessed():
        options = ("source", "target")
        check_not_numbers((p.source for p in splits.train()), guessed, "source", options)
        check_not_numbers((p.target for p in splits.train()), guessed, "target", options)
    notes: list[str] = []
    if data.pretrained is None:
        if data.joint:
            source = target = _train_tokenizer(
                lambda: (text for pair in splits.train() for text in (pair.source, pair.target)),
                data,
            )
        else:
            source = _train_tokenizer(lambda: (pair.source for pair in splits.train()), data)
            target = _train_tokenizer(lambda: (pair.target for pair in splits.train()), data)
        source.save(folder / "source.json")
        target.save(folder / "target.json")
    else:
        translator, note = copy_translator(data.pretrained, folder)
        source, target = translator.source, translator.target
        _check_sizes(data, translator.architecture)
        notes.append(note)
    too_long = [0]

    def left_out() -> str:
        if not too_long[0]:
            return ""
        return f"{too_long[0]:,} of these pairs, over {data.max_tokens} tokens, were left out"

    sizes = splits.write(
        folder,
        lambda pairs: _rows(
            pairs,
            source,
            target,
            max_tokens=data.max_tokens,
            too_long=too_long,
            guided=data.alignments is not None,
        ),
        left_out=left_out,
    )
    sides = {"source": source, "target": target}
    return splits.report(
        sizes,
        vocabularies={"both sides": target.size}
        if data.joint
        else {side: tokenizer.size for side, tokenizer in sides.items()},
        notes=[*notes, *(f"{side}: {t.note}" for side, t in sides.items() if t.note), left_out()],
    )


def load(data: TranslationData, config: TranslatorConfig, folder: Path) -> Translation:
    """The task of a run whose data was prepared."""
    source, target = (Tokenizer.load(folder / f"{side}.json") for side in ("source", "target"))
    part = load_translator(data, folder)
    if part is not None:
        architecture: TranslatorArchitecture = part.architecture
        config = replace(config, max_length=architecture.positions - int(architecture.leads))
    guided = None
    if data.alignments is not None:
        candidates = attention_to_guide(config if part is None else part.architecture)
        guided = guided_place(candidates, data.align_layer, data.align_head)
    return Translation(
        config,
        source,
        target,
        data.max_tokens,
        guided=guided,
        align_loss=data.align_loss,
        pretrained=part,
        joint=data.joint,
    )


def _check_sizes(data: TranslationData, architecture: TranslatorArchitecture) -> None:
    """Check that a pretrained model has positions for the longest sentence, and the guided head."""
    most = architecture.max_tokens - int(architecture.leads)
    if data.max_tokens > most:
        raise OptionError("max_tokens", f"expected at most {most}, the model's positions")
    if data.alignments is not None:
        guided_place(attention_to_guide(architecture), data.align_layer, data.align_head)


def _reader_with_links(data: TranslationData) -> Read[Pair]:
    """A reader that adds the links to the training pairs; other files have none."""
    guided = [source.name for source in resolve(data.data or [])]

    def read_with_links(
        data: TranslationData, sources: Sequence[Source], summary: Summary
    ) -> Iterator[Pair]:
        pairs = read(data, sources, summary)
        if data.alignments is None or [source.name for source in sources] != guided:
            return pairs
        return with_links(pairs, summary, data.alignments)

    return read_with_links


def _train_tokenizer(texts: Callable[[], Iterable[str]], data: TranslationData) -> Tokenizer:
    size = vocabulary_size(data.tokenizer, data.vocabulary, texts())
    return Tokenizer.train(data.tokenizer, texts(), size, data.lowercase)


def _rows(
    pairs: Iterable[Pair],
    source: Tokenizer,
    target: Tokenizer,
    *,
    max_tokens: int,
    too_long: list[int],
    guided: bool,
) -> Iterator[dict[str, Any]]:
    """Rows of the corpus; `too_long` counts the pairs that are left out."""
    for chunk in in_chunks(pairs):
        texts = [pair.source for pair in chunk], [pair.target for pair in chunk]
        ids = source.ids(texts[0]), target.ids(texts[1])
        links: Iterable[np.ndarray | None] = repeat(None, len(chunk))
        weights: Iterable[np.ndarray | None] = repeat(None, len(chunk))
        if guided:
            encoded = source.encode_batch(texts[0]), target.encode_batch(texts[1])
            links = map(token_links, chunk, *encoded)
            weights = map(token_weights, chunk, *encoded)
        for pair, source_row, target_row, linked, weighted in zip(
            chunk, *ids, links, weights, strict=True
        ):
            if max(len(source_row), len(target_row)) > max_tokens:
                too_long[0] += 1
                continue
            yield {
                "source": source_row,
                "target": target_row,
                "source_text": pair.source,
                "target_text": pair.target,
            } | ({} if linked is None else {"links": linked, "link_weights": weighted})


def _with_start_and_end(ids: np.ndarray) -> np.ndarray:
    return np.concatenate([[BOS], ids, [EOS]])
