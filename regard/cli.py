"""The command line: parse, call, print."""

import argparse
import json
import signal
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, SupportsFloat, TextIO

from regard import __version__
from regard.errors import RegardError, unknown
from regard.options import Parser, add_options, as_toml, read_config

DESCRIPTION = "Train attention models on your own text, use them, and see where they look."
TASKS = ("translation", "language", "classify", "tag")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; bad input ends in one line on standard error and exit code 2."""
    try:
        given = list(sys.argv[1:] if arguments is None else arguments)
        chosen, strange = _parser(given).parse_known_args(given)
        if strange:
            chosen.parser.error(f"unrecognized arguments: {' '.join(strange)}")
        return int(chosen.run(chosen))
    except RegardError as error:
        print(f"regard: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        sys.stderr.close()
        return 1


def _parser(arguments: list[str]) -> argparse.ArgumentParser:
    parser = Parser(prog="regard", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"regard {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    train = commands.add_parser("train", help="train a model on your files, or on built-in data")
    tasks = train.add_subparsers(dest="task", required=True, metavar="task")
    for task in TASKS:
        one = tasks.add_parser(task, help=f"train a model for {task}")
        if task in arguments:  # the options of one task are enough, and importing them takes time
            _add_training(one, task)
    evaluate = commands.add_parser("evaluate", help="measure a trained model on a file")
    evaluate.add_argument("folder", type=Path, help="the folder of the run")
    evaluate.add_argument(
        "--data", nargs="+", required=True, metavar="FILE", help="what to test on"
    )
    evaluate.add_argument("--lowercase", action="store_true", help="compare in lower case")
    evaluate.add_argument("--beam", type=int, default=5, help="width of the beam (default: 5)")
    evaluate.add_argument("--json", action="store_true", help="print everything as JSON")
    evaluate.set_defaults(run=_evaluate, parser=evaluate)
    predict = commands.add_parser("predict", help="one output line for each input line")
    predict.add_argument("folder", type=Path, help="the folder of the run")
    predict.add_argument("--input", default="-", metavar="FILE", help="default: standard input")
    predict.add_argument("--output", default="-", metavar="FILE", help="default: standard output")
    predict.add_argument("--beam", type=int, default=5, help="width of the beam (default: 5)")
    predict.set_defaults(run=_predict, parser=predict)
    data = commands.add_parser("data", help="make and look at corpora")
    verbs = data.add_subparsers(dest="verb", required=True, metavar="verb")
    made = verbs.add_parser("make", help="write a built-in corpus as files")
    made.add_argument("task", help="translation, language, classify, tag or algorithm")
    made.add_argument("--size", type=int, help="training examples")
    made.add_argument("--seed", type=int, default=0, help="another seed, another corpus")
    made.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where to write")
    made.set_defaults(run=_make, parser=made)
    steps = commands.add_parser(
        "steps", help="walk through attention with numbers, on “The early bird catches the worm”"
    )
    steps.add_argument("--word", default="bird", help="the word that looks (default: bird)")
    steps.add_argument("--picture", type=Path, help="also write the whole matrix as an SVG file")
    steps.set_defaults(run=_steps, parser=steps)
    return parser


def _add_training(parser: argparse.ArgumentParser, task: str) -> None:
    from regard.tasks.kinds import KINDS
    from regard.training import TrainingConfig

    kind = KINDS[task]
    for config in (kind.data, kind.model, TrainingConfig):
        add_options(parser, config, kind.defaults)
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="the run's folder")
    parser.add_argument("--config", type=Path, metavar="FILE", help="options from a TOML file")
    parser.add_argument("--print-config", action="store_true", help="print all options and stop")
    parser.set_defaults(run=_train, parser=parser)


def _train(chosen: argparse.Namespace) -> int:
    from regard.inference.runs import configs, train_run

    given = {} if chosen.config is None else read_config(chosen.config)
    own = ("command", "task", "run", "parser", "out", "config", "print_config")
    given |= {k: v for k, v in vars(chosen).items() if k not in own and v is not None}
    if chosen.print_config:
        parts = dict(zip(("data", "model", "training"), configs(chosen.task, given), strict=True))
        print(as_toml({name: asdict(part) for name, part in parts.items()}), end="")
        return 0
    interrupted: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: interrupted.append(number))
    show = _Live(sys.stderr)
    try:
        folder, finished = train_run(
            chosen.task,
            given,
            chosen.out,
            report=show.progress,
            tell=show.line,
            stop=lambda: bool(interrupted),
        )
    finally:
        show.close()
        signal.signal(signal.SIGINT, before)
    if not finished:
        print(f"stopped; the same command with --out {folder.path} goes on", file=sys.stderr)
        return 130
    print(folder.path)
    return 0


class _Live:
    """Progress on a terminal: one line that changes; elsewhere, only what was measured."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.live = stream, stream.isatty()

    def line(self, text: str) -> None:
        """A line that stays."""
        if text:
            self.close()
            print(text, file=self.stream, flush=True)

    def progress(self, progress: Any) -> None:
        """One update."""
        position, evaluation = progress.position, progress.evaluation
        self.line(progress.note)
        if evaluation is not None:
            main = evaluation.metrics[evaluation.main]
            self.line(
                f"epoch {position.epoch + 1}, step {position.step}: loss {progress.loss:.3f}, "
                f"{main.name} {main.value:.4g} [{main.low:.4g}, {main.high:.4g}]"
            )
            for sample in evaluation.samples[:1]:
                self.line(f"  {sample.given[:70]} → {sample.predicted[:70]}")
        elif self.live:
            left = position.seconds * (1 / progress.share - 1) if progress.share > 0 else 0
            text = (
                f"epoch {position.epoch + 1}, step {position.step}, loss {progress.loss:.3f}, "
                f"{progress.tokens_per_second:,.0f} tokens/s, {left / 60:.1f} min left at most"
            )
            self.stream.write(f"\r\x1b[K{text}")
            self.stream.flush()

    def close(self) -> None:
        """Clear the changing line."""
        if self.live:
            self.stream.write("\r\x1b[K")
            self.stream.flush()


