"""The log-probability that a translator gives to translations, token by token."""

from collections.abc import Sequence

from regard.models import Translator
from regard.tasks.prediction import LogProbability
from regard.tasks.translation.decode import force_targets
from regard.tasks.translation.task import Translation


def target_log_probabilities(
    task: Translation,
    model: Translator,
    texts: Sequence[str],
    targets: Sequence[str] | None = None,
) -> list[LogProbability]:
    """log p(target | text) of each pair, in order."""
    if targets is None:
        raise ValueError("a translator scores a target given a text: targets are missing")
    sources = task.source.ids(texts)
    rows = task.target.ids(targets)
    longest = task.config.max_length - 1
    hypotheses = force_targets(task, model, texts, [row[:longest] for row in rows])
    names = task.target.vocabulary()
    return [
        LogProbability(
            hypothesis.log_probability,
            hypothesis.token_log_probabilities,
            [names[token] for token in hypothesis.tokens],
            truncated=len(source) > task.max_tokens or len(row) > longest,
        )
        for hypothesis, source, row in zip(hypotheses, sources, rows, strict=True)
    ]
