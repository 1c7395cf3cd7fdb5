"""What words mean, and what is said of those that mean nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sidecar import settings
from sidecar.address import HostPort, UnixPath
from sidecar.settings import UsageError

SPECS = "service: {}\nobjectives:\n  - {{name: a, signal: ttft, percentile: 95, threshold: 1s}}\n"


def test_numbers() -> None:
    assert settings.number("--x", "1e3", low=0) == 1000
    for word in ("nan", "-1", "inf", "ten", ""):
        with pytest.raises(UsageError, match=r"^--x .*: write a number of at least 0$"):
            settings.number("--x", word, low=0)
    with pytest.raises(UsageError, match=r"^--x 3: write a number from 0 to 2$"):
        settings.number("--x", "3", low=0, high=2)


def test_addresses() -> None:
    assert settings.address("--x", "[::1]:80") == HostPort("::1", 80)
    assert settings.address("--x", "unix:/run/s") == UnixPath("/run/s")
    with pytest.raises(UsageError, match=r"^--x host: write HOST:PORT"):
        settings.address("--x", "host")


def test_switches() -> None:
    assert [settings.switch("X", word) for word in ("1", "true", " Yes ", "ON")] == [True] * 4
    assert [settings.switch("X", word) for word in ("", "0", "false", "No", "off")] == [False] * 5
    with pytest.raises(UsageError, match=r"^X=maybe: write 1 or 0$"):
        settings.switch("X", "maybe")


def test_a_token_is_needed_where_others_can_reach() -> None:
    for host in ("127.0.0.1", "127.9.9.9", "localhost", "::1"):
        assert settings.token(None, HostPort(host, 1), insecure=False) is None
    assert settings.token(None, UnixPath("/run/s"), insecure=False) is None
    assert settings.token(None, None, insecure=False) is None
    for host in ("0.0.0.0", "::", "10.0.0.1", "128.0.0.1"):
        assert settings.token(None, HostPort(host, 1), insecure=True) is None
        with pytest.raises(UsageError, match=r"is not loopback: give --token-file FILE"):
            settings.token(None, HostPort(host, 1), insecure=False)


def test_a_token_is_what_its_file_says(tmp_path: Path) -> None:
    file = tmp_path / "token"
    here = HostPort("127.0.0.1", 1)
    with pytest.raises(UsageError, match=r"token cannot be read"):
        settings.token(str(file), here, insecure=True)
    for content, fault in ((b"\xff", "cannot be read"), (b" \n", "is empty")):
        file.write_bytes(content)
        with pytest.raises(UsageError, match=fault):
            settings.token(str(file), here, insecure=True)
    file.write_text(" s3cret\n")
    assert settings.token(str(file), here, insecure=True) == "s3cret"


def test_where_the_spec_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert settings.spec_paths(None, {}) == []
    (tmp_path / "slo.yaml").touch()
    assert settings.spec_paths(None, {}) == [Path("slo.yaml")]
    assert settings.spec_paths(None, {"FIRSTTOKEN_SLO": "a:b"}) == [Path("a"), Path("b")]
    assert settings.spec_paths(["c"], {"FIRSTTOKEN_SLO": "a:b"}) == [Path("c")]


CHOICES: dict[str, tuple[str | None, list[str], Callable[[], object] | str]] = {
    "nothing at all": (None, [], "unknown_service"),
    "a name alone": ("x", [], "x"),
    "the sole one": (None, ["a"], "a"),
    "one of two": ("b", ["a", "b"], "b"),
}


@pytest.mark.parametrize("sentence", CHOICES)
def test_the_service(sentence: str, tmp_path: Path) -> None:
    name, described, expected = CHOICES[sentence]
    for one in described:
        (tmp_path / f"{one}.yaml").write_text(SPECS.format(one))
    found, spec = settings.service(name, settings.load([tmp_path] if described else []), strict=True)
    assert found == expected
    assert (None if spec is None else spec.service) == (expected if described else None)


def test_a_service_that_is_not_to_be_found(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.yaml").write_text(SPECS.format("a"))
    specs = settings.load([tmp_path])
    with pytest.raises(UsageError, match=r"service x is not in the spec, which describes a: correct"):
        settings.service("x", specs, strict=True)
    assert settings.service("x", specs, strict=False) == ("x", None)
    assert "nothing is judged" in caplog.text
    with pytest.raises(UsageError, match=r"several services \(a, a\): choose one"):
        settings.service(None, specs * 2, strict=True)


def test_a_bad_spec_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SPECS.format("a").replace("95", "101") + "nonsense: 1\n")
    with pytest.raises(UsageError, match=r"a\.yaml:3:\d+: .*; .*a\.yaml:4:1: "):
        settings.load([tmp_path])


def test_there_is_a_version() -> None:
    assert settings.version()[0].isdigit()