def _evaluate(chosen: argparse.Namespace) -> int:
    from regard.inference import load

    found = load(chosen.folder).evaluate(chosen.data, lowercase=chosen.lowercase, beam=chosen.beam)
    if chosen.json:
        record = {
            "metrics": {name: asdict(value) for name, value in found.metrics.items()},
            "by_length": {name: asdict(value) for name, value in found.by_length.items()},
            "lines": list(found.lines),
        }
        print(json.dumps(record, ensure_ascii=False))
        return 0
    for name, value in found.metrics.items():
        signature = f"   {value.signature}" if value.signature else ""
        print(f"{name:22}{value.value:9.4g}  [{value.low:.4g}, {value.high:.4g}]{signature}")
    for name, value in found.by_length.items():
        print(f"  {found.main} at {name:14}{value.value:9.4g}  ({value.n} examples)")
    return 0


def _predict(chosen: argparse.Namespace) -> int:
    from regard.inference import load

    run = load(chosen.folder)
    with ExitStack() as stack:
        try:
            source = sys.stdin
            if chosen.input != "-":
                source = stack.enter_context(open(chosen.input, encoding="utf-8"))
            lines = source.read().split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise RegardError(f"{chosen.input}: cannot be read ({error})") from error
        if lines and not lines[-1]:
            lines.pop()
        options = {"beam": chosen.beam} if run.name == "translation" else {}
        text = "".join(output + "\n" for output in run(lines, **options))
        if chosen.output == "-":
            sys.stdout.write(text)
        else:
            from regard.training.folder import write_text

            write_text(Path(chosen.output), text)
    return 0


def _make(chosen: argparse.Namespace) -> int:
    from regard.data.builtin import write

    written = write(chosen.task, chosen.out, chosen.size, chosen.seed)
    for part, files in written.files.items():
        print(f"{written.counts[part]:>7,} {part}: {', '.join(map(str, files))}")
    return 0


def _steps(chosen: argparse.Namespace) -> int:
    print(walk(chosen.word, chosen.picture))
    return 0


def walk(word: str, picture: Path | None = None) -> str:
    """Every step of the attention of one word, and a picture of all of them."""
    from regard.attention import steps
    from regard.attention.example import early_bird
    from regard.looks import from_arrays
    from regard.show import matrix, shaded

    example = early_bird()
    if word not in example.words:
        raise RegardError(unknown("word", word, example.words))
    query, key, value = example.project()
    stages = steps(query, key, value)
    row = example.words.index(word)
    look = from_arrays(stages.weights.numpy(), example.words, example.words)
    assert stages.products is not None  # the score is a dot product
    lines = [
        f"Where does “{word}” look in “{' '.join(example.words)}”?",
        "",
        _line("1. its query W_Q·e", query[row]),
        "",
        " " * 20 + "".join(f"{other:>9}" for other in example.words),
        _line("2. query · key", stages.products[row]),
        _line(f"3. divided by √{key.shape[-1]}", stages.scores[row]),
        _line("4. softmax: weights", stages.weights[row])
        + f"   sum {float(stages.weights[row].sum()):.3f}",
        "",
        _line("5. weights · values", stages.output[row]),
        "",
        "All six words at once, a row each; every row sums to 1:",
        "",
        shaded(look),
    ]
    if picture is not None:
        try:
            picture.write_text(matrix(look, "The early bird: who looks where"), encoding="utf-8")
        except OSError as error:
            raise RegardError(f"{picture}: cannot write the picture: {error.strerror}") from None
        lines += ["", f"The picture is in {picture}"]
    return "\n".join(lines)


def _line(name: str, numbers: Iterable[SupportsFloat]) -> str:
    return f"{name:20}" + "".join(f"{float(number):9.3f}" for number in numbers)
