"""When Python looks for garbage: less often than it would by itself, and not among what is there to stay.

A tick makes tens of thousands of values that live for some milliseconds and hold no cycles; by default the interpreter
would look for cycles among them every seven hundred, and now and then through all that the process holds, which takes
tens of milliseconds in which nobody is answered.
"""

import gc

YOUNGEST = 20_000
"""Values that are made before it looks among the youngest: some megabytes, should all of them be garbage."""


def settle() -> None:
    """The start is over: what is held now is not looked through any more."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNGEST, 10, 10)
