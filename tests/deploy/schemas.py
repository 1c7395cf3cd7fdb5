"""Holds objects against the schemas of Kubernetes, strictly, and of the Prometheus operator, in `.venv-deploy`:

    python tests/deploy/schemas.py FILE...

One line for each fault, exit 1 when there is one. A field that a kind does not have is a fault.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml
from cloudcoil.models.prometheus_operator import v1 as operator

VERSIONS = ("1.29", "1.33", "1.37")
"""Native sidecars came with 1.29; the newest that there are schemas of."""


def faults(one: dict[str, Any]) -> Iterator[str]:
    """What is wrong with an object."""
    if one["apiVersion"] == "monitoring.coreos.com/v1":
        # Its models pass over fields that they do not know, so that such a field is gone from what they give back.
        model = getattr(operator, one["kind"]).model_validate(one)
        if model.model_dump(mode="json", by_alias=True, exclude_unset=True) != one:
            yield "a field is none of its kind, or of another type"
        return
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(one, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            yield f"Kubernetes {version}, {'.'.join(map(str, error.path))}: {error.message}"


def main() -> int:
    """Look at every object of the files that are named."""
    found = 0
    for name in sys.argv[1:]:
        for one in yaml.safe_load_all(Path(name).read_text()):
            if one:
                for fault in faults(one):
                    print(f"{name}: {one['kind']} {one['metadata']['name']}: {fault}")
                    found += 1
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
