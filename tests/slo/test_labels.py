"""Labels that alerts have by themselves are all in the table: none that a generated alert carries is missing."""

from pathlib import Path

import yaml

from slo.labels import RESERVED

RULES = Path(__file__).parents[2] / "alerts" / "generated"


def test_every_label_of_a_generated_alert_is_reserved() -> None:
    groups = [group for path in RULES.glob("*.rules.yaml") for group in yaml.safe_load(path.read_text())["groups"]]
    labels = {label for group in groups for rule in group["rules"] if "alert" in rule for label in rule["labels"]}
    assert {"severity", "notify", "burn_tier", "long_window", "short_window"} <= labels
    assert labels <= RESERVED
