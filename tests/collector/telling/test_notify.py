"""Receivers that are gone, frozen, wrong, and back: who is told in the end, how often, and what it costs the others."""

import asyncio
import logging
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from collector.telling import notify, receivers
from collector.telling.notice import Notice
from collector.telling.notify import MAX_NOTICES, STALE_S, Deliveries, Notifier
from collector.telling.receivers import Alertmanager, Webhook
from slo import signals
from tests.collector import exports, support
from tests.collector.pager import Pager, pager
from tests.collector.telling.test_receivers import Kept, alerts
from tests.collector.telling.test_webhook import notice

NOW_S = 1_800_000_000


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "RETRY_FIRST_S", 0.02)
    monkeypatch.setattr(notify, "RETRY_LAST_S", 0.05)


async def until(answer: Callable[[], Any]) -> None:
    async with asyncio.timeout(support.PATIENCE_S):
        while not answer():  # noqa: ASYNC110  what is waited for happens in another process's time
            await asyncio.sleep(0.01)


@asynccontextmanager
async def at_work(*urls: str, clock: Callable[[], float] = lambda: NOW_S) -> AsyncIterator[Notifier]:
    """A notifier that tells some Alertmanagers until the block ends."""
    async with receivers.http_client() as client:
        told = [Alertmanager(client, url) for url in urls]
        async with delivering(Notifier(told, clock)) as notifier:
            yield notifier


@asynccontextmanager
async def delivering(notifier: Notifier) -> AsyncIterator[Notifier]:
    running = asyncio.create_task(notifier.run())
    try:
        yield notifier
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def test_a_receiver_that_refuses_for_the_moment_is_told_again() -> None:
    with support.receiver() as kept:
        kept.status = 503

        async def story() -> None:
            async with at_work(kept.url) as notifier:
                record = notifier.deliveries[kept.url]
                notifier.tell([notice()])
                await until(lambda: record.failures >= 3)
                assert (record.last_error, record.standing) == ("it answered 503", "away")
                kept.status = 200
                await until(lambda: record.sent == 1)
                assert record == Deliveries(1, record.failures, None, "listens")
                notifier.tell([notice(ended=True)])
                await until(lambda: record.sent == 2)

        asyncio.run(story())
    assert len(alerts(kept)) == 2


def test_each_turn_of_a_receiver_is_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="collector.telling.notify")
    with support.receiver() as kept:
        kept.first = [503, 503, 503, 502]

        async def story() -> None:
            async with at_work(kept.url) as notifier:
                notifier.tell([notice()])
                await until(lambda: notifier.deliveries[kept.url].sent == 1)

        asyncio.run(story())
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("WARNING", f"{kept.url} cannot be told of alerts: it answered 503: it is tried again"),
        ("INFO", f"{kept.url} is told of alerts again"),
    ]


def test_a_wrong_address_is_known_before_the_first_alert_told_once_and_tried_rarely(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "REFUSED_PAUSE_S", 0.05)
    with support.receiver() as kept:
        kept.status = 404

        async def story() -> None:
            async with at_work(kept.url) as notifier:
                record = notifier.deliveries[kept.url]
                while record.failures < 3:
                    notifier.tell([])
                    await asyncio.sleep(0.02)
                assert record.standing == "refuses"

        asyncio.run(story())
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.message == (
        f"{kept.url} refuses to be told of alerts: it answered 404: look at its address and credentials"
    )


def test_pauses_double_up_to_a_bound_and_are_longest_where_somebody_must_mend_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(notify, "RETRY_FIRST_S", 1.0)
    monkeypatch.setattr(notify, "RETRY_LAST_S", 15.0)
    pauses = [0.0]
    for _ in range(6):
        pauses.append(notify.next_pause_s("away", pauses[-1]))
    assert pauses[1:] == [1, 2, 4, 8, 15, 15]
    assert notify.next_pause_s("refuses", 1.0) == 60


def test_a_receiver_that_is_gone_and_comes_back_hears_the_newest_and_its_neighbour_is_told_at_once() -> None:
    with support.receiver() as gone:
        port = gone.port

    with support.receiver() as neighbour:

        async def story() -> None:
            urls = [f"http://127.0.0.1:{port}", neighbour.url]
            async with at_work(*urls) as notifier:
                away, near = (notifier.deliveries[url] for url in urls)
                notifier.tell([notice()])
                await until(lambda: away.failures >= 2 and near.sent == 1)
                notifier.tell([notice(), notice("tpot")])
                with support.receiver(port) as back:
                    await until(lambda: away.sent == 2)
                    assert {alert["labels"]["objective"] for alert in alerts(back)} == {"ttft", "tpot"}

        asyncio.run(story())


