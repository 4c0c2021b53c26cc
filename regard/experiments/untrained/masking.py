"""Attention masks the error that is propagated back: what has no weight does not learn.

The output is y = Σ aᵢ vᵢ, so the error that reaches vᵢ is aᵢ times the error of y. As attention
moves from even to all-on-one, the other inputs get less and less of it, and through training they
hardly change: attention isolates parts of a network from change. Here the inputs are keys too, so
that a part of the error also takes the way through the softmax.
"""

import torch
from torch import Tensor

from regard.attention import attend
from regard.experiments.claims import Experiment, Finding, Setting, over_seeds
from regard.show.charts import Axis, Series, line_chart

WORDS, WIDTH, UPDATES = 8, 16, 20


def sharpened(inputs: Tensor, chosen: int, sharpness: float) -> Tensor:
    """A query that attends to one of the inputs, the more exclusively the sharper it is."""
    others = inputs.mean(0)
    direction = inputs[chosen] - others
    query: Tensor = sharpness * direction / direction.norm()
    return query[None]


def error_shares(inputs: Tensor, query: Tensor, *, through_keys: bool) -> tuple[Tensor, Tensor]:
    """The weight of each input, and the share of the error's norm that reaches it."""
    words = inputs.clone().requires_grad_()
    keys = words if through_keys else inputs
    attended = attend(query, keys, words, score="dot")
    (attended.output - 1.0).square().sum().backward()
    assert words.grad is not None
    assert attended.weights is not None
    norms = words.grad.norm(dim=-1)
    return attended.weights[0].detach(), norms / norms.sum()


def movements(inputs: Tensor, query: Tensor) -> Tensor:
    """How far each input has moved after each update [updates, words]."""
    words, moved = inputs.clone().requires_grad_(), []
    optimizer = torch.optim.SGD([words], lr=0.05)
    for _ in range(UPDATES):
        optimizer.zero_grad()
        (attend(query, words, words, score="dot").output - 1.0).square().sum().backward()
        optimizer.step()
        moved.append((words.detach() - inputs).norm(dim=-1))
    return torch.stack(moved)


def judge(even: list[float], sharp: list[float], moved: list[float]) -> bool:
    """The error of the unattended inputs falls to a twentieth, and they move less than a tenth."""
    return over_seeds(sharp).mean < 0.05 * over_seeds(even).mean and over_seeds(moved).mean < 0.1


def run(setting: Setting) -> Finding:
    """Error and change of the inputs that are not attended to, by sharpness."""
    sharpnesses = setting.pick(
        [0.0, 12.0], [0.0, 1.0, 2.0, 4.0, 6.0, 8.0, 12.0], [0.5 * i for i in range(33)]
    )
    seeds = setting.pick(3, 20, 100)
    shares = {s: list[float]() for s in sharpnesses}
    exact, moved = list[float](), {s: list[float]() for s in sharpnesses}
    through = {s: list[Tensor]() for s in (sharpnesses[0], sharpnesses[-1])}
    for seed in range(seeds):
        torch.manual_seed(seed)
        inputs = torch.randn(WORDS, WIDTH)
        others = torch.arange(WORDS) != 0
        for sharpness in sharpnesses:
            query = sharpened(inputs, 0, sharpness)
            _, share = error_shares(inputs, query, through_keys=True)
            shares[sharpness].append(float(share[others].mean()))
            path = movements(inputs, query)
            moved[sharpness].append(float((path[-1] / path[-1].max())[others].mean()))
            if sharpness in through:
                through[sharpness].append(torch.stack([path[:, 0], path[:, others].mean(1)], 1))
            weights, alone = error_shares(inputs, query, through_keys=False)
            exact.append(float((weights - alone).abs().max()))
    series = []
    for name, found in (("share of the error", shares), ("movement", moved)):
        measured = [over_seeds(found[s]) for s in sharpnesses]
        mean, low, high = zip(*(m[:3] for m in measured), strict=True)
        series.append(Series(name, sharpnesses, mean, low, high))
    title = "Inputs that are not attended to"
    picture = line_chart(title, series, Axis("sharpness of the attention"), Axis("mean per input"))
    even, sharp = sharpnesses[0], sharpnesses[-1]
    updates = range(1, UPDATES + 1)
    series = [
        Series(f"{kind}, {which}", updates, torch.stack(through[s]).mean(0)[:, column].tolist())
        for s, kind in ((even, "even attention"), (sharp, "sharp attention"))
        for column, which in enumerate(("the input attended to", "the others"))
    ]
    axes = Axis("update"), Axis("distance from the start")
    pictures = {"masking": picture, "change": line_chart("Change through training", series, *axes)}
    numbers = {
        "error of the others, even attention": over_seeds(shares[even]),
        "error of the others, sharp attention": over_seeds(shares[sharp]),
        "movement of the others, sharp attention": over_seeds(moved[sharp]),
        "largest |error − weight|, values alone": over_seeds(exact),
    }
    held = judge(shares[even], shares[sharp], moved[sharp])
    summary = (
        f"an input that is not attended to gets {100 * over_seeds(shares[even]).mean:.1f} % of the "
        f"error under even attention and {100 * over_seeds(shares[sharp]).mean:.2f} % under sharp "
        f"attention, where it moves {100 * over_seeds(moved[sharp]).mean:.1f} % as far as the one "
        "that is."
    )
    return Finding(held, summary, numbers, pictures)


EXPERIMENT = Experiment(
    name="masking",
    claim="Attention masks the back-propagated error and isolates what it leaves out from change.",
    source="lecture on attention",
    row="C5",
    minutes=0.1,
    run=run,
)
