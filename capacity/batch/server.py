"""A real server as the search sees it: turns its knob, loads it as it is asked to, and tells what came of it.

With exactly as many outstanding as may run, no request waits, and what is seen is the step; open-loop runs are those of
`certify`, from an empty server at rest. `turn_back` is the last thing to happen, whatever came before.
"""

from dataclasses import dataclass, field, replace

from capacity.batch.fit import Mix
from capacity.batch.knob import Knob
from capacity.batch.outstanding import Outstanding
from capacity.batch.trial import Answer, Ask, AskHeld, AskOpen, Held, MixName, Opened
from capacity.certify.endpoint import Endpoint, Setting
from capacity.certify.lengths import Lengths
from capacity.certify.promises import Promises, series
from capacity.certify.trial import AskAlone, AskRun, Seen
from capacity.errors import UnreachableError
from capacity.record import Record
from capacity.schedule import Span
from capacity.summary import quantile

ALONE = 5
SHORTER = 4
"""Short prompts, and short answers, are this part of the stated ones."""


@dataclass(slots=True)
class Server:
    """Answers the search's questions. `held` judges what is seen of a full server, `opened` what of open-loop load."""

    setting: Setting
    held: Promises
    opened: Promises
    knob: Knob
    batch_before: int | None = None
    _endpoint: Endpoint = field(init=False)
    _batch: int | None = None
    _is_turned: bool = False
    _outstanding: tuple[AskHeld, Outstanding] | None = None
    _open: AskOpen | None = None
    _runs: int = 0

    def __post_init__(self) -> None:
        self._endpoint = Endpoint(replace(self.setting, promises=self.opened), lambda *_: None)

    async def begin(self) -> None:
        """See that the server answers, what a word makes, and how fast it is at rest. Raises UnreachableError."""
        said = await self.knob.now()
        if said is None:
            await self._turn(1)  # a server that a command starts may not be there yet
        self.batch_before = said or self.batch_before
        workload = await self._endpoint.measure_words()
        self.setting = replace(self.setting, workload=workload)
        await self._endpoint.answer(AskAlone(ALONE))

    async def answer(self, ask: Ask) -> Answer:
        """Do what is asked, and say what came of it. Raises UnreachableError or TargetError."""
        return await self._hold(ask) if isinstance(ask, AskHeld) else await self._load(ask)

    async def turn_back(self, chosen: int | None) -> None:
        """End what goes on and set the batch size to what it was; to the chosen one where that is not known."""
        await self._end()
        last = self.batch_before or chosen
        if last is not None and self._is_turned:
            await self._turn(last)

    async def _turn(self, batch: int) -> None:
        if batch != self._batch:
            self._batch, self._is_turned = None, True
            await self.knob.turn(batch)
            self._batch = batch

    async def _end(self) -> None:
        outstanding, self._outstanding, self._open = self._outstanding, None, None
        if outstanding is not None:
            await outstanding[1].end()
        await self._endpoint.end_run()

    # Held full.

    async def _hold(self, ask: AskHeld) -> Held:
        going = self._outstanding
        if going is None or (going[0].batch, going[0].mix) != (ask.batch, ask.mix):
            await self._end()
            await self._turn(ask.batch)
            self._runs += 1
            workload = replace(self.setting.workload, lengths=mixed(self.setting.workload.lengths, ask.mix))
            run = Outstanding(replace(self.setting, workload=workload), ask.batch, f"held {self._runs}")
            going = self._outstanding = ask, run
        return self._seen(ask, await going[1].until(ask.requests))

    def _seen(self, ask: AskHeld, records: list[Record]) -> Held:
        steps = sorted(step for record in records if (step := record.tpot_s) is not None and record.outcome == "ok")
        if not steps:
            raise UnreachableError(
                f"{self.setting.target.url} gave no answer of two tokens or more: --workload must ask for some"
            )
        decoded = [record for record in records if record.outcome == "ok" and record.output_tokens > 1]
        spent_s = sum((one.last_token_s or 0) - (one.first_token_s or 0) for one in decoded)
        ends = sorted((record.end_s, record.outcome == "ok") for record in records)
        (began_s, _), (ended_s, _) = ends[0], ends[-1]
        answered = max(sum(is_answered for _, is_answered in ends[1:]), 1)  # a failed request is no work that was done
        return Held(
            Mix(*mixed(self.setting.workload.lengths, ask.mix).mean),
            spent_s / sum(one.output_tokens - 1 for one in decoded),
            tuple(quantile(steps, 1 - float(one.allowed_bad)) for one in self.held.judged),
            tuple(series(one, records) for one in self.held.judged),
            answered / max(ended_s - began_s, 1e-9),
            ended_s,
        )

    # Open loop.

    async def _load(self, ask: AskOpen) -> Opened:
        if self._open is None or (self._open.batch, self._open.rate_rps) != (ask.batch, ask.rate_rps):
            await self._end()
            await self._turn(ask.batch)
            self._runs += 1
        self._open = ask
        seen = await self._endpoint.answer(AskRun(self._runs, ask.rate_rps, "empty", ask.requests))
        assert isinstance(seen, Seen)
        return Opened(seen.bad, seen.seconds, seen.is_client_late)


def mixed(lengths: Lengths, mix: MixName) -> Lengths:
    """The lengths of a mix: as stated, or with prompts or answers of a part of their length."""
    less_in, less_out = SHORTER if mix == "short prompts" else 1, SHORTER if mix == "short answers" else 1
    if lengths.spans is None:
        pairs = tuple((max(into // less_in, 1), max(out // less_out, 2)) for into, out in lengths.pairs)
        return replace(lengths, pairs=lengths.pairs if mix == "stated" else pairs)
    spans = _shorter(lengths.spans[0], less_in), _shorter(lengths.spans[1], less_out)
    return replace(lengths, spans=spans)


def _shorter(span: Span, by: int) -> Span:
    return span if by == 1 else Span(max(span.low // by, 1), max(span.high // by, 2))