def test_one_that_takes_the_connection_and_never_answers_delays_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing piles up behind it either: one request at a time, of what is newest."""
    monkeypatch.setattr(receivers, "ANSWER_S", 0.5)
    requests = []

    async def hold(reading: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
        requests.append(await reading.read(65536))
        await reading.read()
        writing.close()
        await writing.wait_closed()

    async def story() -> None:
        server = await asyncio.start_server(hold, "127.0.0.1", 0)
        deaf = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with support.receiver() as neighbour:
            async with at_work(deaf, neighbour.url) as notifier:
                for number in range(50):
                    notifier.tell([notice(f"o{number}")])
                    await until(lambda: notifier.deliveries[neighbour.url].sent == number + 1)  # noqa: B023
                await until(lambda: notifier.deliveries[deaf].last_error == "it does not answer")
                assert len(requests) <= notifier.deliveries[deaf].failures + 1
            server.close()

    asyncio.run(story())


def test_there_is_a_bound_on_what_anybody_is_told_and_pages_come_first(caplog: pytest.LogCaptureFixture) -> None:
    some = [notice(f"o{number}", notify="ticket") for number in range(MAX_NOTICES)]
    with support.receiver() as kept:

        async def story() -> None:
            async with at_work(kept.url) as notifier:
                for _ in range(2):
                    notifier.tell([*some, notice("page"), notice("over", ended=True)])
                await until(lambda: notifier.deliveries[kept.url].sent == MAX_NOTICES)
                assert notifier.left_out == 2

        asyncio.run(story())
    told = {alert["labels"]["objective"] for alert in alerts(kept)}
    assert "page" in told
    assert "over" not in told
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_who_stands_by_tells_nothing_resolves_nothing_and_tells_anew_once_it_takes_over() -> None:
    memory, now = Kept(), [NOW_S]
    with support.receiver() as kept:

        async def story() -> None:
            async with receivers.http_client() as client:
                hook = Webhook(client, kept.url, external_url="http://c", memory=memory)
                async with delivering(Notifier([hook], lambda: now[0])) as notifier:
                    notifier.tell([notice()])
                    await until(lambda: len(kept.told) == 1)
                    notifier.stand_by()
                    notifier.tell([notice(ended=True)])
                    await notifier.last_word(5)
                    assert len(kept.told) == 1
                    other = Webhook(client, kept.url, external_url="http://c", memory=memory)
                    async with delivering(Notifier([other], lambda: now[0])) as second:
                        second.tell([notice(ended=True)])
                        await until(lambda: second.deliveries[other.name].sent == 1)  # heard, and remembered
                    assert len(kept.told) == 2
                    notifier.take_over()
                    notifier.tell([notice(ended=True)])
                    await notifier.last_word(5)

        asyncio.run(story())
    assert [body["status"] for _, body in kept.told] == ["firing", "resolved"]  # type: ignore[index]


def test_nothing_is_told_by_one_that_may_not_be_the_one_to_tell_any_more() -> None:
    """Its lease ran out since the last tick, and the next has not come yet."""
    may_tell = False
    with support.receiver() as kept:

        async def story() -> None:
            nonlocal may_tell
            async with receivers.http_client() as client:
                told = [Alertmanager(client, kept.url)]
                async with delivering(Notifier(told, lambda: NOW_S, may_tell=lambda: may_tell)) as notifier:
                    notifier.tell([notice()])
                    await notifier.last_word(5)
                    await asyncio.sleep(0.1)
                    assert kept.told == []
                    assert notifier.deliveries[told[0].name].failures == 0
                    may_tell = True
                    await until(lambda: kept.told)

        asyncio.run(story())


def test_a_process_that_was_stopped_tells_nothing_stale_when_it_goes_on() -> None:
    """It may have lost the lead meanwhile: the next tick knows."""
    now = [float(NOW_S)]
    with support.receiver() as kept:
        kept.status = 503

        async def story() -> None:
            async with at_work(kept.url, clock=lambda: now[0]) as notifier:
                record = notifier.deliveries[kept.url]
                notifier.tell([notice()])
                await until(lambda: record.failures >= 2)
                now[0] += STALE_S + 1
                await asyncio.sleep(0.2)
                failures, kept.status = record.failures, 200
                await asyncio.sleep(0.2)
                assert (record.failures, record.sent) == (failures, 0)
                notifier.tell([notice()])
                await until(lambda: record.sent == 1)

        asyncio.run(story())


def test_the_last_word_is_said_within_its_time() -> None:
    with support.receiver() as kept:

        async def story() -> None:
            async with receivers.http_client() as client:
                notifier = Notifier([Alertmanager(client, kept.url)], clock=lambda: NOW_S)
                notifier.tell([notice()])
                await notifier.last_word(5)

        asyncio.run(story())
    assert len(alerts(kept)) == 1


def test_nothing_of_a_url_but_its_place_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with receivers.http_client() as client:
            url = "http://user:s3cret@127.0.0.1:9/services/s3cret?key=s3cret"
            hook = Webhook(client, url, external_url="http://c", memory=Kept())
            notifier = Notifier([hook], clock=lambda: NOW_S)
            notifier.tell([notice()])
            await notifier.last_word(5)
            assert "s3cret" not in repr(notifier.deliveries)

    asyncio.run(story())
    assert "http://127.0.0.1:9 cannot be told" in caplog.text
    assert "s3cret" not in caplog.text


SHORT = """
service: chat
objectives:
  - name: ttft
    signal: ttft
    percentile: 95
    threshold: 500ms
    window: 1m
    alerts: {tiers: [{name: fast, budget: 20%, long: 12s, short: 3s, notify: page}]}
