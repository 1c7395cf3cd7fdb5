"""Ways to tell people: what they are refused for, and how an owner's place is taken."""

import pytest

from alerts.errors import TargetError
from alerts.receiver import Receiver, Smtp, email, opsgenie, pagerduty, slack, webhook, webhook_from_file


def test_a_webhook_is_a_url_and_a_mail_goes_to_an_address() -> None:
    with pytest.raises(TargetError, match="pager is no webhook"):
        webhook("pager")
    with pytest.raises(TargetError, match="team is no e-mail address"):
        email("team")


@pytest.mark.parametrize(
    "receiver",
    [webhook_from_file("/run/x"), pagerduty("/run/x"), opsgenie("/run/x"), slack("/run/x")],
    ids=lambda receiver: receiver.kind,
)
def test_a_secret_is_in_a_file(receiver: Receiver) -> None:
    (name,) = (name for name, value in receiver.fields.items() if value == "/run/x")
    assert name.endswith("_file")
    assert not receiver.is_by_owner


def test_an_owner_takes_its_place_in_every_text() -> None:
    of_all = email("{owner}@example.com")
    assert of_all.is_by_owner
    assert of_all.of("serving").fields["to"] == "serving@example.com"
    assert of_all.of("serving").fields["headers"] == of_all.fields["headers"]


def test_a_mail_server_without_a_user_has_no_password() -> None:
    assert Smtp("mail:25", "a@b.c").mapping() == {"smtp_smarthost": "mail:25", "smtp_from": "a@b.c"}
    assert Smtp("mail:25", "a@b.c", "u", "/run/p").mapping()["smtp_auth_password_file"] == "/run/p"
