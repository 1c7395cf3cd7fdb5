"""What goes wrong before a real llama.cpp: clients that leave, a server that is killed and comes back."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from slo.signals import ENGINE_RUNNING, ERROR_TYPE, IN_FLIGHT, OUTCOME, OUTPUT_TOKENS, STREAM
from tests.engines.agreement import Trace, begin, post, read, received, spans_of
from tests.engines.beside import Beside, beside
from tests.engines.llamacpp_server import CONTEXT, MODEL, Engine, Json, ask, running
from tests.sidecar.receiver import Attribute, eventually

LONG = CONTEXT - 200
FEW = 10


@pytest.fixture
def watched(engine: Engine, tmp_path: Path) -> Iterator[Beside]:
    with beside(engine, tmp_path) as beside_it:
        yield beside_it


def span(watched: Beside, trace: Trace) -> dict[str, Attribute]:
    eventually(lambda: trace.id in spans_of(watched.receiver))
    return spans_of(watched.receiver)[trace.id][1]


def slots(engine: Engine) -> list[Json]:
    found: list[Json] = json.loads(engine.get("/slots"))
    return found


@pytest.mark.parametrize("kind", ["chat", "native"])
def test_a_client_that_leaves_frees_the_server(kind: str, engine: Engine, watched: Beside) -> None:
    trace = Trace()
    seen = post(watched.port, *ask(kind, tokens=LONG), trace.header, events=FEW)
    assert not seen.whole
    eventually(lambda: not engine.busy())
    written = max(slot.get("n_prompt_tokens", 0) for slot in slots(engine))
    assert written < LONG / 2, "the server wrote on for nobody"
    assert span(watched, trace)[OUTCOME] == "cancelled"
    assert watched.outcomes() == {"cancelled": 1}
    assert watched.value(IN_FLIGHT, model_name=MODEL) == 0


def test_a_client_that_leaves_before_a_whole_answer_is_counted_once(engine: Engine, watched: Beside) -> None:
    """llama.cpp writes an answer that is not streamed to its end, whoever asked; the outcome is known before."""
    trace = Trace()
    with begin(watched.port, *ask("chat", tokens=LONG, stream=False), trace.header):
        eventually(lambda: len(engine.busy()) == 1)
    attributes = span(watched, trace)
    assert (attributes[OUTCOME], attributes[STREAM]) == ("cancelled", False)
    eventually(lambda: not engine.busy())
    assert watched.outcomes() == {"cancelled": 1}


def test_a_client_that_leaves_the_queue_is_never_served(engine: Engine, watched: Beside) -> None:
    """Two hold both slots, and two wait; one of those that wait leaves, then those that hold."""
    tokens_before = engine.metrics()["tokens_predicted_total"]
    trace = Trace()
    with begin(watched.port, *ask("native", tokens=LONG)), begin(watched.port, *ask("native", tokens=LONG)):
        eventually(lambda: engine.metrics()["requests_processing"] == 2)
        with begin(watched.port, *ask("native", tokens=LONG), trace.header):
            eventually(lambda: engine.metrics()["requests_deferred"] == 1)
        assert span(watched, trace)[OUTCOME] == "cancelled"
        assert OUTPUT_TOKENS not in span(watched, trace)
    eventually(lambda: not engine.busy() and engine.metrics()["requests_deferred"] == 0)
    eventually(lambda: watched.outcomes() == {"cancelled": 3})
    assert engine.metrics()["tokens_predicted_total"] < tokens_before + 2 * LONG


def test_a_server_that_is_killed_costs_what_it_was_answering_and_comes_back(model: Path, tmp_path: Path) -> None:
    cut, refused, served = Trace(), Trace(), Trace()
    with running(model) as engine, beside(engine, tmp_path) as watched:
        with begin(watched.port, *ask("chat", tokens=LONG), cut.header) as wire:
            started = read(wire, events=FEW)
            engine.popen.send_signal(signal.SIGKILL)
            engine.popen.wait()
            rest = b"".join(iter(lambda: received(wire), b""))
        assert started.status == 200
        assert not rest.endswith(b"0\r\n\r\n"), "a client would take it for the whole answer"
        attributes = span(watched, cut)
        assert attributes[OUTCOME] == "error"
        assert attributes[ERROR_TYPE] in ("upstream_closed", "upstream_reset")

        gone = post(watched.port, *ask("chat", tokens=4), refused.header)
        assert (gone.status, gone.document["error"]["code"]) == (502, 502)
        assert span(watched, refused)[OUTCOME] == "error"
        eventually(lambda: watched.outcomes() == {"error": 2})
        assert watched.process.get("/healthz")[0] == 200
        eventually(lambda: watched.value(ENGINE_RUNNING) is None)

        with running(model, port=engine.port):
            back = post(watched.port, *ask("chat", tokens=4), served.header)
            assert (back.status, back.whole) == (200, True)
            assert span(watched, served)[OUTCOME] == "ok"
            eventually(lambda: watched.outcomes() == {"error": 2, "ok": 1})
            eventually(lambda: watched.value(ENGINE_RUNNING) == 0)
