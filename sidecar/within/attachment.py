"""What the middleware keeps in its process: telemetry made from the environment, and its life on the app's loop.

    FIRSTTOKEN_SLO              slo.yaml, or a folder of them; several separated as in PATH (default ./slo.yaml)
    FIRSTTOKEN_SERVICE          service.name; else OTEL_SERVICE_NAME, else the sole service of the spec
    FIRSTTOKEN_ADMIN            HOST:PORT or unix:/PATH of /metrics, /healthz and /readyz (default 127.0.0.1:9464);
                                off shows none
    FIRSTTOKEN_TOKEN_FILE       file with the token that a non-loopback admin address needs, and that lets a request
                                from elsewhere name its class
    FIRSTTOKEN_SCRAPE           auto reads the app's own /metrics and /v1/models from within, off asks the app nothing
    FIRSTTOKEN_SHED             shadow predicts first tokens and says which will be late, off does not: an app's own
                                middleware refuses nobody
    FIRSTTOKEN_GPU              auto reads GPUs through NVML where there are any, off does not
    FIRSTTOKEN_ENGINE, _SCRAPE_INTERVAL, _OTLP_ENDPOINT, _SAMPLE, _CLASS_HEADER, _MAX_MODELS     as the sidecar's flags
    OTEL_*                      as the sidecar

The host outranks all of it. A setting that cannot be used is told in one line and left out, and
`CONFIG_RELOAD_OK` shows 0; nothing here keeps the server from starting. Of several workers on one machine the first
takes the admin address and shows its own requests alone; the others say that they go without. Over OTLP each worker
is an instance of its own, and their sums are exact.
"""

import asyncio
import atexit
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from sidecar import limits, otlp_settings, settings
from sidecar.address import Address
from sidecar.configuration.plan import Plan
from sidecar.engine import scrape
from sidecar.judging.eye import Eye
from sidecar.otlp_settings import ExportSettings
from sidecar.polling.poller import OnPage, Poller
from sidecar.serving.telemetry import of_requests
from sidecar.settings import UsageError
from sidecar.telling import pages
from sidecar.telling.admin import AdminDoor
from sidecar.transport.listener import ListenError, listen
from sidecar.within.asgi import ITSELF, App, InnerPages, Scope
from slo.objective import Spec
from slo.signals import CLASS_HEADER

log = logging.getLogger(__name__)

PROGRAM = "firsttoken middleware"
ADMIN = "127.0.0.1:9464"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setup:
    """What the environment decided."""

    plan: Plan
    admin: Address | None
    admin_token: str | None
    engine: str
    scrape_interval_s: float


