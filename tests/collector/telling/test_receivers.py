"""Receivers that are really there: what each is told, and how often."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import pytest

from collector.errors import UnavailableError, UntoldError
from collector.telling import receivers
from collector.telling.notice import Notice
from collector.telling.receivers import BATCH, Alertmanager, Receiver, Webhook
from collector.telling.webhook import Told
from tests.collector import support
from tests.collector.telling.test_webhook import notice

NOW_S = 1_800_000_000


def alerts(kept: support.Receiver) -> list[dict[str, Any]]:
    return [alert for _, posted in kept.told for alert in posted]  # type: ignore[attr-defined]


def with_client(story: Callable[[httpx.AsyncClient], Awaitable[None]]) -> None:
    async def told() -> None:
        async with receivers.http_client() as client:
            await story(client)

    asyncio.run(told())


async def tell(one: Receiver, notices: Sequence[Notice], now_s: float = NOW_S) -> list[int]:
    """How much was taken each time."""
    return [taken async for taken in one.deliver(notices, now_s)]


class TestAlertmanager:
    def test_it_hears_of_a_firing_alert_at_once_and_then_every_minute(self) -> None:
        with support.receiver() as kept:

            async def story(client: httpx.AsyncClient) -> None:
                one = Alertmanager(client, f"{kept.url}/prefix/")
                assert await tell(one, [notice()]) == [1]
                assert await tell(one, [notice()], NOW_S + 59) == []
                assert await tell(one, [notice()], NOW_S + 60) == [1]

            with_client(story)
        assert [path for path, _ in kept.told] == ["/prefix/api/v2/alerts"] * 2
        first, second = alerts(kept)
        assert first["startsAt"] == second["startsAt"] == "1970-01-01T00:01:40Z"
        assert first["endsAt"] == "2027-01-15T08:04:00Z"
        assert second["endsAt"] == "2027-01-15T08:05:00Z"
        assert first["labels"] == second["labels"] == dict(notice().labels)
        assert set(first) == {"labels", "annotations", "startsAt", "endsAt", "generatorURL"}

    def test_it_hears_of_an_end_once_and_of_one_long_ago_never(self) -> None:
        with support.receiver() as kept:

            async def story(client: httpx.AsyncClient) -> None:
                one = Alertmanager(client, kept.url)
                await tell(one, [notice()], 150)
                for now_s in (201, 250):
                    await tell(one, [notice(ended=True)], now_s)
                assert await tell(Alertmanager(client, kept.url), [notice(ended=True)], 9_000) == [0]
                assert await tell(Alertmanager(client, kept.url), [notice(ended=True)], 300) == [1]

            with_client(story)
        assert [alert["endsAt"] for alert in alerts(kept)][1:] == ["1970-01-01T00:03:20Z"] * 2

    def test_a_clock_that_steps_back_delays_no_resend(self) -> None:
        with support.receiver() as kept:

            async def story(client: httpx.AsyncClient) -> None:
                one = Alertmanager(client, kept.url)
                await tell(one, [notice()], NOW_S)
                assert await tell(one, [notice()], NOW_S - 600) == [1]

            with_client(story)

    def test_with_nothing_to_tell_it_is_asked_once_a_minute_whether_it_would_listen(self) -> None:
        with support.receiver() as kept:

            async def story(client: httpx.AsyncClient) -> None:
                one = Alertmanager(client, kept.url)
                told = [await tell(one, [], NOW_S + later) for later in (0, 10, 59, 60)]
                assert told == [[0], [], [], [0]]
                kept.status = 401
                with pytest.raises(UntoldError, match="it answered 401"):
                    await tell(one, [], NOW_S + 120)

            with_client(story)
        assert [body for _, body in kept.told] == [[], []]

    def test_many_alerts_go_in_several_requests_and_what_was_taken_is_not_told_again(self) -> None:
        many = [notice(f"objective-{number}") for number in range(2 * BATCH + 1)]
        with support.receiver() as kept:

            async def story(client: httpx.AsyncClient) -> None:
                one = Alertmanager(client, kept.url)
                kept.first = [200, 503]
                with pytest.raises(UntoldError):
                    await tell(one, many)
                assert await tell(one, many, NOW_S + 5) == [BATCH, 1]

            with_client(story)
        told = [alert["labels"]["objective"] for alert in alerts(kept)]
        assert len(told) == len(set(told)) == len(many)

    def test_what_was_told_is_told_again_once_another_may_have_told_meanwhile(self) -> None:
        with support.receiver() as kept:

            async def story(client: httpx.AsyncClient) -> None:
                one = Alertmanager(client, kept.url)
                await tell(one, [notice()])
                one.forget()
                assert await tell(one, [notice()], NOW_S + 1) == [1]

            with_client(story)
        first, second = alerts(kept)
        assert (first["labels"], first["startsAt"]) == (second["labels"], second["startsAt"])


@dataclass
class Kept:
    """A memory over restarts, as the database is one; `is_away` while it cannot be reached."""

    told: dict[str, Told] = field(default_factory=dict)
    is_away: bool = False

    async def recall(self) -> Mapping[str, Told]:
        return dict(self.told)

    async def remember(self, told: Mapping[str, Told], /) -> None:
        if self.is_away:
            raise UnavailableError("no database")
        self.told.update(told)


def hook(client: httpx.AsyncClient, url: str, memory: Kept) -> Webhook:
    return Webhook(client, url, external_url="http://c", memory=memory)


def told(kept: support.Receiver) -> list[tuple[str, str]]:
    return [(path, body["status"]) for path, body in kept.told]  # type: ignore[index]


class TestWebhook:
    def test_it_rings_once_an_incident_also_over_a_restart(self) -> None:
        memory = Kept()
        with support.receiver() as kept:

            async def story(client: httpx.AsyncClient) -> None:
                for notices in ([notice()], [notice(), notice("tpot")]):
                    await tell(hook(client, f"{kept.url}/hook", memory), notices, 150)
                for _ in range(2):
                    ended = [notice(ended=True), notice("tpot", ended=True)]
                    await tell(hook(client, f"{kept.url}/hook", memory), ended, 250)

            with_client(story)
        assert told(kept) == [("/hook", "firing"), ("/hook", "resolved")]

    @pytest.mark.parametrize("is_restarted", [False, True])
    def test_a_page_that_began_and_ended_unheard_is_told_once_afterwards(self, *, is_restarted: bool) -> None:
        memory = Kept()
        with support.receiver() as kept:

            async def story(client: httpx.AsyncClient) -> None:
                one = hook(client, kept.url, memory)
                await tell(one, [], 50)
                kept.status = 503
                for notices, now_s in (([notice()], 150), ([notice(ended=True)], 250)):
                    with pytest.raises(UntoldError):
                        await tell(one, notices, now_s)
                kept.status = 200
                if is_restarted:
                    one = hook(client, kept.url, memory)
                assert [await tell(one, [notice(ended=True)], now_s) for now_s in (4000, 4010)] == [[1], []]
                assert await tell(hook(client, kept.url, memory), [notice(ended=True)], 5000) == []

            with_client(story)
        (body,) = [body for _, body in kept.told]
        assert body["status"] == "resolved"  # type: ignore[index]
        (alert,) = body["alerts"]  # type: ignore[index]
        assert (alert["startsAt"], alert["endsAt"]) == ("1970-01-01T00:01:40Z", "1970-01-01T00:03:20Z")
        assert alert["annotations"]["was_firing"].startswith("from 1970-01-01T00:01:40Z to 1970-01-01T00:03:20Z")

    def test_what_ended_before_it_was_first_named_is_none_of_its_business(self) -> None:
        memory = Kept()
        with support.receiver() as kept:

            async def story(client: httpx.AsyncClient) -> None:
                assert await tell(hook(client, kept.url, memory), [notice(ended=True)], 250) == []

            with_client(story)
        assert memory.told == {"": Told("resolved", 250)}

    def test_one_group_that_is_refused_keeps_no_other_from_being_told(self) -> None:
        with support.receiver() as kept:

            async def story(client: httpx.AsyncClient) -> None:
                kept.first = [400]
                with pytest.raises(UntoldError, match="it answered 400") as raised:
                    await tell(hook(client, kept.url, Kept()), [notice(), notice("tpot", notify="ticket")], 150)
                assert raised.value.refused

            with_client(story)
        assert [body["receiver"] for _, body in kept.told] == ["firsttoken-ticket"]  # type: ignore[index]

    def test_a_delivery_that_fails_is_not_remembered_as_told(self) -> None:
        memory = Kept()
        with support.receiver() as kept:
            kept.status = 500

            async def story(client: httpx.AsyncClient) -> None:
                one = hook(client, kept.url, memory)
                with pytest.raises(UntoldError):
                    await tell(one, [notice()])
                kept.status = 200
                assert await tell(one, [notice()]) == [1]

            with_client(story)
        assert memory.told["page:environment=prod,service_name=chat"] == Told("firing", NOW_S)

    def test_what_the_database_did_not_keep_is_kept_later_and_not_told_again(self) -> None:
        memory = Kept()
        with support.receiver() as kept:

            async def story(client: httpx.AsyncClient) -> None:
                one = hook(client, kept.url, memory)
                await tell(one, [], NOW_S - 10)
                memory.is_away = True
                for _ in range(2):
                    with pytest.raises(UnavailableError):
                        await tell(one, [notice()])
                memory.is_away = False
                assert await tell(one, [notice()]) == []

            with_client(story)
        assert len(kept.told) == 1
        assert memory.told["page:environment=prod,service_name=chat"].status == "firing"

    def test_after_another_collector_told_it_reads_anew_what_was_told(self) -> None:
        memory = Kept()
        with support.receiver() as kept:

            async def story(client: httpx.AsyncClient) -> None:
                here, there = (hook(client, kept.url, memory) for _ in range(2))
                await tell(here, [], 50)
                await tell(there, [notice()], 150)
                here.forget()
                assert await tell(here, [notice()], 160) == []
                assert await tell(here, [notice(ended=True)], 250) == [1]

            with_client(story)
        assert [status for _, status in told(kept)] == ["firing", "resolved"]


@pytest.mark.parametrize(
    ("status", "refused"),
    [(301, True), (400, True), (401, True), (404, True), (408, False), (429, False), (500, False), (503, False)],
)
def test_an_answer_says_whether_asking_again_can_help(status: int, *, refused: bool) -> None:
    with support.receiver() as kept:
        kept.status = status

        async def story(client: httpx.AsyncClient) -> None:
            with pytest.raises(UntoldError, match=f"it answered {status}") as raised:
                await tell(Alertmanager(client, kept.url), [notice()])
            assert raised.value.refused is refused

        with_client(story)


@pytest.mark.parametrize("more", [b"x: y\r\n", b"\r\n" + b"x" * 60_000])
def test_an_answer_without_end_costs_a_moment(more: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers that drip end the attempt; of a body without end nothing is read."""
    monkeypatch.setattr(receivers, "ANSWER_S", 1.0)

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
        one = Alertmanager(client, f"http://127.0.0.1:{port}")
        async with asyncio.timeout(support.PATIENCE_S):
            if more.startswith(b"\r\n"):
                assert await tell(one, [notice()]) == [1]
            else:
                with pytest.raises(UntoldError, match="it does not answer"):
                    await tell(one, [notice()])
            await ended.wait()
        server.close()

    with_client(story)


SECRET = "s3cret"
URLS = (
    "http://u:{s}@127.0.0.1:9/services/{s}?key={s}",
    "http://u:{s}@h.invalid/{s}",
    "https://127.0.0.1:9/hook/{s}#{s}",
)


@pytest.mark.parametrize("url", URLS)
def test_neither_the_name_of_a_webhook_nor_its_errors_hold_a_secret(url: str) -> None:
    async def story(client: httpx.AsyncClient) -> None:
        one = hook(client, url.format(s=SECRET), Kept())
        with pytest.raises(UntoldError) as raised:
            await tell(one, [notice()])
        assert SECRET not in f"{one.name} {raised.value!r} {raised.value.__context__!r}"

    with_client(story)


def test_an_alertmanager_is_named_by_its_address_with_the_prefix_it_is_served_under() -> None:
    assert receivers.called("http://u:secret@h:1/am/?key=secret#x") == "http://h:1/am"


def test_notices_are_plain_values() -> None:
    assert notice() == replace(notice())
