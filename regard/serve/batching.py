"""Requests that come together are read together: one thread for each model."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from regard.serve.limits import Limits
from regard.serve.problems import busy

Predict = Callable[..., Sequence[Any]]


@dataclass(frozen=True)
class Failure:
    """Why one text of several has no answer."""

    reason: str


@dataclass(frozen=True)
class _Texts:
    texts: list[str]
    options: tuple[tuple[str, Any], ...]
    future: "Future[list[Any]]"

    @property
    def size(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class _Call:
    work: Callable[[], Any]
    future: "Future[Any]"
    size: int = 1


@dataclass
class Count:
    """What a worker has done so far."""

    batches: int = 0
    texts: int = 0
    failures: int = 0
    calls: int = 0
    seconds: float = 0.0
    waiting: int = 0
    largest: int = 0


@dataclass
class Worker:
    """A thread that alone uses a model: texts with the same options are predicted together."""

    predict: Predict
    limits: Limits
    name: str = "model"
    count: Count = field(default_factory=Count)

    def __post_init__(self) -> None:
        self._queue: deque[_Texts | _Call] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name=f"regard-{self.name}", daemon=True)
        self._thread.start()

    def submit(self, texts: Sequence[str], options: Mapping[str, Any]) -> "Future[list[Any]]":
        """A prediction, or a `Failure`, for each text, in order."""
        job = _Texts(list(texts), tuple(sorted(options.items())), Future())
        self._add(job)
        return job.future

    def call(self, work: Callable[[], Any]) -> "Future[Any]":
        """What `work` returns, when its turn has come."""
        job = _Call(work, Future())
        self._add(job)
        return job.future

    def close(self, timeout: float | None = None) -> None:
        """Finish what is there, take nothing more, end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(timeout)

    def _add(self, job: _Texts | _Call) -> None:
        with self._changed:
            if self._closed:
                raise busy("the server is stopping: come again later")
            if self.count.waiting + job.size > self.limits.waiting:
                raise busy(
                    f"{self.count.waiting} texts are waiting for this model: at most "
                    f"{self.limits.waiting} may wait"
                )
            self.count.waiting += job.size
            self._queue.append(job)
            self._changed.notify_all()

    def _work(self) -> None:
        while jobs := self._next():
            began = time.monotonic()
            running = [job for job in jobs if job.future.set_running_or_notify_cancel()]
            if running and isinstance(running[0], _Call):
                self.count.calls += 1
                _settle(running[0].future, running[0].work)
            elif running:
                self._read([job for job in running if isinstance(job, _Texts)])
            self.count.seconds += time.monotonic() - began

    def _next(self) -> list[_Texts | _Call]:
        """The next call, or the next texts and those that can be read with them."""
        with self._changed:
            while not self._queue:
                if self._closed:
                    return []
                self._changed.wait()
            first = self._queue[0]
            if isinstance(first, _Texts):
                self._wait_for_company()
            taken = self._take()
            self.count.waiting -= sum(job.size for job in taken)
            return taken

    def _wait_for_company(self) -> None:
        end = time.monotonic() + self.limits.window
        while not self._closed and self.count.waiting < self.limits.together:
            left = end - time.monotonic()
            if left <= 0:
                break
            self._changed.wait(left)

    def _take(self) -> list[_Texts | _Call]:
        first = self._queue.popleft()
        if isinstance(first, _Call):
            return [first]
        taken: list[_Texts | _Call] = [first]
        left, size = deque[_Texts | _Call](), first.size
        for job in self._queue:
            alike = isinstance(job, _Texts) and job.options == first.options
            if alike and size + job.size <= self.limits.together:
                taken.append(job)
                size += job.size
            else:
                left.append(job)
        self._queue = left
        return taken

    def _read(self, jobs: list[_Texts]) -> None:
        texts = [text for job in jobs for text in job.texts]
        options = dict(jobs[0].options)
        found: Sequence[Any] = []
        for start in range(0, len(texts), self.limits.together):
            found = [*found, *self._some(texts[start : start + self.limits.together], options)]
        self.count.largest = max(self.count.largest, min(len(texts), self.limits.together))
        place = 0
        for job in jobs:
            job.future.set_result(list(found[place : place + job.size]))
            place += job.size

    def _some(self, texts: list[str], options: dict[str, Any]) -> Sequence[Any]:
        """Predictions of a batch; where it fails, each text stands for itself."""
        self.count.batches += 1
        self.count.texts += len(texts)
        try:
            found = self.predict(texts, **options)
            if len(found) != len(texts):
                raise ValueError(f"{len(found)} predictions for {len(texts)} texts")
            return found
        except Exception as error:
            if len(texts) == 1:
                self.count.failures += 1
                return [Failure(f"the model cannot read this text ({type(error).__name__})")]
            return [one for text in texts for one in self._some([text], options)]


def _settle(future: "Future[Any]", work: Callable[[], Any]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)
