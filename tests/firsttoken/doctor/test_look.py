"""The whole doctor on a real stack: silent while it is healthy, and each fault that is put into it found by its code.

One stack for all; each test leaves it as it was, but the last, which takes it apart.
"""

import contextlib
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from firsttoken.doctor.address import Address
from firsttoken.doctor.checks.table import findings
from firsttoken.doctor.cli import main
from firsttoken.doctor.facts import Kind
from firsttoken.doctor.look import NO_SIDECAR, Asked, look
from firsttoken.doctor.probe import PATH
from firsttoken.http_json import Access
from tests.firsttoken.doctor.front import TOKENS, VLLM, Front, front
from tests.firsttoken.doctor.stack import SLO_YAML, Stack, build, eventually, stack

pytestmark = pytest.mark.tools


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with stack(tmp_path_factory.mktemp("stack")) as made:
        yield made


@pytest.fixture(autouse=True)
def _no_spec_lies_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`./slo.yaml` is the default: that of whoever runs the tests is of another stack."""
    monkeypatch.chdir(tmp_path)


def doctor(*flags: str) -> tuple[int, dict[str, object]]:
    """Run the command for its exit code and its JSON."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main([*flags, "--json", "--wait", "0"])
    told = json.loads(out.getvalue())
    assert code == (0 if told["is_fine"] else 1)
    return code, told


def found(whole: Stack, *flags: str) -> set[str]:
    """The codes of all that is wrong with the stack, found from its Prometheus."""
    _, told = doctor("--prometheus", whole.url("prometheus"), "--slo", whole.slo, *flags)
    listed = told["findings"]
    assert isinstance(listed, list)
    return {one["code"] for one in listed if one["severity"] != "note"}


def test_a_healthy_stack_is_silent_and_found_from_its_prometheus(whole: Stack) -> None:
    places = {
        "server": whole.engine.url,
        "sidecar": f"http://127.0.0.1:{whole.sidecar.admin}",
        "collector": whole.collector.url,
        "prometheus": whole.url("prometheus"),
        "alertmanager": whole.url("alertmanager"),
    }
    eventually(lambda: looked_at(whole), places)
    eventually(lambda: found(whole, "--server", whole.engine.url), set())


def looked_at(whole: Stack) -> dict[str, str]:
    _, told = doctor("--prometheus", whole.url("prometheus"), "--server", whole.engine.url)
    listed = told["looked_at"]
    assert isinstance(listed, list)
    assert listed[0]["said"].startswith("vllm 0.33.0, tells ttft, tpot, e2e, kv_occupancy")
    return {one["kind"]: one["url"] for one in listed}


def test_a_stream_through_the_real_proxy_is_fine(whole: Stack) -> None:
    whole.engine.pause_s = 0.03
    admin = f"http://127.0.0.1:{whole.sidecar.admin}"
    proxy = f"http://127.0.0.1:{whole.sidecar.proxy}"
    assert doctor("--server", proxy, "--sidecar", admin, "--probe", "--slo", whole.slo)[0] == 0
    *_, probed = (headers for path, headers in whole.engine.asked if path == PATH)
    assert probed["x-firsttoken-class"] == "synthetic"


def test_no_alertmanager(whole: Stack) -> None:
    whole.configure(alerting={})
    eventually(lambda: found(whole), {"no-alertmanager"})


def test_a_sidecar_that_two_jobs_scrape(whole: Stack) -> None:
    whole.configure(scrape_configs=whole.jobs("firsttoken", "pods"))
    eventually(lambda: found(whole), {"double-counting"})


