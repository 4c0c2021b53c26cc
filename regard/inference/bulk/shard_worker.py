"""What a worker does: load the model once, then process shards, one part file each.

`python -m regard.inference.bulk.shard_worker` reads a line of JSON with its settings, and then one
per shard, from standard input; it answers each with a line on standard output, and ends when its
input ends: also when the process that started it was killed.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.inference.bulk.line_work import LineResult, LineWork
from regard.inference.bulk.output_formats import ERROR, OUTPUT_FORMATS
from regard.inference.bulk.part_files import MOST_ERRORS, Summary, is_whole_part, write_part
from regard.inference.bulk.read_shard import InputRow, read_rows
from regard.inference.bulk.shards import Shard


class ShardWorker:
    """A model in memory, which processes shards."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """`settings`: the fields of `LineWork`, the format of the output, and threads."""
        import torch

        torch.set_num_threads(settings["threads"])
        work = settings["work"]
        self._work = LineWork(**work | {"texts": tuple(work["texts"])})
        self._format = OUTPUT_FORMATS[settings["format"]]
        self._process = self._work.load()

    def __call__(self, job: dict[str, Any]) -> dict[str, Any]:
        """Process a shard, unless its part is there; its number, lines and processor seconds."""
        began = time.process_time()
        shard, path = Shard.from_record(job["shard"]), Path(job["part"])
        if not is_whole_part(path):
            rows = read_rows(shard, self._work.texts)
            results = self._process([(row.number, row.texts) for row in rows])
            final = [
                (row, self._with_error(shard, row, result))
                for row, result in zip(rows, results, strict=True)
            ]
            content = self._format.encode(shard, self._work, final)
            write_part(path, _summary(shard, final), content)
        seconds = time.process_time() - began
        return {"number": job["number"], "lines": shard.count, "seconds": seconds}

    def _with_error(self, shard: Shard, row: InputRow, result: LineResult) -> LineResult:
        error = row.error
        if error is None and shard.file.form != "lines":
            for name in (self._work.column, ERROR):
                if name in row.record:
                    error = f"has a column {name!r} already: rename it"
        if error is None:
            return result
        return LineResult(lines=result.lines, error=error)


def _summary(shard: Shard, rows: list[tuple[InputRow, LineResult]]) -> Summary:
    errors = [(row.number, result.error) for row, result in rows if result.error is not None]
    return {
        "lines": len(rows),
        "truncated": sum(result.truncated for _, result in rows),
        "failed": len(errors),
        "errors": [_located(shard, *error) for error in errors[:MOST_ERRORS]],
    }


def _located(shard: Shard, number: int, message: str) -> str:
    where = f"{shard.file.path}:{number}"
    one_line = " ".join(message.split())
    return one_line if one_line.startswith(where) else f"{where}: {one_line}"


def main() -> int:
    """Process the shards that standard input names."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    worker: ShardWorker | None = None
    for line in sys.stdin:
        try:
            message = json.loads(line)
            if worker is None:
                worker = ShardWorker(message)
                continue
            answer = worker(message)
        except (RegardError, ValueError, RuntimeError, OSError, MemoryError) as error:
            answer = {"failed": " ".join(str(error).split()) or type(error).__name__}
        print(json.dumps(answer), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
