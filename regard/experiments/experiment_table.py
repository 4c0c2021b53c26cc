"""The table of experiments: one file each."""

from typing import TYPE_CHECKING

from regard.plugins import Table

if TYPE_CHECKING:
    from regard.experiments.claims import Experiment

EXPERIMENTS: "Table[Experiment]" = Table(
    "experiment",
    "regard.experiments",
    {
        "distance": "regard.experiments.untrained.distance:EXPERIMENT",
        "reweigh": "regard.experiments.untrained.reweigh:EXPERIMENT",
        "permutation": "regard.experiments.untrained.permutation:EXPERIMENT",
        "scores": "regard.experiments.trained.score_scaling:EXPERIMENT",
        "masking": "regard.experiments.untrained.masking:EXPERIMENT",
        "gradients": "regard.experiments.untrained.gradients:EXPERIMENT",
        "negation": "regard.experiments.trained.negation:EXPERIMENT",
        "bottleneck": "regard.experiments.trained.bottleneck:EXPERIMENT",
        "alignments": "regard.experiments.trained.learned_alignments:EXPERIMENT",
        "lengths": "regard.experiments.trained.lengths:EXPERIMENT",
        "induction": "regard.experiments.trained.induction:EXPERIMENT",
        "heads": "regard.experiments.trained.heads:EXPERIMENT",
        "experts": "regard.experiments.trained.experts_routing:EXPERIMENT",
        "explanation": "regard.experiments.trained.explanation:EXPERIMENT",
        "sinks": "regard.experiments.trained.sinks:EXPERIMENT",
        "span": "regard.experiments.trained.span:EXPERIMENT",
        "memory": "regard.experiments.trained.recall:EXPERIMENT",
        "beams": "regard.experiments.trained.beams:EXPERIMENT",
    },
)
"""Experiments by name; other packages add rows in the group `regard.experiments`."""
