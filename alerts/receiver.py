"""Ways to tell people, as Alertmanager's integrations write them. Secrets are read from files that the operator writes.

`{owner}` in a value stands for the owner of an objective: each owner then has a receiver of its own, and what has no
owner goes to the one of `UNOWNED`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from alerts.errors import TargetError

EMAIL = "email_configs"
OWNER_PLACE = "{owner}"
UNOWNED = "unowned"

PAGERDUTY_KEY_FILE = "/etc/alertmanager/secrets/pagerduty-routing-key"
SLACK_URL_FILE = "/etc/alertmanager/secrets/slack-webhook-url"

_SUMMARIES = "{{ range .Alerts.Firing }}{{ .Annotations.summary }} {{ end }}"
_TITLE = '{{ .Status | toUpper }}: {{ .GroupLabels.Values | join " " }}'
_TEXT = (
    "{{ range .Alerts }}{{ .Status }}: {{ .Annotations.summary }}\n{{ .Annotations.description }}\n"
    "{{ .Annotations.runbook_url }}\n{{ .Annotations.dashboard_url }}\n\n{{ end }}"
)


@dataclass(frozen=True, slots=True)
class Receiver:
    """One way to tell people: the kind of Alertmanager integration and its fields."""

    kind: str
    fields: Mapping[str, object]

    @property
    def is_by_owner(self) -> bool:
        return any(isinstance(value, str) and OWNER_PLACE in value for value in self.fields.values())

    def of(self, owner: str) -> "Receiver":
        """The same for one owner."""
        fields = {
            name: value.replace(OWNER_PLACE, owner) if isinstance(value, str) else value
            for name, value in self.fields.items()
        }
        return Receiver(self.kind, fields)


@dataclass(frozen=True, slots=True)
class Smtp:
    """The mail server that e-mail goes through; a password is in a file."""

    smarthost: str
    sender: str
    user: str | None = None
    password_file: str | None = None

    def mapping(self) -> dict[str, object]:
        """Alertmanager's `global` section."""
        found: dict[str, object] = {"smtp_smarthost": self.smarthost, "smtp_from": self.sender}
        if self.user is not None:
            found["smtp_auth_username"] = self.user
        if self.password_file is not None:
            found["smtp_auth_password_file"] = self.password_file
        return found


def smtp(smarthost: str, sender: str, user: str | None, password_file: str | None) -> Smtp:
    """A mail server as flags name it. Raises `TargetError`."""
    if not re.fullmatch(r"\S+:[0-9]{1,5}", smarthost):
        raise TargetError(f"--smtp-smarthost {smarthost} names no port: write HOST:PORT")
    return Smtp(smarthost, sender, user, password_file)


def webhook(url: str) -> Receiver:
    """A plain webhook; the URL stands in the configuration, so it should hold no secret. Raises `TargetError`."""
    if not url.startswith(("http://", "https://")):
        raise TargetError(f"{url} is no webhook: write http://... or https://...")
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise TargetError(
            "a webhook's URL with a user or password would stand in the configuration: write it into a file, and name "
            "that by the flag's twin that ends in -file"
        )
    return Receiver("webhook_configs", {"url": url})


def webhook_from_file(path: str) -> Receiver:
    """A webhook whose URL is read from a file: Alertmanager 0.26 and newer."""
    return Receiver("webhook_configs", {"url_file": _file(path)})


def pagerduty(key_file: str = PAGERDUTY_KEY_FILE) -> Receiver:
    """PagerDuty Events v2, its routing key read from a file."""
    fields = {"routing_key_file": _file(key_file), "severity": "critical", "description": f"{_TITLE}: {_SUMMARIES}"}
    return Receiver("pagerduty_configs", fields)


def opsgenie(key_file: str) -> Receiver:
    """Opsgenie, its API key read from a file."""
    fields = {
        "api_key_file": _file(key_file),
        "priority": "P1",
        "message": f"{_TITLE}: {_SUMMARIES}",
        "description": _TEXT,
    }
    return Receiver("opsgenie_configs", fields)


def slack(url_file: str = SLACK_URL_FILE) -> Receiver:
    """A Slack webhook, its URL read from a file."""
    return Receiver("slack_configs", {"api_url_file": _file(url_file), "title": _TITLE, "text": _SUMMARIES})


def email(address: str) -> Receiver:
    """Mail in plain text. Raises `TargetError`."""
    if "@" not in address:
        raise TargetError(f"{address} is no e-mail address: write it as team@example.com")
    return Receiver(EMAIL, {"to": address, "headers": {"Subject": _TITLE}, "html": "", "text": _TEXT})


def _file(path: str) -> str:
    """The name of a file that Alertmanager is to read. Raises `TargetError`."""
    if not path.strip() or not path.isprintable():
        raise TargetError(f"{path!r} names no file: write the path under which Alertmanager reads it")
    return path
