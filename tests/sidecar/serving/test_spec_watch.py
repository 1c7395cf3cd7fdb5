"""That a change of the files is acted on, once, whenever it came."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from sidecar.serving.spec_watch import watch
from slo.sight import watched
from tests.sidecar.rig import on_a_loop, until


def replaced(folder: Path, text: str) -> None:
    """As editors do it."""
    (folder / "new").write_text(text)
    (folder / "new").replace(folder / "slo.yaml")


def test_a_change_between_the_reading_and_the_first_look_is_not_missed(tmp_path: Path) -> None:
    (tmp_path / "slo.yaml").write_text("a")
    files = watched([tmp_path / "slo.yaml"])
    replaced(tmp_path, "b")

    @on_a_loop
    async def run() -> None:
        acts: list[Callable[[], None]] = []
        looking = asyncio.create_task(watch(files, lambda: acts.append(run), every_s=0.01))
        await until(lambda: len(acts) == 1)
        replaced(tmp_path, "c")
        await until(lambda: len(acts) == 2)
        await asyncio.sleep(0.1)
        assert len(acts) == 2
        looking.cancel()

    run()
