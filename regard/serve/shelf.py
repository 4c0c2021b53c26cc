"""The runs that a server was started with, each with its own thread."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.inference import load
from regard.inference.runs import Run
from regard.serve.batching import Worker
from regard.serve.history import step_of
from regard.serve.limits import Limits
from regard.serve.problems import Problem
from regard.training import RunFolder
from regard.training.checkpoints import load_weights, read_tensors

BUILTIN = ("en", "fr")
"""The languages of the built-in pairs."""


@dataclass
class Served:
    """One run: its model as soon as there are weights, and what its folder tells meanwhile."""

    id: str
    folder: RunFolder
    config: dict[str, Any]
    limits: Limits
    since: int = field(default_factory=lambda: int(time.time()))
    run: Run | None = None

    def __post_init__(self) -> None:
        self.worker = Worker(self._predict, self.limits, self.id)
        if self.folder.model.exists():
            self.run = load(self.folder.path)

    @property
    def task(self) -> str:
        """The name of its task."""
        return str(self.config["task"])

    @property
    def ready(self) -> bool:
        """Whether it has weights to answer with."""
        return self.run is not None or self.folder.model.exists()

    @property
    def reads_texts(self) -> bool:
        """Whether texts are texts to it: to one that reads vectors they are names of files, and
        nobody may name a file from afar."""
        return self.run is None or getattr(self.run.task, "features", None) is None

    @property
    def writes(self) -> bool:
        """Whether it goes on from a prompt, rather than from a label or a vector."""
        return self.task == "language" and not (self.config.get("data") or {}).get("condition")

    @property
    def languages(self) -> tuple[str, str]:
        """From which language it translates to which, by the names of its columns or files.

        Files without an ending for a language are called source and target.
        """
        data = self.config.get("data") or {}
        files = data.get("data")
        endings = [Path(file).suffix[1:].lower() for file in files or []]
        found = BUILTIN if files is None else ("source", "target")
        if len(set(endings)) == 2 and len(endings) == 2:
            found = (endings[0], endings[1])
        source, target = data.get("source"), data.get("target")
        if source == found[1] or target == found[0]:
            found = found[::-1]
        return str(source or found[0]), str(target or found[1])

    def model(self, checkpoint: str | None = None) -> Run:
        """The run, perhaps with the weights of one of its checkpoints; for its own thread only."""
        if self.run is None:
            if not self.folder.model.exists():
                raise Problem(409, f"{self.id} holds no weights yet: it is still being trained")
            self.run = load(self.folder.path)
        if not self.reads_texts:
            raise Problem(409, f"{self.id} reads vectors from files: it takes no texts")
        if checkpoint is None:
            return self.run
        path = self.checkpoints().get(checkpoint)
        if path is None:
            known = ", ".join(self.checkpoints()) or "none"
            raise Problem(404, f"{self.id} has no such checkpoint; known: {known}")
        network = self.run.task.build()
        load_weights(network, read_tensors(path)[0], path)
        return replace(self.run, model=network.eval())

    def checkpoints(self) -> dict[str, Path]:
        """Its kept weights by name, in the order of training."""
        found = {path.stem: path for path in self.folder.checkpoints.glob("step-*.safetensors")}
        return dict(sorted(found.items(), key=lambda item: step_of(item[0])))

    def card(self) -> dict[str, Any]:
        """What `/v1/models` says of it; the first four members are those of OpenAI's list."""
        about: dict[str, Any] = {
            "id": self.id,
            "object": "model",
            "created": self.since,
            "owned_by": "regard",
            "task": self.task,
            "ready": self.ready,
            "languages": list(self.languages) if self.task == "translation" else None,
            "labels": None,
            "parameters": None,
            "config": {part: self.config.get(part) or {} for part in ("model", "training")},
        }
        if self.run is not None:
            labels = getattr(self.run.task, "labels", None)
            about["labels"] = None if labels is None else list(labels.names)
            about["parameters"] = sum(p.numel() for p in self.run.model.parameters())
        return about

    def _predict(self, texts: Sequence[str], **options: Any) -> Sequence[Any]:
        return self.model().predict(texts, **options)


@dataclass
class Shelf:
    """All runs of a server by id."""

    served: dict[str, Served]

    @classmethod
    def open(cls, paths: Sequence[Path], limits: Limits) -> "Shelf":
        """Load the runs; those without weights yet are served for their curves."""
        served: dict[str, Served] = {}
        try:
            for path in paths:
                folder = RunFolder(path)
                config = folder.config()
                name = _free(path.resolve().name or "run", served)
                served[name] = Served(name, folder, config, limits)
        except BaseException:
            cls(served).close(1.0)
            raise
        if not served:
            raise RegardError("no run to serve: give at least one folder of a training run")
        return cls(served)

    def __getitem__(self, name: str) -> Served:
        """The run of this id, or a problem."""
        if name not in self.served:
            raise Problem(404, f"no such model or run; known: {', '.join(self.served)}")
        return self.served[name]

    def where(self, fits: Callable[[Served], bool]) -> list[Served]:
        """Those that fit, in the order they were given in."""
        return [one for one in self.served.values() if fits(one)]

    def close(self, seconds: float) -> None:
        """Let each model finish what it has begun."""
        end = time.monotonic() + seconds
        for one in self.served.values():
            one.worker.close(max(0.0, end - time.monotonic()))


def _free(name: str, taken: dict[str, Served]) -> str:
    """The name, or with a number if it is taken."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    return found
