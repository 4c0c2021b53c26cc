"""The command line: parse, call, print."""

import argparse
import json
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from regard import __version__
from regard.errors import RegardError
from regard.options import Parser, add_options, as_toml, read_config

DESCRIPTION = "Train attention models on your own text, use them, and see where they look."
TASKS = ("translation", "language", "classify", "tag")
AT_ONCE = 2000
"""Lines that are read, predicted and written together."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; bad input ends in one line on standard error and exit code 2."""
    try:
        given = list(sys.argv[1:] if arguments is None else arguments)
        chosen, strange = _parser(given).parse_known_args(given)
        if strange:
            chosen.parser.error(f"unrecognized arguments: {' '.join(strange)}")
        return int(chosen.run(chosen))
    except RegardError as error:
        print(f"regard: {' '.join(str(error).splitlines())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("regard: stopped", file=sys.stderr)
        return 128 + signal.SIGINT
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
    _add_use(commands)
    _add_data(commands.add_parser("data", help="make, look at and split corpora"))
    steps = commands.add_parser(
        "steps", help="walk through attention with numbers, on “The early bird catches the worm”"
    )
    steps.add_argument("--word", default="bird", help="the word that looks (default: bird)")
    steps.add_argument("--picture", type=Path, help="also write the whole matrix as an SVG file")
    steps.set_defaults(run=_steps, parser=steps)
    return parser


def _add_use(commands: Any) -> None:
    evaluate = commands.add_parser("evaluate", help="measure a trained model on a file")
    predict = commands.add_parser("predict", help="one output line for each input line")
    for parser, run in ((evaluate, _evaluate), (predict, _predict)):
        parser.add_argument("folder", type=Path, help="the folder of the run")
        parser.add_argument(
            "--beam",
            type=_count,
            metavar="INT",
            help="width of the beam, in translation (default: 5)",
        )
        parser.add_argument("--json", action="store_true", help="print everything as JSON")
        parser.set_defaults(run=run, parser=parser)
    evaluate.add_argument(
        "--data", nargs="+", required=True, metavar="FILE", help="what to test on"
    )
    evaluate.add_argument(
        "--lowercase", action="store_true", help="compare in lower case, in translation"
    )
    predict.add_argument("--input", default="-", metavar="FILE", help="default: standard input")
    predict.add_argument("--output", default="-", metavar="FILE", help="default: standard output")


def _add_data(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="verb")
    made = verbs.add_parser("make", help="write a built-in corpus as files")
    made.add_argument("task", help="translation, language, classify, tag or algorithm")
    made.add_argument("--size", type=_count, metavar="INT", help="training examples")
    made.add_argument("--seed", type=int, default=0, help="another seed, another corpus")
    made.set_defaults(run=_make, parser=made)
    described = verbs.add_parser("describe", help="say what is in a corpus")
    parted = verbs.add_parser("split", help="part a corpus in train, valid and test files")
    for one, run in ((described, _describe), (parted, _split)):
        one.add_argument("files", nargs="+", metavar="FILE", help="the files of the corpus")
        one.add_argument("--task", required=True, choices=TASKS, help=f"one of {', '.join(TASKS)}")
        for column in ("source", "target", "text", "label"):
            one.add_argument(f"--{column}", metavar="NAME", help=f"the column with the {column}")
        one.set_defaults(run=run, parser=one)
    for share in ("valid", "test"):
        parted.add_argument(
            f"--{share}", type=float, default=0.1, help=f"the share for {share} (default: 0.1)"
        )
    parted.add_argument("--seed", type=int, default=0, help="another seed, other parts")
    parted.add_argument("--format", default="tsv", help="tsv or jsonl (default: tsv)")
    for one in (made, parted):
        one.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where to write")


def _count(text: str) -> int:
    """A number of things, for argparse, which turns the error into one line."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, got {text!r}")
    return int(text)


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
    show = Live(sys.stderr)
    signals: list[int] = []

    def interrupt(number: int, frame: object) -> None:
        # between two updates the state can be saved; before the first there is none, and who asks
        # twice wants to go at once
        signals.append(number)
        if not show.begun or len(signals) > 1:
            raise KeyboardInterrupt

    before = {
        number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        folder, position = train_run(
            chosen.task,
            given,
            chosen.out,
            report=show.progress,
            tell=show.line,
            stop=lambda: bool(signals),
        )
    finally:
        show.close()
        for number, handler in before.items():
            signal.signal(number, handler)
    if not position.done:
        print(f"stopped; the same command with --out {folder.path} goes on", file=sys.stderr)
        return 128 + signals[0]
    print(folder.path)
    return 0


class Live:
    """Progress on a terminal: one line that changes; elsewhere, only what was measured."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.live = stream, stream.isatty()
        self.begun = False
        """Whether an update was made."""

    def line(self, text: str) -> None:
        """A line that stays."""
        if text:
            self.close()
            print(text, file=self.stream, flush=True)

    def progress(self, progress: Any) -> None:
        """One update."""
        self.begun = True
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


def _load(chosen: argparse.Namespace, *names: str) -> tuple[Any, dict[str, Any]]:
    """The run, and those of its own options that were given."""
    from regard.inference import load

    run = load(chosen.folder)
    options = {name: value for name in names if (value := getattr(chosen, name))}
    if options and run.name != "translation":
        given = " and ".join(f"--{name}" for name in options)
        raise RegardError(f"{chosen.folder}: a run of task {run.name} has no use for {given}")
    return run, options


def _evaluate(chosen: argparse.Namespace) -> int:
    run, options = _load(chosen, "beam", "lowercase")
    show = Live(sys.stderr)
    found = run.evaluate(chosen.data, tell=show.line, **options)
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
    from regard.training.folder import write_whole

    run, options = _load(chosen, "beam")
    with ExitStack() as stack:
        source: Iterable[bytes] = sys.stdin.buffer
        if chosen.input != "-":
            try:
                source = stack.enter_context(open(chosen.input, "rb"))
            except OSError as error:
                raise RegardError(f"{chosen.input}: cannot be read ({error.strerror})") from error
        lines = _lines(source, chosen.input)
        if chosen.output == "-":
            cut = _write_predictions(sys.stdout.buffer, run, lines, options, chosen.json)
        else:
            counts: list[int] = []

            def write(part: Path) -> None:
                with part.open("wb") as stream:
                    counts.append(_write_predictions(stream, run, lines, options, chosen.json))

            if not (folder := Path(chosen.output).parent).is_dir():
                raise RegardError(f"{chosen.output}: cannot be written (no folder {folder})")
            write_whole(Path(chosen.output), write)
            cut = counts[0]
    if cut:
        print(f"{cut} lines are longer than this model reads: they were cut", file=sys.stderr)
    return 0


def _lines(source: Iterable[bytes], name: str) -> Iterator[str]:
    """Lines that end where others count them, at each newline: one comes out for each."""
    from regard.data.lines import decode

    try:
        for number, raw in enumerate(source, 1):
            yield decode(raw.removesuffix(b"\n").removesuffix(b"\r"), name, number, number == 1)
    except OSError as error:
        raise RegardError(f"{name}: cannot be read ({error.strerror})") from error


def _write_predictions(
    stream: Any, run: Any, lines: Iterator[str], options: dict[str, Any], everything: bool
) -> int:
    """Write one line a prediction, and count the inputs that were cut."""
    cut = 0
    while some := list(islice(lines, AT_ONCE)):
        for text, found in zip(some, run.predict(some, **options), strict=True):
            cut += found.cut
            record = {"input": text, "output": found.output, "cut": found.cut, **found.details}
            line = json.dumps(record, ensure_ascii=False) if everything else found.output
            stream.write(line.encode("utf-8", "replace") + b"\n")
        stream.flush()
    return cut


def _examples(chosen: argparse.Namespace) -> tuple[list[Any], Any]:
    """The examples of a task in some files, and what became of every line."""
    from regard.data import Summary, resolve
    from regard.options import make
    from regard.tasks.kinds import KINDS

    kind, summary = KINDS[chosen.task], Summary()
    named = {name: getattr(chosen, name) for name in ("source", "target", "text", "label")}
    examples = list(kind.read(make(kind.data, named), resolve(chosen.files), summary))
    summary.require(1, "to look at")
    return examples, summary


def _describe(chosen: argparse.Namespace) -> int:
    from regard.data.describe import describe

    found = describe(*_examples(chosen))
    print(f"{'examples':16}{found.examples:>10,}   ({found.summary})")
    for side in found.sides:
        lengths = ", ".join(f"{share} % {length}" for share, length in side.lengths.items())
        common = " ".join(word for word, _ in side.common)
        print(f"{side.name + ' words':16}{side.words:>10,}   {side.vocabulary:,} different")
        print(f"{'  seen once':16}{side.once:>10,}")
        print(f"{'  lengths':16}{'':10}   {lengths}")
        print(f"{'  most common':16}{'':10}   {common}")
    for label, count in found.labels:
        print(f"{'label ' + label:16}{count:>10,}")
    return 0


def _split(chosen: argparse.Namespace) -> int:
    from regard.data.split import key_of, split_by, write_split

    examples, summary = _examples(chosen)
    keys = (key_of(example) for example in examples)
    split = split_by(keys, chosen.valid, chosen.test, seed=chosen.seed)
    print(summary)
    for path, count in write_split(chosen.out, examples, split, chosen.format).items():
        print(f"{count:>7,} {path}")
    return 0


def _make(chosen: argparse.Namespace) -> int:
    from regard.data.builtin import write

    written = write(chosen.task, chosen.out, chosen.size, chosen.seed)
    for part, files in written.files.items():
        print(f"{written.counts[part]:>7,} {part}: {', '.join(map(str, files))}")
    return 0


def _steps(chosen: argparse.Namespace) -> int:
    from regard.walk import walk

    print(walk(chosen.word, chosen.picture))
    return 0