def test_a_scrape_interval_that_is_too_long(whole: Stack) -> None:
    slow = {"scrape_interval": "100s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    whole.configure(**{"global": slow})
    eventually(lambda: found(whole), {"scrape-too-slow"})


def test_rules_of_another_spec_and_one_that_fails(whole: Stack) -> None:
    other = whole.folder / "other"
    other.mkdir()
    (other / "slo.yaml").write_text(SLO_YAML.replace("500ms", "400ms"))
    (other / "rules").mkdir()
    build(other)
    broken = {"name": "firsttoken:chat:own", "rules": [{"record": "x:y", "expr": "up + on () up"}]}
    (other / "rules" / "broken.rules.yaml").write_text(json.dumps({"groups": [broken]}))
    whole.configure(rule_files=[str(other / "rules" / "*.rules.yaml")])
    eventually(lambda: found(whole), {"rules-stale", "rule-failing"})
    whole.configure()


def test_a_file_that_is_not_the_one_in_force(whole: Stack, tmp_path: Path) -> None:
    changed = tmp_path / "slo.yaml"
    changed.write_text(SLO_YAML.replace("99%", "98%"))
    _, told = doctor("--collector", whole.collector.url, "--slo", str(changed))
    assert "spec-differs" in json.dumps(told["findings"])


def test_routes_that_are_somebody_elses(whole: Stack) -> None:
    ours = (whole.folder / "rules" / "alertmanager.yaml").read_text()
    whole.route("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    eventually(lambda: found(whole), {"page-reaches-nobody", "ticket-reaches-nobody"})
    whole.route(ours)
    eventually(lambda: found(whole), set())


def test_a_place_that_is_something_else(whole: Stack) -> None:
    code, told = doctor("--sidecar", whole.collector.url, "--collector", whole.engine.url)
    assert code == 1
    assert NO_SIDECAR in json.dumps(told["findings"])
    assert json.dumps(told["findings"]).count("unreachable") == 2


def test_a_counter_that_shows_trouble_is_looked_at_twice() -> None:
    with front(Front({"/metrics": b"firsttoken_heartbeat_total 9\nfirsttoken_export_dropped_total 5\n"})) as told:
        asked = Asked({"sidecar": (Address(told.url),)}, wait_s=0.001)
        facts = look(asked, ours="0.1.0", now_s=0.0)
        still = {one.severity for one in findings(facts) if one.code == "export-failing"}
        once = {one.severity for one in findings(look(replace(asked, wait_s=0.0), ours="", now_s=0.0))}
    assert facts.sidecars[0].later is not None
    assert still == {"note"}
    assert "error" in once


def test_a_stream_that_looks_held_back_is_asked_for_again_and_has_to_look_so_each_time() -> None:
    asked = Asked({"server": (Address("http://replaced"),)}, probes=True)
    with front(Front(VLLM | {"/": b""}, held=TOKENS + 1)) as held, front(Front(VLLM)) as fine:
        for server, times, codes in ((held, 3, {"stream-buffered"}), (fine, 1, set())):
            facts = look(replace(asked, places={"server": (Address(server.url),)}), ours="", now_s=0.0)
            assert {one.code for one in findings(facts) if "stream" in one.code} == codes
            assert [path for path, _ in server.asked].count(PATH) == times


def test_a_token_goes_to_those_who_were_named_alone() -> None:
    with front(Front()) as named, front(Front()) as other:
        places: dict[Kind, tuple[Address, ...]] = {
            "sidecar": (Address(named.url),),
            "alertmanager": (Address(other.url),),
        }
        look(Asked(places, own=Access("secret")), ours="", now_s=0.0)
    assert {headers.get("Authorization") for _, headers in named.asked} == {"Bearer secret"}
    assert {headers.get("Authorization") for _, headers in other.asked} == {None}


def test_a_credential_in_what_a_prometheus_names_is_not_repeated() -> None:
    url = "http://me:secret@127.0.0.1:1/\x1b[31m/api/v2/alerts"
    told = {"/api/v1/status/buildinfo": {"data": {"version": "3.1.0"}},
            "/api/v1/alertmanagers": {"data": {"activeAlertmanagers": [{"url": url}]}}}  # fmt: skip
    with front(Front({path: json.dumps(answer).encode() for path, answer in told.items()})) as prometheus:
        facts = look(Asked({"prometheus": (Address(prometheus.url),)}), ours="", now_s=0.0)
    assert list(facts.unread) == ["http://127.0.0.1:1/\\x1b[31m"]


def test_what_dies_is_missed(whole: Stack) -> None:
    """The last: the sidecar and the collector end."""
    whole.sidecar.stop()
    whole.collector.stop()
    eventually(lambda: found(whole), {"target-down"})
