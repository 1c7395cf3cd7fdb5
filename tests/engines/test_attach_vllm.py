"""docs/attach/vllm.md to the letter, in all three ways, on a real vLLM. On demand:
`make test-engines PYTEST_ARGS="-m vllm -rP"`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines import vllm_install, vllm_server
from tests.engines.followed import Follower, blocks, following, section
from tests.engines.test_attach import EACH, HURRY, SEEN, START, judged
from tests.sidecar.receiver import eventually

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Follower]:
    """Someone who has done the steps that all servers have in common, on a machine with vLLM and a tiny model."""
    vllm_install.main()
    folder = tmp_path_factory.mktemp("attach-vllm")
    (folder / "slo.yaml").write_text(blocks(section("attach/README.md", START), "yaml")[0])
    vllm_server.write_model(folder / "model")
    programs = folder / "bin"
    programs.mkdir()
    (programs / "firsttoken").symlink_to(Path(sys.executable).with_name("firsttoken"))
    (programs / "vllm").symlink_to(vllm_server.VLLM)
    served = " ".join([str(folder / "model"), "--served-model-name", "tiny", *vllm_server.SMALL])
    models = {"": "tiny", "vllm serve": served}
    quiet = {key: value for key, value in vllm_server.offline().items() if key.startswith(("HF_", "VLLM_", "DO_NOT"))}
    python_path = str(vllm_server.ROOT)
    with following(folder, models, programs=programs, PYTHONPATH=python_path, **HURRY, **quiet) as user:
        user.follow("attach/README.md", START)
        yield user


def test_the_proxy_counts_a_request_for_every_objective(user: Follower) -> None:
    *_, answer = user.follow("attach/vllm.md", "Proxy")
    assert answer.rstrip().endswith("data: [DONE]")
    eventually(lambda: judged(user) == dict.fromkeys(EACH, 1))
    tokens, _ = user.follow("attach/README.md", SEEN)
    assert 'type="output"} 32' in tokens
    user.end("firsttoken sidecar")


def test_scraping_counts_what_vllms_histograms_have_on_their_edges(user: Follower) -> None:
    """500 ms is an edge of its TTFT, 50 ms of its TPOT, 30 s of its e2e."""
    before = judged(user)
    *_, answer = user.follow("attach/vllm.md", "Scrape")
    assert answer.rstrip().endswith("data: [DONE]")
    after = {name: count + (name != "answered") for name, count in before.items()}
    eventually(lambda: judged(user) == after)
    assert "objective answered cannot be backed: " in user.log("firsttoken sidecar")
    user.end("firsttoken sidecar", "vllm serve")


def test_the_middleware_counts_a_request_for_every_objective(user: Follower) -> None:
    before = judged(user)
    (answer,) = user.follow("attach/vllm.md", "Middleware")
    assert answer.rstrip().endswith("data: [DONE]")
    eventually(lambda: judged(user) == {name: count + 1 for name, count in before.items()})
    tokens, _ = user.follow("attach/README.md", SEEN)
    assert 'model_name="tiny"' in tokens
