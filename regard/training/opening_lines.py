"""What training begins with: the model and the plan, in the form of the lines about the data."""

from collections.abc import Mapping
from typing import Any

from regard.data.data_report import format_row
from regard.number_format import format_count
from regard.training.config import TrainingConfig

MODEL_OPTIONS = (
    "model", "encoder", "decoder", "cell", "attention", "pooling", "memory",
    "width", "layers", "experts", "pretrained",
)  # fmt: skip
"""Options that say what a model is, where it has them."""


def model_options(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of a config that say what the model is: a pretrained one is its folder."""
    data = config.get("data")
    pretrained = data.get("pretrained") if isinstance(data, Mapping) else None
    return config.get("model") or {} if pretrained is None else {"pretrained": pretrained}


def model_line(options: Mapping[str, Any], parameters: int) -> str:
    """The number of parameters of a model and its main options.

    >>> model_line({"width": 128, "encoder": "lstm", "experts": 0, "dropout": 0.1}, 1234567)
    'model       1,234,567 parameters: encoder lstm, width 128'
    """
    chosen = [f"{name} {options[name]}" for name in MODEL_OPTIONS if options.get(name)]
    described = f": {', '.join(chosen)}" if chosen else ""
    return format_row("model", f"{format_count(parameters)} parameters{described}")


def device_line(device: str, bf16: bool, products: str = "") -> str:
    """Where the training computes, and how matrices are multiplied where that was chosen.

    >>> device_line("cuda:0 (NVIDIA L4)", True)
    'device      cuda:0 (NVIDIA L4), matrix products in bfloat16'
    >>> device_line("cpu", False, "onednn")
    'device      cpu, matrix products by oneDNN'
    """
    how = ["in bfloat16"] * bf16 + ["by oneDNN"] * (products == "onednn")
    return format_row("device", device + (f", matrix products {' and '.join(how)}" if how else ""))


def plan_line(config: TrainingConfig, batches: int, tokens: int, threads: int) -> str:
    """How long the training lasts at most, and what it does at a time.

    >>> plan_line(TrainingConfig(epochs=3), 250, 4096, 2)
    'plan        3 epochs of 250 updates, batches of 4,096 tokens, 2 threads'
    """
    updates = -(-batches // config.accumulate)
    each = _number(updates, "update")
    limits = [
        _number(config.epochs, "epoch") + f" of {each}" if config.epochs else "",
        _number(config.steps, "update") if config.steps else "",
        _number(config.minutes, "minute") if config.minutes else "",
    ]
    until = " or ".join(limit for limit in limits if limit) or "until nothing improves"
    parts = [until, f"batches of {format_count(tokens)} tokens"]
    if not config.epochs:
        parts.insert(1, f"epochs of {each}")
    if config.accumulate > 1:
        parts.append(f"{min(config.accumulate, batches)} per update")
    return format_row("plan", ", ".join([*parts, _number(threads, "thread")]))


def _number(count: int | float, what: str) -> str:
    text = format_count(count) if isinstance(count, int) else f"{count:g}"
    return f"{text} {what}{'s' * (count != 1)}"
