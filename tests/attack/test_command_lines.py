"""Hostile command lines: hundreds of wrong ones, each refused in one line with exit code 2.

`ATTACK_ROUNDS` multiplies their number (default: 1); a seed makes every round the same each time.
"""

import os
import random
import resource
import sys
import traceback
from io import BytesIO
from pathlib import Path
from time import process_time
from types import SimpleNamespace

import pytest

from regard.cli import main
from tests.attack.tally import count


def _words(text: str) -> list[str]:
    return text.split()


ROUNDS = int(os.environ.get("ATTACK_ROUNDS", "1"))
LINES = 25
"""Command lines in each round and family."""
NUMBERS = _words(
    "0 -1 1e39 -1e39 nan inf -inf 1e-400 0x10 1_000 ² ٣ 1e9 3.5 99999999999999999999999 "
    "-9223372036854775809 1,5 1. .5 +3"
)
TEXTS = ["", " ", "\t", "\0", "\udcff", "a" * 5000, "☃", "--", "-", "../..", "/", "{}", "%s%n", "'"]
FILES = [
    "/dev/null",
    "/proc/self/mem",
    "/",
    ".",
    "nowhere.txt",
    "-",
    "*",
    "[",
    "hf:",
    "hf:,:",
    "~x",
]
COMMANDS = [
    "train",
    "evaluate",
    "predict",
    "generate",
    "score",
    "align",
    "explain",
    "export",
    "show",
    "data",
    "steps",
]
TASKS = ["translation", "language", "classify", "tag", "algorithm", "nothing"]
OPTIONS = _words(
    """data valid text label source target condition several separator tokenizer vocabulary
    lowercase max-tokens window-tokens vectors freeze word-dropout alignments align-loss align-layer
    align-head sampled kind shortest longest symbols growth model width word-size layers heads
    dropout attention normalize encoder decoder pooling queries cell experts epochs steps minutes
    batch-tokens accumulate learning-rate warmup schedule weight-decay clip label-smoothing
    evaluate-every patience average save-every seed beam nbest length-penalty coverage temperature
    top-k top-p repetition-penalty samples tokens prompt input output json force markup prefix
    batch-size metrics layer head look picture to gold both symmetrize threshold limit erase
    faithfulness words task format test size config print-config"""
)


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Folders and files that look like data and runs, and are not."""
    folder = tmp_path_factory.mktemp("attack")
    contents = {
        "empty.tsv": b"",
        "blank.tsv": b"\n\n \n",
        "one.tsv": b"a\tb\n",
        "wide.tsv": b"a\tb\tc\td\n" * 12,
        "ragged.tsv": b"a\tb\na\n",
        "binary.tsv": bytes(range(256)),
        "latin.tsv": b"caf\xe9\tpos\nth\xe9\tneg\n",
        "utf16.tsv": "a\tb\n".encode("utf-16"),
        "broken.csv": b'"a,b\n1,2\n',
        "broken.jsonl": b'{"text": "a", "label": "b"}\n[1]\n',
        "deep.jsonl": b"[" * 5000 + b"\n",
        "fake.parquet": b"PAR1 not really PAR1",
        "fake.npy": b"\x93NUMPY\x01\x00v\x00{'descr': '<f8'",
        "fake.gz": b"\x1f\x8b\x08 not gzip",
        "config.toml": b"width = 'x'\n",
        "strange.json": b'{"colour": 1}',
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    for name, config in {"hollow": None, "broken": "{", "task": '{"task": "nothing"}'}.items():
        (folder / name).mkdir()
        if config is not None:
            (folder / name / "config.json").write_text(config)
    os.symlink("gone", folder / "dangling.tsv")
    return [str(path) for path in sorted(folder.iterdir())]


def refused(arguments: list[str], capfd) -> str:
    """What is wrong with the way a command line was refused; empty if nothing is."""
    try:
        code = main(arguments)
    except SystemExit as error:  # --help and --version
        return "" if error.code == 0 else f"exit {error.code}"
    except BaseException:
        return traceback.format_exc(limit=-3)
    told = capfd.readouterr()
    if code == 2 and (told.err.count("\n") != 1 or not told.err.startswith("regard: ")):
        return f"{told.err.count(chr(10))} lines: {told.err[:300]}"
    if code not in (0, 2, 3):
        return f"exit code {code}"
    return ""


def peak_megabytes() -> float:
    """The most memory that this process has taken so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def attack(make, name: str, capfd) -> None:
    chance = random.Random(name)
    failures = []
    for _ in range(ROUNDS * LINES):
        arguments, start, before = make(chance), process_time(), peak_megabytes()
        problem = refused(arguments, capfd)
        used = process_time() - start, peak_megabytes() - before
        count(f"command lines, {name}", "failed" if problem else "harmless", *used)
        if problem:
            failures.append(f"{[a[:60] for a in arguments]}: {problem}")
        capfd.readouterr()
    shown = "\n".join(failures[:20])
    assert not failures, f"{len(failures)} of {ROUNDS * LINES}:\n{shown}"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch, shapes_unchecked):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=BytesIO(b"")))


