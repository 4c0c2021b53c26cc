"""Default tagger and language model with and without attention, at equal processor time.

    python benchmarks/default_attention.py --data FOLDER [--minutes 3] [--seeds 3] [--out RUNS]

FOLDER holds wikiann-en/ and wikitext-2/. Each system first makes 20 and then 120 updates: the
difference of their processor time is that of 100 updates, from which the number of updates of its
budget follows, so that other programs on the machine make no difference. Then every seed is a
`regard train` of that many updates and a `regard evaluate` on dev or validation data that training
never read. What is in --out already is not repeated, so that `--limit 1`, repeated, measures in
pieces. The table has one row per system: the mean and
the standard deviation over seeds; the difference is paired by seed, with the 95 % interval of
Student's t.
"""

import argparse
import json
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}  # quantile 0.975 at n - 1 degrees of freedom
WIKITEXT = (
    "language --data {data}/wikitext-2/train.txt --tokenizer word --vocabulary 40000 "
    "--word-size 128 --batch-tokens 1280 --learning-rate 3e-3 --dropout 0.1 --ngrams 0"
)


class System(NamedTuple):
    """One side of a comparison: how it is trained, on what it is measured."""

    name: str
    train: str
    test: str
    metric: str


TAGGER = ("tag --data {data}/wikiann-en/train.conll", "{data}/wikiann-en/dev.conll", "f1")
MODEL = (WIKITEXT, "{data}/wikitext-2/valid.txt", "perplexity_per_word")
PAIRS = (
    (
        System("wikiann", *TAGGER),
        System("wikiann-none", f"{TAGGER[0]} --encoder recurrent", *TAGGER[1:]),
    ),
    (
        System("wikitext", *MODEL),
        System("wikitext-none", f"{MODEL[0]} --attention none", *MODEL[1:]),
    ),
)


def main() -> None:
    """Train and evaluate what is missing, seed by seed; then print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder with the corpora")
    parser.add_argument("--out", type=Path, default=Path("runs/attend"), help="where runs go")
    parser.add_argument("--minutes", type=float, default=3.0, help="processor minutes of updates")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", choices=("wikiann", "wikitext"))
    parser.add_argument("--limit", type=int, help="train at most this many runs in this call")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    pairs = [pair for pair in PAIRS if chosen.only in (None, pair[0].name)]
    systems = [system for pair in pairs for system in pair]
    missing = [
        (seed, system)
        for seed in range(1, chosen.seeds + 1)
        for system in systems
        if not _places(system, seed, chosen)[1].exists()
    ]
    for seed, system in missing[: chosen.limit]:
        _measure(system, seed, _updates(system, chosen), chosen)
    if chosen.limit is not None and len(missing) > chosen.limit:
        print(len(missing) - chosen.limit, "runs are missing: repeat the command")
        return
    print("| system | updates | parameters | processor minutes in all | metric | by seed |")
    print("| --- | ---: | ---: | ---: | --- | --- |")
    for system in systems:
        print(_row(system, chosen))
    for pair in pairs:
        print(_difference(pair, chosen))


def _updates(system: System, chosen: argparse.Namespace) -> int:
    """The number of updates that take `--minutes` of processor time."""
    file = chosen.out / f"{system.name}.pace.json"
    if not file.exists():
        used = {}
        for steps in (20, 120):
            out = chosen.out / f"{system.name}-pace"
            shutil.rmtree(out, ignore_errors=True)
            options = ["--steps", str(steps), "--evaluate-every", "1000", "--average", "1"]
            used[steps] = _regard("train", system.train, out, options, chosen)[1]
            shutil.rmtree(out)
        file.write_text(json.dumps({"seconds": (used[120] - used[20]) / 100}))
    return int(60 * chosen.minutes / json.loads(file.read_text())["seconds"])


def _measure(system: System, seed: int, steps: int, chosen: argparse.Namespace) -> None:
    run, result = _places(system, seed, chosen)
    shutil.rmtree(run, ignore_errors=True)
    options = ["--steps", str(steps), "--seed", str(seed)]
    seconds = _regard("train", system.train, run, options, chosen)[1]
    command = [str(run), "--data", system.test.format(data=chosen.data), "--json"]
    document = json.loads(_call(["evaluate", *command])[0])
    metric = document["metrics"][system.metric]
    result.write_text(json.dumps({"metric": metric, "steps": steps, "seconds": seconds}))


def _places(system: System, seed: int, chosen: argparse.Namespace) -> tuple[Path, Path]:
    run = chosen.out / f"{system.name}-{seed}"
    return run, run.with_name(f"{run.name}.json")


def _regard(
    command: str, words: str, out: Path, options: list[str], chosen: argparse.Namespace
) -> tuple[str, float]:
    arguments = [*words.format(data=chosen.data).split(), *options, "--out", str(out)]
    return _call([command, *arguments, "--quiet"])


def _call(arguments: list[str]) -> tuple[str, float]:
    """What a command printed, and the processor seconds that it used."""
    began = _processor_seconds()
    print(time.strftime("%H:%M"), "$ regard", *arguments, file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "regard", *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout, _processor_seconds() - began


def _processor_seconds() -> float:
    """What all processes used that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _values(system: System, chosen: argparse.Namespace) -> list[dict]:
    files = [_places(system, seed, chosen)[1] for seed in range(1, chosen.seeds + 1)]
    return [json.loads(file.read_text()) for file in files]


def _row(system: System, chosen: argparse.Namespace) -> str:
    results = _values(system, chosen)
    values = [result["metric"]["value"] for result in results]
    spread = f" ± {statistics.stdev(values):.4g}" if len(values) > 1 else ""
    minutes = statistics.mean(result["seconds"] for result in results) / 60
    by_seed = ", ".join(f"{value:.4g}" for value in values)
    return (
        f"| `regard train {system.train.format(data='DATA')}` | {results[0]['steps']:,} "
        f"| {_parameters(_places(system, 1, chosen)[0]):,} | {minutes:.1f} "
        f"| {system.metric} **{statistics.mean(values):.4g}**{spread} | {by_seed} |"
    )


def _difference(pair: tuple[System, System], chosen: argparse.Namespace) -> str:
    """The mean difference, with attention minus without, paired by seed."""
    sides = [[result["metric"]["value"] for result in _values(system, chosen)] for system in pair]
    differences = [first - second for first, second in zip(*sides, strict=True)]
    mean = statistics.mean(differences)
    said = f"{pair[0].name}: attention changes {pair[0].metric} by {mean:+.4g}"
    if len(differences) in T_95:
        error = statistics.stdev(differences) / math.sqrt(len(differences))
        half = T_95[len(differences)] * error
        said += f" [{mean - half:+.4g}, {mean + half:+.4g}]"
    return said


def _parameters(folder: Path) -> int:
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", "pt") as weights:
        shapes = [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118
    return sum(math.prod(shape) for shape in shapes)


if __name__ == "__main__":
    main()
