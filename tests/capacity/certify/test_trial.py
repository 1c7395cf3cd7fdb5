"""Series as text."""

import numpy as np
import pytest

from capacity.certify.trial import Seen, as_series, as_text


def test_a_series_is_a_letter_a_request_and_comes_back() -> None:
    series = np.array([0, 1, -1, 0], dtype=np.int8)
    assert as_text(series) == "01-0"
    assert (as_series("01-0") == series).all()
    with pytest.raises(KeyError):
        as_series("2")


def test_what_is_seen_counts_every_request() -> None:
    assert Seen((as_series("01-"), as_series("000")), 1.0, 1.0).requests == 3
