"""What a server has done, in the text format of Prometheus.

https://prometheus.io/docs/instrumenting/exposition_formats
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from regard import __version__
from regard.serve.batching import Count
from regard.serve.shelf import Shelf

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
Labels = tuple[tuple[str, str], ...]
Samples = Mapping[Labels, int | float]


@dataclass
class Counts:
    """Requests by route and status, and the time they took."""

    answered: Counter[Labels] = field(default_factory=Counter)
    seconds: dict[Labels, float] = field(default_factory=dict)
    failed: int = 0
    """Requests that ended in a mistake of ours."""
    running: int = 0
    following: int = 0

    def add(self, route: str, method: str, status: int, seconds: float) -> None:
        """One request that was answered."""
        where: Labels = (("method", method), ("route", route))
        self.answered[(*where, ("status", str(status)))] += 1
        self.seconds[where] = self.seconds.get(where, 0.0) + seconds

    def text(self, shelf: Shelf) -> str:
        """Everything that is counted."""
        models: dict[Labels, Count] = {
            (("model", one.id),): one.worker.count for one in shelf.served.values()
        }
        lines = [
            _family("regard_info", "gauge", "version", {(("version", __version__),): 1}),
            _family("regard_requests_total", "counter", "requests answered", self.answered),
            _family("regard_request_seconds_total", "counter", "time taken", self.seconds),
            _family("regard_errors_total", "counter", "mistakes of ours", {(): self.failed}),
            _family("regard_requests_running", "gauge", "requests at work", {(): self.running}),
            _family("regard_followers", "gauge", "event streams open", {(): self.following}),
        ]
        for name, kind, told in (
            ("texts", "counter", "texts read"),
            ("batches", "counter", "times that a model read"),
            ("failures", "counter", "texts that a model could not read"),
            ("calls", "counter", "explanations and continuations"),
            ("seconds", "counter", "time at work"),
            ("waiting", "gauge", "texts waiting"),
            ("largest", "gauge", "largest batch so far"),
        ):
            ending = "_total" if kind == "counter" else ""
            values: Samples = {labels: getattr(count, name) for labels, count in models.items()}
            lines.append(_family(f"regard_model_{name}{ending}", kind, told, values))
        if (memory := resident()) is not None:
            name = "process_resident_memory_bytes"
            lines.append(_family(name, "gauge", "memory", {(): memory}))
        return "".join(lines)


def resident() -> int | None:
    """Bytes of memory that the process holds, where the system tells."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    sizes = [1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS:")]
    return sizes[0] if sizes else None


def _family(name: str, kind: str, told: str, samples: Samples) -> str:
    head = f"# HELP {name} {told}\n# TYPE {name} {kind}\n"
    return head + "".join(f"{name}{_labels(k)} {v:g}\n" for k, v in samples.items())


def _labels(labels: Labels) -> str:
    r"""Labels in braces.

    >>> _labels((("model", 'a"b\n'),))
    '{model="a\\"b\\n"}'
    """
    shown = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{shown}}}" if shown else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
