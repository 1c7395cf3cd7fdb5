import pytest

from sidecar.said import dialects
from sidecar.said.facts import error_type

PATHS = (
    b"/v1/chat/completions", b"/v1/completions", b"/v1/responses", b"/v1/messages", b"/generate_stream", b"/generate",
    b"/api/chat", b"/api/generate", b"/completion", b"/v2/models/m/generate_stream",
)  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_every_dialect_has_a_form_that_is_read_as_an_error_and_carries_the_words(path: bytes) -> None:
    dialect = dialects.recognise(path)
    assert dialect is not None
    body = dialect.overload("too much to do")
    assert error_type(body) is not None
    assert "too much to do" in repr(body)


def test_anthropic_clients_find_their_own_kind() -> None:
    assert error_type(dialects.ANTHROPIC.overload("x")) == "overloaded_error"


def test_ollama_clients_find_the_message_at_the_top() -> None:
    assert dialects.OLLAMA_CHAT.overload("x") == {"error": "x"}
