"""Data sets of the Hugging Face hub: `hf:name[,config][:split]`, where `datasets` is installed."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from regard.errors import RegardError


def hub_records(name: str) -> Iterator[tuple[int, Mapping[str, object] | None]]:
    """The records of a data set, streamed; class numbers are turned into their names."""
    try:
        import datasets  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise RegardError(
            f"{name}: reading from the hub needs the datasets package: pip install datasets"
        ) from error
    path, config, split = parse(name)
    for logger in ("datasets", "huggingface_hub"):  # their retries are no message of ours
        logging.getLogger(logger).setLevel(logging.ERROR)
    try:
        stream = datasets.load_dataset(path, config, split=split, streaming=True)
        features: Mapping[str, Any] = getattr(stream, "features", None) or {}
        names = {key: _class_names(feature) for key, feature in features.items()}
        for number, record in enumerate(stream, 1):
            yield number, {k: _named(v, names.get(k)) for k, v in record.items()}
    except RegardError:
        raise
    except Exception as error:
        what = (str(error).splitlines() or [type(error).__name__])[0]
        raise RegardError(
            f"{name}: the data set cannot be loaded ({what}): expected hf:name[,config][:split]"
        ) from error


def parse(name: str) -> tuple[str, str | None, str]:
    """Path, config and split of a name.

    >>> parse("hf:wmt/wmt14,de-en:validation"), parse("hf:imdb")
    (('wmt/wmt14', 'de-en', 'validation'), ('imdb', None, 'train'))
    """
    path, _, split = name.removeprefix("hf:").partition(":")
    path, _, config = path.partition(",")
    if not path:
        raise RegardError(f"{name}: expected hf:name[,config][:split]")
    return path, config or None, split or "train"


def _class_names(feature: Any) -> Sequence[str] | None:
    inner = getattr(feature, "feature", feature)
    return getattr(inner, "names", None)


def _named(value: object, names: Sequence[str] | None) -> object:
    if names is None:
        return value
    if isinstance(value, list):
        return [_named(part, names) for part in value]
    return names[value] if isinstance(value, int) and 0 <= value < len(names) else value
