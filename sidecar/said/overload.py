"""In what form each API says that its server has too much to do, with status 503: bodies as its clients read errors."""

from sidecar.said.facts import Json


def openai(message: str) -> Json:
    """As OpenAI, and the servers that speak like it."""
    return {"error": {"message": message, "type": "overloaded", "param": None, "code": 503}}


def anthropic(message: str) -> Json:
    """As Anthropic."""
    return {"type": "error", "error": {"type": "overloaded_error", "message": message}}


def tgi(message: str) -> Json:
    """As Text Generation Inference."""
    return {"error": message, "error_type": "overloaded"}


def llamacpp(message: str) -> Json:
    """As llama.cpp's own API."""
    return {"error": {"code": 503, "message": message, "type": "unavailable_error"}}


def plain(message: str) -> Json:
    """As Ollama and Triton."""
    return {"error": message}
