"""The command line: checks what is asked, takes the port, builds the server, serves until a signal.

torch is imported only after OpenMP was told to wait passively: on two busy cores its default spinning makes a step
of two milliseconds take a hundred. The port is taken first, so that a mistake costs no model.
"""

import argparse
import asyncio
import errno
import ipaddress
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, NoReturn

from demo_server.errors import BadStartError

if TYPE_CHECKING:
    import torch

    from demo_server.api import Service

PROGRAM = "demo-server"
ENVIRONMENT_PREFIX = "FIRSTTOKEN_"
DEFAULT_MODEL = "demo"
LISTEN_BACKLOG = 2048
# After a signal, replies may end well for this long, then they are broken off; the whole end stays within two seconds.
DRAIN_S = 0.5
# uvicorn's own patience, which comes to bear only if breaking off did not help.
CANCEL_AFTER_S = 1
MAX_TORCH_THREADS = 4


@dataclass(frozen=True, slots=True)
class Options:
    """A checked command line."""

    host: str
    port: int
    device: str
    dtype: str
    models: tuple[str, ...]
    max_batch: int
    token_budget: int
    prefix_cache: bool
    kv_blocks: int
    block_size: int
    max_model_len: int
    max_queue: int | None
    step_floor_s: float
    seed: int
    log_level: str


def main(argv: list[str] | None = None) -> int:
    """Run the server. Returns 0 after a signal, 2 when it cannot start as asked (argparse exits 2 by itself)."""
    options = parse(sys.argv[1:] if argv is None else argv, os.environ)
    try:
        check(options)
        listener = bind(options.host, options.port)
        with listener:
            serve(options, listener)
    except BadStartError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2
    return 0


def parse(argv: Sequence[str], environment: Mapping[str, str]) -> Options:
    """Read flags, then FIRSTTOKEN_<FLAG> for flags not given, then defaults."""
    parser = _parser()
    asked = parser.parse_args([*_from_environment(parser, argv, environment), *argv])
    host, port = asked.listen
    return Options(
        host=host,
        port=port,
        device=asked.device,
        dtype=asked.dtype,
        models=tuple(dict.fromkeys(asked.model or (DEFAULT_MODEL,))),
        max_batch=asked.max_batch,
        token_budget=asked.token_budget,
        prefix_cache=asked.prefix_cache == "on",
        kv_blocks=asked.kv_blocks,
        block_size=asked.block_size,
        max_model_len=asked.max_model_len,
        max_queue=asked.max_queue,
        step_floor_s=asked.step_ms / 1000,
        seed=asked.seed,
        log_level=asked.log_level,
    )


def check(options: Options) -> None:
    """Refuse options that contradict each other. Raises BadStartError."""
    held, needed = options.kv_blocks * options.block_size, options.max_model_len
    if held < needed:
        raise BadStartError(
            f"--kv-blocks {options.kv_blocks} of {options.block_size} tokens hold {held}, fewer than --max-model-len "
            f"{needed}; give at least {-(-needed // options.block_size)} blocks"
        )


def bind(host: str, port: int) -> socket.socket:
    """Take the port. Listening begins at once, so a second server cannot take it too. Raises BadStartError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(LISTEN_BACKLOG)
    except OSError as error:
        listener.close()
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if error.errno == errno.EADDRINUSE:
            raise BadStartError(
                f"{where} is already in use; stop what listens there or give another --listen"
            ) from None
        raise BadStartError(f"cannot listen on {where}: {error.strerror}") from None
    return listener


def serve(options: Options, listener: socket.socket) -> None:
    """Build the engine and answer on `listener` until SIGTERM or SIGINT."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import uvicorn

    from demo_server.api import build_app
    from demo_server.handover import Handover

    service = build_service(options)
    handover = Handover(service.engine)

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            asyncio.get_running_loop().call_later(DRAIN_S, handover.break_off)
            await super().shutdown(sockets)

    server = Server(
        uvicorn.Config(
            build_app(service, handover),
            log_level=options.log_level,
            access_log=False,
            proxy_headers=False,
            timeout_graceful_shutdown=CANCEL_AFTER_S,
        )
    )

    # uvicorn stops on these by itself and then raises them again, for whoever handled them before. That is us, so that
    # one which comes before uvicorn listens to them is not lost.
    def leave(*_: object) -> None:
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)
    host, port = listener.getsockname()[:2]
    print(f"listening on http://{f'[{host}]' if ':' in host else host}:{port}", flush=True)
    server.run(sockets=[listener])


