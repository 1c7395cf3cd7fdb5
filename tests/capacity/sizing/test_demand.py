"""A demand from a trace."""

from pathlib import Path

import numpy as np
import pytest

from capacity.errors import WorkloadError
from capacity.sizing.demand import of_file


def write(folder: Path, rows: str, head: str = "time_s,input_tokens,output_tokens") -> str:
    (folder / "t.csv").write_text(f"{head}\n{rows}")
    return str(folder / "t.csv")


def test_requests_come_in_order_from_zero_with_their_tokens(tmp_path: Path) -> None:
    rows = "".join(f"{100 - at},{at},{2 * at + 1}\n" for at in range(30))
    found = of_file(write(tmp_path, rows))
    assert found.times_s.tolist() == list(range(30))
    assert found.tokens[:2] == ((29, 59), (28, 57))
    assert (found.span_s, found.mean_rps, found.mean_tokens) == (29, 1, (14.5, 30))


def test_times_alone_are_a_demand_of_requests_of_unknown_length(tmp_path: Path) -> None:
    found = of_file(write(tmp_path, "".join(f"{at}\n" for at in range(30)), "time_s"))
    assert (found.tokens, found.mean_tokens) == ((), None)


def test_requests_that_do_not_say_how_long_they_are_are_taken_for_such_as_the_others(tmp_path: Path) -> None:
    rows = "".join(f"{at},{at % 3 + 1},{'' if at % 2 else 7}\n" for at in range(30))
    found = of_file(write(tmp_path, rows))
    assert found.note == "50% of its requests do not say how long they are: they are taken for such as the others"
    assert len(found.tokens) == 30
    assert found.tokens[0] == (1, 7)
    assert {out for _, out in found.tokens} == {7}
    assert found.tokens == of_file(write(tmp_path, rows)).tokens


def test_growth_keeps_bursts_as_large_in_less_time(tmp_path: Path) -> None:
    found = of_file(write(tmp_path, "".join(f"{at},1,1\n" for at in range(30))))
    grown = found.grown(1.5)
    assert grown.mean_rps == pytest.approx(1.5)
    assert grown.tokens == found.tokens
    assert np.allclose(grown.times_s * 1.5, found.times_s)


REFUSED = {
    "too few": ("".join(f"{at},1,1\n" for at in range(19)), "has 19 requests with a time: at least 20 make a load"),
    "a time that cannot be": ("".join(f"{at},1,1\n" for at in (*range(29), 1e300)), "goes on for more than ten years"),
    "all at once": ("7,1,1\n" * 30, "all requests come at the same moment"),
}


@pytest.mark.parametrize(("rows", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_load_over_time_is_refused(rows: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=says):
        of_file(write(tmp_path, rows))


def test_lengths_without_times_are_no_demand(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="has 0 requests with a time"):
        of_file(write(tmp_path, "1,1\n" * 30, "num_prefill_tokens,num_decode_tokens"))
