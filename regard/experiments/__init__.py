"""Claims of lectures and papers about attention, put to the test: one file each."""

from typing import TYPE_CHECKING

from regard.lazy_imports import export_lazily

if TYPE_CHECKING:
    from regard.experiments.claims import Experiment, Finding, Measured, Setting
    from regard.experiments.experiment_results import run_experiment
    from regard.experiments.experiment_table import EXPERIMENTS

__all__ = ["EXPERIMENTS", "Experiment", "Finding", "Measured", "Setting", "run_experiment"]

export_lazily(
    __name__,
    {
        "EXPERIMENTS": "regard.experiments.experiment_table:EXPERIMENTS",
        "Experiment": "regard.experiments.claims:Experiment",
        "Finding": "regard.experiments.claims:Finding",
        "Measured": "regard.experiments.claims:Measured",
        "Setting": "regard.experiments.claims:Setting",
        "run_experiment": "regard.experiments.experiment_results:run_experiment",
    },
)