def build_service(options: Options) -> "Service":
    """Model, cache, scheduler and engine, wired and warm but not started."""
    import torch

    from demo_server.api import Service
    from demo_server.blocks import BlockPool
    from demo_server.engine import Engine, Limits
    from demo_server.graphs import capture_on
    from demo_server.intake import Served
    from demo_server.metrics import Metrics
    from demo_server.model import ModelShape, build
    from demo_server.runner import ModelRunner
    from demo_server.scheduler import Policy, Scheduler

    torch.set_num_threads(_torch_threads())
    device = _device(options.device)
    shape = ModelShape(max_positions=options.max_model_len)
    model = build(shape, options.seed, device=device, dtype=_dtype(options.dtype, device))
    try:
        runner = ModelRunner(
            model, kv_blocks=options.kv_blocks, block_size=options.block_size, capture=capture_on(device)
        )
    except RuntimeError as error:  # the CPU's allocator has no error of its own
        if "memory" not in str(error):
            raise
        size = f"--kv-blocks {options.kv_blocks} of {options.block_size} tokens"
        raise BadStartError(f"{size} do not fit into the memory of {device}; give fewer") from None
    runner.warm_up()
    metrics = Metrics(options.models)
    policy = Policy(options.max_batch, options.token_budget, reuse=options.prefix_cache)
    scheduler = Scheduler(BlockPool(options.kv_blocks, options.block_size), policy)
    limits = Limits(step_floor_s=options.step_floor_s, max_queue=options.max_queue)
    engine = Engine(scheduler, runner, metrics=metrics, limits=limits)
    return Service(engine, metrics, Served(options.models, options.max_model_len), _version(), options.seed)


def _device(name: str) -> "torch.device":
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise BadStartError("--device cuda, but torch finds no CUDA device here; use --device cpu")
    return torch.device(name)


def _dtype(name: str, device: "torch.device") -> "torch.dtype":
    import torch

    if name == "auto":
        name = "bfloat16" if device.type == "cuda" else "float32"
    return {"bfloat16": torch.bfloat16, "float32": torch.float32}[name]


def _torch_threads() -> int:
    """One thread on two cores or fewer, so that HTTP keeps the other; a few where there are more."""
    cores = len(os.sched_getaffinity(0))
    return 1 if cores <= 2 else min(MAX_TORCH_THREADS, cores - 1)


class _OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _OneLineParser(
        prog=PROGRAM,
        description="A small continuous-batching LLM server with random weights, for demonstrations and tests.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "--listen",
        type=_address,
        default="127.0.0.1:8000",
        metavar="HOST:PORT",
        help="where; port 0 takes a free one (default: %(default)s)",
    )
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where the model runs (default: %(default)s)")
    add(
        "--dtype",
        choices=("auto", "float32", "bfloat16"),
        default="auto",
        help="numbers of weights and cache; auto is bfloat16 on cuda, float32 on cpu (default: %(default)s)",
    )
    add("--model", action="append", metavar="NAME", help=f"served name, repeatable (default: {DEFAULT_MODEL})")
    _add_sizes(parser)
    add(
        "--step-ms",
        type=_milliseconds,
        default=0.0,
        metavar="X",
        help="the least time one engine step takes (default: %(default)s)",
    )
    add(
        "--seed",
        type=_whole(0, 2**63 - 1),
        default=0,
        metavar="N",
        help="seed of weights and injected errors (default: %(default)s)",
    )
    add(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        help="how much is logged (default: %(default)s)",
    )
    add("--version", action="version", version=f"%(prog)s {_version()}")
    return parser


def _add_sizes(parser: argparse.ArgumentParser) -> None:
    """How much at once: sequences, tokens, blocks and waiting requests."""
    add = parser.add_argument
    add(
        "--max-batch",
        type=_whole(1, 1024),
        default=32,
        metavar="N",
        help="sequences that run at once (default: %(default)s)",
    )
    add(
        "--token-budget",
        type=_whole(1, 65_536),
        default=512,
        metavar="N",
        help="tokens of one step: longer prompts are cut into chunks (default: %(default)s)",
    )
    add(
        "--prefix-cache",
        choices=("on", "off"),
        default="on",
        help="share what requests begin with (default: %(default)s)",
    )
    add(
        "--kv-blocks",
        type=_whole(1, 1_000_000),
        default=1024,
        metavar="N",
        help="blocks in the KV pool (default: %(default)s)",
    )
    add("--block-size", type=_whole(1, 1024), default=16, metavar="N", help="tokens in a block (default: %(default)s)")
    add(
        "--max-model-len",
        type=_whole(2, 65_536),
        default=2048,
        metavar="N",
        help="tokens of prompt and answer together (default: %(default)s)",
    )
    add(
        "--max-queue",
        type=_whole(1, 1_000_000),
        metavar="N",
        help="requests that may wait; more get 503 (default: any)",
    )


def _from_environment(
    parser: argparse.ArgumentParser, argv: Sequence[str], environment: Mapping[str, str]
) -> list[str]:
    given = {argument.partition("=")[0] for argument in argv}
    found: list[str] = []
    for action in parser._actions:  # noqa: SLF001  # argparse has no public list of its flags
        flag = action.option_strings[-1]
        value = environment.get(ENVIRONMENT_PREFIX + flag.removeprefix("--").replace("-", "_").upper())
        if value is None or flag in given or flag in {"--help", "--version"}:
            continue
        values = value.split(",") if flag == "--model" else [value]
        found += [f"{flag}={each}" for each in values]
    return found


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    host = "127.0.0.1" if host == "localhost" else host
    try:
        ipaddress.ip_address(host)
        number = int(port)
    except ValueError:
        number = -1
    if not colon or not 0 <= number <= 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not an address; give IP:PORT, for example 127.0.0.1:8000")
    return host, number


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and low <= int(text[:20]) <= high):
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return read


def _milliseconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 60_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of milliseconds from 0 to 60000")
    return value


def _version() -> str:
    try:
        return version("firsttoken")
    except PackageNotFoundError:
        return "unknown"
