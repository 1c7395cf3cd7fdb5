"""docs/attach/ to the letter: its commands on a real llama.cpp and on a real FastAPI server, in all three ways."""

import json
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines.followed import Follower, blocks, following, section
from tests.engines.llamacpp_server import ROOT
from tests.sidecar.receiver import eventually

START = "The four steps that all have in common"
SEEN = "See that it counts"
HURRY = {"OTEL_METRIC_EXPORT_INTERVAL": "300", "FIRSTTOKEN_TICK": "1s"}


@pytest.fixture(scope="module")
def user(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Follower]:
    """Someone who has done the steps that all servers have in common, and has started llama.cpp."""
    folder = tmp_path_factory.mktemp("attach")
    (folder / "slo.yaml").write_text(blocks(section("attach/README.md", START), "yaml")[0])
    programs = folder / "bin"
    programs.mkdir()
    llama_server = programs / "llama-server"
    llama_server.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tests.engines.llama_server "$@"\n')
    llama_server.chmod(0o755)
    for name in ("firsttoken", "uvicorn"):
        (programs / name).symlink_to(Path(sys.executable).with_name(name))
    with following(folder, {"": str(model)}, programs=programs, PYTHONPATH=str(ROOT), **HURRY) as user:
        user.follow("attach/README.md", START)
        yield user


def objectives(user: Follower) -> dict[str, dict[str, Any]]:
    """What the collector says of each objective, over all models."""
    with urllib.request.urlopen(f"http://127.0.0.1:{user.ports[4318]}/api/v1/status", timeout=20) as answer:
        found = json.loads(answer.read())["objectives"]
    return {one["objective"]: one for one in found if one["model"] == "*"}


def judged(user: Follower) -> dict[str, int]:
    """How many events each objective has had in the last hour."""
    hours = {name: next(w for w in one["windows"] if w["window"] == "1h") for name, one in objectives(user).items()}
    return {name: hour["good"] + hour["bad"] for name, hour in hours.items()}


EACH = {"ttft", "tpot", "whole-answer", "answered"}


def test_the_proxy_before_llamacpp_counts_a_request_for_every_objective(user: Follower) -> None:
    *_, answer = user.follow("attach/llamacpp.md", "Proxy")
    assert answer.rstrip().endswith("data: [DONE]")
    eventually(lambda: judged(user) == dict.fromkeys(EACH, 1))
    tokens, status = user.follow("attach/README.md", SEEN)
    assert 'type="output"} 32' in tokens
    assert "ttft" in status
    user.end("firsttoken sidecar")


def test_scraping_llamacpp_counts_tokens_and_says_what_it_cannot_back(user: Follower) -> None:
    before = judged(user)
    *_, answer = user.follow("attach/llamacpp.md", "Scrape")
    assert answer.rstrip().endswith("data: [DONE]")
    log = user.log("firsttoken sidecar")
    for name in EACH:
        assert f"objective {name} cannot be backed: " in log
    tokens, _ = user.follow("attach/README.md", SEEN)
    assert 'type="output"' in tokens
    assert judged(user) == before
    user.end("firsttoken sidecar", "llama-server")


def test_the_middleware_in_a_fastapi_server_counts_a_request_for_every_objective(user: Follower) -> None:
    before = judged(user)
    (app,) = blocks(section("attach/fastapi.md", "Middleware"), "python")
    (user.folder / "app.py").write_text(app)
    (answer,) = user.follow("attach/fastapi.md", "Middleware")
    assert answer.rstrip().endswith("data: [DONE]")
    eventually(lambda: judged(user) == {name: count + 1 for name, count in before.items()})
    tokens, _ = user.follow("attach/README.md", SEEN)
    assert 'model_name="example"' in tokens