"""


class TestWholeCollector:
    """A process of its own, told over the wire."""

    def traffic(self, running: support.Running, *, good: int, bad: int) -> set[str]:
        """One export; the states of the alerts then."""
        support.send(running.url, exports.second(good=good, bad=bad, at_s=int(time.time())))
        time.sleep(0.2)
        alerts = support.ask(f"{running.url}/api/v1/status").json["alerts"]
        return {alert["state"] for alert in alerts if alert["notify"] == "page"}

    def test_a_page_that_began_and_ended_while_the_webhook_was_down_is_told_once_when_it_is_up(
        self, tmp_path: Path
    ) -> None:
        with support.receiver() as kept:
            kept.status = 503
            flags = ("--tick", "1s", "--webhook", f"{kept.url}/hook")
            with support.collector(tmp_path, *flags, spec=SHORT) as running:
                support.until(lambda: "firing" in self.traffic(running, good=0, bad=10))
                support.until(lambda: "firing" not in self.traffic(running, good=500, bad=0), patience_s=60)
                assert running.stop() == 0
            kept.status = 200
            with support.collector(tmp_path, *flags, spec=SHORT) as running:
                support.until(lambda: kept.told)
                time.sleep(2.5)
                assert running.stop() == 0
        (body,) = [body for _, body in kept.told]
        assert body["status"] == "resolved"  # type: ignore[index]
        alerts = body["alerts"]  # type: ignore[index]
        assert all(alert["annotations"]["was_firing"].startswith(f"from {alert['startsAt']}") for alert in alerts)
        assert running.log.read_text().count("cannot be told of alerts") <= 2  # one for each life

    def test_an_alertmanager_that_never_answers_delays_no_tick(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as deaf:
            url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
            with support.collector(tmp_path, "--tick", "1s", "--alertmanager", url, spec=SHORT) as running:
                support.until(lambda: "firing" in self.traffic(running, good=0, bad=10))
                record = ticks_of(running)
                support.until(lambda: ticks_of(running) >= record + 5, patience_s=20)
                assert running.stop() == 0

    def test_a_wrong_address_stands_in_the_log_once_on_the_page_and_in_the_metrics(self, tmp_path: Path) -> None:
        with support.receiver() as kept:
            kept.status = 401
            flags = ("--tick", "1s", "--alertmanager", f"http://127.0.0.1:{kept.port}/am/")
            name = f"http://127.0.0.1:{kept.port}/am"
            with support.collector(tmp_path, *flags) as running:
                page = support.until(lambda: _page_with(running, "look at its address and credentials"))
                metrics = support.ask(f"{running.url}/metrics").body.decode()
                assert running.stop() == 0
        assert name in page
        assert f'{signals.RECEIVER_UP.prometheus}{{receiver="{name}"}} 0.0' in metrics
        log = running.log.read_text()
        assert log.count("refuses to be told of alerts: it answered 401") == 1


def _page_with(running: support.Running, words: str) -> str | None:
    page = support.ask(running.url).body.decode()
    return page if words in page else None


def ticks_of(running: support.Running) -> float:
    page = support.ask(f"{running.url}/metrics").body.decode()
    (line,) = [line for line in page.splitlines() if line.startswith(f"{signals.TICKS.prometheus} ")]
    return float(line.split()[1])


@pytest.mark.tools
class TestRealAlertmanager:
    """Debian's or the project's own binary, which rings a receiver of ours."""

    def story(
        self, folder: Path, told: Callable[[Notifier, Pager, support.Receiver], Awaitable[None]], *, lives: int = 1
    ) -> list[str]:
        """What the pager rang while `told` happened; a collector that lives several times goes on with nothing but
        what it finds in the story."""

        async def life(one: Pager, heard: support.Receiver) -> None:
            async with at_work(one.url, clock=time.time) as notifier:
                await told(notifier, one, heard)

        with support.receiver() as heard, pager(folder, heard.url) as one:
            for _ in range(lives):
                asyncio.run(life(one, heard))
        return rings(heard)

    def test_it_takes_what_fires_and_what_has_ended_with_the_labels_as_they_are(self, tmp_path: Path) -> None:
        firing = begun()

        async def told(notifier: Notifier, one: Pager, heard: support.Receiver) -> None:
            notifier.tell([firing])
            await until(lambda: rings(heard) == ["firing"])
            (kept,) = one.alerts()
            assert kept["labels"] == dict(firing.labels)
            assert kept["generatorURL"] == firing.url
            notifier.tell([over(firing)])
            await until(lambda: rings(heard) == ["firing", "resolved"])

        self.story(tmp_path, told)

    def test_restarts_of_the_collector_in_the_incident_ring_once_in_all(self, tmp_path: Path) -> None:
        firing = begun()
        turns = [[firing], [firing], [firing], [over(firing)]]

        async def told(notifier: Notifier, one: Pager, heard: support.Receiver) -> None:
            notices = turns.pop(0)
            notifier.tell(notices)
            await until(lambda: notifier.deliveries[one.url].sent == 1)
            await until(lambda: rings(heard) == ["firing"] + ["resolved"] * (not turns))
            await asyncio.sleep(1.5)

        assert self.story(tmp_path, told, lives=4) == ["firing", "resolved"]

    def test_one_that_hangs_when_the_incident_begins_rings_once_when_it_goes_on(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(receivers, "ANSWER_S", 0.5)
        firing = begun()

        async def told(notifier: Notifier, one: Pager, heard: support.Receiver) -> None:
            one.send(signal.SIGSTOP)
            notifier.tell([firing])
            await until(lambda: notifier.deliveries[one.url].failures >= 2)
            one.send(signal.SIGCONT)
            await until(lambda: rings(heard) == ["firing"])
            await asyncio.sleep(2.5)
            notifier.tell([over(firing)])
            await until(lambda: rings(heard) == ["firing", "resolved"])

        assert self.story(tmp_path, told) == ["firing", "resolved"]

    def test_one_that_is_killed_before_the_incident_and_comes_back_rings_once(self, tmp_path: Path) -> None:
        firing = begun()

        async def told(notifier: Notifier, one: Pager, heard: support.Receiver) -> None:
            one.end(signal.SIGKILL)
            notifier.tell([firing])
            await until(lambda: notifier.deliveries[one.url].failures >= 2)
            await asyncio.to_thread(one.start)
            await until(lambda: rings(heard) == ["firing"])
            notifier.tell([over(firing)])
            await until(lambda: rings(heard) == ["firing", "resolved"])

        self.story(tmp_path, told)

    def test_one_that_is_restarted_in_the_incident_rings_no_second_time_and_its_end_is_heard(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It forgets its alerts, and is told of them again within a resend interval; that it rang it has kept."""
        monkeypatch.setattr(receivers, "RESEND_S", 1)
        firing = begun()

        async def told(notifier: Notifier, one: Pager, heard: support.Receiver) -> None:
            notifier.tell([firing])
            await until(lambda: rings(heard) == ["firing"])
            one.end()
            await asyncio.sleep(1.1)
            notifier.tell([firing])
            await until(lambda: notifier.deliveries[one.url].failures)
            await asyncio.to_thread(one.start)
            await until(lambda: notifier.deliveries[one.url].sent == 2)
            await until(one.alerts)
            await asyncio.sleep(1.5)
            one.end()
            notifier.tell([over(firing)])
            await asyncio.to_thread(one.start)
            await until(lambda: rings(heard) == ["firing", "resolved"])

        assert self.story(tmp_path, told) == ["firing", "resolved"]

    def test_of_two_each_is_told_on_its_own(self, tmp_path: Path) -> None:
        firing = begun()

        async def story(first: Pager, second: Pager) -> None:
            async with at_work(first.url, second.url, clock=time.time) as notifier:
                first.send(signal.SIGSTOP)
                notifier.tell([firing])
                await until(lambda: rings(heard["second"]) == ["firing"])
                assert rings(heard["first"]) == []
                first.send(signal.SIGCONT)
                await until(lambda: rings(heard["first"]) == ["firing"])

        with support.receiver() as one, support.receiver() as two:
            heard = {"first": one, "second": two}
            with pager(tmp_path / "1", one.url) as first, pager(tmp_path / "2", two.url) as second:
                asyncio.run(story(first, second))


def begun(ago_s: int = 5) -> Notice:
    return replace(notice(), starts_at_s=int(time.time()) - ago_s)


def over(firing: Notice) -> Notice:
    return replace(firing, ends_at_s=int(time.time()))


def rings(heard: support.Receiver) -> list[str]:
    bodies: Sequence[Any] = [body for _, body in heard.told]
    return [body["status"] for body in bodies]
