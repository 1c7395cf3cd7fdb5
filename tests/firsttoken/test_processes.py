"""Child processes: heard, watched, and gone afterwards."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from firsttoken.errors import ChildError
from firsttoken.processes import Child, Command, Family
from tests.firsttoken.test_tether import is_running, wait_until_gone

READY = "import time; print('ready: http://127.0.0.1:7', flush=True); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {READY}"
PARENT = f"import subprocess, sys; c = subprocess.Popen(['sleep', '600']); print('child', c.pid, flush=True); {READY}"


def python(code: str, name: str = "child") -> Command:
    return Command(name, (sys.executable, "-c", code), dict(os.environ))


@pytest.mark.anyio
async def test_a_child_is_heard_and_gone_afterwards(tmp_path: Path) -> None:
    async with Family(tmp_path) as family:
        child = await family.start(python(READY))
        assert (await child.says(r"^ready: (http://\S+)$"))[1] == "http://127.0.0.1:7"
        assert child.is_alive
        assert os.getpgid(child.pid) == child.pid
    assert not is_running(child.pid)
    assert (tmp_path / "child.log").read_text() == "ready: http://127.0.0.1:7\n"


@pytest.mark.anyio
async def test_children_are_gone_also_when_the_story_breaks(tmp_path: Path) -> None:
    children: list[Child] = []

    async def story() -> None:
        async with Family(tmp_path) as family:
            children.append(await family.start(python(READY, "one")))
            children.append(await family.start(python(READY, "two")))
            for child in children:
                await child.says("ready")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await story()
    assert not any(is_running(child.pid) for child in children)


@pytest.mark.anyio
async def test_one_who_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    async with Family(tmp_path) as family:
        child = await family.start(python(STUBBORN))
        await child.says("ready")
        await child.stop(grace_s=0.2)
        assert not is_running(child.pid)
        assert "SIGKILL" in str(child.fault())


@pytest.mark.anyio
async def test_children_of_a_child_go_with_it(tmp_path: Path) -> None:
    async with Family(tmp_path) as family:
        child = await family.start(python(PARENT))
        grandchild_pid = int((await child.says(r"^child (\d+)$"))[1])
        await child.says("ready")
        assert is_running(grandchild_pid)
    await asyncio.to_thread(wait_until_gone, grandchild_pid)


@pytest.mark.anyio
async def test_a_child_that_ends_before_it_is_ready_says_its_last_words(tmp_path: Path) -> None:
    async with Family(tmp_path) as family:
        child = await family.start(python("import sys; print('port taken', file=sys.stderr); sys.exit(2)"))
        with pytest.raises(ChildError, match=r"child ended early \(exit 2\): port taken \(log: .*child\.log\)"):
            await child.says("ready")


@pytest.mark.anyio
async def test_a_line_said_with_the_last_breath_is_still_heard(tmp_path: Path) -> None:
    async with Family(tmp_path) as family:
        child = await family.start(python("print('ready: http://127.0.0.1:7')"))
        await child.ended()
        assert await child.says("ready")


@pytest.mark.anyio
async def test_a_child_that_is_never_ready_is_named(tmp_path: Path) -> None:
    async with Family(tmp_path) as family:
        child = await family.start(python("import time; time.sleep(600)"))
        with pytest.raises(ChildError, match=r"child was not ready after 0.2 s: it said nothing"):
            await child.says("ready", timeout_s=0.2)


@pytest.mark.anyio
async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    async with Family(tmp_path) as family:
        child = await family.start(Command("absent", ("/no/such/program",), {}))
        with pytest.raises(ChildError, match=r"absent ended early \(exit 127\): /no/such/program cannot be started"):
            await child.says("ready")


@pytest.mark.anyio
async def test_the_early_end_of_a_child_ends_the_story_at_once(tmp_path: Path) -> None:
    told = asyncio.Event()

    async def story() -> None:
        try:
            await asyncio.sleep(600)
        finally:
            told.set()

    async with Family(tmp_path) as family:
        await family.start(python(READY, "lives"))
        dies = await family.start(python(READY, "dies"))
        await dies.says("ready")
        asyncio.get_running_loop().call_later(0.2, dies.send, signal.SIGSEGV)
        async with asyncio.timeout(60):
            with pytest.raises(ChildError, match=r"dies ended early \(signal SIGSEGV\)"):
                await family.guard(story())
        assert told.is_set()


@pytest.mark.anyio
async def test_a_story_that_ends_first_gives_its_result(tmp_path: Path) -> None:
    async def story() -> int:
        return 7

    async with Family(tmp_path) as family:
        await family.start(python(READY))
        assert await family.guard(story()) == 7


@pytest.mark.anyio
async def test_the_end_of_a_dismissed_child_is_no_early_one(tmp_path: Path) -> None:
    async with Family(tmp_path) as family:
        child = await family.start(python(READY))
        await child.says("ready")

        async def story() -> str:
            await family.dismiss(child)
            await asyncio.sleep(1.5)
            return "told"

        assert await family.guard(story()) == "told"
        assert not is_running(child.pid)


@pytest.mark.anyio
async def test_a_command_is_run_to_its_end(tmp_path: Path) -> None:
    async with Family(tmp_path) as family:
        await family.run(python("print('built')", "build"), 60)
        assert (tmp_path / "build.log").read_text() == "built\n"
        with pytest.raises(ChildError, match=r"build ended early \(exit 1\)"):
            await family.run(python("import sys; sys.exit(1)", "build"), 60)
        with pytest.raises(ChildError, match=r"build is not done after 0.2 s"):
            await family.run(python("import time; time.sleep(600)", "build"), 0.2)


@pytest.mark.anyio
async def test_kill_ends_every_child_at_once(tmp_path: Path) -> None:
    async with Family(tmp_path) as family:
        child = await family.start(python(STUBBORN))
        await child.says("ready")
        family.kill()
        async with asyncio.timeout(30):
            assert await child.ended() == -signal.SIGKILL
