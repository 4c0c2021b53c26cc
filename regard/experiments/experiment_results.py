"""Run experiments, and keep their results in folders: numbers, pictures, a page."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

import torch

from regard.atomic_files import make_folder, refuse_used_folder, write_text, write_whole
from regard.devices import AUTO, resolve_device
from regard.errors import RegardError
from regard.experiments.claims import Experiment, Finding, Measured, Setting, Size
from regard.experiments.experiment_table import EXPERIMENTS
from regard.experiments.two_processes import processor_seconds
from regard.show.png import png_from_svg
from regard.show.report_page import Block, Heading, Picture, Table, Text, report_page
from regard.verified_files import read_json


def run_experiment(
    name: str,
    out: Path,
    size: Size = "default",
    *,
    vectors: str | None = None,
    device: str = AUTO,
) -> Finding:
    """Run an experiment and write result.json, report.html and its pictures into a folder.

    Args:
        name: its name.
        out: the folder.
        size: tiny, default or large.
        vectors: a file of word vectors or a run, for experiments that read them.
        device: where runs are trained; the small networks of other experiments are for the CPU.
    """
    experiment = EXPERIMENTS.row(name)
    resolve_device(device)  # refuses before any work
    if vectors is not None and not experiment.reads_vectors:
        raise RegardError(f"--vectors does not apply to the experiment {name}")
    if not _is_result(out):
        refuse_used_folder(out)
    make_folder(out)
    clock, processor = time.monotonic(), processor_seconds()
    with torch.random.fork_rng(devices=[]), _one_thread():
        torch.manual_seed(0)
        finding = experiment.run(Setting(size, out, vectors, device))
    seconds = time.monotonic() - clock, processor_seconds() - processor
    for picture, svg in finding.pictures.items():
        write_text(out / f"{picture}.svg", svg)
        with suppress(RegardError):  # no font on this machine: the SVG has to do
            _write_bytes(out / f"{picture}.png", png_from_svg(svg))
    record = result_record(experiment, finding, size, seconds)
    write_text(out / "result.json", json.dumps(record, ensure_ascii=False, indent=1) + "\n")
    page = report_page(f"Experiment: {name}", experiment_blocks(experiment, finding))
    write_text(out / "report.html", page)
    return finding


def result_record(
    experiment: Experiment, finding: Finding, size: Size, seconds: tuple[float, float]
) -> dict[str, Any]:
    """The result in plain values; seconds of the clock and of the processor."""
    return {
        "name": experiment.name,
        "claim": experiment.claim,
        "source": experiment.source,
        "row": experiment.row,
        "size": size,
        "seconds": round(seconds[0], 1),
        "processor_seconds": round(seconds[1], 1),
        "held": finding.held,
        "summary": finding.summary,
        "numbers": {name: _plain(value) for name, value in finding.numbers.items()},
        "tables": {name: asdict(table) for name, table in finding.tables.items()},
        "pictures": [f"{name}.svg" for name in finding.pictures],
    }


def verdict(finding: Finding) -> str:
    """Whether the claim held, in words."""
    return f"The claim {'held' if finding.held else 'did not hold'}: {finding.summary}"


def numbers_table(numbers: Mapping[str, Measured]) -> Table:
    """The numbers of a finding with their intervals."""
    rows = [
        [name, f"{m.mean:.4g}", f"{m.low:.4g} to {m.high:.4g}" if m.n > 1 else "–", str(m.n)]
        for name, m in numbers.items()
    ]
    return Table(["measured", "mean", "95 % interval", "seeds"], rows)


def experiment_blocks(experiment: Experiment, finding: Finding) -> list[Block]:
    """The parts of a page about one experiment."""
    blocks: list[Block] = [
        Text(f"Claim: {experiment.claim} ({experiment.source})"),
        Text(verdict(finding), lead=True),
        *(Picture(svg) for svg in finding.pictures.values()),
        numbers_table(finding.numbers),
    ]
    for heading, table in finding.tables.items():
        blocks += [Heading(heading), table]
    return blocks


def report_all(found: Sequence[tuple[Experiment, Finding]], failed: Mapping[str, str]) -> str:
    """One page with the findings of several experiments."""
    rows = [[one.name, one.claim, "held" if f.held else "did not hold"] for one, f in found]
    rows += [[name, reason, "failed to run"] for name, reason in failed.items()]
    blocks: list[Block] = [Table(["experiment", "claim", "result"], rows)]
    for experiment, finding in found:
        blocks += [Heading(experiment.name), *experiment_blocks(experiment, finding)]
    return report_page("Experiments", blocks)


def _is_result(folder: Path) -> bool:
    """Whether a folder has the result of an experiment, which another run replaces."""
    try:
        record = read_json(folder / "result.json")
    except (OSError, RegardError):
        return False
    return isinstance(record, dict) and {"name", "claim", "numbers"} <= record.keys()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Threads of small networks mostly wait for each other; one is faster."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _write_bytes(path: Path, data: bytes) -> None:
    write_whole(path, lambda stream: stream.write(data))


def _plain(measured: Measured) -> dict[str, float | int | None]:
    values = measured._asdict()
    return {name: value if isfinite(value) else None for name, value in values.items()}
