"""Which model a server serves: asked once, before a load that names none."""

import http.client
import json
import ssl

from capacity.client import Target
from capacity.errors import UnreachableError

MODELS_PATH = "/v1/models"
ASK_TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 1024 * 1024


def first_model(to: Target) -> str:
    """The first model that the target's `/v1/models` lists. Raises UnreachableError."""
    url = f"{to.url}{MODELS_PATH}"
    try:
        status, body = _get(to, MODELS_PATH)
    except (OSError, http.client.HTTPException) as error:
        raise UnreachableError(f"{url} does not answer ({error}): is the server up, and is --target right?") from None
    try:
        name = json.loads(body)["data"][0]["id"] if status == http.HTTPStatus.OK else None
    except (ValueError, LookupError, TypeError, RecursionError):
        name = None
    if not isinstance(name, str) or not name.isprintable():
        raise UnreachableError(f"{url} answers {status} and lists no model: name one with --model")
    return name


def _get(to: Target, path: str) -> tuple[int, bytes]:
    connection = (
        http.client.HTTPSConnection(to.host, to.port, timeout=ASK_TIMEOUT_S, context=ssl.create_default_context())
        if to.is_tls
        else http.client.HTTPConnection(to.host, to.port, timeout=ASK_TIMEOUT_S)
    )
    try:
        connection.request("GET", to.prefix + path)
        response = connection.getresponse()
        return response.status, response.read(MAX_ANSWER_BYTES)
    finally:
        connection.close()
