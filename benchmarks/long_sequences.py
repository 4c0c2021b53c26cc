"""Time and memory of training on long texts: both are to grow in proportion to the length.

    python benchmarks/long_sequences.py --plot docs/benchmarks/long-sequences.svg

Whole updates (forward and backward pass, AdamW) of language models that read one text of so many
words at once, without truncating back-propagation, on one thread. Each model has a process of its
own, whose lengths ascend, so that the peak of its memory is that of the last text.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

MODELS = {
    "LSTM": {"attention": "none"},
    "LSTM with attention to its last 64 states": {"attention": "additive", "window": 64},
}


def main() -> None:
    """Measure, print the table and draw the plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=[1024, 2048, 4096, 8192, 16384])
    parser.add_argument("--plot", type=Path, help="an SVG file")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        measure(options.child, sorted(options.lengths))
        return
    measured = {}
    for name in MODELS:
        command = [sys.executable, __file__, "--child", name, "--lengths"]
        done = subprocess.run(
            [*command, *map(str, options.lengths)], check=True, stdout=subprocess.PIPE, text=True
        )
        measured[name] = [json.loads(line) for line in done.stdout.splitlines()]
    print(
        "| model | words | seconds per update | µs per word | MiB above the start | kB per word |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, rows in measured.items():
        for words, seconds, kilobytes in rows:
            print(
                f"| {name} | {words:,} | {seconds:.2f} | {1e6 * seconds / words:.0f} | "
                f"{kilobytes / 1024:.0f} | {kilobytes / words:.0f} |"
            )
    if options.plot:
        options.plot.write_text(draw(measured), "utf-8")


def draw(measured: dict[str, list[list[float]]]) -> str:
    """Seconds per update by the number of words."""
    from regard.show.charts import Axis, Series, line_chart

    series = [
        Series(name, [words for words, _, _ in rows], [seconds for _, seconds, _ in rows])
        for name, rows in measured.items()
    ]
    words = Axis("words of the text", log=True)
    return line_chart("Training on long texts", series, words, Axis("seconds per update", log=True))


def measure(name: str, lengths: list[int]) -> None:
    """Print words, seconds of processor time and kilobytes for each length."""
    import torch

    from regard.models import LanguageConfig, LanguageModel
    from regard.tasks.shared.losses import next_token_loss
    from regard.training.optimizer import AdamW

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = LanguageModel(LanguageConfig(width=128, **MODELS[name]), 1000).train()
    optimizer = AdamW(model.parameters(), lr=1e-4, fused=True)

    def update(words: int) -> None:
        text = torch.randint(4, 1000, (1, words + 1))
        output, _ = model(text[:, :-1], model.start(1))
        (next_token_loss(output.logits, text[:, 1:], 0.0) / words).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    update(64)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for words in lengths:
        began = time.process_time()
        update(words)
        seconds = time.process_time() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(json.dumps([words, seconds, peak]), flush=True)


if __name__ == "__main__":
    main()
