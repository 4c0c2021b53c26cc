"""How well the defaults learn: real corpora, training minutes, scores beside each other.

    python benchmarks/learning.py --data FOLDER [--pretrained FOLDER] [--only NAME …]
                                  [--out runs/learning] [--threads 2]

FOLDER holds multi30k/, sst2/, wikiann-en/, wikitext-2/ and wnut17/; that of --pretrained, without
which its trials are left out, is an encoder such as all-MiniLM-L6-v2. Every run is the command that
is printed: `regard train` with no option but its files and what is compared, then `regard
evaluate`.
What is in the folder of the runs already is not trained again, and a run that was interrupted goes
on: its minutes add up. A trial that fails is said, and the others follow. The table goes to
standard output and, with --write, between the marks in docs/benchmarks/learning.md; then it holds
every trial that was measured, those left out by --only too.

Minutes are those of the clock; processor minutes are what the process of the training used, all
its threads together: these say how much work it was where other programs ran beside it.
"""

import argparse
import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "learning.md"
BEGIN, END = "<!-- learning begins -->", "<!-- learning ends -->"
COLUMNS = ("run", "metric", "goal", "minutes of training", "processor minutes", "threads")
COLUMNS += ("parameters", "command")
HEAD = f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}"


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
NETWORK = f"{SST} --word-ngrams 0"
WIKITEXT = (
    "language --data {data}/wikitext-2/train.txt --tokenizer word --vocabulary 40000 "
    "--word-size 128 --batch-tokens 1280 --learning-rate 3e-3 --dropout 0.1 --minutes 28"
)
NGRAMS = "language --data {data}/wikitext-2/train.txt --minutes 15"
NO_NGRAMS = f"{WIKITEXT} --ngrams 0"
TRIALS = (
    Trial("multi30k recurrent additive", MULTI30K, TEST2016, "bleu", "≥ 35"),
    Trial("multi30k transformer", f"{MULTI30K} --model transformer", TEST2016, "bleu", "≥ 37"),
    Trial("multi30k recurrent, no attention", f"{MULTI30K} --attention none", TEST2016, "bleu"),
    Trial("sst2", SST, "--data {data}/sst2/dev.tsv", "accuracy", "≥ 0.80"),
    Trial("sst2 without votes", NETWORK, "--data {data}/sst2/dev.tsv", "accuracy"),
    Trial(
        "sst2 sum of word vectors",
        f"{NETWORK} --encoder none --pooling sum",
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
        "wnut17",
        "tag --data {data}/wnut17/train.conll",
        "--data {data}/wnut17/dev.conll",
        "f1",
    ),
    Trial(
        "wikitext-2, the default with n-grams",
        NGRAMS,
        "--data {data}/wikitext-2/valid.txt",
        "perplexity_per_word",
    ),
    Trial(
        "wikitext-2 lstm",
        f"{NO_NGRAMS} --attention none",
        "--data {data}/wikitext-2/valid.txt",
        "perplexity_per_word",
        "≤ 150",
    ),
    Trial(
        "wikitext-2 lstm with attention",
        f"{NO_NGRAMS} --width 211",
        "--data {data}/wikitext-2/valid.txt",
        "perplexity_per_word",
        "≤ 150",
    ),
    Trial(
        "sst2, pretrained encoder",
        f"{SST} --pretrained {{pretrained}}",
        "--data {data}/sst2/dev.tsv",
        "accuracy",
        "≥ 0.88",
    ),
    Trial(
        "wikiann-en, pretrained encoder",
        "tag --data {data}/wikiann-en/train.conll --pretrained {pretrained}",
        "--data {data}/wikiann-en/dev.conll",
        "f1",
    ),
    Trial(
        "wnut17, pretrained encoder",
        "tag --data {data}/wnut17/train.conll --pretrained {pretrained}",
        "--data {data}/wnut17/dev.conll",
        "f1",
    ),
)


