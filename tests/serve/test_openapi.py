"""`/openapi.json` describes the server exactly: schemathesis sends valid and invalid requests."""

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

bounded = settings(
    max_examples=10,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def operations(server):
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    documented = [result.ok() for result in schema.get_all_operations()]
    assert len(documented) >= 20
    return [operation for operation in documented if not operation.path.endswith("/events")]


# beartype draws random numbers in the server's threads while strategies run
@pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
def test_every_route_responds_as_documented(mode, operations, server):
    invalid = mode == schemathesis.GenerationMode.NEGATIVE
    with requests.Session() as session:
        for operation in operations:
            if invalid and operation.method == "get" and "{" not in operation.path:
                continue  # such a request cannot be invalid
            _try(operation.as_strategy(generation_mode=mode), operation.path, session)
    assert server.state.metrics.registry.get_sample_value("regard_errors_total") == 0


def _try(cases, path, session):
    # a request that matches its schema may still name tokens, words or looks that do not exist; a
    # model cannot be measured while another one is
    may_be_refused = path.endswith(("/explain", "/steps", "/attention", "/faithfulness"))
    skipped = [positive_data_acceptance] if may_be_refused else []

    @bounded
    @given(case=cases)
    def one(case):
        case.call_and_validate(session=session, excluded_checks=skipped, timeout=120)

    one()
