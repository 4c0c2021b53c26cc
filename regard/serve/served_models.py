"""The models of a server: trained runs, each with its own thread."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from shlex import quote
from typing import Any

from torch.nn import Module

from regard.devices import AUTO, resolve_device
from regard.errors import OptionError, RegardError
from regard.examples import PREFIX, is_example
from regard.inference import load
from regard.inference.run import Run
from regard.serve.api import run_history
from regard.serve.http.problems import Problem
from regard.serve.limits import Limits
from regard.serve.worker import Worker
from regard.tasks.registry import TASKS, TaskSpec
from regard.training import RunFolder
from regard.training.stored_runs.run_summary import RunSummary, summarize_run

MAX_EXAMPLES = 5


@dataclass
class ServedModel:
    """One run: its folder, and its model as soon as the folder has weights."""

    id: str
    folder: RunFolder
    config: dict[str, Any]
    limits: Limits
    created: int = field(default_factory=lambda: int(time.time()))
    run: Run | None = None
    looks: tuple[str, ...] = ()
    """Names of the attention maps in its traces; none before it has weights."""
    argument: str = ""
    """How commands name the run."""
    reports: list[dict[str, Any]] = field(default_factory=list)
    """Faithfulness reports that could not be saved in its folder."""
    quantize: str = "none"
    """Quantization of its predictions, where its task has that option; traces are exact."""
    device: str = AUTO
    """Where it computes."""

    def __post_init__(self) -> None:
        self._summary, self._summary_state = summarize_run(self.folder.path), (0, 0)
        self.worker = Worker(self._predict, self.limits, self.id)
        if self.folder.model.exists():
            self._load()

    @property
    def task(self) -> str:
        """The name of its task."""
        return str(self.config["task"])

    @property
    def ready(self) -> bool:
        """Whether it has weights."""
        return self.run is not None or self.folder.model.exists()

    @property
    def accepts_texts(self) -> bool:
        """Whether its inputs are texts: a model of vectors would take a text for the name of a
        file, and no client may name a file."""
        return self.run is None or getattr(self.run.task, "features", None) is None

    @property
    def spec(self) -> TaskSpec:
        """The row of its task in the registry."""
        return TASKS.row(self.task)

    @property
    def data(self) -> dict[str, Any]:
        """The data options it was trained with."""
        return self.config.get("data") or {}

    @property
    def continues_prompts(self) -> bool:
        """Whether it generates text from any prompt."""
        generation = self.spec.generation
        return generation is not None and not generation.unavailable(self.data)

    @property
    def languages(self) -> tuple[str, str] | None:
        """The languages it translates from and to; None if it does not translate."""
        service = self.spec.translation
        return None if service is None else service.languages(self.data)

    def require_texts(self) -> None:
        """Raise a problem if the model cannot be used with texts now."""
        if not self.ready:
            raise Problem(409, f"{self.id} has no weights yet: it is still being trained")
        if not self.accepts_texts:
            raise Problem(409, f"{self.id} reads vectors from files: it does not accept texts")

    def summary(self) -> RunSummary:
        """What its folder holds, read again when its files have changed."""
        files = (self.folder.metrics, self.folder.model)
        metrics, weights = (path.stat().st_mtime_ns if path.exists() else 0 for path in files)
        state = (metrics, weights)
        if state != self._summary_state:
            with suppress(RegardError, OSError):  # a folder that is gone is as it was
                self._summary, self._summary_state = summarize_run(self.folder.path), state
        return self._summary

    def load_run(self, checkpoint: str | None = None) -> Run:
        """The run, perhaps with the weights of a checkpoint; for the model's own thread only."""
        if self.run is None and self.folder.model.exists():
            self._load()
        self.require_texts()
        assert self.run is not None
        if checkpoint is None:
            return self.run
        path = self.checkpoints().get(checkpoint)
        if path is None:
            known = ", ".join(self.checkpoints()) or "none"
            raise Problem(404, f"{self.id} has no such checkpoint; known: {known}")
        checkpoint_run = self.run.with_weights(path)
        self._make_stoppable(checkpoint_run.model)
        return checkpoint_run

    def checkpoints(self) -> dict[str, Path]:
        """The files of its checkpoints by name, in the order of training."""
        files = {path.stem: path for path in self.folder.files("checkpoints/step-*.safetensors")}
        return dict(sorted(files.items(), key=lambda item: run_history.step_of(item[0])))

    def description(self) -> dict[str, Any]:
        """Its entry in `/v1/models`; the first four members are those of OpenAI's list."""
        summary = self.summary()
        description: dict[str, Any] = {
            "id": self.id,
            "object": "model",
            "created": self.created,
            "owned_by": "regard",
            "task": self.task,
            "ready": self.ready,
            "languages": None if self.languages is None else list(self.languages),
            "labels": None,
            "screens": list(self.spec.screens),
            "looks": list(self.looks),
            "examples": list(self.example_texts()),
            "parameters": None,
            "data": summary.files,
            "metric": summary.metric(),
            "written": summary.modified,
            "argument": self.argument or self.id,
            "config": {part: self.config.get(part) or {} for part in ("model", "training")},
        }
        if self.run is not None:
            labels = getattr(self.run.task, "labels", None)
            description["labels"] = None if labels is None else list(labels.names)
            description["parameters"] = sum(p.numel() for p in self.run.model.parameters())
        return description

    def example_texts(self) -> tuple[str, ...]:
        """Texts to try, of the data that it was trained on: new problems where data is generated,
        those of the task for its built-in corpus, otherwise samples of its last validation."""
        if self.spec.generated is not None and self.run is not None:
            return self._generated_texts(self.spec.generated(self.run.task)[0])
        built_in = self.spec.corpus is None or self.data.get("data") is None
        if built_in and (self.languages is None or self.languages[0] == "en"):
            return self.spec.example_texts
        if not self.accepts_texts:
            return ()
        return run_history.sample_texts(self.folder)[:MAX_EXAMPLES]

    def _generated_texts(self, problems: Sequence[Any]) -> tuple[str, ...]:
        """A few problems of trained lengths, long ones first, and one of the longest."""
        first = {str(problem.source) for problem in problems[: MAX_EXAMPLES - 1]}
        return (*sorted(first, key=len, reverse=True), str(problems[-1].source))

    def _load(self) -> None:
        self.folder.refuse_links_out()
        self.run = load(self.folder.path, self.device)
        self.looks = _look_names(self.run, self.spec) if self.accepts_texts else ()
        self._make_stoppable(self.run.model)
        if self._quantized:
            self._predict(["a"])  # now, rather than at the first request, if it is not possible

    def _make_stoppable(self, network: Module) -> None:
        """Let the network stop before any of its layers once its clients are gone."""
        worker = self.worker

        # a plain function, because copies of a network copy its hooks, and a worker has no copies
        def stop_if_abandoned(layer: Module, inputs: Any) -> None:
            worker.stop_if_abandoned()

        stop_if_abandoned.only_watches = True  # type: ignore[attr-defined]
        for name, layer in network.named_modules():
            if "score" not in name.split(
                "."
            ):  # the fast paths of attention refuse scores with hooks
                layer.register_forward_pre_hook(stop_if_abandoned)

    @property
    def can_quantize(self) -> bool:
        """Whether the task of the run has an option for quantization."""
        known = self.spec.predict_options
        return known is not None and "quantize" in {option.name for option in fields(known)}

    @property
    def _quantized(self) -> dict[str, Any]:
        return {"quantize": self.quantize} if self.quantize != "none" and self.can_quantize else {}

    def _predict(self, texts: Sequence[str], **options: Any) -> Sequence[Any]:
        return self.load_run().predict(texts, **self._quantized, **options)


