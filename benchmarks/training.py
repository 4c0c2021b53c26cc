"""Target tokens per second in training a translator: products by MKL, by oneDNN and in bfloat16.

    python benchmarks/training.py                      # both kinds of model, batches of 800 tokens
    python benchmarks/training.py --lengths 20 50 100 200 400 --kinds recurrent --only onednn

A whole update is timed: forward and backward pass, clipping and AdamW, at the sizes of the default
models. Ways take turns in one process, on one thread, and processor time counts, so that other work
on the machine matters less. Words are random, sentences of a batch differ in length by at most 3;
Marian of transformers, an ordinary implementation of the same transformer, reads the same batches.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor, nn

from regard.models import Translator, TranslatorConfig
from regard.tasks.shared.losses import next_token_loss
from regard.training.matrix_products import multiply_by
from regard.training.optimizer import AdamW

Batch = tuple[Tensor, Tensor, Tensor]
Loss = Callable[[Batch], Tensor]
WAYS = ("mkl", "onednn", "bf16", "marian", "marian bf16")


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kinds", nargs="+", default=["recurrent", "transformer"])
    parser.add_argument("--only", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--lengths", nargs="+", type=int, default=[20])
    parser.add_argument("--tokens", type=int, default=800, help="of a batch, on each side")
    parser.add_argument("--vocabulary", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| model | sentences | products | target tokens/s | times as fast |")
    print("| --- | --- | --- | ---: | ---: |")
    for kind in options.kinds:
        for length in options.lengths:
            compare(kind, length, options)
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"\nLoad of the machine over 1, 5 and 15 minutes: {load}.")


def compare(kind: str, length: int, options: argparse.Namespace) -> None:
    """The rows of one kind of model at one length of sentences."""
    torch.manual_seed(0)
    rows = max(1, options.tokens // length)
    batches = [make_batch(rows, length, options.vocabulary) for _ in range(2)]
    tokens = sum(int(lengths.sum()) for _, lengths, _ in batches)
    ways: dict[str, Callable[[], None]] = {}
    for way in options.only:
        if way.startswith("marian") and kind != "transformer":
            continue
        torch.manual_seed(1)
        try:
            model, loss = (marian if way.startswith("marian") else own)(kind, options.vocabulary)
        except ImportError as error:
            print(f"{way} is left out: {error}", file=sys.stderr)
            continue
        ways[way] = updates(model, loss, batches, way)
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for run in ways.values():
        run()  # the first turn does not count
    for _ in range(options.rounds):
        for way, run in ways.items():
            began = time.process_time()
            run()
            seconds[way].append(time.process_time() - began)
    first = next(iter(ways))
    for way, taken in seconds.items():
        ratios = sorted(a / b for a, b in zip(seconds[first], taken, strict=True))
        print(
            f"| {kind} | {rows} × {length} | {way} | {tokens / statistics.median(taken):,.0f} | "
            f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) |",
            flush=True,
        )


def updates(model: nn.Module, loss: Loss, batches: list[Batch], way: str) -> Callable[[], None]:
    """A function that makes one update with each batch."""
    model.train()
    optimizer = AdamW(model.parameters(), lr=1e-4, fused=True)

    def run() -> None:
        for batch in batches:
            with products(way):
                with torch.autocast("cpu", torch.bfloat16) if "bf16" in way else nullcontext():
                    summed = loss(batch)
                (summed / batch[1].sum()).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    return run


@contextmanager
def products(way: str) -> Iterator[None]:
    """Whether oneDNN multiplies float32; beside bfloat16 it does where that is the choice here."""
    with multiply_by("onednn" if way == "onednn" else "mkl"):
        yield


def make_batch(rows: int, length: int, vocabulary: int) -> Batch:
    """Sources, their lengths (those of targets, too), and targets that begin with a start."""
    lengths = torch.randint(max(1, length - 3), length + 1, (rows,))
    lengths[0] = length
    source = torch.randint(4, vocabulary, (rows, length)) * (
        torch.arange(length) < lengths[:, None]
    )
    target = torch.randint(4, vocabulary, (rows, length + 1))
    return source, lengths, target * (torch.arange(length + 1) <= lengths[:, None])


def own(kind: str, vocabulary: int) -> tuple[nn.Module, Loss]:
    """A translator of Regard with default sizes."""
    sizes = {"feed_forward": 1024} if kind == "transformer" else {}
    model = Translator(TranslatorConfig(model=kind, **sizes), vocabulary, vocabulary)

    def loss(batch: Batch) -> Tensor:
        source, lengths, target = batch
        output = model(source, lengths, target[:, :-1], lengths)
        return next_token_loss(output.logits, target[:, 1:], 0.0)

    return model, loss


def marian(kind: str, vocabulary: int) -> tuple[nn.Module, Loss]:
    """The same transformer in transformers."""
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=vocabulary,
        d_model=256,
        encoder_layers=3,
        decoder_layers=3,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=1024,
        decoder_ffn_dim=1024,
        dropout=0.3,
        pad_token_id=0,
        eos_token_id=3,
        decoder_start_token_id=2,
    )
    model = MarianMTModel(config)

    def loss(batch: Batch) -> Tensor:
        source, _, target = batch
        logits = model(
            input_ids=source, attention_mask=(source != 0).long(), decoder_input_ids=target[:, :-1]
        ).logits
        return nn.functional.cross_entropy(
            logits.flatten(0, 1).float(), target[:, 1:].flatten(), ignore_index=0, reduction="sum"
        )

    return model, loss


if __name__ == "__main__":
    main()
