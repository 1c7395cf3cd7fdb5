"""From the body of a request to a `GenerationRequest`: OpenAI's chat and completions forms, validated.

A body that asks for the impossible, or for what this server cannot give, is refused by name (400) before it reaches
the engine; a key that is merely unknown is ignored, as vLLM does. Messages never quote the prompt.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from demo_server.errors import BadRequestError, UnknownModelError
from demo_server.sequence import GenerationRequest, Sampling
from demo_server.text import VOCABULARY, encode, encode_chat

# The longest prompt of the longest model, every byte of it escaped, is half of this.
MAX_BODY_BYTES = 2**20
MAX_STOPS = 16
MAX_STOP_CHARS = 256
MAX_MESSAGES = 8192
MAX_PARTS = 8192
MAX_PROMPTS = 8192
"""More could not fit into the longest model, and a body of millions would keep the server from everyone else."""
# What the legacy completions form gives when it is not told, as at OpenAI and vLLM.
DEFAULT_COMPLETION_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Served:
    """What this server offers: the names it answers to and how many tokens prompt and answer may have together."""

    models: tuple[str, ...]
    max_model_len: int


@dataclass(frozen=True, slots=True)
class Asked:
    """One valid request: what to generate and how the client wants to read it."""

    generation: GenerationRequest
    form: Literal["chat", "completion"]
    stream: bool
    include_usage: bool


Count = Annotated[int, Field(strict=True, ge=1)]
Flag = Annotated[bool, Field(strict=True)]
Stop = Annotated[str, Field(min_length=1, max_length=MAX_STOP_CHARS)]
# A list is read to its first fault: one is told, and writing down a million would keep the server for a minute.
Tokens = Annotated[list[int], Field(fail_fast=True)]
Prompts = Annotated[list[str], Field(fail_fast=True, max_length=MAX_PROMPTS)]
TokenPrompts = Annotated[list[Tokens], Field(fail_fast=True, max_length=MAX_PROMPTS)]


class _Part(BaseModel):
    type: Literal["text"]
    text: str


class _Message(BaseModel):
    role: Annotated[str, Field(min_length=1, max_length=64)]
    content: str | Annotated[list[_Part], Field(fail_fast=True, max_length=MAX_PARTS)] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""


class _StreamOptions(BaseModel):
    include_usage: Flag = False


class _Body(BaseModel):
    model_config = ConfigDict(extra="ignore")

    model: str | None = None
    max_tokens: Count | None = None
    temperature: Annotated[float, Field(strict=True, ge=0, le=2, allow_inf_nan=False)] | None = None
    top_p: Annotated[float, Field(strict=True, gt=0, le=1)] | None = None
    seed: Annotated[int, Field(strict=True)] | None = None
    stop: Stop | Annotated[list[Stop], Field(max_length=MAX_STOPS)] | None = None
    n: Literal[1] | None = None
    ignore_eos: Flag = False
    stream: Flag | None = None
    stream_options: _StreamOptions | None = None
    # Accepted only in the form that changes nothing: what they ask for is not to be had here.
    logprobs: Literal[False] | None = None


class ChatBody(_Body):
    """`POST /v1/chat/completions`."""

    messages: Annotated[list[_Message], Field(fail_fast=True, min_length=1, max_length=MAX_MESSAGES)]
    max_completion_tokens: Count | None = None


class CompletionBody(_Body):
    """`POST /v1/completions`."""

    prompt: str | Tokens | Prompts | TokenPrompts
    echo: Literal[False] | None = None
    suffix: Literal[""] | None = None
    best_of: Literal[1] | None = None


def read_chat(body: bytes, served: Served) -> Asked:
    """Validate a chat request. Raises BadRequestError or UnknownModelError."""
    try:
        chat = ChatBody.model_validate_json(body)
    except ValidationError as error:
        raise _first_complaint(error) from None
    prompt = encode_chat((message.role, message.text) for message in chat.messages)
    room = served.max_model_len - len(prompt)
    return _asked(chat, prompt, served=served, max_tokens=chat.max_completion_tokens or chat.max_tokens or room)


def read_completion(body: bytes, served: Served) -> Asked:
    """Validate a completions request. Raises BadRequestError or UnknownModelError."""
    try:
        completion = CompletionBody.model_validate_json(body)
    except ValidationError as error:
        raise _first_complaint(error) from None
    prompt = _prompt_tokens(completion.prompt)
    room = served.max_model_len - len(prompt)
    asked_tokens = completion.max_tokens or min(DEFAULT_COMPLETION_TOKENS, room)
    return _asked(completion, prompt, served=served, max_tokens=asked_tokens)


def _asked(body: _Body, prompt: tuple[int, ...], *, served: Served, max_tokens: int) -> Asked:
    model = served.models[0] if body.model is None else body.model
    if model not in served.models:
        raise UnknownModelError(
            f"the model {model[:128]!r} does not exist; served: {', '.join(served.models)}", param="model"
        )
    _check_length(len(prompt), max_tokens, served.max_model_len)
    if body.stream_options is not None and not body.stream:
        raise BadRequestError("stream_options needs stream to be true", param="stream_options")
    sampling = Sampling(
        max_tokens=max_tokens,
        temperature=body.temperature or 0.0,
        top_p=body.top_p or 1.0,
        seed=body.seed,
        ignore_eos=body.ignore_eos,
        stop=(body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ()),
    )
    return Asked(
        GenerationRequest(model, prompt, sampling),
        form="chat" if isinstance(body, ChatBody) else "completion",
        stream=bool(body.stream),
        include_usage=body.stream_options is not None and body.stream_options.include_usage,
    )


def _check_length(prompt_tokens: int, max_tokens: int, max_model_len: int) -> None:
    if prompt_tokens >= max_model_len:
        raise BadRequestError(
            f"the prompt has {prompt_tokens} tokens; at most {max_model_len - 1} leave room for an answer",
            param="prompt",
        )
    if prompt_tokens + max_tokens > max_model_len:
        raise BadRequestError(
            f"max_tokens is {max_tokens} and the prompt has {prompt_tokens} tokens; "
            f"together at most {max_model_len} fit",
            param="max_tokens",
        )


def _prompt_tokens(prompt: str | list[int] | list[str] | list[list[int]]) -> tuple[int, ...]:
    if isinstance(prompt, str):
        return encode(prompt)
    if not prompt:
        raise BadRequestError("prompt is empty; give a string or a list of token ids", param="prompt")
    if isinstance(prompt[0], str | list):
        if len(prompt) > 1:
            raise BadRequestError(f"prompt holds {len(prompt)} prompts; one a request is served", param="prompt")
        return _prompt_tokens(prompt[0])
    tokens = tuple(token for token in prompt if isinstance(token, int))
    if not all(0 <= token < VOCABULARY for token in tokens):
        raise BadRequestError(f"prompt holds a token id outside 0..{VOCABULARY - 1}", param="prompt")
    return tokens


def _first_complaint(error: ValidationError) -> BadRequestError:
    """Pydantic's first finding as one line, without quoting anything but a number or a switch."""
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"] if not isinstance(part, str) or part.isidentifier())
    value = first["input"]
    shown = f" (it is {value!r})" if value is None or isinstance(value, int | float) else ""
    param = str(first["loc"][0]) if first["loc"] else None
    return BadRequestError(f"{where or 'body'}: {first['msg']}{shown}", param=param)