def value(chance: random.Random, places: list[str]) -> str:
    return chance.choice(chance.choice([NUMBERS, TEXTS, FILES, places]))


def test_any_words(places, capfd):
    """Commands, options and values in any order; training never starts, for want of data."""

    def make(chance: random.Random) -> list[str]:
        words = [chance.choice(COMMANDS)]
        if words[0] == "train":
            words += [chance.choice(TASKS), "--data", "nowhere.tsv"]
        for _ in range(chance.randrange(5)):
            kind = chance.random()
            if kind < 0.6:
                words.append(f"--{chance.choice(OPTIONS)}")
            if kind > 0.2:
                words.append(value(chance, places))
        if "--print-config" in words or words[0] == "steps":
            return [word for word in words if word != "--to"]
        return words

    attack(make, "any words", capfd)


def test_wrong_values_of_training(places, capfd):
    """Every option of training, with values that are none."""

    def make(chance: random.Random) -> list[str]:
        option = chance.choice([o for o in OPTIONS if o not in ("data", "print-config")])
        given = [f"--{option}={value(chance, places)}"]
        return ["train", chance.choice(TASKS[:5]), "--data", chance.choice(FILES[4:]), *given]

    attack(make, "training", capfd)


def test_wrong_data(places, capfd):
    """Every task with every damaged file, whatever its columns are said to be."""

    def make(chance: random.Random) -> list[str]:
        files = chance.choices(places, k=chance.randrange(1, 3))
        columns = chance.choices(["--text", "--label", "--source", "--target"], k=1)
        given = [*columns, chance.choice(["1", "2", "9", "a", "-1", "0"])]
        verb = chance.choice(["describe", "split", "train"])
        if verb == "train":
            task = chance.choice(TASKS[:4])
            narrow = ["--steps", "1", "--width", "4", "--word-size", "4", "--tokenizer", "word"]
            narrow = narrow[:6] if task == "tag" else narrow
            return [
                "train",
                task,
                "--data",
                *files,
                "--out",
                "run/../x",
                "--width",
                "0",
                *narrow[:2],
            ]
        task = ["--task", chance.choice(TASKS[:4])]
        out = ["--out", "parts"] if verb == "split" else []
        return ["data", verb, *files, *task, *out, *chance.choice([[], given])]

    attack(make, "data", capfd)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A translator and a language model that can do nothing well."""
    folder = tmp_path_factory.mktemp("runs")
    pairs = folder / "pairs.tsv"
    pairs.write_text("".join(f"a dog number {n}\tun chien {n}\n" for n in range(12)))
    (folder / "lines.txt").write_text("a dog runs\n" * 12)
    small = ["--steps", "1", "--width", "8", "--tokenizer", "word"]
    for task, data in {"translation": "pairs.tsv", "language": "lines.txt"}.items():
        given = ["--data", str(folder / data), *small, "--out", str(folder / task)]
        assert main(["train", task, *given]) == 0
    return {
        "translation": (str(folder / "translation"), str(pairs)),
        "language": (str(folder / "language"), str(folder / "lines.txt")),
    }


USES = {
    "predict": """beam nbest length-penalty coverage temperature top-k top-p repetition-penalty seed
        tokens batch-size force markup prefix input""",
    "generate": "samples tokens temperature top-k top-p repetition-penalty seed prompt",
    "evaluate": "beam metrics data",
    "score": "data source target",
    "align": "data gold both symmetrize threshold layer head",
    "explain": "text output limit seed erase input",
    "show": "text target look layer head picture aggregate word budget",
}
"""Options of the commands that use a run; none of them names a file to write."""


def test_wrong_values_of_use(runs, places, capfd):
    """Every command on a real run, with values that are none, or that barely are."""

    def make(chance: random.Random) -> list[str]:
        command = chance.choice(list(USES))
        run, data = runs[chance.choice(list(runs))]
        given = [
            f"--{option}={value(chance, places)}"
            for option in chance.sample(_words(USES[command]), k=chance.choice([1, 1, 2]))
        ]
        needed = ["--data", data] if command in ("evaluate", "score", "align") else []
        return [command, run, *needed, *given]

    attack(make, "use", capfd)
