"""What a command was asked for and could not do: counted line by line, said at the end."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any


class Remarks:
    """Of `predict`: pins that nothing came of, and prefixes that the model cannot write."""

    def __init__(self, run: Any, prefixes: str | None = None) -> None:
        self._run, self._prefixes = run, prefixes
        self._read = self._strange = self._translated = 0
        self._first = ""
        self._missed: Counter[int] = Counter()

    def unknown(self, prefixes: Sequence[str]) -> None:
        """Count prefixes with words that the model does not know."""
        from regard.data.tokenizer import UNK

        for line, found in enumerate(self._run.task.target.encode_batch(prefixes), self._read + 1):
            named = zip(found.ids, found.tokens, strict=True)
            strange = [text for token, text in named if token == UNK]
            if strange and not self._first:
                self._first = f"{self._prefixes}:{line}: {strange[0]!r}"
            self._strange += bool(strange)
        self._read += len(prefixes)

    def unwritten(self, force: Mapping[int, Any], tokens: Sequence[str]) -> None:
        """Count positions that were pinned but lie behind the end of a translation."""
        self._translated += 1
        self._missed.update(position for position in force if position >= len(tokens))

    def tell(self) -> None:
        """Say it on standard error."""
        for position, lines in sorted(self._missed.items()):
            many = f"{self._translated} line{'s' * (self._translated != 1)}"
            print(
                f"--force: token {position} was never written in {lines} of {many}: nothing was "
                "forced there",
                file=sys.stderr,
            )
        if self._strange:
            more = f", nor are words of {self._strange - 1} more" if self._strange > 1 else ""
            print(
                f"{self._first} is no word that this model can write{more}: <unk> stands there",
                file=sys.stderr,
            )
