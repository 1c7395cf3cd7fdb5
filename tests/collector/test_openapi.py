"""The OpenAPI document against the collector it describes: whatever it allows is answered as it says, whatever it does
not is refused, and nothing makes the collector fail."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.collector.answering.test_questions import filled

BOUNDED = settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
STREAM = "/api/v1/ticks"
"""An answer without an end."""
OTLP = "/v1/"
"""Bodies in OTLP's own encodings have their own tests."""
QUESTIONS = (
    "/api/v1/status",
    "/api/v1/percentiles",
    "/api/v1/burn",
    "/api/v1/budget",
    "/api/v1/alerts",
    "/api/v1/whatif",
)
LOOKS = ("/metrics", "/healthz", "/readyz")
CONTRADICTIONS = ("from: ", "step: ", "next: ", "instance: ", "objective: ", "threshold: ")
"""What no schema can say of parameters that are each right."""


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with filled(Path(tmp_path_factory.mktemp("openapi"))) as running:
        yield schemathesis.openapi.from_url(f"{running.url}/api/openapi.json")


def test_every_path_of_the_document_is_asked(document: Any) -> None:
    assert {path for path in document.raw_schema["paths"] if not path.startswith(OTLP)} == {*QUESTIONS, *LOOKS, STREAM}


@pytest.mark.parametrize("path", [*QUESTIONS, *LOOKS])
def test_whatever_the_document_allows_is_answered_as_described(document: Any, path: str) -> None:
    @BOUNDED
    @given(document[path]["GET"].as_strategy(generation_mode=GenerationMode.POSITIVE))
    def asked(case: Case) -> None:
        answer = case.call_and_validate(excluded_checks=[positive_data_acceptance])
        assert answer.status_code in (200, 400)
        if answer.status_code == 400:
            assert answer.json()["error"].startswith(CONTRADICTIONS)

    asked()


@pytest.mark.parametrize("path", QUESTIONS)
def test_whatever_the_document_forbids_is_refused(document: Any, path: str) -> None:
    @BOUNDED
    @given(document[path]["GET"].as_strategy(generation_mode=GenerationMode.NEGATIVE))
    def asked(case: Case) -> None:
        assert case.call_and_validate().status_code < 500

    asked()
