"""Experiments and comparisons over HTTP: the claims, and the results that were saved."""

from functools import cache
from typing import Any

import anyio.to_thread
from starlette.responses import Response

from regard.serve.http.problems import Problem
from regard.serve.http.routing import Call, json_response

KNOWN_TEXTS = ("name", "claim", "source", "minutes")


@cache
def known_experiments() -> list[dict[str, Any]]:
    """All experiments that `regard experiment` can run."""
    from regard.experiments.experiment_table import EXPERIMENTS

    return [{name: getattr(one, name) for name in KNOWN_TEXTS} for one in EXPERIMENTS.values()]


def experiments(call: Call) -> list[dict[str, Any]]:
    """Every experiment in the order of the table, with its saved result if there is one.

    Results of experiments that this installation does not know follow.
    """
    saved = {record["name"]: record for record in call.state.evidence.experiments()}
    rows = [known | {"result": saved.pop(known["name"], None)} for known in known_experiments()]
    unknown = [
        {
            "name": name,
            "claim": record["claim"],
            "source": str(record.get("source", "")),
            "minutes": None,
            "result": record,
        }
        for name, record in saved.items()
    ]
    return rows + unknown


async def get_experiments(call: Call) -> Response:
    """All experiments."""
    rows = await anyio.to_thread.run_sync(experiments, call)
    return json_response({"object": "list", "data": rows})


async def get_experiment(call: Call) -> Response:
    """One saved result with its pictures."""
    name = call.request.path_params["name"]
    found = await anyio.to_thread.run_sync(call.state.evidence.experiment, name)
    if found is None:
        raise Problem(404, "no result of an experiment of that name")
    return json_response(found)


async def get_comparisons(call: Call) -> Response:
    """All saved comparisons."""
    rows = await anyio.to_thread.run_sync(call.state.evidence.comparisons)
    return json_response({"object": "list", "data": rows})


async def get_comparison(call: Call) -> Response:
    """The report of one comparison."""
    name = call.request.path_params["name"]
    found = await anyio.to_thread.run_sync(call.state.evidence.comparison, name)
    if found is None:
        raise Problem(404, "no finished comparison of that name")
    return json_response(found)
