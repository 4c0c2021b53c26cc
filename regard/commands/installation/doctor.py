"""`regard doctor`: what is installed, what this machine offers, and what to do about the rest."""

import argparse
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from regard.devices import available_devices, describe_device

PACKAGES = ("torch", "numpy", "tokenizers", "safetensors", "pyarrow", "sacrebleu", "starlette")
EXTRAS = {"onnx": "export", "datasets": "hub", "matplotlib": "plot", "tensorboard": "tensorboard"}
"""Packages of optional features, and the extra of Regard that installs each."""
LOW_MEMORY = 2 * 10**9
LOW_DISK = 10**9


class Finding(NamedTuple):
    """One row of the report."""

    name: str
    value: str
    advice: str = ""
    """What to do; empty where all is well."""
    remark: bool = False
    """Whether the advice is about a choice of the user, not about something that is wrong."""


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `doctor`."""
    doctor = commands.add_parser(
        "doctor",
        help="check the installation and this machine",
        description="Print versions, threads, device, memory and whether the native kernel is "
        "built, with advice on what is missing. Exit code 1 if something needs attention.",
        examples=("regard doctor", "regard doctor --json"),
    )
    doctor.add_argument("--json", action="store_true", help="print the report as JSON")
    doctor.set_defaults(run=_doctor, parser=doctor)


def _doctor(chosen: argparse.Namespace) -> int:
    findings = list(examine())
    if chosen.json:
        import json

        print(json.dumps([finding._asdict() for finding in findings], ensure_ascii=False))
    else:
        from regard.show.text_width import terminal_width, wrap_beside

        for finding in findings:
            lines = wrap_beside(finding.name, finding.value, 14, terminal_width())
            if finding.advice:
                lines += wrap_beside("", f"→ {finding.advice}", 14, terminal_width())
            print("\n".join(lines))
        if not _needs_attention(findings):
            print("everything is in order")
    return int(_needs_attention(findings))


def _needs_attention(findings: Sequence[Finding]) -> bool:
    return any(finding.advice and not finding.remark for finding in findings)


def examine() -> Iterator[Finding]:
    """All rows of the report."""
    from regard import __version__

    yield Finding("regard", f"{__version__} in {Path(__file__).parents[2]}")
    yield Finding("python", f"{platform.python_version()} ({sys.executable})")
    yield Finding("system", f"{platform.system()} {platform.release()}, {platform.machine()}")
    for package in PACKAGES:
        found = _version(package)
        advice = "" if found else f"pip install {package}"
        yield Finding(package, found or "missing", advice)
    extras = (f"{name} {_version(name)}" for name in EXTRAS if find_spec(name) is not None)
    absent = [extra for name, extra in EXTRAS.items() if find_spec(name) is None]
    more = f"; not installed: {', '.join(f'regard[{extra}]' for extra in absent)}" if absent else ""
    yield Finding("optional", (", ".join(extras) or "none") + more)
    yield _kernel()
    yield from _processors()
    yield from _space()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _kernel() -> Finding:
    from regard.attention import additive_native
    from regard.models.native import native_library

    reason = additive_native.why_not() or native_library.why_not()
    if reason is None:
        levels = f"{additive_native.level()} (attention) and {native_library.level()} (decoding)"
        return Finding("kernel", f"built, uses {levels}")
    return Finding(
        "kernel",
        f"not in use: {reason}",
        "attention and decoding work, but slower: install a C compiler (gcc or clang), then "
        "`pip install --force-reinstall --no-deps regard`",
    )


def _processors() -> Iterator[Finding]:
    import torch

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threads = torch.get_num_threads()
    limit = os.environ.get("OMP_NUM_THREADS")
    why = f" (OMP_NUM_THREADS={limit})" if limit else ""
    advice = ""
    if threads < (usable or 1):
        advice = "unset OMP_NUM_THREADS to use all processors" if limit else ""
    yield Finding("threads", f"{threads} of {usable} processors{why}", advice, remark=True)
    capability = torch.backends.cpu.get_cpu_capability()
    others = [describe_device(device) for device in available_devices()[1:]]
    yield Finding("device", ", ".join([f"cpu ({capability})", *others]))


def _space() -> Iterator[Finding]:
    memory = _available_memory()
    if memory is not None:
        advice = "" if memory >= LOW_MEMORY else "close other programs, or train smaller models"
        yield Finding("memory", f"{memory / 1e9:.1f} GB available", advice)
    free = shutil.disk_usage(Path.cwd()).free
    advice = "" if free >= LOW_DISK else "free some space: `regard prune RUN` helps"
    yield Finding("disk", f"{free / 1e9:.1f} GB free in {Path.cwd()}", advice)


def _available_memory() -> int | None:
    """Bytes of memory that programs can get; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        sizes = dict(line.split(":") for line in lines)
        return int(sizes["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, KeyError):
        return None
