"""Who may name a request's class."""

from pathlib import Path

import pytest

from sidecar.http.http_head import RequestHead
from sidecar.middleware import FirstTokenMiddleware
from sidecar.relaying import proxy
from sidecar.relaying.proxy import Manners
from sidecar.transport.trust import is_local, shows
from sidecar.within.asgi import Receive, Scope, Send
from slo.signals import CLASS, REQUESTS
from tests.sidecar.hosting import alone, on_asyncio
from tests.sidecar.rig import CHAT, chat, completion, on_a_loop, proxied, raw, spec


@pytest.mark.parametrize("peer", [("127.0.0.1", 5), ("::1", 5, 0, 0), ("::ffff:127.0.0.1", 5, 0, 0), "", None, "/s"])
def test_a_peer_on_this_machine(peer: object) -> None:
    assert is_local(peer)


@pytest.mark.parametrize("peer", [("10.0.0.1", 5), ("fe80::1%eth0", 5, 0, 2), ("", 5)])
def test_a_peer_elsewhere(peer: object) -> None:
    assert not is_local(peer)


def head(*fields: tuple[bytes, bytes]) -> RequestHead:
    return RequestHead(b"POST", b"/", 1, fields, keep_alive=True)


def test_a_token_is_shown_in_a_header_of_its_own() -> None:
    assert shows(head((b"X-FirstToken-Token", b"s3cret")), b"s3cret")
    assert not shows(head((b"X-FirstToken-Token", b"s3cre")), b"s3cret")
    assert not shows(head((b"Authorization", b"Bearer s3cret")), b"s3cret")
    assert not shows(head(), b"s3cret")


def test_where_there_is_no_token_none_is_right() -> None:
    assert not shows(head((b"X-FirstToken-Token", b"")), None)
    assert not shows(head((b"X-FirstToken-Token", b"None")), None)


CLASSES = spec("{name: answered, signal: availability, target: 99%}", classes="classes: [batch]\n")
NAMED = "X-FirstToken-Class: batch\r\n"
ASKS = {
    "with the token": (f"{NAMED}X-FirstToken-Token: s3cret\r\n", "batch"),
    "with another": (f"{NAMED}X-FirstToken-Token: other\r\n", None),
    "with the token where the engine's key belongs": (f"{NAMED}Authorization: Bearer s3cret\r\n", None),
    "without one": (NAMED, None),
}


@pytest.mark.parametrize("case", ASKS)
def test_a_client_elsewhere_names_a_class(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    extra, named = ASKS[case]
    monkeypatch.setattr(proxy, "is_local", lambda _: False)  # these tests come from loopback alone

    @on_a_loop
    async def run() -> None:
        async with proxied(raw(completion("a")), objectives=CLASSES, manners=Manners(token=b"s3cret")) as rig:
            await rig.ask(chat(extra=extra))
            assert rig.ended[0].request_class == named
            (request,) = rig.behind.requests
            assert request.field("x-firsttoken-token") is None
            assert request.field("x-firsttoken-class") == "batch"
            assert (request.field("authorization") is None) == ("Authorization" not in extra)

    run()


@on_a_loop
async def test_a_token_that_nobody_asked_for_goes_no_further_either() -> None:
    async with proxied(raw(completion("a")), objectives=CLASSES) as rig:
        await rig.ask(chat(extra=f"{NAMED}X-FirstToken-Token: s3cret\r\n"))
        await rig.ask(b"GET /x HTTP/1.1\r\nHost: h\r\nX-FIRSTTOKEN-TOKEN: s3cret\r\n\r\n")
        assert rig.ended[0].request_class == "batch"
        assert [request.field("x-firsttoken-token") for request in rig.behind.requests] == [None, None]


@pytest.mark.parametrize("case", ASKS)
def test_a_client_elsewhere_names_a_class_to_the_middleware(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra, named = ASKS[case]
    (tmp_path / "token").write_text("s3cret")
    (tmp_path / "slo.yaml").write_text(
        "service: chat\nclasses: [batch]\nobjectives: [{name: a, signal: availability, target: 99%}]\n"
    )
    environ = {"SLO": str(tmp_path / "slo.yaml"), "TOKEN_FILE": str(tmp_path / "token"), "GPU": "off"}
    alone(monkeypatch, **{f"FIRSTTOKEN_{name}": value for name, value in environ.items()})
    fields = [line.split(": ") for line in extra.splitlines()]
    shown = list[list[tuple[bytes, bytes]]]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        shown.append(scope["headers"])
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    @on_asyncio
    async def run() -> None:
        middleware, body = FirstTokenMiddleware(app), chat().partition(b"\r\n\r\n")[2]
        scope: Scope = {
            "type": "http",
            "method": "POST",
            "path": CHAT,
            "headers": [(name.lower().encode(), value.encode()) for name, value in fields],
            "client": ("10.0.0.1", 5),
        }

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(_: object) -> None:
            pass

        await middleware(scope, receive, send)
        assert middleware._attachment is not None
        totals = middleware._attachment.telemetry.tally.totals()
        classes = [dict(point.attributes).get(CLASS) for point in totals if point.metric is REQUESTS and point.value]
        assert classes == [named]
        await middleware._attachment.end()

    run()
    names = [name for name, _ in shown[0]]
    assert b"x-firsttoken-token" not in names
    assert b"x-firsttoken-class" in names
