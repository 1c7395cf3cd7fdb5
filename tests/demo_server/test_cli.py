import os
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest
import torch

from demo_server.cli import bind, build_service, check, main, parse
from demo_server.errors import BadStartError
from demo_server.runner import ModelRunner
from tests.demo_server.support import PATIENCE_S, eventually, running_server
from tests.demo_server.test_api import LONG, open_stream


def test_defaults() -> None:
    options = parse([], {})
    assert (options.host, options.port, options.models) == ("127.0.0.1", 8000, ("demo",))
    assert (options.max_batch, options.max_queue, options.step_floor_s) == (32, None, 0.0)
    assert (options.device, options.dtype) == ("auto", "auto")
    check(options)


def test_flags_win_over_the_environment_and_it_over_defaults() -> None:
    environment = {
        "FIRSTTOKEN_MAX_BATCH": "7",
        "FIRSTTOKEN_STEP_MS": "2.5",
        "FIRSTTOKEN_MODEL": "a,b",
        "FIRSTTOKEN_LISTEN": "[::1]:0",
        "FIRSTTOKEN_HELP": "1",
    }
    options = parse(["--max-batch=9"], environment)
    assert (options.max_batch, options.step_floor_s, options.models) == (9, 0.0025, ("a", "b"))
    assert (options.host, options.port) == ("::1", 0)
    assert parse(["--model", "c", "--model", "d", "--model", "c"], environment).models == ("c", "d")


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--listen", "8000"], "argument --listen: '8000' is not an address; give IP:PORT, for example 127.0.0.1:8000"),
        (["--listen", "127.0.0.1:70000"], "is not an address"),
        (["--listen", "nowhere:1"], "is not an address"),
        (["--max-batch", "0"], "argument --max-batch: '0' is not a whole number from 1 to 1024"),
        (["--max-batch", "many"], "'many' is not a whole number"),
        (["--kv-blocks", "1e3"], "'1e3' is not a whole number"),
        (["--step-ms", "-1"], "argument --step-ms: '-1' is not a number of milliseconds from 0 to 60000"),
        (["--step-ms", "nan"], "'nan' is not a number of milliseconds"),
        (["--device", "tpu"], "argument --device: invalid choice: 'tpu'"),
        (["--dtype", "float16"], "argument --dtype: invalid choice: 'float16'"),
        (["--max-ba", "3"], "unrecognized arguments: --max-ba 3 (see --help)"),
        (
            ["--kv-blocks", "4"],
            "--kv-blocks 4 of 16 tokens hold 64, fewer than --max-model-len 2048; give at least 128",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_wrong_flag_is_one_line_and_exit_2(
    argv: list[str], says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("FIRSTTOKEN_")]:
        monkeypatch.delenv(name)
    try:
        code = main(argv)
    except SystemExit as left:
        code = left.code  # type: ignore[assignment]
    printed = capsys.readouterr().err
    assert code == 2
    assert printed.startswith("demo-server: ")
    assert says in printed
    assert printed.count("\n") == 1


def test_a_port_in_use_is_said_before_any_model_is_built(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["--listen", f"127.0.0.1:{port}"]) == 2
    printed = capsys.readouterr().err
    assert printed == (
        f"demo-server: 127.0.0.1:{port} is already in use; stop what listens there or give another --listen\n"
    )


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(BadStartError, match=r"cannot listen on 192\.0\.2\.1:0"):
        bind("192.0.2.1", 0)


def test_the_command_line_alone_loads_no_torch() -> None:
    script = "import sys, demo_server.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], timeout=PATIENCE_S).returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_soon_with_exit_0_even_in_the_middle_of_streams(number: signal.Signals) -> None:
    with running_server("--step-ms", "50") as server:
        client = open_stream(server, LONG)
        eventually(lambda: server.metric("vllm:num_requests_running") == 1, "the stream began")
        began_s = time.monotonic()
        server.process.send_signal(number)
        assert server.process.wait(PATIENCE_S) == 0
        # Two seconds are promised on a quiet machine; here it is enough that it did not wait for the stream's end.
        assert time.monotonic() - began_s < 20
        told = b""
        while data := client.recv(65536):
            told += data
        client.close()
        assert b'data: {"error":' in told, "the stream says that it was broken off"
        with pytest.raises(httpx.ConnectError):
            httpx.get(server.url + "/health")


def test_the_flags_reach_what_they_are_for() -> None:
    flags = ["--max-model-len", "64", "--kv-blocks", "8", "--block-size", "8", "--max-batch", "3", "--model", "a"]
    flags += ["--token-budget", "40", "--prefix-cache", "off"]

    def head(seed: str) -> torch.Tensor:
        service = build_service(parse([*flags, "--seed", seed], {}))
        assert (service.served.models, service.served.max_model_len, service.engine.policy.max_batch) == (("a",), 64, 3)
        assert (service.engine.policy.token_budget, service.engine.policy.reuse) == (40, False)
        page = service.metrics.page().decode()
        assert 'block_size="8",engine="0",kv_cache_size_tokens="64",model_name="a",num_gpu_blocks="8"' in page
        runner = service.engine._runner
        assert isinstance(runner, ModelRunner)
        return runner.model.head.weight

    assert torch.equal(head("5"), head("5"))
    assert not torch.equal(head("5"), head("6"))


@pytest.mark.parametrize(("flags", "dtype"), [([], torch.float32), (["--dtype", "bfloat16"], torch.bfloat16)])
def test_weights_and_cache_are_kept_as_asked(flags: list[str], dtype: torch.dtype) -> None:
    small = ["--device", "cpu", "--max-model-len", "64", "--kv-blocks", "8"]
    runner = build_service(parse([*small, *flags], {})).engine._runner
    assert isinstance(runner, ModelRunner)
    assert {runner.model.head.weight.dtype, *(pool.dtype for pool in runner._pools)} == {dtype}


def test_a_cache_that_does_not_fit_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> torch.Tensor:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 524288524288 bytes")

    monkeypatch.setattr("demo_server.runner.torch.zeros", refuse)
    with pytest.raises(
        BadStartError, match="--kv-blocks 512 of 16 tokens do not fit into the memory of cpu; give fewer"
    ):
        build_service(parse(["--device", "cpu", "--kv-blocks", "512"], {}))


def test_a_device_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(BadStartError, match="torch finds no CUDA device here; use --device cpu"):
        build_service(parse(["--device", "cuda"], {}))


def test_a_signal_as_soon_as_it_listens_is_not_lost() -> None:
    with running_server() as server:
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE_S) == 0
