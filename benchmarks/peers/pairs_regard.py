"""Regard: prepare pairs for training, with its default vocabularies."""

import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from turns import answer

from regard.training.run import train_run


class PreparedError(Exception):
    """Ends a run when its data is prepared."""


def main() -> None:
    """Prepare the pairs when asked to, and keep the vocabularies for others."""
    folder = Path(tempfile.mkdtemp()) / "run"

    def prepare() -> str:
        def log(line: str) -> None:
            if line.startswith("model"):  # the first line after those about the data
                for side in ("source", "target"):
                    shutil.copy(folder / "data" / f"{side}.json", sys.argv[2])
                raise PreparedError

        with suppress(PreparedError):
            train_run("translation", {"data": [sys.argv[1]]}, folder, log=log, data_cache=False)
        return ""

    answer({"read, learn vocabularies, tokenize, write": prepare})


if __name__ == "__main__":
    main()
