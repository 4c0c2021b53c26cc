"""How well the defaults learn: real corpora, training minutes, scores beside each other.

    python benchmarks/learning.py --data FOLDER [--only NAME …] [--out runs/learning] [--threads 2]

FOLDER holds multi30k/, sst2/, wikiann-en/ and wikitext-2/. Every run is the command that is
printed: `regard train` with no option but its files and what is compared, then `regard evaluate`.
What is in the folder of the runs already is not trained again; the table goes to standard output
and, with --write, between the marks in docs/benchmarks.md.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
BEGIN, END = "<!-- learning begins -->", "<!-- learning ends -->"


class Trial(NamedTuple):
    """One run: what to train on, what to test on, which number counts."""

    name: str
    train: str
    test: str
    metric: str
    goal: str = ""


MULTI30K = (
    "translation --data {data}/multi30k/train.de {data}/multi30k/train.en "
    "--valid {data}/multi30k/val.de {data}/multi30k/val.en"
)
TEST2016 = (
    "--data {data}/multi30k/test_2016_flickr.de {data}/multi30k/test_2016_flickr.en --lowercase"
)
SST = "classify --data {data}/sst2/train.tsv"
WIKITEXT = (
    "language --data {data}/wikitext-2/train.txt --tokenizer word --vocabulary 40000 "
    "--word-size 128 --batch-tokens 1280 --learning-rate 3e-3 --minutes 28"
)
TRIALS = (
    Trial("multi30k recurrent additive", MULTI30K, TEST2016, "bleu", "≥ 35"),
    Trial("multi30k transformer", f"{MULTI30K} --model transformer", TEST2016, "bleu", "≥ 37"),
    Trial("multi30k recurrent, no attention", f"{MULTI30K} --attention none", TEST2016, "bleu"),
    Trial("sst2", SST, "--data {data}/sst2/dev.tsv", "accuracy", "≥ 0.80"),
    Trial(
        "sst2 sum of word vectors",
        f"{SST} --encoder none --pooling sum",
        "--data {data}/sst2/dev.tsv",
        "accuracy",
    ),
    Trial(
        "wikiann-en",
        "tag --data {data}/wikiann-en/train.conll",
        "--data {data}/wikiann-en/dev.conll",
        "f1",
        "≥ 0.78",
    ),
    Trial(
        "wikitext-2 lstm",
        WIKITEXT,
        "--data {data}/wikitext-2/valid.txt",
        "perplexity_per_word",
        "≤ 150",
    ),
    Trial(
        "wikitext-2 lstm with attention",
        f"{WIKITEXT} --attention additive --width 211",
        "--data {data}/wikitext-2/valid.txt",
        "perplexity_per_word",
        "≤ 150",
    ),
)


def main() -> int:
    """Train and test what is asked for; the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder with the corpora")
    parser.add_argument("--out", type=Path, default=Path("runs/learning"), help="where runs go")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="trials whose name has a word")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--write", action="store_true", help="write the table into the docs")
    chosen = parser.parse_args()
    rows = []
    for trial in TRIALS:
        if chosen.only and not any(word in trial.name for word in chosen.only):
            continue
        rows.append(_row(trial, chosen.data, chosen.out, chosen.threads))
        print(rows[-1], flush=True)
    table = "\n".join(
        [
            "| run | score | goal | minutes of training | threads | parameters | command |",
            "| --- | --- | --- | --- | --- | --- | --- |",
            *rows,
        ]
    )
    if chosen.write:
        before, rest = PAGE.read_text("utf-8").split(BEGIN)
        after = rest.split(END)[1]
        PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", "utf-8")
    print(f"\n{table}")
    return 0


def _row(trial: Trial, data: Path, out: Path, threads: int) -> str:
    folder = out / trial.name.replace(",", "").replace(" ", "-")
    record, result = folder.with_suffix(".time.json"), folder.with_suffix(".json")
    if not result.exists():
        words = [*trial.train.format(data=data).split(), "--out", str(folder)]
        began = time.monotonic()
        _regard("train", words, threads)
        minutes = (time.monotonic() - began) / 60
        record.write_text(json.dumps({"minutes": minutes, "threads": threads}))
        words = [str(folder), *trial.test.format(data=data).split(), "--json"]
        result.write_text(_regard("evaluate", words, threads))
    timing = json.loads(record.read_text())
    score = json.loads(result.read_text())["metrics"][trial.metric]
    command = trial.train.format(data="DATA")
    return (
        f"| {trial.name} | {trial.metric} **{score['value']:.4g}** "
        f"[{score['low']:.4g}, {score['high']:.4g}] | {trial.goal} | {timing['minutes']:.1f} "
        f"| {timing['threads']} | {_parameters(folder):,} | `regard train {command}` |"
    )


def _regard(command: str, words: list[str], threads: int) -> str:
    print(f"$ regard {command} {shlex.join(words)}", file=sys.stderr)
    ran = subprocess.run(
        [sys.executable, "-m", "regard", command, *words],
        env=os.environ | {"OMP_NUM_THREADS": str(threads)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return ran.stdout


def _parameters(folder: Path) -> int:
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", "pt") as weights:
        shapes = [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118
    total = 0
    for shape in shapes:
        size = 1
        for axis in shape:
            size *= axis
        total += size
    return total


if __name__ == "__main__":
    sys.exit(main())
