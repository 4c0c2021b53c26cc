"""One thread per model, which predicts the texts of several requests in one batch.

Request handlers run in the event loop and only put jobs into the worker's queue; the worker's
thread is the only one that uses the model. When the first text arrives, the worker waits a few
milliseconds (`Limits.batch_window`) for more, then takes all waiting jobs with the same options, up
to `Limits.batch_texts` texts, and predicts them together.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from regard.serve.http.problems import too_many_requests
from regard.serve.limits import Limits

Predict = Callable[..., Sequence[Any]]


@dataclass(frozen=True)
class Failure:
    """Why one text of several has no prediction."""

    reason: str


class JobAbandoned(BaseException):
    """Raised inside a model whose clients are all gone; no handler of errors may catch it."""


@dataclass(frozen=True)
class Job:
    """What one request needs of a model."""

    future: "Future[Any]" = field(default_factory=Future)
    abandoned: threading.Event = field(default_factory=threading.Event)

    @property
    def size(self) -> int:
        """How many texts it counts for."""
        return 1

    async def result(self) -> Any:
        """The result; if the request ends first, the job is dropped, or stopped if it has begun."""
        try:
            return await asyncio.wrap_future(self.future)
        finally:
            if not self.future.done():
                self.abandon()

    def abandon(self) -> None:
        """The result is no longer needed."""
        self.abandoned.set()
        self.future.cancel()


@dataclass(frozen=True, kw_only=True)
class _PredictJob(Job):
    """Texts of one request."""

    texts: list[str]
    options: tuple[tuple[str, Any], ...]

    @property
    def size(self) -> int:
        return len(self.texts)


@dataclass(frozen=True, kw_only=True)
class _CallJob(Job):
    """A function to call with the model to itself."""

    function: Callable[[], Any]


@dataclass
class WorkerCounts:
    """What a worker has done so far."""

    batches: int = 0
    texts: int = 0
    failures: int = 0
    calls: int = 0
    abandoned: int = 0
    seconds: float = 0.0
    waiting: int = 0
    largest: int = 0


@dataclass
class Worker:
    """The thread of a model."""

    predict: Predict
    limits: Limits
    name: str = "model"
    counts: WorkerCounts = field(default_factory=WorkerCounts)

    def __post_init__(self) -> None:
        self._queue: deque[Job] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._running: list[Job] = []
        self._thread = threading.Thread(target=self._work, name=f"regard-{self.name}", daemon=True)
        self._thread.start()

    def submit(self, texts: Sequence[str], options: Mapping[str, Any]) -> Job:
        """A job whose result is a prediction or a `Failure` for each text, in order."""
        return self._add(_PredictJob(texts=list(texts), options=tuple(sorted(options.items()))))

    def call(self, function: Callable[[], Any]) -> Job:
        """A job that calls `function` in the model's thread."""
        return self._add(_CallJob(function=function))

    def stop_if_abandoned(self) -> None:
        """Raise `JobAbandoned` if nobody waits for what the model is computing.

        Models call this before each of their layers (`ServedModel`), so that requests whose clients
        are gone do not keep others waiting.
        """
        if self._running and all(job.abandoned.is_set() for job in self._running):
            raise JobAbandoned

    def close(self, timeout: float | None = None) -> None:
        """Accept no more jobs, finish those in the queue, end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(timeout)

    def _add(self, job: Job) -> Job:
        with self._changed:
            if self._closed:
                raise too_many_requests("the server is stopping: try again later")
            if self.counts.waiting + job.size > self.limits.waiting_texts:
                self._drop_cancelled()
            if self.counts.waiting + job.size > self.limits.waiting_texts:
                raise too_many_requests(
                    f"{self.counts.waiting} texts are waiting for this model: at most "
                    f"{self.limits.waiting_texts} may wait"
                )
            self.counts.waiting += job.size
            self._queue.append(job)
            self._changed.notify_all()
        return job

    def _drop_cancelled(self) -> None:
        """Remove jobs that were cancelled while they wait: nobody waits for them any more."""
        self._queue = deque(job for job in self._queue if not job.future.cancelled())
        self.counts.waiting = sum(job.size for job in self._queue)

    def _work(self) -> None:
        while jobs := self._next_jobs():
            began = time.monotonic()
            # a job that was cancelled while it waited (its client is gone) is dropped here
            running = [job for job in jobs if job.future.set_running_or_notify_cancel()]
            self._running = running
            try:
                if running and isinstance(running[0], _CallJob):
                    self.counts.calls += 1
                    _run_call(running[0])
                elif running:
                    self._predict_jobs([job for job in running if isinstance(job, _PredictJob)])
            except JobAbandoned:
                self.counts.abandoned += len(running)
                for job in running:  # a new exception: the traceback of this one holds tensors
                    job.future.set_exception(JobAbandoned())
            self._running = []
            self.counts.seconds += time.monotonic() - began

    def _next_jobs(self) -> list[Job]:
        """One call, or texts that can be predicted together; empty when the worker is closed."""
        with self._changed:
            while not self._queue:
                if self._closed:
                    return []
                self._changed.wait()
            if isinstance(self._queue[0], _PredictJob):
                self._wait_for_more_texts()
            jobs = self._take_jobs()
            self.counts.waiting -= sum(job.size for job in jobs)
            return jobs

    def _wait_for_more_texts(self) -> None:
        """Wait until the batch is full or its window is over; adding a job wakes the condition."""
        end = time.monotonic() + self.limits.batch_window
        while not self._closed and self.counts.waiting < self.limits.batch_texts:
            remaining = end - time.monotonic()
            if remaining <= 0:
                break
            self._changed.wait(remaining)

    def _take_jobs(self) -> list[Job]:
        """Remove the first job and those that fit into its batch; the others keep their order."""
        first = self._queue.popleft()
        if not isinstance(first, _PredictJob):
            return [first]
        options = first.options
        taken: list[Job] = [first]
        remaining, size = deque[Job](), first.size
        for job in self._queue:
            same_options = isinstance(job, _PredictJob) and job.options == options
            if same_options and size + job.size <= self.limits.batch_texts:
                taken.append(job)
                size += job.size
            else:
                remaining.append(job)
        self._queue = remaining
        return taken

    def _predict_jobs(self, jobs: list[_PredictJob]) -> None:
        """Predict the texts of all jobs in one batch, and give each job its part."""
        texts = [text for job in jobs for text in job.texts]
        options = dict(jobs[0].options)
        most = self.limits.batch_texts
        predictions: list[Any] = []
        for start in range(0, len(texts), most):  # one job alone may be larger than a batch
            predictions += self._predict_batch(texts[start : start + most], options)
        self.counts.largest = max(self.counts.largest, min(len(texts), most))
        start = 0
        for job in jobs:
            job.future.set_result(predictions[start : start + job.size])
            start += job.size

    def _predict_batch(self, texts: list[str], options: dict[str, Any]) -> Sequence[Any]:
        """Predictions of a batch; if it fails, each text is predicted alone, so that only the
        texts at fault fail."""
        self.counts.batches += 1
        self.counts.texts += len(texts)
        try:
            predictions = self.predict(texts, **options)
            if len(predictions) != len(texts):
                raise ValueError(f"{len(predictions)} predictions for {len(texts)} texts")
            return predictions
        except Exception as error:
            if len(texts) == 1:
                self.counts.failures += 1
                return [Failure(f"the model cannot read this text ({type(error).__name__})")]
            return [
                prediction for text in texts for prediction in self._predict_batch([text], options)
            ]


def _run_call(job: _CallJob) -> None:
    try:
        job.future.set_result(job.function())
    except JobAbandoned:
        raise
    except BaseException as error:
        job.future.set_exception(error)
