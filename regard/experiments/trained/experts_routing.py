"""A mixture of experts sends the inputs of each regime to experts of their own.

Inputs come from several regimes, each with a linear map of its own. Experts whose gate is
attention are trained on all of them at once. If routing is learned, the expert that gets an input
tells its regime: their mutual information, divided by the entropy of the regimes, is near 1.
Jacobs et al., 1991, https://doi.org/10.1162/neco.1991.3.1.79; Shazeer et al., 2017,
https://arxiv.org/abs/1701.06538
"""

import torch
from torch import Tensor, nn

from regard.experiments.claims import Experiment, Finding, Setting, clearly_above, over_seeds
from regard.experiments.fitting import fit
from regard.layers import Experts
from regard.show.charts import Axis, Series, line_chart
from regard.show.report_page import Table

REGIMES, WIDTH = 4, 8


class Problem:
    """Regimes with centres and linear maps; without regimes, one map for all inputs."""

    def __init__(self, *, several: bool = True) -> None:
        self.centres = 3.0 * torch.eye(REGIMES, WIDTH)
        self.maps = torch.randn(REGIMES, WIDTH, WIDTH) / WIDTH**0.5
        if not several:
            self.centres, self.maps = (
                torch.zeros(REGIMES, WIDTH),
                self.maps[:1].expand(REGIMES, -1, -1),
            )

    def sample(self, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs, outputs and regimes."""
        regime = torch.randint(REGIMES, (count,))
        noise = torch.randn(count, WIDTH)
        return self.centres[regime] + noise, (self.maps[regime] @ noise[..., None])[..., 0], regime


def shared_information(chosen: Tensor, regime: Tensor) -> float:
    """Mutual information of expert and regime, divided by the entropy of the regimes."""
    counts = torch.zeros(int(chosen.max()) + 1, REGIMES, dtype=torch.float64)
    counts.index_put_(
        (chosen, regime), torch.ones(len(chosen), dtype=torch.float64), accumulate=True
    )
    joint = counts / counts.sum()
    independent = joint.sum(1, keepdim=True) * joint.sum(0, keepdim=True)
    used = joint > 0
    shared = (joint[used] * (joint[used] / independent[used]).log()).sum()
    regimes = joint.sum(0)
    entropy = -(regimes[regimes > 0] * regimes[regimes > 0].log()).sum()
    return float(shared / entropy)


def routing_table(chosen: Tensor, regime: Tensor) -> Table:
    """Which share of each regime's inputs each expert gets."""
    experts = range(1, REGIMES + 1)
    rows = []
    for number in range(REGIMES):
        sent = torch.bincount(chosen[regime == number], minlength=REGIMES).double()
        shares = (100 * sent / sent.sum()).tolist()
        rows.append([f"regime {number + 1}", *(f"{share:.0f} %" for share in shares)])
    return Table(["", *(f"expert {number}" for number in experts)], rows)


def train(problem: Problem, steps: int) -> Experts:
    """Experts trained on a problem; their load is kept even."""
    experts = Experts(WIDTH, 16, REGIMES)

    def loss() -> Tensor:
        inputs, outputs, _ = problem.sample(128)
        mixture = experts(inputs)
        error = nn.functional.mse_loss(mixture.output, outputs)
        total: Tensor = error + 0.01 * mixture.balance
        return total

    fit(experts, loss, steps, 1e-2)
    return experts


def judge(information: list[float]) -> bool:
    """The expert tells more than half of what there is to know about the regime."""
    return clearly_above(over_seeds(information), 0.5)


def run(setting: Setting) -> Finding:
    """Train on several regimes, and on one, where there is nothing to route."""
    steps, seeds = setting.pick(30, 1500, 6000), setting.pick(2, 4, 10)
    information: dict[bool, list[float]] = {True: [], False: []}
    load, tables = [], dict[str, Table]()
    for several, values in information.items():
        for seed in range(seeds):
            torch.manual_seed(seed)
            problem = Problem(several=several)
            experts = train(problem, steps)
            inputs, _, regime = problem.sample(4000)
            with torch.no_grad():
                chosen = experts(inputs).weights.argmax(-1)
            values.append(shared_information(chosen, regime))
            if several:
                tables.setdefault("Routing of the first network", routing_table(chosen, regime))
                shares = torch.bincount(chosen, minlength=REGIMES) / len(chosen)
                load.append([float(share) for share in shares.sort(descending=True).values])
    numbers = {
        "what the expert tells about the regime": over_seeds(information[True]),
        "the same, without regimes": over_seeds(information[False]),
        "share of the busiest expert": over_seeds([one[0] for one in load]),
    }
    mean = [over_seeds([one[i] for one in load]).mean for i in range(REGIMES)]
    series = [Series("share of the inputs", range(1, REGIMES + 1), mean)]
    picture = line_chart(
        "Load of the experts", series, Axis("expert, busiest first"), Axis("share")
    )
    told, none = (over_seeds(information[several]).mean for several in (True, False))
    summary = (
        f"the expert tells {100 * told:.0f} % of what there is to know about the regime "
        f"({100 * none:.0f} % where there are no regimes)."
    )
    return Finding(judge(information[True]), summary, numbers, {"load": picture}, tables)


EXPERIMENT = Experiment(
    name="experts",
    claim="A mixture of experts learns to send the inputs of each regime to experts of their own.",
    source="Jacobs et al., 1991; Shazeer et al., 2017",
    row="X1",
    minutes=0.5,
    run=run,
)