class Environment:
    """Reads `variables`; what cannot be used is told and replaced, and `ok` is False from then on."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.variables, self.ok = variables, True

    def word(self, name: str, default: str) -> str:
        """`FIRSTTOKEN_<name>`; one that is empty is not set."""
        return self.variables.get(f"FIRSTTOKEN_{name}", "").strip() or default

    def number(self, name: str, default: float, *, low: float, high: float = 1e15) -> float:
        """A number from `low` to `high`."""
        word = self.word(name, f"{default:g}")
        return self.attempt(lambda: settings.number(f"FIRSTTOKEN_{name}", word, low=low, high=high), default)

    def one_of(self, name: str, *choices: str) -> str:
        """One of `choices`, of which the first is the default."""
        word = self.word(name, choices[0])
        if word not in choices:
            self._leave_out(f"FIRSTTOKEN_{name}={word} is unknown: use {', '.join(choices)}")
            return choices[0]
        return word

    def attempt(self, read: Callable[[], T], otherwise: T) -> T:
        """What `read` gives, or `otherwise` where it finds something wrong."""
        try:
            return read()
        except (UsageError, ValueError) as error:
            self._leave_out(str(error))
            return otherwise

    def _leave_out(self, why: str) -> None:
        log.error("%s: %s: left out", PROGRAM, why)
        self.ok = False


def read(environ: Mapping[str, str]) -> Setup:
    """What `environ` and the files it names decide. Never fails."""
    environment = Environment(environ)
    service, spec = _service(environment)
    endpoint = environment.word("OTLP_ENDPOINT", "") or None
    export = environment.attempt(
        lambda: otlp_settings.read(environ, endpoint=endpoint), ExportSettings(traces=None, metrics=None)
    )
    admin, token = _admin(environment)
    engine = environment.one_of("ENGINE", scrape.AUTO, *scrape.ENGINES)
    interval_s = environment.number("SCRAPE_INTERVAL", limits.SCRAPE_INTERVAL_S, low=0.1)
    asks_app = environment.one_of("SCRAPE", "auto", "off") == "auto"
    plan = Plan(
        service=service,
        version=settings.version(),
        source="middleware",
        export=export,
        spec=spec,
        class_header=environment.word("CLASS_HEADER", CLASS_HEADER),
        max_models=int(environment.number("MAX_MODELS", limits.MAX_MODELS, low=1, high=10_000)),
        sample_ratio=environment.number("SAMPLE", 1.0, low=0, high=1),
        shed="off" if environment.one_of("SHED", "shadow", "off") == "off" else "shadow",
        models=asks_app,
        scrape=asks_app,
        gpu=environment.one_of("GPU", "auto", "off") == "auto",
        visible_gpus=environ.get("CUDA_VISIBLE_DEVICES"),
        config_ok=environment.ok,  # last: all has been read
    )
    return Setup(plan, admin, token, engine, interval_s)


def _service(environment: Environment) -> tuple[str, Spec | None]:
    environ = environment.variables
    named = environment.word("SERVICE", "") or environ.get("OTEL_SERVICE_NAME", "").strip() or None
    without: tuple[str, Spec | None] = (named or settings.DEFAULT_SERVICE, None)

    def chosen() -> tuple[str, Spec | None]:
        specs = settings.load(settings.spec_paths(None, environ))
        return settings.service(named, specs, strict=bool(environment.word("SLO", "")))

    return environment.attempt(chosen, without)


def _admin(environment: Environment) -> tuple[Address | None, str | None]:
    """The address of the pages, if they are to be shown, and the admin token, if there is one."""
    word, file = environment.word("ADMIN", ADMIN), environment.word("TOKEN_FILE", "") or None

    def listened() -> tuple[Address | None, str | None]:
        address = None if word == "off" else settings.address("FIRSTTOKEN_ADMIN", word)
        return address, settings.token(file, address, insecure=False)

    none: tuple[Address | None, str | None] = (None, None)
    return environment.attempt(listened, none)


class Attachment:
    """The telemetry of one app on one event loop. `like` is a scope that the app has been called with."""

    def __init__(self, app: App, like: Scope, setup: Setup) -> None:
        self.loop = asyncio.get_running_loop()
        self.shown_at: Address | None = None  # the pages, once they are
        self.token = None if setup.admin_token is None else setup.admin_token.encode()
        self._setup = setup
        inner = InnerPages(app, like)

        def poller(eye: Eye, on_page: OnPage) -> Poller:
            interval_s = setup.scrape_interval_s
            return Poller(ITSELF, eye, engine=setup.engine, interval_s=interval_s, fetch=inner.get, on_page=on_page)

        self.telemetry = of_requests(setup.plan, self.loop, poller)
        self._begun = self._ended = False

    def begin(self) -> None:
        """Start the chores; called again it does nothing."""
        if self._begun:
            return
        self._begun = True
        _speak_up()
        more = () if self._setup.admin is None else (self._show_pages(self._setup.admin),)
        self.telemetry.begin(*more)
        atexit.register(self._at_exit)

    async def end(self) -> None:
        """Stop, and send the last telemetry."""
        if not self._begun or self._ended:
            return
        self._ended = True
        atexit.unregister(self._at_exit)
        await self.telemetry.end()

    def _at_exit(self) -> None:
        """The process ends and the app was never told."""
        self.telemetry.close(limits.FLUSH_S)

    async def _show_pages(self, address: Address) -> None:
        door = AdminDoor(pages.pages(self.telemetry.sources()), token=self._setup.admin_token)
        try:
            listener = await listen(door, address, flag="FIRSTTOKEN_ADMIN")
        except ListenError as error:
            log.warning(
                "%s: no /metrics page in process %d: %s (another worker may hold it; OTLP counts every worker)",
                PROGRAM,
                os.getpid(),
                error,
            )
            return
        self.shown_at = listener.address
        log.info("%s: admin: %s", PROGRAM, listener.url)
        try:
            await self.loop.create_future()
        finally:
            listener.close()
            door.close()


def _speak_up() -> None:
    """Let our warnings be heard in a host whose log is set to errors alone, unless someone has decided about ours."""
    ours = logging.getLogger("sidecar")
    if ours.level == logging.NOTSET and not ours.isEnabledFor(logging.WARNING):
        ours.setLevel(logging.WARNING)
