"""The only training loop."""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.tasks.parts import noted
from regard.tasks.task import Evaluation, Task
from regard.training.budget import budget, prolonged, total_steps, used_share, used_up
from regard.training.checkpoints import (
    Position,
    load_state,
    load_weights,
    mixed,
    read_tensors,
    save_state,
    write_tensors,
)
from regard.training.config import TrainingConfig
from regard.training.folder import RunFolder
from regard.training.journal import Events, forget_after, write_line
from regard.training.objective import computing, looking, objective
from regard.training.processes import Processes, current, rows
from regard.training.schedule import learning_rate


@dataclass(frozen=True)
class Progress:
    """Where training is; `evaluation` is there when the validation data was just looked at."""

    position: Position
    loss: float
    """Of the last update; with an evaluation, the mean since the one before."""
    gradient_norm: float
    learning_rate: float
    tokens_per_second: float
    share: float
    """How much of the budget is used up."""
    evaluation: Evaluation | None = None
    note: str = ""


Report = Callable[[Progress], None]


def train(
    task: Task,
    config: TrainingConfig,
    folder: RunFolder,
    *,
    report: Report = lambda progress: None,
    stop: Callable[[], bool] = lambda: False,
) -> Position:
    """Train until the budget is used up or nothing improves; go on where the folder left off.

    A run that was done goes on if it is given a larger budget than it was done with.
    After `stop()` says so, the state is saved and the position returned is not `done`. The same
    folder, config and number of threads give the same weights to the bit, however often the run
    was interrupted (budgets in epochs or steps). Who calls holds the folder (`RunFolder.begin`);
    the caller's random numbers go on as if nothing had happened. Each of several processes calls
    this; the first one measures and writes.
    """
    processes = current()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = task.build()
        optimizer = torch.optim.AdamW(
            model.parameters(),
            lr=config.learning_rate,
            betas=(0.9, 0.98),
            weight_decay=config.weight_decay,
            fused=True,
        )
        if not processes.first:
            torch.manual_seed(mixed(config.seed, processes.rank))
        found, carried, note = _state(folder, model, optimizer, processes)
        try:
            position = prolonged(
                found,
                config,
                lambda: len(task.plan(config.batch_tokens, config.seed, found.epoch)),
            )
        except RegardError as error:
            raise RegardError(f"{folder.path}: {error}") from error
        if found.done and not position.done:
            note = noted(note, f"done after {found.step} updates; going on with a larger budget")
        if processes.first:
            folder.keep_budget(budget(config))
            if found.finished and not position.finished:
                _undo_average(folder, position)
            forget_after(folder, position)
        events = Events(folder, position, config.tensorboard and processes.first)
        run = _Run(task, config, folder, model, optimizer, processes, events, report, stop, note)
        try:
            position = run.go(position, carried)
        finally:
            events.close()
        processes.meet()
        return position


def _undo_average(folder: RunFolder, position: Position) -> None:
    """Put the best weights of a single look back: the average belongs to the end of a run."""
    name = max(position.kept, key=lambda name: position.kept[name], default=None)
    if name is not None and position.kept[name] == position.best:
        weights, _ = read_tensors(folder.checkpoints / name)
        write_tensors(folder.model, weights, {"regard": "{}"})


def _state(
    folder: RunFolder, model: nn.Module, optimizer: torch.optim.Optimizer, processes: Processes
) -> tuple[Position, list[Tensor], str]:
    """The last saved state, in every process the same; `carried` whole."""
    nothing: tuple[Position, list[Tensor], str] = Position(), [], ""
    if not processes.first:
        found = load_state(folder.state, model, optimizer, processes.rank) or nothing
    else:
        found = load_state(folder.state, model, optimizer) or nothing
        processes.meet()  # the others wait for this in `RunFolder.begin`
    if processes.any(processes.told(found[0].step) != found[0].step):
        raise RegardError(f"{folder.state}: not all processes read the same state there")
    return found


ABSURD = 1e4
"""A loss that no model has which learns."""


def _better(score: float, known: float | None) -> bool:
    return known is None or score > known or math.isnan(known)


