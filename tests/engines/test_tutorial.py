"""docs/tutorial.md to the letter: from an empty folder to a page that rings once, and back. On demand, since it takes
minutes: `make test-engines PYTEST_ARGS="-m tutorial"`."""

import sys
from pathlib import Path

import pytest

from tests.engines.followed import blocks, following, section
from tests.sidecar.receiver import eventually

pytestmark = [pytest.mark.tutorial, pytest.mark.timeout(900)]

PAGE = "tutorial.md"
RINGS_S = 240


def test_somebody_who_follows_the_tutorial_is_paged_once_and_told_of_the_end(tmp_path: Path) -> None:
    (tmp_path / "slo.yaml").write_text(blocks(section(PAGE, "A promise"), "yaml")[0])
    with following(tmp_path, {"": ""}, programs=Path(sys.executable).parent) as user:
        (checked,) = user.follow(PAGE, "A promise")
        assert "ttft" in checked
        (tmp_path / "pager.py").write_text(user.here(blocks(section(PAGE, "A pager"), "python")[0]))
        user.follow(PAGE, "A pager")
        user.follow(PAGE, "The server, the collector, the sidecar")
        assert "engine vllm" in user.log("firsttoken sidecar")  # the engine of the tutorial speaks as vLLM does
        (status,) = user.follow(PAGE, "Some traffic")
        assert "ttft" in status
        assert "firing" not in user.log("python pager.py")
        user.follow(PAGE, "An incident")
        eventually(lambda: "firing LLMTTFTBudgetBurn | " in user.log("python pager.py"), RINGS_S)
        user.follow(PAGE, "The way back")
        eventually(lambda: "resolved LLMTTFTBudgetBurn | " in user.log("python pager.py"), RINGS_S)
        told = user.log("python pager.py")
        print(told)
        assert [line.split(" | ")[0] for line in told.splitlines()] == [
            "firing LLMTTFTBudgetBurn",
            "resolved LLMTTFTBudgetBurn",
        ]
