"""Receivers that are really there, gone, and back: what they are told, and how often."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from collector import notify, webhook
from collector.notice import Notice
from collector.notify import Alertmanager, Notifier, Receiver, Webhook
from tests.collector import support
from tests.collector.test_webhook import notice

NOW_S = 1_800_000_000


async def until(answer: Callable[[], Any]) -> None:
    async with asyncio.timeout(support.PATIENCE_S):
        while not answer():  # noqa: ASYNC110  what is waited for happens in another process's time
            await asyncio.sleep(0.01)


def alerts(kept: support.Receiver) -> list[dict[str, Any]]:
    return [alert for _, posted in kept.told for alert in posted]  # type: ignore[attr-defined]


async def with_client(story: Callable[[httpx.AsyncClient], Awaitable[None]]) -> None:
    async with notify.http_client() as client:
        await story(client)


def test_alertmanager_hears_of_a_firing_alert_at_once_and_then_every_minute() -> None:
    with support.receiver() as kept:

        async def story(client: httpx.AsyncClient) -> None:
            told = Alertmanager(client, f"{kept.url}/prefix/")
            assert await told.deliver([notice()], NOW_S) == 1
            assert await told.deliver([notice()], NOW_S + 59) == 0
            assert await told.deliver([notice()], NOW_S + 60) == 1

        asyncio.run(with_client(story))
    assert [path for path, _ in kept.told] == ["/prefix/api/v2/alerts"] * 2
    first, second = alerts(kept)
    assert first["startsAt"] == second["startsAt"] == "1970-01-01T00:01:40Z"
    assert first["endsAt"] == "2027-01-15T08:04:00Z"
    assert second["endsAt"] == "2027-01-15T08:05:00Z"
    assert first["labels"] == second["labels"] == dict(notice().labels)
    assert set(first) == {"labels", "annotations", "startsAt", "endsAt", "generatorURL"}


def test_alertmanager_hears_of_an_end_once_and_of_one_long_ago_never() -> None:
    with support.receiver() as kept:

        async def story(client: httpx.AsyncClient) -> None:
            told = Alertmanager(client, kept.url)
            await told.deliver([notice()], 150)
            for now_s in (201, 300, 9_000):
                await told.deliver([notice(ended=True)], now_s)
            assert await Alertmanager(client, kept.url).deliver([notice(ended=True)], 9_000) == 0
            assert await Alertmanager(client, kept.url).deliver([notice(ended=True)], 300) == 1

        asyncio.run(with_client(story))
    assert [alert["endsAt"] for alert in alerts(kept)][1:] == ["1970-01-01T00:03:20Z"] * 2


def test_a_clock_that_steps_back_delays_no_resend() -> None:
    with support.receiver() as kept:

        async def story(client: httpx.AsyncClient) -> None:
            told = Alertmanager(client, kept.url)
            await told.deliver([notice()], NOW_S)
            assert await told.deliver([notice()], NOW_S - 600) == 1

        asyncio.run(with_client(story))


def test_a_receiver_that_refuses_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "RETRY_FIRST_S", 0.02)
    monkeypatch.setattr(notify, "RETRY_LAST_S", 0.05)
    with support.receiver() as kept:
        kept.status = 503

        async def story(client: httpx.AsyncClient) -> None:
            notifier = Notifier([Alertmanager(client, kept.url)], clock=lambda: NOW_S)
            record = notifier.deliveries[kept.url]
            running = asyncio.create_task(notifier.run())
            notifier.tell([notice()])
            await until(lambda: record.failures >= 3)
            assert record.last_error == "it answered 503"
            kept.status = 200
            await until(lambda: record.sent == 1)
            assert record.last_error is None
            notifier.tell([notice(ended=True)])
            await until(lambda: record.sent == 2)
            running.cancel()

        asyncio.run(with_client(story))
    assert len(alerts(kept)) == 2


def test_a_receiver_that_is_gone_and_comes_back_hears_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Down at the first alert, another joins meanwhile: once up, it hears of both, and a live neighbour at once."""
    monkeypatch.setattr(notify, "RETRY_FIRST_S", 0.02)
    monkeypatch.setattr(notify, "RETRY_LAST_S", 0.05)
    with support.receiver() as gone:
        port = gone.port

    with support.receiver() as neighbour:

        async def story(client: httpx.AsyncClient) -> None:
            urls = [f"http://127.0.0.1:{port}", neighbour.url]
            notifier = Notifier([Alertmanager(client, url) for url in urls], clock=lambda: NOW_S)
            running = asyncio.create_task(notifier.run())
            notifier.tell([notice()])
            await until(lambda: notifier.deliveries[urls[0]].failures >= 2 and notifier.deliveries[urls[1]].sent == 1)
            notifier.tell([notice(), notice("tpot")])
            with support.receiver(port) as back:
                await until(lambda: notifier.deliveries[urls[0]].sent == 2)
                assert {alert["labels"]["objective"] for alert in alerts(back)} == {"ttft", "tpot"}
            running.cancel()

        asyncio.run(with_client(story))