class _Run:
    """One call of `train`: what does not change while it goes on."""

    def __init__(
        self,
        task: Task,
        config: TrainingConfig,
        folder: RunFolder,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        processes: Processes,
        events: Events,
        report: Report,
        stop: Callable[[], bool],
        note: str,
    ) -> None:
        self.task, self.config, self.folder = task, config, folder
        self.model, self.optimizer, self.processes = model, optimizer, processes
        self.objective = objective(task, model, config, processes)
        self.events, self.report, self.stop, self.note = events, report, stop, note
        self.began = time.monotonic()
        self.rows = 0
        """Rows of the last batch, those of all processes."""
        self.saved: set[str] = set()
        """Checkpoints that the last saved state counts on."""

    def go(self, position: Position, carried: list[Tensor]) -> Position:
        """Epoch after epoch, from `position` on."""
        before, self.saved = position.seconds, set(position.kept)
        if carried:
            self.rows = rows(carried)
            carried = list(self.processes.share(carried)[0])
        while not position.done:
            plan = self.task.plan(self.config.batch_tokens, self.config.seed, position.epoch)
            if not plan:
                raise RegardError("there is nothing to train on: the corpus has no examples")
            total = total_steps(self.config, len(plan))
            while position.batch < len(plan) and not position.done:
                batches = plan[position.batch : position.batch + self.config.accumulate]
                progress, carried = self._update(batches, position, total, carried)
                spent = time.monotonic() - self.began if self.processes.first else 0.0
                seconds = before + self.processes.summed([spent])[0]
                position = replace(progress.position, seconds=seconds)
                over = position.batch >= len(plan)
                position = replace(position, done=bool(used_up(self.config, position, over)))
                due = self._look_due(position.step, over)
                if position.done or due:
                    position, progress = self._look(position, progress, due)
                    self._save(position, carried)
                elif position.step % self.config.save_every == 0:
                    self._save(position, carried)
                share = used_share(self.config, position, total)
                self.report(replace(progress, position=position, share=share, note=self.note))
                self.note = ""
                if self.processes.any(self.stop()) and not position.done:
                    self._save(position, carried)
                    return position
            if not position.done:
                position, carried = replace(position, epoch=position.epoch + 1, batch=0), []
        if not position.finished:
            if self.processes.first:
                self._finish(position)
            position = replace(position, finished=True)
            self._save(position, carried)
        elif self.processes.first:
            self._let_go_but(self.saved)  # of what it died on before it could
        return position

    def _update(
        self, batches: list[Any], position: Position, total: int | None, carried: list[Tensor]
    ) -> tuple[Progress, list[Tensor]]:
        started = time.monotonic()
        share = used_share(self.config, position, total)
        rate = learning_rate(self.config, position.step, share, position.halvings)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.model.train()
        tensors = [self.task.batch(batch) for batch in batches]
        count = max(1, sum(self.task.count(batch) for batch in tensors))
        summed = 0.0
        for number, batch in enumerate(tensors):
            part, own = self.processes.share(batch)
            self.rows = rows(batch)
            with computing(self.objective, last=number + 1 == len(tensors)):
                loss, carried = self.objective(part, carried)
                weight = self.processes.world * own  # gradients are averaged: make it their sum
                mean = loss.total * weight / count
                if loss.extra is not None:
                    mean = mean + loss.extra / len(tensors)
                mean.backward()
            summed += float(loss.total.detach()) * own
        norm = float(nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip))
        if math.isfinite(norm):
            self.optimizer.step()
        else:
            self.note = f"step {position.step + 1}: the gradient is not finite, nothing was learnt"
        self.optimizer.zero_grad(set_to_none=True)
        summed = self.processes.summed([summed])[0]
        after = replace(
            position,
            batch=position.batch + len(batches),
            step=position.step + 1,
            loss_sum=position.loss_sum + summed,
            loss_count=position.loss_count + count,
        )
        speed = count / max(1e-9, time.monotonic() - started)
        found = Progress(after, summed / count, norm, rate, speed, 0.0)
        self.events.update(
            after.step, {"loss": found.loss, "gradient_norm": norm, "learning_rate": rate}
        )
        return found, carried

    def _look(self, position: Position, progress: Progress, due: bool) -> tuple[Position, Progress]:
        """Measure on the validation data, keep the weights if they are the best so far."""
        progress = replace(progress, loss=position.loss_sum / max(1, position.loss_count))
        if self.processes.first:
            with looking(self.model), torch.random.fork_rng(devices=[]):
                progress = replace(progress, evaluation=self._evaluated(progress))
            position = self._judged(position, progress, due)
        return Position(**self.processes.told(asdict(position))), progress

    def _evaluated(self, progress: Progress) -> Evaluation:
        try:
            return self.task.evaluate(self.model)
        except (ValueError, RuntimeError) as error:
            if progress.loss < ABSURD:
                raise
            raise RegardError(
                f"step {progress.position.step}: the loss is {progress.loss}, and nothing can be "
                f"predicted: lower --learning-rate, which is {self.config.learning_rate:g}, or "
                "raise --warmup"
            ) from error

    def _judged(self, position: Position, progress: Progress, due: bool) -> Position:
        """How far the run is after an evaluation; only the first process asks.

        A look that was not due, at the end of a budget, decides nothing but which weights are kept:
        a run that goes on with a larger budget goes on as if it had not been.
        """
        evaluation, patience = progress.evaluation, self.config.patience
        assert evaluation is not None
        score = evaluation.score
        if _better(score, position.best):
            position = replace(position, best=score)
            self._keep_best()
        if due and _better(score, position.mark):
            position = replace(position, mark=score, since_best=0, stale=0)
        elif due:
            position = replace(
                position, since_best=position.since_best + 1, stale=position.stale + 1
            )
            if self.config.schedule == "plateau" and position.stale >= max(1, patience // 2):
                position = replace(position, halvings=position.halvings + 1, stale=0)
        if self.config.average > 1:
            position = self._keep_for_average(position, score)
        done = position.done or position.since_best >= patience
        position = replace(position, done=done, loss_sum=0.0, loss_count=0)
        if done:
            position = replace(position, budget=budget(self.config))
        self._log(position, progress, evaluation)
        return position

    def _keep_best(self) -> None:
        write_tensors(self.folder.model, self.model.state_dict(), {"regard": "{}"})

    def _keep_for_average(self, position: Position, score: float) -> Position:
        name = f"step-{position.step}.safetensors"
        kept = dict(sorted({**position.kept, name: score}.items(), key=lambda item: -item[1]))
        kept = dict(list(kept.items())[: self.config.average])
        if name in kept:
            write_tensors(self.folder.checkpoints / name, self.model.state_dict(), {"regard": "{}"})
        return replace(position, kept=kept)

    def _finish(self, position: Position) -> None:
        """Average the kept checkpoints, and take the average if it is better than the best."""
        if len(position.kept) < 2:
            return
        last = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        parts = [read_tensors(self.folder.checkpoints / name)[0] for name in sorted(position.kept)]
        mean = {
            name: torch.stack([part[name] for part in parts]).mean(0)
            if parts[0][name].is_floating_point()
            else parts[0][name]
            for name in parts[0]
        }
        load_weights(self.model, mean, self.folder.checkpoints)
        with looking(self.model), torch.random.fork_rng(devices=[]):
            evaluation = self.task.evaluate(self.model)
        if position.best is None or evaluation.score > position.best:
            self._keep_best()
        line = {"averaged": sorted(position.kept), "step": position.step}
        write_line(self.folder, line, evaluation)
        self.model.load_state_dict(last)

    def _save(self, position: Position, carried: list[Tensor]) -> None:
        """Save the state; then let go of checkpoints that neither it nor the last one needs."""
        carried = [self.processes.joined_rows(part, self.rows) for part in carried]
        random = self.processes.gathered(torch.get_rng_state())
        if not self.processes.first:
            return
        self.events.flush()
        save_state(self.folder.state, self.model, self.optimizer, position, carried, random)
        self._let_go_but(self.saved | set(position.kept))
        self.saved = set(position.kept)

    def _let_go_but(self, needed: set[str]) -> None:
        for path in self.folder.checkpoints.glob("step-*.safetensors"):
            if path.name not in needed:
                path.unlink(missing_ok=True)

    def _log(self, position: Position, progress: Progress, evaluation: Evaluation) -> None:
        line = {
            "step": position.step,
            "epoch": position.epoch,
            "seconds": round(position.seconds, 1),
            "loss": progress.loss,
            "gradient_norm": progress.gradient_norm,
            "learning_rate": progress.learning_rate,
        }
        write_line(self.folder, line, evaluation)
        self.events.look(position.step, evaluation)

    def _look_due(self, step: int, over: bool) -> bool:
        """At the end of an epoch, or after so many updates where that was said."""
        every = self.config.evaluate_every
        return over if every is None else step % every == 0