def main() -> int:
    """Train and test what is asked for; the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder with the corpora")
    parser.add_argument("--pretrained", type=Path, help="the folder of a pretrained encoder")
    parser.add_argument("--out", type=Path, default=Path("runs/learning"), help="where runs go")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="trials whose name has a word")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--write", action="store_true", help="write the table into the docs")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    failed = []
    for trial in TRIALS:
        if chosen.only and not any(word in trial.name for word in chosen.only):
            continue
        if "{pretrained}" in trial.train and chosen.pretrained is None:
            continue
        folders = {"data": chosen.data, "pretrained": chosen.pretrained}
        try:
            _measure(trial, folders, chosen.out, chosen.threads)
        except subprocess.CalledProcessError as error:
            failed.append(f"{trial.name} (exit {error.returncode})")
            print(f"{trial.name}: failed, exit {error.returncode}", file=sys.stderr, flush=True)
            continue
        print(_row(trial, chosen.out), flush=True)
    measured = [trial for trial in TRIALS if _places(trial, chosen.out).result.exists()]
    table = "\n".join([HEAD, *(_row(trial, chosen.out) for trial in measured)])
    if chosen.write:
        before, rest = PAGE.read_text("utf-8").split(BEGIN)
        after = rest.split(END)[1]
        PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", "utf-8")
    print(f"\n{table}")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


class Places(NamedTuple):
    """Where a trial leaves what it found: the run, how long it took, how well it does."""

    run: Path
    timing: Path
    result: Path


def _places(trial: Trial, out: Path) -> Places:
    run = out / trial.name.replace(",", "").replace(" ", "-")
    return Places(run, run.with_suffix(".time.json"), run.with_suffix(".json"))


def _measure(trial: Trial, folders: dict[str, Path], out: Path, threads: int) -> None:
    """Train and evaluate, whichever is still to be done."""
    run, timing, result = _places(trial, out)
    if result.exists():
        return
    out.mkdir(parents=True, exist_ok=True)
    spent = json.loads(timing.read_text()) if timing.exists() else {"minutes": 0.0}
    if not (timing.exists() and spent.get("trained", True)):
        words = [*trial.train.format(**folders).split(), "--out", str(run)]
        began, used, trained = time.monotonic(), _processor_minutes(), False
        try:
            _regard("train", words, threads)
            trained = True
        finally:  # what an attempt took counts, however it ended
            spent = {
                "minutes": spent["minutes"] + (time.monotonic() - began) / 60,
                "processor_minutes": spent.get("processor_minutes", 0.0)
                + (_processor_minutes() - used),
                "threads": threads,
                "trained": trained,
            }
            _write(timing, json.dumps(spent))
    words = [str(run), *trial.test.format(**folders).split(), "--json"]
    _write(result, _regard("evaluate", words, threads))


def _processor_minutes() -> float:
    """What all processes used that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) / 60


def _write(path: Path, text: str) -> None:
    """A file that is there as a whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(text, "utf-8")
    part.replace(path)


def _row(trial: Trial, out: Path) -> str:
    run, timing, result = _places(trial, out)
    spent = json.loads(timing.read_text())
    score = json.loads(result.read_text())["metrics"][trial.metric]
    processor = spent.get("processor_minutes")
    train = trial.train.format(data="DATA", pretrained="FOLDER")
    return (
        f"| {trial.name} | {trial.metric} **{score['value']:.4g}** "
        f"[{score['low']:.4g}, {score['high']:.4g}] | {trial.goal} | {spent['minutes']:.1f} "
        f"| {'' if processor is None else f'{processor:.1f}'} | {spent['threads']} "
        f"| {_parameters(run):,} | `regard train {train}` |"
    )


def _regard(command: str, words: list[str], threads: int) -> str:
    print(f"$ regard {command} {shlex.join(words)}", file=sys.stderr, flush=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "regard", command, *words],
        env=os.environ | {"OMP_NUM_THREADS": str(threads)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        said, _ = process.communicate()
    except KeyboardInterrupt:  # it got ctrl-C too, and saves its state
        process.wait()
        raise
    except SystemExit:
        process.terminate()
        process.wait()
        raise
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return said


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
