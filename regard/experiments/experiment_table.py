"""The table of experiments: one file each."""

from typing import TYPE_CHECKING

from regard.plugins import Table

if TYPE_CHECKING:
    from regard.experiments.experiment import Experiment

EXPERIMENTS: "Table[Experiment]" = Table(
    "experiment",
    "regard.experiments",
    {
        "distance": "regard.experiments.untrained.distance:EXPERIMENT",
        "reweigh": "regard.experiments.untrained.reweigh:EXPERIMENT",
        "permutation": "regard.experiments.untrained.permutation:EXPERIMENT",
        "scores": "regard.experiments.untrained.score_scaling:EXPERIMENT",
        "masking": "regard.experiments.untrained.masking:EXPERIMENT",
        "gradients": "regard.experiments.untrained.gradients:EXPERIMENT",
    },
)
"""Experiments by name; other packages add rows in the group `regard.experiments`."""
