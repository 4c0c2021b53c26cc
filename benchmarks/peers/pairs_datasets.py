"""Hugging Face datasets: read a table, tokenize both sides by `map` and write Arrow files.

Without learning the vocabularies, and with learning them by the tokenizers package beforehand.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import datasets
import tokenizers
from turns import answer


def load(folder: str) -> Any:
    """The pairs of the table, read anew."""
    datasets.disable_progress_bars()
    return datasets.load_dataset(
        "csv",
        data_files=sys.argv[1],
        sep="\t",
        header=None,
        names=["source", "target"],
        usecols=[0, 1],
        quoting=3,
        cache_dir=folder,
        split="train",
    )


def main() -> None:
    """Tokenize when asked to, with the vocabularies that were learned before or new ones."""

    def given() -> list[Any]:
        return [
            tokenizers.Tokenizer.from_file(f"{sys.argv[2]}/{side}.json")
            for side in ("source", "target")
        ]

    def tokenize(data: Any, sides: list[Any], folder: str) -> str:
        def ids(batch: dict[str, list[str]]) -> dict[str, list[list[int]]]:
            encoded = {}
            for name, tokenizer in zip(("source", "target"), sides, strict=True):
                rows = tokenizer.encode_batch_fast(batch[name], add_special_tokens=False)
                encoded[f"{name}_ids"] = [row.ids for row in rows]
            return encoded

        data.map(ids, batched=True).save_to_disk(f"{folder}/saved")
        return f"{len(data):,} pairs"

    def learn(texts: Any, like: Any) -> Any:
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel()
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=like.get_vocab_size(), show_progress=False
        )
        tokenizer.train_from_iterator(texts, trainer)
        return tokenizer

    def without_learning() -> str:
        with tempfile.TemporaryDirectory() as folder:
            return tokenize(load(folder), given(), folder)

    def with_learning() -> str:
        with tempfile.TemporaryDirectory() as folder:
            data = load(folder)
            sides = [
                learn(data[name], like)
                for name, like in zip(("source", "target"), given(), strict=True)
            ]
            return tokenize(data, sides, folder)

    Path(sys.argv[2]).mkdir(exist_ok=True)
    answer(
        {
            "read, learn vocabularies, tokenize, write": with_learning,
            "read, tokenize, write": without_learning,
        }
    )


if __name__ == "__main__":
    main()
