"""bench/paging.py: what a pager makes of its messages, what is said of it, and one incident on a live service."""

import asyncio
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import paging
import pytest
from paging_parts.account import Account, account
from paging_parts.cases import CASES, PATHS, Case, Pace, incident
from paging_parts.quota import Quota
from paging_parts.service import COLLECTOR, PROMETHEUS
from paging_parts.spec import SHORTEST, Windows, slo_yaml
from paging_parts.verdict import HEAD, Played, Wanted, line, table

from firsttoken.pager import Notification
from slo.burn import tiers
from slo.objective import load

SCRIPT = Path(__file__).parents[2] / "bench" / "paging.py"
INCIDENT = Played("", 100.0, 200.0, {COLLECTOR: 1})


def message(at_s: float, status: str = "firing", *, kind: str = "page", group: str = "chat") -> Notification:
    return Notification(at_s, kind, status, ("LLMTTFTBudgetBurn ttft/fast",), group)


TOLD = {
    "nothing": ([], Account()),
    "one incident, to its end": ([message(1), message(9, "resolved")], Account((1,), (9,))),
    "what joins an open incident does not ring": (
        [message(1), message(5), message(9, "resolved")],
        Account((1,), (9,), 1),
    ),
    "another group rings too": ([message(1), message(2, group="other")], Account((1, 2))),
    "what comes back after its end rings anew": (
        [message(1), message(5, "resolved"), message(7)],
        Account((1, 7), (5,)),
    ),
    "tickets are no pages": ([message(1, kind="ticket")], Account()),
}


@pytest.mark.parametrize(("messages", "expected"), TOLD.values(), ids=TOLD.keys())
def test_a_pager_opens_joins_and_closes_by_group(messages: list[Notification], expected: Account) -> None:
    found = account(messages, "page")
    assert (found.opened, found.closed, found.joined) == (expected.opened, expected.closed, expected.joined)
    assert found.names == (("LLMTTFTBudgetBurn ttft/fast",) if expected.opened else ())


VERDICTS = {
    "one page in time, resolved once": ([message(110), message(220, "resolved")], INCIDENT, ""),
    "no page": ([], INCIDENT, "0 pages"),
    "two pages": (
        [message(110), message(120, "resolved"), message(130), message(220, "resolved")],
        INCIDENT,
        "2 pages",
    ),
    "a page too late": ([message(171), message(220, "resolved")], INCIDENT, "paged after 71 s, not within 60 s"),
    "a page before anything was wrong": ([message(90), message(220, "resolved")], INCIDENT, "paged after -10 s"),
    "a page without an end": ([message(110)], INCIDENT, "0 resolved"),
    "a ticket beside the page": (
        [message(110), message(115, kind="ticket"), message(220, "resolved")],
        INCIDENT,
        "1 tickets told: LLMTTFTBudgetBurn ttft/fast",
    ),
    "nothing that was held back": (
        [message(110), message(220, "resolved")],
        Played("", 100.0, 200.0, {COLLECTOR: 0}),
        "no ticket burned",
    ),
    "a case that did not happen": (
        [message(110), message(220, "resolved")],
        Played("", 100.0, 200.0, {COLLECTOR: 1}, "no storm"),
        "no storm",
    ),
}


@pytest.mark.parametrize(("messages", "played", "said"), VERDICTS.values(), ids=VERDICTS.keys())
def test_of_an_incident_one_page_is_wanted(messages: list[Notification], played: Played, said: str) -> None:
    found = line("slow", COLLECTOR, Wanted(1, 60.0), messages=messages, played=played)
    assert bool(found.faults) == bool(said)
    assert said in "; ".join(found.faults)
    assert len(found.cells) == len(HEAD)


@pytest.mark.parametrize("kind", ["page", "ticket"])
def test_of_a_quiet_case_nothing_is_wanted(kind: str) -> None:
    quiet = line("idle hour", COLLECTOR, Wanted(), messages=[], played=Played("120 s idle"))
    assert not quiet.faults
    assert quiet.cells[2:4] == ("nothing", "nothing")
    assert line("idle hour", COLLECTOR, Wanted(), messages=[message(1, kind=kind)], played=Played("")).faults
    assert "| idle hour | collector | nothing | nothing |" in list(table([quiet], markdown=True))[2]


def test_the_contract_has_four_objectives_whose_tickets_start_after_their_pages(tmp_path: Path) -> None:
    spec = tmp_path / "slo.yaml"
    spec.write_text(slo_yaml(SHORTEST))
    (found,) = load([spec])
    assert len(found.objectives) == 4
    for objective in found.objectives:
        page, ticket = tiers(objective)
        assert (page.notify, ticket.notify) == ("page", "ticket")
        assert page.budget_spent < ticket.budget_spent  # so its page comes first at any share of bad events
        assert ticket.short_s > page.short_s  # and burns on when its page is over


def test_a_used_up_quota_is_a_429_and_else_the_request_goes_through() -> None:
    async def asked() -> tuple[list[int], int]:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            quota = Quota(server.sockets[0].getsockname()[1])
            await quota.open()
            found = [await asyncio.to_thread(_status, quota.port)]
            quota.is_used_up = True
            found.append(await asyncio.to_thread(_status, quota.port))
            await quota.close()
            return found, quota.refused

    assert asyncio.run(asked()) == ([200, 429], 1)


def _status(port: int) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/completions", b"{}", timeout=10) as answer:
            status: int = answer.status
            return status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_an_incident_of_a_live_service_is_one_page_by_either_path(tmp_path: Path) -> None:
    windows = Windows((30, 16), (80, 24))
    pace = Pace(healthy_s=3, hold_s=9, after_s=8, rate_rps=6)
    case = Case("errors", "", 40, incident({"errors": 1.0}, 60, pace), Wanted(1, 60), slo_yaml=slo_yaml(windows))
    lines = asyncio.run(paging.play(case, PATHS, tmp_path / "errors"))
    assert [one.path for one in lines] == [PROMETHEUS, COLLECTOR]
    assert [one.faults for one in lines] == [(), ()]


def test_every_case_of_the_promise_is_played() -> None:
    assert {case.name for case in CASES if case.wanted.pages} == {"slow", "hang"}
    assert len({case.name for case in CASES}) == len(CASES) == 10
    assert all(case.wanted.within_s <= 120 for case in CASES)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--cases", "x"), "there is no such one; use slow, hang"),
        (("--paths", "x"), "--paths x: use Prometheus, collector"),
        (("--beside", "0"), "from 1 to 9"),
    ],
)
def test_what_cannot_be_is_refused(flags: tuple[str, ...], said: str) -> None:
    ran = subprocess.run([sys.executable, SCRIPT, *flags], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 2
    assert said in ran.stderr
