"""The APIs that the eye can read: one table, a row for each, and how a request finds its row.

`recognise` looks at the path alone; `read_ask` looks into the request's body, or into its head and tail when it
is long, and says what is asked. A row names pure functions from `dialects_openai` and `dialects_native`; to add a
dialect is to add a section there and a row here, with its recorded bytes as test data. What no row matches is proxied
and never counted.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import orjson

from sidecar.said import dialects_native as native
from sidecar.said import dialects_openai as openai
from sidecar.said import overload
from sidecar.said.facts import Event, Json, name

LOOK_BYTES = 65_536
TAIL_BYTES = 16_384
MAX_CHOICES_ASKED = 1 << 20

Read = Callable[[Json], Event]


@dataclass(frozen=True, slots=True)
class Dialect:
    """One API: how its answers are framed, and the functions that read them.

    `generates`: whether a body asks for an answer; None: each does. `streams`: what the path itself says about
    streaming; None leaves it to the body, whose silence means `streams_by_default`. `ends`: whether a whole stream
    always carries an end mark or a finish reason. `refine`, of a path that several servers share: which of them it is,
    by the keys of the body. `overload`: the body that tells a client so, of a message.
    """

    name: str
    operation: str
    event: Read
    answer: Read
    framing: Literal["sse", "ndjson"] = "sse"
    model: Callable[[Json], str | None] = native.plain_model
    choices: Callable[[Json], int] = openai.choices_asked
    generates: Callable[[Json], bool] | None = None
    streams: bool | None = None
    streams_by_default: bool = False
    ends: bool = True
    overload_429: bool = False
    path_model: str | None = None
    refine: "Callable[[Json], Dialect] | None" = None
    overload: Callable[[str], Json] = overload.openai


class Ask(NamedTuple):
    """What a request asks for. `prompt_bytes` is the length of its whole body.

    (A named tuple: every request makes one, for a third of what a frozen dataclass costs.)
    """

    dialect: Dialect
    operation: str
    model: str | None
    stream: bool
    choices: int = 1
    wants_usage: bool = False
    prompt_bytes: int = 0
    generates: bool = True


def _ollama_generates(body: Json) -> bool:
    # Without a prompt these calls load or unload a model.
    return bool(body.get("messages") or body.get("prompt") or body.get("images"))


def _sglang_or_tgi(body: Json) -> Dialect:
    return TGI_WHOLE if "inputs" in body and "text" not in body else SGLANG


def _invoked(body: Json) -> Dialect:
    return next((dialect for key, dialect in _INVOCATION_KEYS if key in body), CHAT)


def _sglang_choices(body: Json) -> int:
    text = body.get("text") or body.get("input_ids")
    batch = len(text) if isinstance(text, list) and text and isinstance(text[0], str | list) else 1
    params = body.get("sampling_params")
    return batch * (openai.choices_asked(params) if isinstance(params, dict) else 1)


CHAT = Dialect("openai.chat", "chat", openai.chat_event, openai.chat_answer)
INVOCATIONS = replace(CHAT, refine=_invoked)
COMPLETIONS = Dialect(
    "openai.completions",
    "text_completion",
    openai.completions_event,
    openai.completions_event,
    choices=openai.prompts,
)
RESPONSES = Dialect(
    "openai.responses", "chat", openai.responses_event, openai.responses_answer, model=openai.responses_model
)
ANTHROPIC = Dialect(
    "anthropic.messages",
    "chat",
    native.anthropic_event,
    native.anthropic_answer,
    model=native.anthropic_model,
    overload=overload.anthropic,
)
TGI = Dialect("tgi", "text_completion", native.tgi_event, native.tgi_event, overload_429=True, overload=overload.tgi)
TGI_STREAM = replace(TGI, streams=True)
TGI_WHOLE = replace(TGI, streams=False)
TGI_ROOT = replace(TGI, generates=lambda body: "inputs" in body)
OLLAMA_CHAT = Dialect(
    "ollama.chat",
    "chat",
    native.ollama_event,
    native.ollama_event,
    framing="ndjson",
    generates=_ollama_generates,
    streams_by_default=True,
    overload=overload.plain,
)
OLLAMA_GENERATE = replace(OLLAMA_CHAT, name="ollama.generate", operation="text_completion")
LLAMACPP = Dialect(
    "llamacpp", "text_completion", native.llamacpp_event, native.llamacpp_event, overload=overload.llamacpp
)
SGLANG = Dialect(
    "sglang",
    "text_completion",
    native.sglang_event,
    native.sglang_event,
    choices=_sglang_choices,
    refine=_sglang_or_tgi,
)
TRITON = Dialect(
    "triton",
    "text_completion",
    native.triton_event,
    native.triton_event,
    model=native.triton_model,
    ends=False,
    streams=False,
    overload=overload.plain,
)
TRITON_STREAM = replace(TRITON, streams=True)

# The end of a path, the longer first; any prefix may stand before it (`/openai`, `/proxy/7`).
_BY_PATH_END = (
    ("/chat/completions", CHAT),
    ("/completions", COMPLETIONS),
    ("/responses", RESPONSES),
    ("/v1/messages", ANTHROPIC),
    ("/generate_stream", TGI_STREAM),
    ("/generate", SGLANG),
    ("/api/chat", OLLAMA_CHAT),
    ("/completion", LLAMACPP),
    ("/infill", LLAMACPP),
    ("/invocations", INVOCATIONS),
)
_INVOCATION_KEYS = (("messages", CHAT), ("inputs", TGI), ("prompt", COMPLETIONS))
_OLLAMA_GENERATE_END = "/api/generate"
_TRITON_PATH = re.compile(r"/v2/models/([^/]+)(?:/versions/[^/]+)?/generate(_stream)?$")
_DEPLOYMENT_PATH = re.compile(r"/deployments/([^/]+)/(?:chat/)?completions$")


def recognise(target: bytes) -> Dialect | None:
    """The dialect of a POST to a raw target, query and all; None for all that is no ask for an answer."""
    return _USUAL_PATHS.get(target) or _by_path(target.decode("latin-1").partition("?")[0])


def _by_path(path: str) -> Dialect | None:
    path = path.rstrip("/")
    if not path:
        return TGI_ROOT
    if path.endswith(_OLLAMA_GENERATE_END):
        return OLLAMA_GENERATE
    if (match := _TRITON_PATH.search(path)) is not None:
        return replace(TRITON_STREAM if match[2] else TRITON, path_model=name(match[1]))
    for end, dialect in _BY_PATH_END:
        if path.endswith(end):
            match = _DEPLOYMENT_PATH.search(path) if "/deployments/" in path else None
            return dialect if match is None else replace(dialect, path_model=name(match[1]))
    return None


# What nearly every request is sent to; `_by_path` says the same of each.
_USUAL_PATHS = {
    b"/v1/chat/completions": CHAT,
    b"/v1/completions": COMPLETIONS,
    b"/v1/responses": RESPONSES,
    b"/v1/messages": ANTHROPIC,
    b"/generate_stream": TGI_STREAM,
    b"/generate": SGLANG,
    b"/api/chat": OLLAMA_CHAT,
    b"/api/generate": OLLAMA_GENERATE,
    b"/completion": LLAMACPP,
}


def read_ask(
    dialect: Dialect, body: bytes, *, complete: bool = True, tail: bytes = b"", size: int | None = None
) -> Ask:
    """What a request asks for; never fails, whatever the bytes: what cannot be read is as if it were not there.

    A long body is looked into at its head (`body`, with `complete=False`) and its last bytes (`tail`), since many
    clients write `model` and `stream` after the messages; `size` is its whole length in bytes.
    """
    fields = _parsed(body) if complete else _glimpsed(body, tail, () if dialect.refine is None else _TELLING_KEYS)
    if dialect.refine is not None:
        dialect = dialect.refine(fields)
    stream = fields.get("stream") if dialect.streams is None else dialect.streams
    if not isinstance(stream, bool):
        stream = dialect.streams_by_default
    options = fields.get("stream_options")
    choices = dialect.choices(fields)
    # In the order of the fields: with their names written out it takes twice as long.
    return Ask(
        dialect,
        dialect.operation,
        name(fields.get("model")) or dialect.path_model,
        stream,
        min(choices, MAX_CHOICES_ASKED),
        isinstance(options, dict) and options.get("include_usage") is True,  # wants_usage
        len(body) if size is None else size,  # prompt_bytes
        dialect.generates is None or not complete or bool(dialect.generates(fields)),  # generates
    )


def _parsed(body: bytes) -> dict[str, Json]:
    try:
        fields = orjson.loads(body)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


_SCALARS = {"true": True, "false": False}
_TELLING_KEYS = ("messages", "prompt", "inputs", "text")
_VALUE = re.compile(rb'\s*:\s*(?:"((?:[^"\\]|\\.){1,1024})"|(true|false|[0-9]{1,9})\b)')
_AFTER_KEY = re.compile(rb"\s*:")


def _glimpsed(head: bytes, tail: bytes, keys: tuple[str, ...]) -> dict[str, Json]:
    """The few fields that matter, found in pieces of a body; of `keys` only whether they are there.

    Inside a JSON string every quote is escaped, so a quoted key before a colon is a key, not the prompt's text. The
    head's first and else the tail's last is taken: nearest to the top level.
    """
    fields: dict[str, Json] = {key: True for key in keys if _has_key(head, key)}
    for key in ("model", "stream", "n", "include_usage"):
        value = _scalar(head, key, last=False)
        if value is None:
            value = _scalar(tail, key, last=True)
        if value is not None:
            fields[key] = value
    if (include := fields.pop("include_usage", None)) is not None:
        fields["stream_options"] = {"include_usage": include}
    return fields


def _has_key(piece: bytes, key: str) -> bool:
    quoted = b'"%s"' % key.encode()
    start = piece.find(quoted)
    return start >= 0 and _AFTER_KEY.match(piece, start + len(quoted)) is not None


def _scalar(piece: bytes, key: str, *, last: bool) -> Json:
    quoted = b'"%s"' % key.encode()
    value: Json = None
    start = piece.find(quoted)
    while start >= 0:
        match = _VALUE.match(piece, start + len(quoted))
        if match is not None:
            value = _value(match)
            if not last:
                return value
        start = piece.find(quoted, start + len(quoted))
    return value


def _value(match: re.Match[bytes]) -> Json:
    text, word = match[1], match[2]
    if text is not None:
        return _parsed_string(text)
    return _SCALARS.get(word.decode()) if not word.isdigit() else int(word)


def _parsed_string(text: bytes) -> str | None:
    try:
        value = orjson.loads(b'"%s"' % text)
    except ValueError:
        return None
    return value if isinstance(value, str) else None
