import pytest

from sidecar.judging.labels import ModelLabels


def test_a_name_is_a_label_once_it_is_known_and_other_before() -> None:
    labels = ModelLabels(10)
    assert labels.of("m") == "other"
    assert labels.learn("m")
    assert not labels.learn("m")
    assert labels.of("m") == "m"
    assert labels.known == ("m",)


def test_the_set_is_closed_once_it_is_full() -> None:
    labels = ModelLabels(2)
    for number in range(1000):
        labels.learn(f"m{number}")
    assert labels.known == ("m0", "m1")
    assert labels.of("m2") == "other"


@pytest.mark.parametrize("name", [None, "", "*", "other", "unknown", "a" * 201, "a\nb", "a\x00"])
def test_what_would_be_no_good_label_never_becomes_one(name: str | None) -> None:
    labels = ModelLabels(10)
    assert not labels.learn(name)
    assert labels.known == ()


def test_a_request_without_a_model_belongs_to_the_only_one_served() -> None:
    labels = ModelLabels(10)
    assert labels.of(None) == "unknown"
    assert labels.serve(["m"]) == ["m"]
    assert (labels.of(None), labels.sole) == ("m", "m")
    assert labels.serve(["m", "n"]) == ["n"]
    assert (labels.of(None), labels.sole) == ("unknown", None)


def test_a_server_of_more_models_than_there_is_room_for_has_no_sole_one() -> None:
    labels = ModelLabels(1)
    labels.learn("x")
    labels.serve(["m"])
    assert labels.sole is None


def test_what_another_set_let_in_is_let_in_here_beyond_its_own_bound() -> None:
    labels = ModelLabels(1)
    assert labels.learn("own")
    labels.take_over(("own", "theirs"), served=("theirs",))
    assert labels.known == ("own", "theirs")
    assert labels.of("theirs") == labels.of(None) == "theirs"
    assert not labels.learn("another")
