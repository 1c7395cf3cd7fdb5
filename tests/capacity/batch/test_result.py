"""What is said of a search, as JSON, as text and as a page."""

import json
import re
from dataclasses import replace

import orjson
import pytest
from rich.console import Console

from capacity.batch.page import page_of
from capacity.batch.report import progress, report, said
from capacity.batch.result import Memory, Result, most_sequences
from capacity.batch.search import Plan
from capacity.batch.sitting import Account
from capacity.batch.trial import AskHeld, AskOpen
from capacity.certify.lengths import Lengths, lengths
from capacity.report.html import html
from tests.capacity.batch.support import searched
from tests.capacity.batch.test_search import exact, plan

SETTINGS = {"model": "m", "target": "http://h:1"}


def result(of: Plan, *, limit_s: float = 0.0505, carries_rps: float = 9.0, memory: int | None = None) -> Result:
    outcome, account = searched(
        of, exact(lambda n: 0.01 + 0.001 * n, limit_s=limit_s, carries_rps=lambda _: carries_rps)
    )
    return Result(outcome, account, of, lengths("100:50"), Memory(memory, 16))


def test_a_chosen_batch_is_said_with_what_breaks_above_it() -> None:
    made = result(plan(rate_rps=5.0), memory=20_000)
    assert made.sentence().startswith(
        "a batch of 40 keeps every promise; 41 breaks tpot; at 5 requests/s it takes at least"
    )
    assert (made.verdict, made.binding) == ("chosen", "tpot")
    found = json.loads(orjson.dumps(made.as_json(SETTINGS)))
    assert (found["chosen_batch"], found["feasible_max"], found["efficient_batch"]) == (40, 40, 39)
    assert found["fit"]["a"] == pytest.approx(0.01)
    assert found["fit"]["b"] == pytest.approx(0.001)
    assert found["flags"]["vllm"].startswith("--max-num-seqs 40")
    assert found["kv"]["max_sequences"] == most_sequences(lengths("100:50"), 20_000)
    assert found["kv"]["blocks"] > 40 * 125 / 16
    assert {probe["kind"] for probe in found["probes"]} == {"held", "open"}
    assert len(found["runs"]) > len(found["probes"])


def test_no_feasible_batch_says_how_many_replicas_it_takes() -> None:
    made = result(plan(rate_rps=50.0))
    assert made.verdict == "none"
    assert made.binding == "ttft"
    assert "no batch is feasible: ttft is not kept at 50 requests/s by any batch tried (40" in made.sentence()
    found = made.as_json(SETTINGS)
    assert (found["chosen_batch"], found["flags"], found["token_budget"]) == (None, {}, None)
    assert found["replicas"]


def test_an_interrupted_search_has_its_runs() -> None:
    whole = result(plan(rate_rps=5.0))
    made = replace(whole, outcome=None)
    assert (made.verdict, made.binding) == ("interrupted", None)
    assert made.sentence() == f"interrupted after {len(whole.account.runs)} runs"
    found = made.as_json(SETTINGS)
    assert (found["chosen_batch"], found["probes"]) == (None, [])
    assert "interrupted" in html(page_of(made, SETTINGS))


def test_the_most_that_was_allowed_is_said() -> None:
    made = result(plan(rate_rps=5.0, most_batch=20))
    assert "a batch of 20 keeps every promise; and more was not allowed" in made.sentence()
    assert made.binding is None


def test_lengths_of_a_trace_are_taken_as_they_stand() -> None:
    traced = replace(Lengths("trace"), pairs=((100, 50),))
    assert most_sequences(traced, 100_000) == most_sequences(lengths("100:50"), 100_000)


def test_the_terminal_shows_the_fit_the_probes_and_the_flags() -> None:
    console = Console(width=160, record=True, quiet=False, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    console.print(report(result(plan(rate_rps=5.0), memory=20_000)))
    console.file.close()
    shown = console.export_text()
    assert "a step takes 10 ms and 1 ms for each sequence" in shown
    assert "full: as many requests outstanding" in shown
    assert " 5/s " in shown
    assert "vllm: --max-num-seqs 40" in shown
    assert "20000 tokens hold" in shown


def test_progress_on_a_pipe_is_a_line_a_run_and_says_what_is_left_on_a_terminal() -> None:
    assert said(AskHeld(4, "short prompts", 20)) == "batch 4, as many outstanding with short prompts"
    for is_terminal in (False, True):
        with open("/dev/null", "w") as nowhere:  # noqa: PTH123
            console = Console(width=160, record=True, file=nowhere, force_terminal=is_terminal)
            with progress(console, plan()) as show:
                for requests in (20, 40):
                    show(AskOpen(4, 2.5, requests), Account())
        if not is_terminal:
            (line,) = console.export_text().splitlines()
            assert re.fullmatch(r"batch 4, 2.5 requests/s; about \d+[ms] left", line)


def test_the_page_holds_the_figures_and_both_charts() -> None:
    made = html(page_of(result(plan(rate_rps=5.0)), SETTINGS))
    for says in ("a batch of 40", "Mean step, by batch", "Requests too slow, by batch", "--max-num-seqs 40"):
        assert says in made
    assert "<svg" in made
