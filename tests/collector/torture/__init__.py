"""A real collector while everything goes wrong around it: what it acknowledged is counted, once.

`make torture` runs these at their full length (`TORTURE=long`); without it they are short, and the same.
"""

import os

LONG = os.environ.get("TORTURE") == "long"