@pytest.mark.tools
def test_a_real_alertmanager_takes_what_fires_and_what_has_ended(tmp_path: Path) -> None:
    """It keeps the labels as they are, rings once at each turn, and forgets nothing while the alert is resent."""
    if support.alertmanager_tool() is None:
        pytest.skip("alertmanager is missing: install it, as with apt-get install prometheus-alertmanager")

    async def story(client: httpx.AsyncClient) -> None:
        began_s = int(time.time()) - 5
        firing = replace(notice(), starts_at_s=began_s)
        told = Alertmanager(client, url)
        await told.deliver([firing], time.time())
        (kept,) = support.ask(f"{url}/api/v2/alerts").json
        assert kept["labels"] == dict(firing.labels)
        assert kept["status"]["state"] in ("active", "unprocessed")
        assert kept["generatorURL"] == firing.url
        await until(lambda: [body["status"] for _, body in heard.told] == ["firing"])
        await told.deliver([replace(firing, ends_at_s=int(time.time()))], time.time())
        await until(lambda: [body["status"] for _, body in heard.told] == ["firing", "resolved"])

    with support.receiver() as heard, support.alertmanager(tmp_path, heard.url) as url:
        asyncio.run(with_client(story))


def hook(client: httpx.AsyncClient, url: str, told: dict[str, webhook.Status]) -> Receiver:
    async def remember(_receiver: str, group: str, status: webhook.Status) -> None:
        told[group] = status

    return Webhook(client, url, external_url="http://c", told=told, remember=remember)


def test_the_webhook_rings_once_an_incident_also_over_a_restart() -> None:
    memory: dict[str, webhook.Status] = {}
    with support.receiver() as kept:

        async def story(client: httpx.AsyncClient) -> None:
            url = f"{kept.url}/hook"
            for notices in ([notice()], [notice(), notice("tpot")]):
                await hook(client, url, memory).deliver(notices, NOW_S)
            for _ in range(2):
                ended = [notice(ended=True), notice("tpot", ended=True)]
                await hook(client, url, memory).deliver(ended, NOW_S)

        asyncio.run(with_client(story))
    told = [(path, body["status"]) for path, body in kept.told]  # type: ignore[call-overload]
    assert told == [("/hook", "firing"), ("/hook", "resolved")]


def test_a_webhook_that_fails_is_not_remembered_as_told() -> None:
    memory: dict[str, webhook.Status] = {}
    with support.receiver() as kept:
        kept.status = 500

        async def story(client: httpx.AsyncClient) -> None:
            one = hook(client, kept.url, memory)
            with pytest.raises(httpx.HTTPStatusError):
                await one.deliver([notice()], NOW_S)
            assert memory == {}
            kept.status = 200
            assert await one.deliver([notice()], NOW_S) == 1

        asyncio.run(with_client(story))


def test_the_last_word_is_said_within_its_time() -> None:
    with support.receiver() as kept:

        async def story(client: httpx.AsyncClient) -> None:
            notifier = Notifier([Alertmanager(client, kept.url)], clock=lambda: NOW_S)
            notifier.tell([notice()])
            await notifier.last_word(5)

        asyncio.run(with_client(story))
    assert len(alerts(kept)) == 1


def test_names_of_receivers_hold_no_secrets() -> None:
    assert notify.name_of("http://u:secret@h:1/p?key=secret#x") == "http://h:1/p"


def test_notices_are_plain_values() -> None:
    assert isinstance(notice(), Notice)
    assert notice() == notice()


@pytest.mark.parametrize("more", [b"x: y\r\n", b"\r\n" + b"x" * 60_000])
def test_an_answer_without_end_costs_a_moment(more: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers that drip end the attempt; of a body without end nothing is read."""
    monkeypatch.setattr(notify, "ANSWER_S", 1.0)

    async def answer(_: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writing.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                writing.write(more)
                await writing.drain()
                await asyncio.sleep(0.05)
        writing.close()
        ended.set()

    ended = asyncio.Event()

    async def story(client: httpx.AsyncClient) -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        told = Alertmanager(client, f"http://127.0.0.1:{port}")
        async with asyncio.timeout(support.PATIENCE_S):
            if more.startswith(b"\r\n"):
                assert await told.deliver([notice()], NOW_S) == 1
            else:
                with pytest.raises(TimeoutError):
                    await told.deliver([notice()], NOW_S)
            await ended.wait()
        server.close()

    asyncio.run(with_client(story))
