"""Time, peak memory and share of the machine's limit of every kind of attention, in one run.

    python benchmarks/attention.py [--quick] [--threads n] [--seconds n]

Contestants of a problem take turns in one process; the time is the median, with the quartiles.
Memory is the growth of the peak over the inputs, in a fresh process for each. The bars at the end
are ratios within this run. Linux only, for it reads /proc.
"""

import argparse
import os
import platform
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import measure
import torch
from contestants import CONTESTANTS, Additive, Dot, Problem, solvers

import regard
from regard.attention import additive_native as native

TRAINING = Additive(32, 40, 50, backward=True)
GROWING = (1024, 2048, 4096, 8192, 16384)
PROBLEMS: tuple[Problem, ...] = (
    TRAINING,
    Additive(1, 1024, 1024, backward=True),
    Additive(32, 1, 50),
    *(
        Dot(length, length, mask, backward)
        for length in (512, 4096)
        for mask in ("plain", "causal")
        for backward in (False, True)
    ),
    Dot(512, 4096, "causal"),
    Dot(4096, 4096, "window"),
    Dot(16384, 16384, "window"),
)


class Measured(NamedTuple):
    """What is known of one contestant at one problem."""

    times: measure.Times
    memory: int


class Limits(NamedTuple):
    """What the machine can do in a second, on this many threads."""

    multiplications: float
    tanh: float
    kernel_tanh: float | None

    def of(self, problem: Problem) -> float:
        if isinstance(problem, Dot):
            return self.multiplications
        return max(self.tanh, self.kernel_tanh or 0.0)


def memory_of(problem: Problem, name: str, threads: int) -> int:
    """Bytes that the contestant needs over its inputs; called in a process of its own."""
    torch.set_num_threads(threads)
    prepare = CONTESTANTS[name]
    # A compiled contestant compiles for one shape: it warms up on the problem itself.
    run = prepare(problem)
    warm = run if "Flex" in name else prepare(problem.tiny())
    return measure.peak_growth(warm, run)


def compare(
    problem: Problem, names: list[str], seconds: float, least: int
) -> dict[str, Measured | str]:
    """Everyone who can solve the problem, measured; a reason in place of who cannot."""
    threads = torch.get_num_threads()
    memory = {name: measure.in_fresh_process(memory_of, problem, name, threads) for name in names}
    runs = {name: CONTESTANTS[name](problem) for name in names if not isinstance(memory[name], str)}
    times = measure.interleaved(runs, seconds, least)
    return {
        name: Measured(times[name], memory[name]) if name in times else memory[name]
        for name in names
    }


def table(problem: Problem, results: dict[str, Measured | str], limit: float) -> Iterator[str]:
    yield f"\n### {problem}\n"
    yield "| implementation | median ms | quartiles | repeats | peak MB | of the limit |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for name, result in results.items():
        who = name.split(": ", 1)[1]
        if isinstance(result, str):
            yield f"| {who} | {result[:90]} | | | | |"
            continue
        low, high = (_ms(side) for side in result.times.quartiles)
        share = problem.work / result.times.median / limit
        yield (
            f"| {who} | {_ms(result.times.median)} | {low} – {high} | {len(result.times.seconds)} "
            f"| {result.memory / 1e6:.1f} | {share:.0%} |"
        )


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g}" if seconds < 1 else f"{1e3 * seconds:.0f}"


def growth(lengths: tuple[int, ...]) -> Iterator[tuple[str, list[int]]]:
    """Memory of `attend` at growing lengths, forward and backward."""
    threads = torch.get_num_threads()
    families: dict[str, list[Problem]] = {
        f"dot {mask}": [Dot(n, n, mask, True, heads=2) for n in lengths]
        for mask in ("plain", "causal", "window", "lengths")
    }
    families["additive"] = [Additive(1, n, n, 64, True) for n in lengths]
    for family, problems in families.items():
        name = f"{family.split()[0]}: attend"
        yield (
            family,
            [measure.in_fresh_process(memory_of, problem, name, threads) for problem in problems],
        )


def overhead() -> float:
    """Seconds that a call of `attend` takes beyond SDPA's, where there is nothing to compute."""
    tiny = Dot(4, 4, heads=2, size=8)
    runs = {name: CONTESTANTS[name](tiny) for name in ("dot: attend", "dot: SDPA")}
    times = measure.interleaved(runs, 5.0, most=5000)
    return times["dot: attend"].median - times["dot: SDPA"].median


