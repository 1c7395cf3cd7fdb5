"""A change of a file is seen however it is made, once, and only when it is over."""

import asyncio
import os
from pathlib import Path

from collector.spec_watch import Change, sight, watch, watched


def test_every_way_to_change_a_file_shows(tmp_path: Path) -> None:
    file, folder = tmp_path / "slo.yaml", tmp_path / "specs"
    folder.mkdir()
    seen = [sight((file, folder))]

    def look() -> None:
        seen.append(sight((file, folder)))

    file.write_text("one")
    look()
    file.write_text("more")
    look()
    (tmp_path / "new").write_text("same")
    (tmp_path / "new").replace(file)
    look()
    os.utime(file, ns=(1, 1))
    look()
    (folder / "a.yaml").write_text("a")
    look()
    (tmp_path / "link").symlink_to(folder / "a.yaml")
    file.unlink()
    (tmp_path / "link").rename(file)
    look()
    assert len(set(seen)) == len(seen)
    assert sight((file, folder)) == seen[-1]


def test_a_change_is_told_once_and_only_at_rest() -> None:
    old, half, new = ((Path("f"), (1, 1, size, 1)) for size in (1, 2, 3))
    change = Change((old,))
    looks = [(old,), (half,), (new,), (new,), (new,), (old,), (old,)]
    assert [change.settled(look) for look in looks] == [False, False, False, True, False, False, True]


def test_what_came_back_to_what_was_read_is_no_change() -> None:
    old, new = ((Path("f"), (1, 1, size, 1)) for size in (1, 2))
    change = Change((old,))
    assert not any(change.settled((look,)) for look in (new, old, old, old))


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
