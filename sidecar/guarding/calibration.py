"""Whether waits are as long as they were predicted, by how many were ahead.

A server that takes eight at once makes nobody wait behind seven, and still seven are ahead whose first tokens have not
come: only what became of those before tells. So the factor between predicted and actual waits is kept for each depth,
by powers of two, of the latest requests. It only ever shortens: what a lengthening would be for is the margin's
business (`error_ratios`), and an estimate that is late in following a slower server must not do so twice.
"""

DEPTHS = 16  # powers of two, the last one open
MEMORY = 32  # requests: the weight of one falls to 1/e after so many more
FEWEST = 7  # weight of the requests from which there is a factor: of eight in a row
_KEPT = 1 - 1 / MEMORY


class Calibration:
    """What became of predicted waits."""

    __slots__ = ("_actual", "_predicted", "_weight")

    def __init__(self) -> None:
        self._weight, self._predicted, self._actual = ([0.0] * DEPTHS for _ in range(3))

    def add(self, ahead: int, *, predicted_s: float, actual_s: float) -> None:
        """A request with so many ahead waited `actual_s` instead of `predicted_s`."""
        place = _place(ahead)
        self._weight[place] = self._weight[place] * _KEPT + 1
        self._predicted[place] = self._predicted[place] * _KEPT + predicted_s
        self._actual[place] = self._actual[place] * _KEPT + actual_s

    def factor(self, ahead: int) -> float:
        """What to multiply a predicted wait by, at most 1."""
        place = _place(ahead)
        predicted_s = self._predicted[place]
        if self._weight[place] < FEWEST or not predicted_s:
            return 1.0
        return min(1.0, self._actual[place] / predicted_s)


def _place(ahead: int) -> int:
    return min(ahead.bit_length(), DEPTHS - 1)
