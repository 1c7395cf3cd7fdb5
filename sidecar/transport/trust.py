"""Who may name the class of a request: a client on this machine, or one that shows the admin token.

A class takes a request out of objectives, so it is not for everybody to name. The token has a header of its own, since
`Authorization` is the server's, and it ends here: no server sees it.
"""

import hmac

from sidecar.address import is_loopback
from sidecar.http.http_head import TOKEN, RequestHead


def is_local(peer: object) -> bool:
    """Whether a socket's peer is on this machine. A unix socket, whose peers have no address, is of this machine."""
    return not isinstance(peer, tuple) or is_loopback(str(peer[0]))


def shows(head: RequestHead, token: bytes | None) -> bool:
    """Whether a request shows the admin token; never where there is none."""
    if token is None:
        return False
    return hmac.compare_digest(head.find(TOKEN) or b"", token)
