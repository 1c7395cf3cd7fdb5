"""The pager on a real socket: what rings, what does not, and what is refused."""

import asyncio
import json
from urllib.parse import urlsplit

import pytest

from firsttoken.errors import UnreachableError
from firsttoken.http_json import ask_text
from firsttoken.pager import MAX_BODY_BYTES, Notification, Pager, notification


def alert(status: str = "firing", **labels: str) -> dict[str, object]:
    return {"status": status, "labels": {"alertname": "LLMTTFTBudgetBurn", "notify": "page", **labels}}


def body(status: str, *alerts: dict[str, object]) -> dict[str, object]:
    return {"version": "4", "status": status, "alerts": list(alerts)}


def test_a_page_names_what_fires_once_each() -> None:
    told = notification(
        body(
            "firing",
            alert(objective="ttft", burn_tier="fast", model_name="a"),
            alert(objective="ttft", burn_tier="fast", model_name="b"),
            alert("resolved", objective="tpot", burn_tier="fast"),
        ),
        7.0,
    )
    assert told == Notification(7.0, "page", "firing", ("LLMTTFTBudgetBurn ttft/fast",))
    assert told.text == "page firing: LLMTTFTBudgetBurn ttft/fast"


@pytest.mark.parametrize(("key", "group"), [("page:chat", "page:chat"), (None, ""), (3, "")])
def test_messages_of_one_incident_have_its_group(key: object, group: str) -> None:
    told = notification({**body("firing", alert()), "groupKey": key}, 7.0)
    assert told is not None
    assert told.group == group


def test_a_group_without_a_page_is_a_ticket() -> None:
    told = notification(body("firing", alert(notify="ticket", objective="kv", burn_tier="fast")), 7.0)
    assert told is not None
    assert told.kind == "ticket"


@pytest.mark.parametrize("what", [None, [], {}, {"status": "odd"}, {"status": 1, "alerts": []}])
def test_what_is_no_notification_is_none(what: object) -> None:
    assert notification(what, 7.0) is None


@pytest.mark.parametrize("alerts", [None, 3, ["x"], [{"labels": 3}]])
def test_alerts_of_a_wrong_kind_are_left_out(alerts: object) -> None:
    assert notification({"status": "firing", "alerts": alerts}, 7.0) == Notification(7.0, "ticket", "firing", ())


@pytest.mark.anyio
async def test_what_is_posted_rings_and_wakes_who_waits() -> None:
    at_s = iter((1.0, 2.0, 3.0))
    async with Pager(lambda: next(at_s)) as pager:
        waiting = asyncio.create_task(pager.wait("page", "resolved"))
        await asyncio.to_thread(ask_text, pager.url, body=body("firing", alert(notify="ticket")))
        await asyncio.to_thread(ask_text, pager.url, body=body("firing", alert()))
        assert pager.first("page", "firing") == Notification(2.0, "page", "firing", ("LLMTTFTBudgetBurn",))
        assert not waiting.done()
        await asyncio.to_thread(ask_text, pager.url, body=body("resolved", alert("resolved")))
        async with asyncio.timeout(30):
            assert (await waiting).at_s == 3.0
        assert [n.kind for n in pager.notifications] == ["ticket", "page", "page"]


@pytest.mark.anyio
async def test_what_is_no_notification_is_refused_and_rings_nothing() -> None:
    async with Pager(lambda: 1.0) as pager:
        with pytest.raises(UnreachableError, match="answers 400"):
            await asyncio.to_thread(ask_text, pager.url, body={"hello": 1})
        with pytest.raises(UnreachableError, match="answers 400"):
            await asyncio.to_thread(ask_text, pager.url)
        assert pager.notifications == []


RAW = {
    "a body that is not JSON": (b"POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\n{", b"400"),
    "a body without length": (b"POST / HTTP/1.1\r\n\r\n", b"400"),
    "a body too large": (f"POST / HTTP/1.1\r\nContent-Length: {MAX_BODY_BYTES + 1}\r\n\r\n".encode(), b"413"),
    "a head without end": (b"POST / HTTP/1.1\r\nX: " + b"x" * 70_000, b"431"),
}


@pytest.mark.anyio
@pytest.mark.parametrize(("sent", "status"), RAW.values(), ids=RAW.keys())
async def test_broken_requests_are_answered_in_their_own_words(sent: bytes, status: bytes) -> None:
    async with Pager(lambda: 1.0) as pager:
        where = urlsplit(pager.url)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        writer.write(sent)
        async with asyncio.timeout(30):
            assert (await reader.readline()).split()[1] == status
        writer.close()
        assert pager.notifications == []


@pytest.mark.anyio
async def test_a_client_that_leaves_midway_harms_nobody() -> None:
    async with Pager(lambda: 1.0) as pager:
        where = urlsplit(pager.url)
        _, writer = await asyncio.open_connection(where.hostname, where.port)
        writer.write(b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
        writer.close()
        await asyncio.to_thread(ask_text, pager.url, body=json.loads(json.dumps(body("firing", alert()))))
        assert len(pager.notifications) == 1
