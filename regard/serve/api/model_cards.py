"""What a run is, for the cards of the app: the rows that `regard info` prints."""

from typing import Any

import anyio.to_thread
from starlette.responses import Response

from regard.serve.http.routing import Call, json_response
from regard.tasks.shared.json_schema import array, record, text
from regard.training.stored_runs.model_card import card_rows

CARD = record({"id": text(), "rows": array(array(text()))})


async def get_card(call: Call) -> Response:
    """The rows of a model's card."""
    summary = await anyio.to_thread.run_sync(call.model.summary)
    rows: list[Any] = [list(row) for row in card_rows(summary)]
    return json_response({"id": call.model.id, "rows": rows})