@dataclass
class ServedModels:
    """All models of a server by id, in the order of the command line."""

    by_id: dict[str, ServedModel]

    @classmethod
    def load(
        cls,
        paths: Sequence[Path],
        limits: Limits,
        *,
        local: bool = False,
        quantize: str = "none",
        device: str = AUTO,
    ) -> "ServedModels":
        """Load the runs; those without weights yet are served for their training curves.

        Without any run, the screens that need no model are served. Clients on this machine
        (`local`) see the folders of runs in commands, others only their ids.
        """
        by_id: dict[str, ServedModel] = {}
        resolve_device(device)  # refuses one that is not there, even without any run
        try:
            for path in paths:
                folder = RunFolder(path)
                folder.refuse_links_out()
                config = folder.config()
                model_id = _unique_id(folder.path.resolve().name or "run", by_id)
                argument = _command_argument(folder.path, model_id, local=local)
                by_id[model_id] = ServedModel(
                    model_id,
                    folder,
                    config,
                    limits,
                    argument=argument,
                    quantize=quantize,
                    device=device,
                )
            if quantize != "none" and not any(model.can_quantize for model in by_id.values()):
                raise OptionError("quantize", "applies to none of these runs")
        except BaseException:
            cls(by_id).close(1.0)
            raise
        return cls(by_id)

    def __getitem__(self, model_id: str) -> ServedModel:
        """The model with this id, or a problem."""
        if model_id not in self.by_id:
            known = ", ".join(self.by_id) or "none"
            raise Problem(404, f"no such model or run; known: {known}")
        return self.by_id[model_id]

    def __iter__(self) -> Iterator[ServedModel]:
        """The models in their order."""
        return iter(self.by_id.values())

    def select(self, condition: Callable[[ServedModel], bool]) -> list[ServedModel]:
        """The models for which a condition holds."""
        return [model for model in self if condition(model)]

    def close(self, seconds: float) -> None:
        """Let each model finish its jobs, within this time for all of them."""
        end = time.monotonic() + seconds
        for model in self:
            model.worker.close(max(0.0, end - time.monotonic()))


def _look_names(run: Run, spec: TaskSpec) -> tuple[str, ...]:
    """Names of the attention maps in the trace of a short text."""
    if spec.trace is None:
        return ()
    try:
        trace = run.trace(spec.example_texts[0] if spec.example_texts else "a")
    except (RegardError, ValueError, IndexError, RuntimeError):
        return ()
    return tuple(dict.fromkeys(look.name for look in trace.looks))


def _command_argument(path: Path, model_id: str, *, local: bool) -> str:
    if is_example(path):
        return f"{PREFIX}{path.resolve().name}"
    return quote(str(path)) if local else model_id


def _unique_id(name: str, taken: dict[str, ServedModel]) -> str:
    """The name, with a number if it is taken."""
    number, model_id = 1, name
    while model_id in taken:
        number += 1
        model_id = f"{name}-{number}"
    return model_id
