"""The table of explain methods: how much each token mattered to each output.

`regard explain`, traces with attributions, the server and faithfulness reports all read this
table. Another package adds a method by an entry point in the group `regard.explainers` that names
an `Explainer`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from regard.inference.explain import attributions
from regard.inference.explain.attributions import Attributions
from regard.plugins import Table
from regard.tasks.shared.explain_target import ExplainTarget

Method = Callable[[ExplainTarget], Attributions | None]


@dataclass(frozen=True)
class Explainer:
    """One explain method."""

    method: Method
    """The attributions of a target; None where the method does not apply to the model."""
    column: str
    """Its heading in a table, at most ten characters."""
    quick: Method | None = None
    """A faster variant for measuring many texts."""
    measured: bool = True
    """Whether faithfulness reports include it."""
    from_gradients: bool = False
    """Whether it is one of the gradient methods that attention is compared with."""
    drawn: bool = False
    """Whether it is drawn as a matrix where a text has several outputs."""
    relative: bool = True
    """Whether each row of that matrix is drawn relative to its largest value."""
    meaning: str = ""
    """What its values are, in a few words, for the legend of a table."""


EXPLAINERS: Table[Explainer] = Table(
    "explain method",
    "regard.explainers",
    {
        "attention": Explainer(
            attributions.attention,
            "attention",
            drawn=True,
            relative=False,
            meaning="attention weight, mean over heads and layers next to the output",
        ),
        "attention rollout": Explainer(
            attributions.attention_rollout,
            "rollout",
            meaning="attention followed down through all layers",
        ),
        "integrated gradients": Explainer(
            attributions.integrated_gradients,
            "integrated",
            quick=partial(attributions.integrated_gradients, tolerance=0.05),
            from_gradients=True,
            drawn=True,
            meaning="integrated gradients: shares of the log-odds that add up",
        ),
        "gradient × input": Explainer(
            attributions.gradient_times_input,
            "× input",
            from_gradients=True,
            meaning="gradient times the token's vector",
        ),
        "n-gram votes": Explainer(
            attributions.ngram_votes,
            "n-grams",
            measured=False,
            meaning="votes of n-grams by naive Bayes, shared by their words",
        ),
        "leave-one-out": Explainer(
            attributions.leave_one_out,
            "left out",
            drawn=True,
            meaning="loss of log-odds when the token is erased",
        ),
        "gradient": Explainer(
            attributions.gradient_norm,
            "gradient",
            from_gradients=True,
            meaning="size of the gradient at the token's vector",
        ),
        "gradient through values": Explainer(
            attributions.gradient_through_values,
            "by values",
            measured=False,
            meaning="gradient with the attention weights held constant",
        ),
        "gradient around attention": Explainer(
            attributions.gradient_around_attention,
            "around",
            measured=False,
            meaning="gradient without any part through attention",
        ),
        "gradient under uniform attention": Explainer(
            attributions.gradient_under_uniform_attention,
            "uniform",
            measured=False,
            meaning="gradient if all tokens had the same attention weight",
        ),
    },
)
