"""Measuring faithfulness at a client's request: in the background, one model at a time."""

import threading
from dataclasses import dataclass
from typing import Any

from regard.errors import RegardError
from regard.inference import load
from regard.inference.explain.faithfulness import faithfulness
from regard.inference.explain.faithfulness_reports import report_record, save_report
from regard.progress import Stage, reporting
from regard.serve.http.problems import Problem
from regard.serve.served_models import ServedModel

NAME = "measured in the app"


class _StoppedError(Exception):
    """Raised inside a measurement when the server stops."""


@dataclass
class FaithfulnessJobs:
    """The measurement that is running, or the last one."""

    status: str = "idle"
    model: str = ""
    done: int = 0
    total: int = 0
    detail: str = ""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self, model: ServedModel, texts: list[str]) -> None:
        """Begin to measure a model; a problem if another measurement is running."""
        with self._lock:
            if self.status == "running":
                raise Problem(409, f"{self.model} is being measured: wait until that is done")
            self.status, self.model, self.detail = "running", model.id, ""
            self.done, self.total = 0, len(texts)
            self._thread = threading.Thread(
                target=self._measure, args=(model, texts), name="regard-faithfulness", daemon=True
            )
            self._thread.start()

    def close(self, seconds: float) -> None:
        """End the measurement after its current text."""
        self._stopping = True
        if self._thread is not None:
            self._thread.join(seconds)

    def document(self) -> dict[str, Any]:
        """How far it is."""
        names = ("status", "model", "done", "total", "detail")
        return {name: getattr(self, name) for name in names}

    def _measure(self, model: ServedModel, texts: list[str]) -> None:
        try:
            run = load(
                model.folder.path, model.device
            )  # its own copy: the model keeps answering meanwhile
            with reporting(self._report):
                report = faithfulness(run, texts, positions=2, shuffles=5)
            _keep(model, report, len(texts))
        except _StoppedError:
            self.status, self.detail = "failed", "the server is stopping"
        except (RegardError, ValueError) as error:
            self.status, self.detail = "failed", str(error)
        except Exception as error:  # a thread has no caller that could report it
            self.status, self.detail = "failed", type(error).__name__
        else:
            self.status = "done"

    def _report(self, stage: Stage) -> None:
        if self._stopping and not stage.ended:
            raise _StoppedError
        if stage.total == self.total:  # stages within have other totals
            self.done = stage.done


def _keep(model: ServedModel, report: Any, texts: int) -> None:
    """Save a report in the run folder, or in memory if nothing can be written there."""
    options: dict[str, Any] = {"limit": texts, "seed": 0}
    try:
        save_report(model.folder, NAME, report, **options)
    except RegardError:
        about = {"name": NAME, "data": [], "weights": "", "options": options, "current": True}
        model.reports[:] = [{**about, **report_record(report)}]
