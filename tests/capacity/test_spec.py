"""The one spec that is meant."""

from argparse import ArgumentParser
from pathlib import Path

import pytest

from capacity.errors import WorkloadError
from capacity.spec import add_spec_flags, named_spec

ONE = "service: {}\nobjectives:\n  - {{name: ttft, signal: ttft, percentile: 95, threshold: 500ms}}\n"


def named(*argv: str, **environ: str) -> str:
    parser = ArgumentParser()
    add_spec_flags(parser, environ)
    return named_spec(parser.parse_args(argv)).service


def test_the_sole_service_needs_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slo.yaml").write_text(ONE.format("chat"))
    assert named() == named("--slo", "slo.yaml") == named(FIRSTTOKEN_SLO="slo.yaml") == "chat"


def test_of_several_one_must_be_named(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(ONE.format("chat") + "---\n" + ONE.format("code"))
    assert named("--slo", str(path), "--service", "code") == "code"
    for argv in ((), ("--service", "other")):
        with pytest.raises(WorkloadError, match="the spec describes chat, code; name one of them"):
            named("--slo", str(path), *argv)


def test_a_spec_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"none\.yaml:1:1: cannot be read"):
        named("--slo", str(tmp_path / "none.yaml"))
