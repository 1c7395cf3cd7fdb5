"""What a collector answers, as values: its page, its status, whether it is ready, and which release it is."""

from firsttoken.doctor.address import plain_text
from firsttoken.doctor.ask import Answer
from firsttoken.doctor.facts import NO_PAGE, CollectorFacts
from firsttoken.doctor.page import read_own
from firsttoken.errors import UnreachableError
from firsttoken.json_fields import object_at, objects_at, text_at
from firsttoken.status_reply import Status, read
from slo.signals import TICKS

NO_COLLECTOR = "is no collector: its page does not count evaluations"
PATHS = ("/metrics", "/readyz", "/api/v1/status", "/api/openapi.json")


def collector_facts(url: str, answers: tuple[Answer, ...], offset_s: float | None) -> CollectorFacts:
    """The facts of the answers to `PATHS`, in that order."""
    metrics, ready, status, described = answers
    page = read_own(metrics.body) if metrics.is_fine else NO_PAGE
    return CollectorFacts(
        url,
        error=metrics.trouble or ("" if TICKS.prometheus in page else NO_COLLECTOR),
        page=page,
        unready=unready(ready),
        status=_status(status),
        unjudged=tuple(text_at(one, "service") for one in objects_at(status.json, "unjudged")),
        version=text_at(object_at(described.json, "info"), "version"),
        offset_s=offset_s,
    )


def unready(answer: Answer) -> str:
    """The reason that a `/readyz` gives; '' of one that is ready, or that could not be asked."""
    return plain_text(answer.text) or "no reason is given" if answer.status == 503 else ""


def _status(answer: Answer) -> Status | None:
    try:
        return read(answer.json)
    except UnreachableError:
        return None
