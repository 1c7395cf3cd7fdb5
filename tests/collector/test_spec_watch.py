"""That changes of the files are acted on for as long as it looks."""

import asyncio
from pathlib import Path

from collector.spec_watch import watch
from slo.sight import watched


def test_it_looks_for_ever(tmp_path: Path) -> None:
    file = tmp_path / "slo.yaml"
    file.write_text("one")
    files = watched([file])
    file.write_text("changed between the look and the watch")

    async def story() -> None:
        told = asyncio.Event()
        task = asyncio.create_task(watch(files, told.set, every_s=0.01))
        async with asyncio.timeout(30):
            await told.wait()
            told.clear()
            file.unlink()
            await told.wait()
        task.cancel()

    asyncio.run(story())
