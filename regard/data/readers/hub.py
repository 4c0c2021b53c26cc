"""Data sets of the Hugging Face hub: `hf:name[,config][:split]`, where `datasets` is installed."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from regard.errors import RegardError


def hub_records(name: str) -> Iterator[tuple[int, Mapping[str, object] | None]]:
    """Stream the records of a data set, with class numbers replaced by class names."""
    try:
        import datasets  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise RegardError(
            f"{name}: reading from the hub needs the datasets package: pip install datasets"
        ) from error
    path, config, split = parse_hub_name(name)
    for logger in ("datasets", "huggingface_hub"):  # their retry messages would hide ours
        logging.getLogger(logger).setLevel(logging.ERROR)
    try:
        stream = datasets.load_dataset(path, config, split=split, streaming=True)
        yield from enumerate(with_class_names(stream), 1)
    except RegardError:
        raise
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise RegardError(
            f"{name}: cannot load the data set ({reason}): expected hf:name[,config][:split]"
        ) from error


def with_class_names(records: Iterable[Mapping[str, object]]) -> Iterator[Mapping[str, object]]:
    """The records of a data set, with class numbers replaced by class names."""
    features: Mapping[str, Any] = getattr(records, "features", None) or {}
    names = {key: _class_names(feature) for key, feature in features.items()}
    for record in records:
        yield {k: _class_name(v, names.get(k)) for k, v in record.items()}


def parse_hub_name(name: str) -> tuple[str, str | None, str]:
    """Path, config and split of a data set name.

    >>> parse_hub_name("hf:wmt/wmt14,de-en:validation"), parse_hub_name("hf:imdb")
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


def _class_name(value: object, names: Sequence[str] | None) -> object:
    if names is None:
        return value
    if isinstance(value, list):
        return [_class_name(part, names) for part in value]
    return names[value] if isinstance(value, int) and 0 <= value < len(names) else value
