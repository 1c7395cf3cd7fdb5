"""Which model a server serves: asked once, before a load that names none."""

import json
from http import HTTPStatus

from capacity.client import Target
from capacity.errors import UnreachableError
from capacity.exchange import UNANSWERED, exchange
from slo.words import reason

MODELS_PATH = "/v1/models"


def first_model(to: Target) -> str:
    """The first model that the target's `/v1/models` lists. Raises UnreachableError."""
    url = f"{to.url}{MODELS_PATH}"
    try:
        status, body = exchange(url)
    except UNANSWERED as error:
        raise UnreachableError(
            f"{url} does not answer ({reason(error)}): is the server up, and is --target right?"
        ) from None
    try:
        name = json.loads(body)["data"][0]["id"] if status == HTTPStatus.OK else None
    except (ValueError, LookupError, TypeError, RecursionError):
        name = None
    if not isinstance(name, str) or not name.isprintable():
        raise UnreachableError(
            f"{url} answers {status} and lists no model: is --target right? If so, name one with --model"
        )
    return name
