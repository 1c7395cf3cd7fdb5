"""`firsttoken alerts`: flags, files, exit codes and the one line that says what is wrong."""

from pathlib import Path

import pytest
import yaml

from alerts.cli import main
from tests.alerts.support import SMALL, tool


@pytest.fixture
def slo(tmp_path: Path) -> str:
    path = tmp_path / "slo.yaml"
    path.write_text(SMALL)
    return str(path)


def rules(folder: Path) -> dict[str, object]:
    loaded: dict[str, object] = yaml.safe_load((folder / "chat.rules.yaml").read_text())
    return loaded


def test_build_writes_everything_and_names_it(tmp_path: Path, slo: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "a" / "b"
    assert main(["build", "--slo", slo, "--out", str(out)]) == 0
    written = capsys.readouterr().out.splitlines()
    assert str(out / "chat.rules.yaml") in written
    assert sorted(written) == sorted(str(path) for path in out.rglob("*") if path.is_file())


def test_flags_reach_the_files(tmp_path: Path, slo: str) -> None:
    flags = "--eval-interval 2s --group-wait 1s --group-interval 5s --prometheus-version v2.53.1 --query-offset 30s"
    urls = "--page-webhook http://127.0.0.1:1/p --ticket-webhook-file /run/t --runbook-url http://w/{alertname}"
    grafana = "--grafana-url http://g"
    assert main(["build", "--slo", slo, "--out", str(tmp_path), *flags.split(), *urls.split(), *grafana.split()]) == 0
    groups = rules(tmp_path)["groups"]
    assert {(group["interval"], group["query_offset"]) for group in groups} == {("2s", "30s")}  # type: ignore[attr-defined]
    text = (tmp_path / "chat.rules.yaml").read_text()
    assert "runbook_url: http://w/LLMTTFTBudgetBurn" in text
    assert "dashboard_url: http://g/d/" in text
    routed = yaml.safe_load((tmp_path / "alertmanager.yaml").read_text())
    assert {route["group_wait"] for route in routed["route"]["routes"]} == {"1s"}
    assert routed["receivers"][0]["webhook_configs"][0]["url"] == "http://127.0.0.1:1/p"
    assert routed["receivers"][1]["webhook_configs"][0]["url_file"] == "/run/t"


def test_a_service_that_is_certified_is_told_when_it_runs_above_that(
    tmp_path: Path, slo: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = tmp_path / "certify.json"
    found.write_text('{"certified_rps": 12.5}')
    build = ["build", "--slo", slo, "--out", str(tmp_path / "out")]
    assert main(build) == 0
    assert "LLMAboveCertifiedCapacity" not in (tmp_path / "out" / "chat.rules.yaml").read_text()
    assert main([*build, "--capacity", f"chat={found}"]) == 0
    assert "> 12.5" in (tmp_path / "out" / "chat.rules.yaml").read_text()
    assert (tmp_path / "out" / "runbooks" / "LLMAboveCertifiedCapacity.md").exists()
    found.write_text('{"chosen_batch": 8}')
    assert main([*build, "--capacity", str(found)]) == 0
    assert "LLMAboveCertifiedCapacity" not in (tmp_path / "out" / "chat.rules.yaml").read_text()
    assert "note: no file of --capacity certifies a rate of chat" in capsys.readouterr().err
    assert main([*build, "--capacity", f"search={found}"]) == 2
    assert "no service search in slo.yaml: use chat" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--page-pagerduty-file", "/k"), "note: tickets go to Slack by /etc/alertmanager/secrets/slack-webhook-url"),
        (
            ("--ticket-slack-file", "/s"),
            "note: pages go to PagerDuty by /etc/alertmanager/secrets/pagerduty-routing-key",
        ),
        (("--page-pagerduty-file", "/k", "--ticket-slack-file", "/s"), None),
        ((), None),
    ],
)
def test_who_names_one_receiver_is_told_of_the_other(
    flags: tuple[str, ...], told: str | None, tmp_path: Path, slo: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", "--slo", slo, "--out", str(tmp_path / "out"), "--scrape-interval", "15s", *flags]) == 0
    said = capsys.readouterr().err
    assert said.startswith(told) if told else said == ""


def test_windows_that_prometheus_may_scrape_too_rarely_for_are_told(
    tmp_path: Path, slo: str, capsys: pytest.CaptureFixture[str]
) -> None:
    build = ["build", "--slo", slo, "--out", str(tmp_path / "out")]
    assert main(build) == 0
    assert capsys.readouterr().err == "note: these rules need a scrape every 15s; --scrape-interval has that checked\n"
    assert main([*build, "--scrape-interval", "15s"]) == 0
    assert capsys.readouterr().err == ""
    assert main([*build, "--scrape-interval", "16s"]) == 2
    assert "--scrape-interval 16s is too long for service chat, objective ttft" in capsys.readouterr().err


def test_the_environment_stands_in_for_flags_and_flags_win(
    tmp_path: Path, slo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRSTTOKEN_SLO", slo)
    monkeypatch.setenv("FIRSTTOKEN_OUT", str(tmp_path / "from-environment"))
    monkeypatch.setenv("FIRSTTOKEN_EVAL_INTERVAL", "2s")
    monkeypatch.setenv("FIRSTTOKEN_PAGE_WEBHOOK", "http://127.0.0.1:1/environment")
    assert main(["build"]) == 0
    assert main(["build", "--out", str(tmp_path / "flag"), "--page-pagerduty-file", "/run/key"]) == 0
    from_environment, flag = (
        yaml.safe_load((tmp_path / name / "alertmanager.yaml").read_text())["receivers"][0]
        for name in ("from-environment", "flag")
    )
    assert from_environment["webhook_configs"][0]["url"] == "http://127.0.0.1:1/environment"
    assert flag["pagerduty_configs"][0]["routing_key_file"] == "/run/key"


def test_a_service_that_is_gone_takes_its_files_along_and_no_others(
    tmp_path: Path, slo: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    Path(slo).write_text(SMALL.replace("chat", "old"))
    assert main(["build", "--slo", slo, "--out", str(out)]) == 0
    (out / "mine.rules.yaml").write_text("groups: []\n")
    Path(slo).write_text(SMALL)
    assert main(["build", "--slo", slo, "--out", str(out)]) == 0
    assert f"removed {out / 'old.rules.yaml'}" in capsys.readouterr().out
    left = {path.name for path in out.glob("*.yaml")}
    ours = {"chat.rules.yaml", "chat.tests.yaml", "_fleet.rules.yaml", "alertmanager.yaml", "alertmanager-routes.yaml"}
    assert left == ours | {"mine.rules.yaml"}


def test_other_formats_are_written_when_asked_for(tmp_path: Path, slo: str) -> None:
    flags = "--crd --crd-namespace monitoring --crd-label release=x --grafana-datasource prom --grafana-folder LLM"
    build = ["build", "--slo", slo, "--out", str(tmp_path)]
    assert main([*build, *flags.split()]) == 0
    crd = yaml.safe_load((tmp_path / "chat.prometheusrule.yaml").read_text())
    assert crd["metadata"] == {"name": "firsttoken-chat", "namespace": "monitoring", "labels": {"release": "x"}}
    assert crd["spec"] == rules(tmp_path)
    grafana = yaml.safe_load((tmp_path / "chat.grafana.yaml").read_text())
    assert {group["folder"] for group in grafana["groups"]} == {"LLM"}
    assert main(build) == 0
    assert list(tmp_path.glob("*.prometheusrule.yaml")) == list(tmp_path.glob("*.grafana.yaml")) == []


def test_receivers_of_all_kinds_have_their_flags(tmp_path: Path, slo: str) -> None:
    page = ["--page-opsgenie-file", "/run/key", "--watchdog-webhook", "http://127.0.0.1:1/alive"]
    mail = ["--ticket-email", "a@b.c", "--smtp-smarthost", "mail:25", "--smtp-from", "x@b.c", "--smtp-user", "u"]
    build = ["build", "--slo", slo, "--out", str(tmp_path)]
    assert main([*build, *page, *mail, "--smtp-password-file", "/run/p"]) == 0
    made = yaml.safe_load((tmp_path / "alertmanager.yaml").read_text())
    kinds = {key for receiver in made["receivers"] for key in receiver if key != "name"}
    assert kinds == {"opsgenie_configs", "email_configs", "webhook_configs"}
    assert made["global"]["smtp_auth_password_file"] == "/run/p"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--eval-interval", "2"], "firsttoken alerts: --eval-interval: 2 is not a duration"),
        (
            ["--prometheus-version", "new"],
            "firsttoken alerts: --prometheus-version new is no version: write it as 2.53",
        ),
        (["--prometheus-version", "2.40"], "firsttoken alerts: --prometheus-version 2.40 is too old"),
        (["--page-webhook", "pager"], "firsttoken alerts: pager is no webhook"),
        (["--page-webhook", "http://u:p@h/"], "firsttoken alerts: a webhook's URL with a user or password would stand"),
        (["--ticket-email", "a@b.c"], "firsttoken alerts: --ticket-email needs a mail server: give --smtp-smarthost"),
        (["--grafana-url", "http://g/{{x"], "firsttoken alerts: --grafana-url http://g/{{x is no URL: write https://"),
        (["--runbook-url", "http://r/{alertname}\n"], "firsttoken alerts: --runbook-url http://r/{alertname}"),
        (
            ["--dcgm", 'a="b"} or up{c="d"'],
            'firsttoken alerts: --dcgm a="b"} or up{c="d" are no matchers of Prometheus',
        ),
        (["--dcgm", "llm"], "firsttoken alerts: --dcgm llm are no matchers of Prometheus"),
        (["--crd", "--crd-namespace", "A b"], "firsttoken alerts: --crd-namespace A b is no namespace of Kubernetes"),
        (["--crd", "--crd-label", "a"], "firsttoken alerts: --crd-label a is no label of Kubernetes"),
        (
            ["--crd-namespace", "monitoring"],
            "firsttoken alerts: --crd-namespace and --crd-label are of a PrometheusRul",
        ),
        (["--crd-label", "a=b"], "firsttoken alerts: --crd-namespace and --crd-label are of a PrometheusRule"),
        (
            ["--smtp-user", "u"],
            "firsttoken alerts: a part of a mail server is missing: give --smtp-smarthost HOST:PORT",
        ),
        (["--smtp-smarthost", "mail:25"], "firsttoken alerts: a part of a mail server is missing"),
        (
            ["--ticket-email", "a@b.c", "--smtp-smarthost", "mail", "--smtp-from", "a@b.c"],
            "firsttoken alerts: --smtp-smarthost mail names no port: write HOST:PORT",
        ),
        (["--page-pagerduty-file", ""], "firsttoken alerts: '' names no file: write the path under which Alertmanager"),
        (["--ticket-slack-file", "a\nb"], "firsttoken alerts: 'a\\nb' names no file"),
        (["--prometheus-version", "٢.42"], "firsttoken alerts: --prometheus-version ٢.42 is no version"),
        (["--prometheus-version", "9" * 5000 + ".1"], f"firsttoken alerts: --prometheus-version {'9' * 57}... is no"),
    ],
)
def test_a_wrong_flag_is_one_line_and_nothing_is_written(
    tmp_path: Path, slo: str, capsys: pytest.CaptureFixture[str], *, flags: list[str], message: str
) -> None:
    out = tmp_path / "out"
    assert main(["build", "--slo", slo, "--out", str(out), *flags]) == 2
    said = capsys.readouterr().err
    assert said.startswith(message)
    assert said.count("\n") == 1
    assert not out.exists()


def test_a_wrong_spec_is_told_by_line(tmp_path: Path, slo: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(slo).write_text(SMALL.replace("95%", "100%"))
    assert main(["build", "--slo", slo, "--out", str(tmp_path / "out")]) == 2
    assert f"{slo}:6:5: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_one_line(
    tmp_path: Path, slo: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["build", "--slo", slo, "--out", str(tmp_path / "file" / "out")]) == 2
    said = capsys.readouterr().err
    assert said == (
        f"firsttoken alerts: {tmp_path}/file/out/chat.rules.yaml: Not a directory: "
        "give --out a folder that can be written to\n"
    )


def test_an_empty_name_is_no_folder(
    tmp_path: Path, slo: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["build", "--slo", slo, "--out", ""]) == 2
    assert capsys.readouterr().err == "firsttoken alerts: --out names no folder: write --out rules/\n"
    assert not list(tmp_path.glob("*.rules.yaml"))


def test_an_empty_variable_counts_as_not_set(tmp_path: Path, slo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRSTTOKEN_PAGE_WEBHOOK", "")
    assert main(["build", "--slo", slo, "--out", str(tmp_path / "out")]) == 0
    made = yaml.safe_load((tmp_path / "out" / "alertmanager.yaml").read_text())
    assert "pagerduty_configs" in made["receivers"][0]


@pytest.mark.tools
def test_check_exits_by_what_the_tools_say(tmp_path: Path, slo: str, capsys: pytest.CaptureFixture[str]) -> None:
    tool("promtool"), tool("amtool")
    assert main(["build", "--slo", slo, "--out", str(tmp_path)]) == 0
    assert main(["check", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("ok: ") > 3
    (tmp_path / "alertmanager.yaml").write_text("route: {receiver: nobody}\n")
    assert main(["check", str(tmp_path)]) == 1
    assert "FAILED: amtool check-config" in capsys.readouterr().out


def test_check_without_anything_to_check_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path)]) == 2
    assert "holds no *.rules.yaml" in capsys.readouterr().err
