"""bench/page.py runs: every promise has its figure, and what no clock decides is kept."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.collector import browser

SCRIPT = Path(__file__).parents[2] / "bench" / "page.py"


@pytest.mark.tools
@pytest.mark.skipif(browser.found() is None, reason="chromium is missing: install it, as with apt-get install chromium")
def test_every_promise_has_a_figure() -> None:
    ran = subprocess.run(
        [sys.executable, SCRIPT, "--loads", "1", "--asks", "2"], capture_output=True, text=True, timeout=170
    )
    assert ran.returncode == 0, ran.stderr
    found = {
        title: float(value) for title, value in re.findall(r"^(.+?) +([0-9.]+) \S* +at most", ran.stdout, re.MULTILINE)
    }
    assert list(found) == ["page transferred", "requests for the page", "first paint, median", "/api/v1/status, p95"]
    assert 5 < found["page transferred"] < 150
    assert found["requests for the page"] <= 7
    assert found["first paint, median"] > 0
