"""The only training loop.

One update after another moves a `Position` forward. Everything that the next update depends on is
saved in one file (`regard.training.state`): the weights, the optimizer, the position, what a
language model carries from batch to batch, and the random numbers; the plan of the batches follows
from seed and epoch. So a run that resumes from a saved state repeats the updates after it bit for
bit, and what they had written before the interruption (best weights, checkpoints, lines of metrics)
is replaced by the same.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.data.shared_batches import map_batches, share_batches
from regard.devices import (
    FUSED_OPTIMIZERS,
    describe_device,
    device_of,
    fork_random,
    random_state,
    to_device,
)
from regard.errors import RegardError
from regard.number_format import format_value
from regard.tasks.shared.splits import join_notes
from regard.tasks.task import Calibrates, Evaluation, OwnOptimizer, SharesValidation, Task
from regard.training.budget import (
    batch_tokens,
    budget,
    exhausted_budget,
    extend,
    total_steps,
    used_share,
)
from regard.training.config import HALVING, TrainingConfig
from regard.training.distributed import Processes, check_processes, count_rows, current
from regard.training.divergence import (
    END_FACTOR,
    divergence_error,
    has_diverged,
    is_too_large,
    mean_loss,
)
from regard.training.loss_module import (
    evaluation_mode,
    gradient_computation,
    lazy_tables,
    make_objective,
    uses_bf16,
)
from regard.training.matrix_products import Library, choose_library, multiply_by
from regard.training.metrics_log import (
    Events,
    append_line,
    drop_lines_after,
    metrics_digest,
    verify_metrics,
)
from regard.training.opening_lines import device_line, model_line, model_options, plan_line
from regard.training.optimizer import AdamW, clip_gradients, learning_rate
from regard.training.prepared_data import identify_run
from regard.training.run_folder import RunFolder
from regard.training.state import (
    Position,
    SavedState,
    combine_seeds,
    load_state,
    remove_older_states,
    save_state,
)
from regard.training.tensor_files import load_weights, read_tensors, write_tensors
from regard.training.validation_loss import validation_loss


@dataclass(frozen=True)
class Progress:
    """How far training is after an update; `evaluation` is set when the update was validated."""

    position: Position
    loss: float
    """Loss of the last update; with an evaluation, the mean since the previous validation."""
    gradient_norm: float
    learning_rate: float
    tokens_per_second: float
    share: float
    """Share of the budget that is used up, from 0 to 1."""
    evaluation: Evaluation | None = None
    validation_loss: float | None = None
    """Loss on the validation data; set with an evaluation."""
    note: str = ""


Report = Callable[[Progress], None]


def train(
    task: Task[Any],
    config: TrainingConfig,
    folder: RunFolder,
    *,
    report: Report = lambda progress: None,
    log: Callable[[str], None] = lambda line: None,
    stop: Callable[[], bool] = lambda: False,
    device: torch.device | None = None,
) -> Position:
    """Train until the budget is used up or nothing improves; resume the run that the folder holds.

    A finished run is extended if the budget is larger than the one it finished with. Once `stop()`
    is true, the state is saved and the returned position is not `done`. The same folder, config and
    number of threads give the same weights bit for bit, however often the run was interrupted (for
    budgets in epochs or steps), as long as it stays on one device. The caller holds the folder
    (`RunFolder.begin`), and the state of its random numbers does not change. In distributed
    training every process calls this function; the first one validates and writes.
    """
    processes = current()
    device = torch.device("cpu") if device is None else device
    check_processes(processes, device)
    with fork_random(device):
        torch.manual_seed(config.seed)
        try:
            model = task.build()
        except ValueError as error:
            raise RegardError(f"the model cannot be built: {error}") from error
        model.to(device)
        optimizer = _make_optimizer(task, model, config)
        if not processes.first:
            # The initial weights are the same everywhere; dropout must not be.
            torch.manual_seed(combine_seeds(config.seed, processes.rank))
        identity = identify_run(folder)
        state = _load_same_state(folder, model, optimizer, processes, identity)
        saved, note = state.position, state.note
        tokens = batch_tokens(config, task.plan)
        position = _extend(saved, task, config, tokens, folder)
        library = _choose_products(position, processes, device)
        position = replace(position, products=library)
        if saved.done and not position.done:
            extending = f"finished after {saved.step} updates; extending it with a larger budget"
            note = join_notes(note, extending)
        if processes.first:
            folder.write_budget(budget(config))
            if saved.finished and not position.finished:
                _undo_average(folder, position, identity)
            _verify_weights(folder, position)
            if changed := verify_metrics(folder, saved, state.metrics):
                log(changed)
            drop_lines_after(folder, position)
        if not position.done:
            options = model_options(folder.config())
            log(model_line(options, sum(part.numel() for part in model.parameters())))
            batches = len(task.plan(tokens, config.seed, position.epoch))
            log(plan_line(config, batches, tokens, torch.get_num_threads()))
            log(device_line(describe_device(device), uses_bf16(config, device), library))
        events = Events(folder, position, enabled=config.tensorboard and processes.first)
        loop = _Loop(
            task=task,
            config=config,
            tokens=tokens,
            folder=folder,
            model=model,
            optimizer=optimizer,
            processes=processes,
            events=events,
            report=report,
            log=log,
            stop=stop,
            note=note,
            identity=identity,
            device=device,
            products=library,
        )
        try:
            position = loop.run(position, list(state.carried))
        finally:
            events.close()
        processes.barrier()  # nobody returns, and loads the result, before it is written
        return position


def _make_optimizer(
    task: Task[Any], model: nn.Module, config: TrainingConfig
) -> torch.optim.Optimizer:
    """AdamW, or the optimizer of a task whose updates are no steps along gradients."""
    if isinstance(task, OwnOptimizer):
        return task.optimizer(model, config)
    return AdamW(
        model.parameters(),
        lazy=lazy_tables(model),
        lr=config.learning_rate,
        betas=(0.9, 0.98),
        weight_decay=config.weight_decay,
        fused=device_of(model).type in FUSED_OPTIMIZERS,
    )


def _load_same_state(
    folder: RunFolder,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    processes: Processes,
    identity: Mapping[str, Any],
) -> SavedState:
    """The last saved state, the same one in every process; the carried tensors have all rows.

    Loading may rename files (`load_state`), so the first process loads alone; the others wait for
    it in `RunFolder.begin` and load afterwards.
    """
    state = load_state(folder.state, model, optimizer, processes.rank, identity) or SavedState()
    if processes.first:
        processes.barrier()
    if processes.any(processes.broadcast(state.position.step) != state.position.step):
        raise RegardError(f"{folder.state}: not all processes read the same state there")
    return state


def _extend(
    saved: Position, task: Task[Any], config: TrainingConfig, tokens: int, folder: RunFolder
) -> Position:
    def count_batches() -> int:
        return len(task.plan(tokens, config.seed, saved.epoch))

    try:
        return extend(saved, config, count_batches)
    except RegardError as error:
        raise RegardError(f"{folder.path}: {error}") from error


def _choose_products(position: Position, processes: Processes, device: torch.device) -> Library:
    """The library that multiplies matrices in all processes of the run, as long as it lasts.

    A run that began with oneDNN resumes without it on a machine where that is not as exact.
    """
    began_without = position.step > 0 and position.products != "onednn"
    library: Library = "mkl" if began_without or not processes.first else choose_library(device)
    chosen: Library = processes.broadcast(library)
    return chosen


def _verify_weights(folder: RunFolder, position: Position) -> None:
    """Raise an error now, and not hours later, if weights that the run still needs are damaged."""
    needed = [] if position.finished else [folder.checkpoints / name for name in position.kept]
    for path in (folder.model, *needed):
        if path.exists():
            read_tensors(path)


def _undo_average(folder: RunFolder, position: Position, identity: Mapping[str, Any]) -> None:
    """Restore the best weights of a single validation: averaging belongs to the end of a run."""
    name = max(position.kept, key=lambda name: position.kept[name], default=None)
    if name is not None and position.kept[name] == position.best:
        weights, _ = read_tensors(folder.checkpoints / name)
        write_tensors(folder.model, weights, identity)


def _merit(evaluation: Evaluation, loss: float | None) -> list[float]:
    """What validations are compared by: see `Position`."""
    return [evaluation.figure_of_merit, 0.0 if loss is None else -loss]


def _improves(merit: list[float], best: list[float] | None) -> bool:
    return best is None or merit > best or math.isnan(best[0])


def _is_lower(loss: float | None, lowest: float | None) -> bool:
    return loss is not None and math.isfinite(loss) and (lowest is None or loss < lowest)


@dataclass(kw_only=True)
class _Loop:
    """One call of `train`: what stays the same while the position moves forward."""

    task: Task[Any]
    config: TrainingConfig
    tokens: int
    """Maximum number of tokens per batch."""
    folder: RunFolder
    model: nn.Module
    optimizer: torch.optim.Optimizer
    processes: Processes
    events: Events
    report: Report
    log: Callable[[str], None]
    stop: Callable[[], bool]
    note: str
    """A line for the user, which is reported with the next update."""
    identity: Mapping[str, Any]
    """What the run is, which every file of tensors records."""
    device: torch.device
    products: Library
    """What multiplies float32 matrices in forward and backward passes."""
    objective: nn.Module = field(init=False)
    rows: int = field(init=False, default=0)
    """Number of rows of the last batch, those of all processes."""
    referenced: set[str] = field(init=False, default_factory=set)
    """Checkpoints that the latest state on disk refers to."""
    too_large: int = field(init=False, default=0)
    """Number of updates in a row whose loss was too large."""
    started: float = field(init=False)
    seconds_before: float = field(init=False, default=0.0)
    """Training time before this call."""

    def __post_init__(self) -> None:
        self.objective = make_objective(self.task, self.model, self.config, self.processes)
        self.started = time.monotonic()

    def run(self, position: Position, carried: list[Tensor]) -> Position:
        """Train from `position` until the run is finished or stopped.

        `done` means that there is no update left to make, `finished` that the checkpoints are
        averaged too. A run that was killed in between resumes with the averaging, which gives the
        same result when it is repeated.
        """
        self.seconds_before, self.referenced = position.seconds, set(position.kept)
        if carried:
            self.rows = count_rows(carried)
            carried = to_device(list(self.processes.own_rows(carried)[0]), self.device)
        while not position.done:
            plan = self.task.plan(self.tokens, self.config.seed, position.epoch)
            if not plan:
                raise RegardError("there is nothing to train on: the corpus has no examples")
            position, carried, stopped = self._train_epoch(plan, position, carried)
            if stopped:
                return position
            if not position.done:
                position, carried = replace(position, epoch=position.epoch + 1, batch=0), []
        if not position.finished:
            self._average_checkpoints(position)
            self._calibrate()
            position = replace(position, finished=True)
            self._save(position, carried)
        if self.processes.first:
            # Extending a finished run needs its last state, and the checkpoints of that state.
            remove_older_states(self.folder.state)
            self._remove_checkpoints_except(set(position.kept))
        return position

    def _train_epoch(
        self, plan: Sequence[Any], position: Position, carried: list[Tensor]
    ) -> tuple[Position, list[Tensor], bool]:
        """Train on the batches of the plan that are left; True if `stop` ended it."""
        total = total_steps(self.config, len(plan))
        while position.batch < len(plan) and not position.done:
            batches = plan[position.batch : position.batch + self.config.accumulate]
            progress, carried = self._update(batches, position, total, carried)
            position = replace(progress.position, seconds=self._seconds())
            epoch_over = position.batch >= len(plan)
            exhausted = exhausted_budget(self.config, position, epoch_over)
            position = replace(position, done=bool(exhausted), ended=exhausted)
            due = self._validation_due(position.step, epoch_over)
            validation = position.done or due
            if has_diverged(position, self.too_large, validation=validation):
                raise divergence_error(position, progress.loss, self.config)
            if validation:
                position, progress = self._validate(position, progress, due)
                if position.ended == "patience" and is_too_large(
                    progress.loss, position.first_loss, END_FACTOR
                ):
                    raise divergence_error(position, progress.loss, self.config)
            if self.processes.first and self._stays(position.step):
                self._write_checkpoint(f"step-{position.step}.safetensors")
            # A state whose loss is too large may be the beginning of a divergence.
            periodic = position.step % self.config.save_every == 0 and not self.too_large
            if validation or periodic:
                self._save(position, carried)
            share = used_share(self.config, position, total)
            self.report(replace(progress, position=position, share=share, note=self.note))
            self.note = ""
            if self.processes.any(self.stop()) and not position.done:
                self._save(position, carried)
                return position, carried, True
        return position, carried, False

    def _seconds(self) -> float:
        """Training time of the run, by the clock of the first process in all processes."""
        own = time.monotonic() - self.started if self.processes.first else 0.0
        return self.seconds_before + self.processes.sum([own])[0]

    def _update(
        self,
        batches: Sequence[Any],
        position: Position,
        total: int | None,
        carried: list[Tensor],
    ) -> tuple[Progress, list[Tensor]]:
        """Make one update from these batches."""
        started = time.monotonic()
        share = used_share(self.config, position, total)
        rate = learning_rate(self.config, position.step, share, position.halvings)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.model.train()
        tensors = [self.task.batch(batch) for batch in batches]
        count = max(1, sum(self.task.count(batch) for batch in tensors))
        own_loss, carried = self._compute_gradients(tensors, count, carried)
        norm = clip_gradients(self.model.parameters(), self.config.clip)
        if math.isfinite(norm):
            self.optimizer.step()
        else:
            self.note = f"step {position.step + 1}: the gradient is not finite, update skipped"
        self.optimizer.zero_grad(set_to_none=True)
        loss_sum = self.processes.sum([own_loss])[0]
        after = replace(position, batch=position.batch + len(batches), step=position.step + 1)
        if math.isfinite(loss_sum):
            after = replace(
                after,
                first_loss=loss_sum / count if after.first_loss is None else after.first_loss,
                loss_sum=after.loss_sum + loss_sum,
                loss_count=after.loss_count + count,
            )
        too_large = is_too_large(loss_sum / count, after.first_loss)
        self.too_large = self.too_large + 1 if too_large else 0
        progress = Progress(
            position=after,
            loss=loss_sum / count,
            gradient_norm=norm,
            learning_rate=rate,
            tokens_per_second=count / max(1e-9, time.monotonic() - started),
            share=0.0,
        )
        curves = {"loss": progress.loss, "gradient_norm": norm, "learning_rate": rate}
        self.events.add_update(after.step, curves)
        return progress, carried

    def _compute_gradients(
        self, tensors: Sequence[Any], count: int, carried: list[Tensor]
    ) -> tuple[float, list[Tensor]]:
        """Accumulate the gradients of the batches; returns the summed loss of this process's rows.

        `count` is the number of predictions in all batches of all processes.
        """
        loss_sum = 0.0
        for number, batch in enumerate(tensors):
            part, counts = self.processes.own_rows(batch)
            self.rows = count_rows(batch)
            last = number + 1 == len(tensors)
            with gradient_computation(self.objective, last=last), multiply_by(self.products):
                loss, carried = self.objective(to_device(part, self.device), carried)
                # DistributedDataParallel averages the gradients of the processes: multiplied by
                # their number, the average is the sum.
                weight = self.processes.world * counts
                mean = loss.total * weight / count
                if loss.extra is not None:
                    mean = mean + loss.extra / len(tensors)
                mean.backward()
            loss_sum += float(loss.total.detach()) * counts
        return loss_sum, carried

    def _validation_due(self, step: int, epoch_over: bool) -> bool:
        """At the end of an epoch, or every so many updates if the config says so."""
        every = self.config.evaluate_every
        return epoch_over if every is None else step % every == 0

    def _validate(
        self, position: Position, progress: Progress, due: bool
    ) -> tuple[Position, Progress]:
        """Compute the metrics on the validation data, and decide what follows from them.

        The processes share the work; the first one decides and writes, and the others wait for the
        position that it broadcasts.
        """
        progress = replace(progress, loss=mean_loss(position))
        try:
            evaluation, loss = self._evaluate()
        except (ValueError, RuntimeError) as error:
            if not self.too_large:
                raise
            raise divergence_error(position, progress.loss, self.config) from error
        if evaluation is not None and self.processes.first:
            progress = replace(progress, evaluation=evaluation, validation_loss=loss)
            merit = _merit(evaluation, loss)
            best = _improves(merit, position.best)
            # likelihood, where a task sets it as the merit, needs no other measure of progress
            progressing = loss if evaluation.merit is None else None
            position = self._after_validation(position, merit, due, progressing)
            self._log(position, progress, evaluation, best=best)
        return Position(**self.processes.broadcast(asdict(position))), progress

    def _evaluate(self) -> tuple[Evaluation | None, float | None]:
        """The metrics and the loss of the current weights on the validation data.

        Processes share out the batches where the task can do that. Otherwise the first process
        computes the metrics, which are None in the others, and the second one the loss.
        """
        smoothing, budget = self.config.label_smoothing, self.config.batch_tokens
        processes, shared = self.processes, isinstance(self.task, SharesValidation)
        # A perplexity may be infinite where training diverges: no reason for numpy to warn.
        quiet = np.errstate(over="ignore", invalid="ignore")
        with evaluation_mode(self.model), fork_random(self.device), quiet:
            if not processes.several or shared:
                with share_batches(processes) if processes.several else nullcontext():
                    evaluation = self.task.validate(self.model)
                    return evaluation, validation_loss(self.task, self.model, smoothing, budget)
            evaluations: list[Evaluation] = []

            def compute(part: str) -> float | None:
                if part == "loss":
                    return validation_loss(self.task, self.model, smoothing, budget)
                evaluations.append(self.task.validate(self.model))
                return None

            with share_batches(processes):
                parts = map_batches(("metrics", "loss"), compute, "validating", unit="parts")
                (_, _), (_, loss) = parts
            return next(iter(evaluations), None), loss

    def _after_validation(
        self, position: Position, merit: list[float], due: bool, loss: float | None
    ) -> Position:
        """The position after a validation; writes the weights if they are the best so far.

        The end of a budget brings a validation that may not be due. It decides which weights are
        kept, and nothing else: patience and the halving of the learning rate count due validations
        only, so that a run which is extended later makes the same updates as a run that had the
        larger budget from the start, where this validation never took place.
        """
        patience = self.config.patience
        if _improves(merit, position.best):
            position = replace(position, best=merit)
            self._write_model()
        if due and _improves(merit, position.mark):
            position = replace(position, mark=merit, since_best=0, stale=0)
        elif due:
            learns = _is_lower(loss, position.lowest_loss)
            since_best = 0 if learns else position.since_best + 1
            position = replace(position, since_best=since_best, stale=position.stale + 1)
            if self.config.schedule in HALVING and position.stale >= max(1, patience // 2):
                position = replace(position, halvings=position.halvings + 1, stale=0)
        if due and _is_lower(loss, position.lowest_loss):
            position = replace(position, lowest_loss=loss)
        if self.config.average > 1:
            position = self._keep_for_average(position, merit)
        if position.since_best >= patience and not position.done:
            position = replace(position, done=True, ended="patience")
        done, position = position.done, replace(position, loss_sum=0.0, loss_count=0)
        return replace(position, budget=budget(self.config)) if done else position

    def _write_model(self) -> None:
        write_tensors(self.folder.model, self.model.state_dict(), self.identity)

    def _keep_for_average(self, position: Position, merit: list[float]) -> Position:
        name = f"step-{position.step}.safetensors"
        candidates = {**position.kept, name: merit}
        ranked = sorted(candidates.items(), key=lambda item: [-part for part in item[1]])
        kept = dict(ranked[: self.config.average])
        if name in kept:
            self._write_checkpoint(name)
        return replace(position, kept=kept)

    def _write_checkpoint(self, name: str) -> None:
        write_tensors(self.folder.checkpoints / name, self.model.state_dict(), self.identity)

    def _stays(self, step: int) -> bool:
        """Whether the weights after this update stay in the run folder (`--keep-every`)."""
        return self.config.keep_every is not None and step % self.config.keep_every == 0

    def _average_checkpoints(self, position: Position) -> None:
        """Average the kept checkpoints; the average becomes the result if it is better."""
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
        evaluation, loss = self._evaluate()
        if evaluation is not None and self.processes.first:
            self._keep_average(position, evaluation, loss)
        # A run that is extended later continues from the last update, not from the average.
        self.model.load_state_dict(last)
        self.processes.barrier()  # the first process removes checkpoints when all have read them

    def _keep_average(self, position: Position, evaluation: Evaluation, loss: float | None) -> None:
        """Write the averaged weights, which the model has now, if they are better."""
        kept = _improves(_merit(evaluation, loss), position.best)
        if kept:
            self._write_model()
        line = {
            "averaged": sorted(position.kept),
            "kept": kept,
            "step": position.step,
            "epoch": position.epoch,
            "seconds": round(position.seconds, 1),
            "validation_loss": loss,
        }
        append_line(self.folder, line, evaluation)
        metric = evaluation.metrics[evaluation.main]
        self.log(
            f"average of the best {len(position.kept)}: {metric.name} "
            f"{format_value(metric.value, metric.unit)}, "
            + ("better, kept" if kept else "not better, left out")
        )

    def _calibrate(self) -> None:
        """Adjust the kept weights on the validation data, where the task does that."""
        first = self.processes.first and self.folder.model.exists()
        if not (first and isinstance(self.task, Calibrates)):
            return
        last = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        load_weights(self.model, read_tensors(self.folder.model)[0], self.folder.model)
        with evaluation_mode(self.model), fork_random(self.device):
            changed = self.task.calibrate(self.model)
        if changed:
            self._write_model()
            self.log(f"calibrated: {changed}")
        self.model.load_state_dict(last)

    def _save(self, position: Position, carried: list[Tensor]) -> None:
        """Save the state, then remove the checkpoints that no state on disk refers to.

        Every process sends its part of what is carried and its random numbers; the first one
        writes, while the others continue to the next exchange. Two states stay on disk, and a run
        may resume from the older one if the newer cannot be read: a checkpoint is removed when
        neither of them refers to it.
        """
        carried = [self.processes.join_rows(part, self.rows) for part in carried]
        random = self.processes.gather(torch.get_rng_state())
        own = random_state(self.device)
        device_random = [] if own is None else self.processes.gather(own)
        if not self.processes.first:
            return
        self.events.flush()
        save_state(
            self.folder.state,
            model=self.model,
            optimizer=self.optimizer,
            position=position,
            carried=carried,
            random=random,
            device_random=device_random,
            device=self.device,
            identity=self.identity,
            metrics=metrics_digest(self.folder, position),
        )
        self._remove_checkpoints_except(self.referenced | set(position.kept))
        self.referenced = set(position.kept)

    def _remove_checkpoints_except(self, needed: set[str]) -> None:
        for path in self.folder.checkpoints.glob("step-*.safetensors"):
            step = path.stem.removeprefix("step-")
            stays = step.isdecimal() and self._stays(int(step))
            if path.name not in needed and not stays:
                path.unlink(missing_ok=True)

    def _log(
        self, position: Position, progress: Progress, evaluation: Evaluation, *, best: bool
    ) -> None:
        line = {
            "step": position.step,
            "epoch": position.epoch,
            "seconds": round(position.seconds, 1),
            "best": best,
            "loss": progress.loss,
            "validation_loss": progress.validation_loss,
            "gradient_norm": progress.gradient_norm,
            "learning_rate": progress.learning_rate,
            "device": self.device.type,
            "bf16": uses_bf16(self.config, self.device),
            "products": self.products,
        }
        append_line(self.folder, line, evaluation)
        self.events.add_validation(position.step, evaluation, progress.validation_loss)
