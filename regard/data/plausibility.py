"""Refuses data whose columns make no sense, unless the user chose them."""

from collections.abc import Iterable, Sequence
from itertools import islice

from regard.errors import RegardError

SAMPLE = 10_000
"""Examples that are looked at."""
FEWEST = 10
"""With fewer examples than this, nothing can be said."""
MOST_NUMBERS = 0.9
"""Proportion of numbers above which a column is no text."""
MOST_LABELS = 0.5
"""Proportion of different labels above which a column holds no labels."""


def check_text_and_label(
    examples: Iterable[tuple[str, Sequence[str]]], where: str, *, several: bool = False
) -> None:
    """Refuse texts that are numbers, labels that hardly repeat, and both if they seem swapped.

    Args:
        examples: texts with their labels.
        where: the files, for the message.
        several: whether a text may have any number of labels.
    """
    sample = list(islice(examples, SAMPLE))
    if len(sample) < FEWEST:
        return
    texts, labels = [text for text, _ in sample], [" ".join(names) for _, names in sample]
    different = len(set(labels))
    if _mean_words(labels) > max(3.0, _mean_words(texts)) and len(set(texts)) < different / 2:
        raise RegardError(
            f"{where}: text and label seem to be swapped (text {_shorten(texts[0])}, label "
            f"{_shorten(labels[0])}): choose them with --text and --label"
        )
    check_not_numbers(texts, where, "text", ("text", "label"))
    if not several and different > MOST_LABELS * len(sample):
        raise RegardError(
            f"{where}: {different:,} different labels in {len(sample):,} examples (the first is "
            f"{_shorten(labels[0])}): choose the columns with --text and --label; if both are "
            "given, any labels are accepted"
        )


def check_not_numbers(texts: Iterable[str], where: str, role: str, options: Sequence[str]) -> None:
    """Refuse a column of texts that holds numbers; `options` choose the columns."""
    sample = list(islice(texts, SAMPLE))
    chosen = " and ".join(f"--{option}" for option in options)
    numbers = [text for text in sample if _is_number(text)]
    if len(sample) >= FEWEST and len(numbers) > MOST_NUMBERS * len(sample):
        raise RegardError(
            f"{where}: the {role} is a number in {len(numbers):,} of {len(sample):,} examples "
            f"(the first is {_shorten(numbers[0])}): choose the columns with {chosen}; if "
            f"{'both are' if len(options) > 1 else 'it is'} given, numbers are accepted"
        )


def check_tags(tags: Iterable[str], where: str) -> None:
    """Refuse tags that hardly repeat: the last words of sentences, most likely."""
    sample = list(islice(tags, SAMPLE))
    different = len(set(sample))
    if len(sample) >= FEWEST and different > MOST_LABELS * len(sample):
        raise RegardError(
            f"{where}: {different:,} different tags of {len(sample):,} words (the first is "
            f"{_shorten(sample[0])}): expected one word and its tag per line; choose the columns "
            "with --text and --label; if both are given, any tags are accepted"
        )


def _mean_words(texts: Sequence[str]) -> float:
    return sum(len(text.split()) for text in texts) / len(texts)


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


def _shorten(text: str, most: int = 40) -> str:
    return repr(text if len(text) <= most else text[: most - 1] + "…")
