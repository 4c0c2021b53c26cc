"""The table of experiments in the docs is made from their results."""

import json
import runpy
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts/document_experiments.py"


def test_a_row_per_result(tmp_path):
    script = runpy.run_path(str(SCRIPT))
    number = {"mean": 0.5, "low": 0.4, "high": 0.61, "n": 3}
    one = {"mean": 2.0, "low": None, "high": None, "n": 1}
    result = {"name": "sinks", "claim": "It is so.", "source": "nobody", "size": "large"}
    result |= {
        "processor_seconds": 90.0,
        "held": False,
        "summary": "it was not.",
        "numbers": {"x": number},
    }
    (tmp_path / "sinks").mkdir()
    (tmp_path / "sinks/result.json").write_text(json.dumps(result), "utf-8")
    earlier = "| a claim<br>`regard experiment heads` | \\|old\\| | **held** | 2.0 |"
    before = script["kept_rows"](earlier)
    table = script["results_table"](script["read_results"](tmp_path), before)
    kept, row = table.splitlines()[2:]
    assert kept == earlier
    assert row.startswith(
        "| It is so. (nobody)<br>`regard experiment sinks --size large` | It was not."
    )
    assert row.endswith("<br>x: 0.5 [0.4, 0.61] | **did not hold** | 1.5 |")
    assert script["describe_number"]("y", one) == "y: 2"
    assert script["SECTION"].search(script["PAGE"].read_text("utf-8"))
