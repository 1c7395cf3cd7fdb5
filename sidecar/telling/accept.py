"""Which form of the metrics page a scraper wants (RFC 9110, 12.5.1).

Prometheus lists what it reads, each with the weight it gives it: OpenMetrics 1.0 mostly above the older text format.
OpenMetrics is for who names it and puts it no lower than the text; everybody else, a browser too, gets the text.
"""

from sidecar.http.http_head import Headers, find_all, tokens

_OPENMETRICS = b"application/openmetrics-text"
_VERSIONS = (b"", b"1.0.0")  # that of our page, and of who takes any
_TEXT = (b"text/plain", b"text/*", b"*/*")  # the narrower first: it has the word where several stand there


def wants_openmetrics(headers: Headers) -> bool:
    """Whether the page should be in OpenMetrics 1.0."""
    weights: dict[bytes, float] = {}
    for item in tokens(b",".join(find_all(headers, b"accept"))):
        kind, *rest = (part.strip() for part in item.split(b";"))
        given = dict(part.split(b"=", 1) for part in rest if b"=" in part)
        if kind != _OPENMETRICS or given.get(b"version", b"").strip(b'" ') in _VERSIONS:
            weights[kind] = max(_weight(given.get(b"q", b"1")), weights.get(kind, 0.0))
    ours = weights.get(_OPENMETRICS, 0.0)
    return ours > 0 and ours >= next((weights[kind] for kind in _TEXT if kind in weights), 0.0)


def _weight(text: bytes) -> float:
    """A weight as it is written, 0 for what is none."""
    try:
        return float(text)
    except ValueError:
        return 0.0