def bar(what: str, value: float, limit: float, *, at_least: bool = False) -> str:
    kept = value >= limit if at_least else value <= limit
    sign = "≥" if at_least else "≤"
    return f"{'PASS' if kept else 'MISS'}  {what}: {value:.3g} (bar: {sign} {limit:.3g})"


def additive_bars(results: dict[str, Measured | str]) -> Iterator[str]:
    naive = results["additive: naive"]
    bars = {
        "additive: attend": ("C kernel", 8, 1 / 30),
        "additive: blocks alone": ("blocks", 3, 1 / 20),
    }
    for name, (what, faster, smaller) in bars.items():
        ours = results[name]
        if isinstance(naive, str) or isinstance(ours, str):
            yield f"MISS  additive, {what}: not measured"
            continue
        if what == "C kernel" and not native.available():
            yield f"MISS  additive, C kernel: {native.why_not()}"
            continue
        speed = measure.ratio(naive.times, ours.times)
        yield bar(f"additive, {what}, times faster than naive", speed, faster, at_least=True)
        share = ours.memory / naive.memory
        yield bar(f"additive, {what}, share of naive's memory", share, smaller)


def dot_bar(problem: Dot, results: dict[str, Measured | str]) -> str:
    ours, theirs = results["dot: attend"], results["dot: SDPA"]
    if isinstance(ours, str) or isinstance(theirs, str):
        return f"MISS  dot {problem}: not measured"
    return bar(f"dot {problem}, time to SDPA's", measure.ratio(ours.times, theirs.times), 1.15)


def machine() -> str:
    model = platform.processor()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    level = native.level() if native.available() else native.why_not()
    return (
        f"{model}, {os.cpu_count()} cores, {torch.get_num_threads()} threads; "
        f"Python {platform.python_version()}, torch {torch.__version__}, "
        f"regard {regard.__version__}; kernel: {level}; load {os.getloadavg()[0]:.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small problems, few repeats")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--seconds", type=float, default=10.0, help="for each contestant")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    start = time.perf_counter()
    print(machine())

    torch_import, regard_import = measure.import_seconds(3 if arguments.quick else 9)
    limits = Limits(
        measure.multiplications_per_second(),
        measure.tanh_per_second(),
        measure.kernel_tanh_per_second(),
    )
    print(
        f"limits: matrix products {limits.multiplications / 1e9:.0f} GFLOP/s, tanh in cache ",
        end="",
    )
    print(f"{limits.tanh / 1e9:.2f} · 10⁹/s by torch, ", end="")
    print(f"{(limits.kernel_tanh or 0) / 1e9:.2f} · 10⁹/s by the C kernel")

    verdicts: list[str] = []
    for problem in PROBLEMS:
        small = isinstance(problem, Additive) or problem.keys <= 512
        if arguments.quick and not small:
            continue
        names = solvers(problem)
        if arguments.quick:
            names = [name for name in names if "Flex" not in name]
        results = compare(problem, names, 1.0 if arguments.quick else arguments.seconds, 3)
        print(*table(problem, results, limits.of(problem)), sep="\n", flush=True)
        if problem == TRAINING:
            verdicts += additive_bars(results)
        if (
            isinstance(problem, Dot)
            and problem.queries == problem.keys
            and problem.mask in ("plain", "causal")
        ):
            verdicts.append(dot_bar(problem, results))

    lengths = GROWING[:3] if arguments.quick else GROWING
    print("\n### Memory of attend as T grows, forward+backward: MB (times the one before)\n")
    print("| T |", *(f"{n} |" for n in lengths))
    print("| --- |", *("---: |" for _ in lengths))
    for family, grown in growth(lengths):
        ratios = [after / before for before, after in pairwise(grown)]
        cells = [f"{grown[0] / 1e6:.1f}"]
        cells += [f"{n / 1e6:.1f} (×{r:.2f})" for n, r in zip(grown[1:], ratios, strict=True)]
        print(f"| {family} |", *(f"{cell} |" for cell in cells), flush=True)
        verdicts.append(
            bar(f"memory, {family}, largest growth per doubling of T", max(ratios), 2.5)
        )

    microseconds = overhead() * 1e6
    verdicts.append(bar("overhead of a call of attend over SDPA, µs", microseconds, 25))
    cost = regard_import.median - torch_import.median
    verdicts.append(bar("import regard after import torch, s", cost, 0.3))
    print("\n### Bars\n", *verdicts, sep="\n")
    print(f"\n{time.perf_counter() - start:.0f} s in all; load now {os.getloadavg()[0]:.1f}")
    sys.exit(any(verdict.startswith("MISS") for verdict in verdicts))


if __name__ == "__main__":
    main()
