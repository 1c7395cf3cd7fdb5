"""slo.yaml: read exactly, refused with the place and what would be right."""

from decimal import Decimal
from pathlib import Path

import jsonschema
import pytest

from slo.objective import Objective, Spec, json_schema, load, parse
from slo.source import SpecError, documents

WHOLE = """
service: chat
environment: prod
classes: [interactive, batch]
objectives:
  - name: ttft
    signal: ttft
    percentile: 95
    threshold: 500ms
    window: 28d
    match: {model: "llama-*", class: interactive, prompt_bytes: "<16k"}
  - {name: tpot, signal: tpot, percentile: 99, threshold: 50ms, stall: 20s, min_output_tokens: 8, owner: core}
  - {name: answered, signal: availability, target: 99.9%, patience: 45s, labels: {tier: gold}}
  - {name: kv-headroom, signal: kv_occupancy, threshold: 90%, target: 99%}
  - name: queue
    signal: queue
    threshold: 10
    target: 95%
    alerts: {min_bad_events: 20, tiers: [{name: fast, budget: 2%, long: 1h}]}
  - name: whole
    signal: e2e
    target: 95
    threshold: 30s
    policy: [{budget_left: 50%, do: freeze}, {budget_left: 0, notify: page, do: stop}]
"""


def only(text: str) -> Spec:
    (spec,) = parse(text)
    return spec


def objective(fields: str) -> Objective:
    return only(f"service: chat\nobjectives:\n  - {{{fields}}}\n").objectives[0]


def faults(text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        parse(text)
    return str(caught.value).splitlines()


def test_the_whole_of_a_spec_is_read() -> None:
    spec = only(WHOLE)
    ttft, tpot, answered, kv, queue, whole = spec.objectives
    assert (spec.service, spec.environment, spec.classes, spec.elastic) == (
        "chat",
        "prod",
        ("interactive", "batch"),
        False,
    )
    assert (ttft.goal, ttft.allowed_bad, ttft.threshold) == (Decimal("0.95"), Decimal("0.05"), Decimal("0.5"))
    assert (tpot.window, tpot.stall_s, tpot.min_tokens, tpot.owner) == (28 * 86400, Decimal(20), 8, "core")
    assert (answered.patience, answered.threshold, answered.labels) == (Decimal(45), None, {"tier": "gold"})
    assert (kv.threshold, queue.threshold) == (Decimal("0.9"), Decimal(10))
    assert (queue.alerts.min_bad_events, whole.policy[1].budget_left) == (20, Decimal(0))
    assert objective("name: a, signal: ttft, target: 95%, threshold: 1s").goal == Decimal("0.95")


def test_the_defaults_are_those_documented() -> None:
    tpot = objective("name: a, signal: tpot, percentile: 99, threshold: 50ms")
    assert (tpot.window, tpot.min_tokens, tpot.stall_s) == (28 * 86400, 2, Decimal(10))


@pytest.mark.parametrize(
    ("asked", "belongs"),
    [
        ({"model": "llama-8b", "request_class": "interactive", "prompt_bytes": 100}, True),
        ({"model": "Llama-8b", "request_class": "interactive", "prompt_bytes": 100}, False),
        ({"model": "llama-8b", "request_class": None, "prompt_bytes": 100}, False),
        ({"model": "llama-8b", "request_class": "interactive", "prompt_bytes": 16384}, False),
        ({"model": "llama-8b", "request_class": "interactive", "prompt_bytes": 16383}, True),
    ],
)
def test_a_request_belongs_where_every_given_field_holds(asked: dict[str, object], belongs: bool) -> None:
    assert only(WHOLE).objectives[0].match.holds(**asked) is belongs  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [("<16k", [0, 16383], [16384]), (">=16k", [16384, 10**9], [16383]), ("16k..64k", [16384, 65535], [16383, 65536])],
)
def test_prompt_sizes_are_half_open_ranges(text: str, inside: list[int], outside: list[int]) -> None:
    sizes = objective(
        f'name: a, signal: ttft, target: 95, threshold: 1s, match: {{prompt_bytes: "{text}"}}'
    ).match.prompt_bytes
    assert sizes is not None
    assert all(map(sizes.holds, inside))
    assert not any(map(sizes.holds, outside))


DURATION = "is not a duration: write a number and a unit, as 500ms, 1.5s, 5m, 1h or 28d"
ONE_OF = "use 'ttft', 'tpot', 'e2e', 'availability', 'kv_occupancy' or 'queue'"
TIER = "alerts: {tiers: [{name: x, budget: 2%, long: "
NEVER = "tier x can never fire: it needs more than 134.4% bad events; use a smaller budget or a longer window"

# fields of one objective; the key whose place is named; the path said; what is said of it
FAULTS = [
    ("signal: ttft, target: 95, threshold: 1s, treshold: 2s", "treshold", ".treshold",
     "unknown key: write threshold, or remove it"),
    ("signal: ttft, target: 95, threshold: 1s, colour: red", "colour", ".colour",
     "unknown key: check the spelling, or remove it"),
    ("signal: ttft, target: 95, threshold: 1s, alerts: {tires: []}", "tires", ".alerts.tires",
     "unknown key: write tiers, or remove it"),
    ("signal: ttft, target: 100%, threshold: 1s", "target", ".target",
     "100% leaves no error budget: use less, as 99.9%"),
    ("signal: ttft, percentile: 0, threshold: 1s", "percentile", ".percentile",
     "0% leaves nothing promised: use more than 0"),
    ("signal: ttft, target: 95, threshold: 500", "threshold", ".threshold", f"500 {DURATION}"),
    ("signal: ttft, target: 95", "{name", "", "threshold: signal ttft needs one, as threshold: 500ms"),
    ("signal: availability, target: 95, threshold: 1s", "threshold", ".threshold",
     "signal availability takes no threshold: remove it"),
    ("signal: latency, target: 95, threshold: 1s", "signal", ".signal", f"latency is not allowed: {ONE_OF}"),
    ("signal: ttft, threshold: 1s", "{name", "",
     "give either percentile or target, as percentile: 95 or target: 99.9%"),
    ("signal: ttft, threshold: 1s, target: 95, percentile: 95", "{name", "",
     "give either percentile or target, as percentile: 95 or target: 99.9%"),
    ("signal: availability, target: 95, owner: a b", "owner", ".owner",
     "'a b' is not a name: use letters, digits, dot, dash and underscore, at most 63"),
    ("signal: availability, target: 95, match: {class: vip}", "class", ".match.class",
     "vip is not in classes: add it there"),
    ("signal: availability, target: 95, match: {prompt_bytes: 64k..16k}", "prompt_bytes", ".match.prompt_bytes",
     "'64k..16k' is no range of sizes: write <16k, >=16k or 16k..64k"),
    ("signal: ttft, target: 95, threshold: 1s, stall: 5s", "stall", ".stall",
     "belongs to signal tpot, not ttft: remove it"),
    ("signal: kv_occupancy, target: 95, threshold: 100%", "threshold", ".threshold",
     "a share of the KV cache is above 0 and under 100%"),
    ("signal: availability, target: 95, window: 1500ms", "window", ".window",
     "1500ms is not a whole number of seconds"),
    ("signal: availability, target: 95, window: 30s", "window", ".window", "must be from 1m to 400d"),
    (f"signal: availability, target: 90, {TIER}1h}}]}}", "budget", ".alerts.tiers[0].budget", NEVER),
    (f"signal: availability, target: 90, window: 1d, {TIER}2d}}]}}", "long", ".alerts.tiers[0].long",
     "is longer than the objective's window, 1d: use a shorter one"),
    (f"signal: availability, target: 99, {TIER}1h, short: 2h}}]}}", "short", ".alerts.tiers[0].short",
     "must not be longer than long, which is 1h"),
    ("signal: availability, target: 99, alerts: {min_bad_events: 0}", "min_bad_events", ".alerts.min_bad_events",
     "0 is too small: 1 is the least"),
    ("signal: availability, target: 99, alerts: {min_bad_events: 1.5}", "min_bad_events", ".alerts.min_bad_events",
     "1.5 is not a whole number"),
    ("signal: availability, target: 99, alerts: {tiers: []}", "tiers", ".alerts.tiers",
     "is empty: write at least 1, or remove it"),
    ("signal: availability, target: 99, labels: {a b: c}", "a b", ".labels.a b",
     "'a b' is no label name: use letters, digits and underscore"),
    ("signal: availability, target: 99, labels: {cost: 1}", "cost", ".labels.cost",
     "1 is not text: put it in quotes"),
    ("signal: availability, target: 99, labels: {cost: [1]}", "cost", ".labels.cost",
     "a list is not text: put it in quotes"),
    ("signal: availability, target: 99, match: {model: ''}", "model", ".match.model",
     "is empty: write some text, or remove it"),
    ("signal: availability, target: [1]", "target", ".target",
     "a list is not a share: write a percentage, as 95, 99.9 or 99.9%"),
    ("signal: availability, target: 99, match: {prompt_bytes: <0}", "prompt_bytes", ".match.prompt_bytes",
     "'<0' is no range of sizes: write <16k, >=16k or 16k..64k"),
    ("signal: availability, target: 99, owner: on", "owner", ".owner",
     "true is not a name: write one, in quotes where it is a word of YAML"),
    (f"signal: ttft, target: 95, threshold: {'9' * 400}s", "threshold", ".threshold", f"{'9' * 57}... {DURATION}"),
    ("signal: queue, target: 95, threshold: 1e999999999", "threshold", ".threshold",
     "1e999999999 is not a number: write 0 or more, as 10 or 2.5"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "key", "path", "said"), FAULTS, ids=[f"{f[0]}" for f in FAULTS])
def test_a_fault_is_said_once_with_its_place_and_what_would_be_right(
    fields: str, key: str, path: str, said: str
) -> None:
    line = f"  - {{name: a, {fields}}}"
    column = line.index(key if key.startswith("{") else f"{key}:") + 1
    where = f"objectives[0]{path}: " if not said.startswith("threshold: ") else "objectives[0]."
    assert faults(f"service: chat\nobjectives:\n{line}\n") == [f"slo.yaml:3:{column}: {where}{said}"]


TARGETS = {
    "100": "objectives[0].target: 100% leaves no error budget",
    "1.0": "objectives[0].target: 1.0 may be a fraction or a percentage: write 100% or 1%, whichever is meant",
    "0": "objectives[0].target: 0% leaves nothing promised",
    "101": "objectives[0].target: 101% leaves no error budget",
    "-1": "objectives[0].target: -1 is not a share",
    "NaN": "objectives[0].target: NaN is not a share",
    "0.999": "objectives[0].target: 0.999 may be a fraction or a percentage: write 99.9% or 0.999%, whichever is meant",
}


@pytest.mark.parametrize("target", TARGETS, ids=[f"D10: {target}" for target in TARGETS])
def test_a_target_without_a_budget_or_of_two_meanings_is_refused(target: str) -> None:
    (said,) = faults(f"service: s\nobjectives:\n  - {{name: a, signal: availability, target: {target}}}\n")
    assert said.startswith(f"slo.yaml:3:37: {TARGETS[target]}")


def test_d10_a_target_has_one_unit() -> None:
    texts = ("99.9", "99.9%", '"99.9 %"')
    found = [parse(f"service: s\nobjectives: [{{name: a, signal: availability, target: {t}}}]") for t in texts]
    assert {one[0].objectives[0].goal for one in found} == {Decimal("0.999")}


ANSWERED = "{name: a, signal: availability, target: 95}"
STEP = "{budget_left: 50%, do: stop}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"service: s\nobjectives:\n  - {ANSWERED}\n  - {ANSWERED}\n",
         "slo.yaml:4:6: objectives[1].name: objective a stands twice: rename one"),
        ("service: s\nobjectives: []\n",
         "slo.yaml:2:1: objectives: is empty: write at least 1, or remove it"),
        (f"objectives:\n  - {ANSWERED}\n", "slo.yaml:1:1: service: missing: it must be given"),
        (f"service:\nobjectives:\n  - {ANSWERED}\n",
         "slo.yaml:1:1: service: null is not a name: write one, in quotes where it is a word of YAML"),
        ("", "slo.yaml:1:1: an empty file: write service: and objectives:"),
        (f"service: s\nclasses: [synthetic]\nobjectives: [{ANSWERED}]\n",
         "slo.yaml:2:1: classes: synthetic always exists and is never judged: remove it"),
        (f"service: s\nobjectives:\n  - {ANSWERED[:-1]}, policy: [{STEP}, {STEP}]}}\n",
         "slo.yaml:3:49: objectives[0].policy: two steps share a budget_left: make one of them"),
    ],
    ids=["name twice", "no objective", "no service", "service without a name", "empty", "synthetic", "a step twice"],
)  # fmt: skip
def test_a_faulty_whole_is_refused(text: str, said: str) -> None:
    assert faults(text) == [said]


def test_every_fault_of_a_file_is_said_at_once() -> None:
    first = "{name: a, signal: ttft, target: 100, threshold: 1s}"
    second = "{name: b, signal: ttft, target: 95, threshold: x}"
    text = f"service: s\nobjectives: [{first}, {second}]"
    assert [line.split(": ")[1] for line in faults(text)] == ["objectives[0].target", "objectives[1].threshold"]


def test_a_spec_that_is_no_mapping_is_refused() -> None:
    assert faults("- 1\n")[0].startswith("slo.yaml:1:1: ")


CHANGES = [
    ("threshold: 500ms", "threshold: 501ms", True),
    ('model: "llama-*"', 'model: "qwen-*"', True),
    ("class: interactive", "class: batch", True),
    ('"<16k"', '"<17k"', True),
    ("percentile: 95", "percentile: 97", False),
    ("window: 28d", "window: 7d", False),
    ("name: ttft", "name: first", False),
]


@pytest.mark.parametrize(("before", "after", "new_series"), CHANGES)
def test_the_hash_changes_exactly_with_what_decides_good_or_bad(before: str, after: str, new_series: bool) -> None:
    old, new = only(WHOLE).objectives[0], only(WHOLE.replace(before, after, 1)).objectives[0]
    assert (old.hash != new.hash) is new_series
    assert old.hash.isalnum()
    assert len(old.hash) == 12


def test_the_hash_is_the_same_for_the_same_meaning_in_other_words() -> None:
    assert (
        objective("name: a, signal: tpot, target: 99, threshold: 50ms").hash
        == objective("name: b, signal: tpot, percentile: 95, threshold: 0.05s, stall: 10s, min_output_tokens: 2").hash
    )


def test_the_hash_stays_the_same_across_releases() -> None:
    assert objective("name: a, signal: ttft, target: 95, threshold: 500ms").hash == "c53b89397bed"


def test_a_spec_is_known_by_what_it_says_and_not_by_how_it_is_written() -> None:
    def written(threshold: str, target: str = "95") -> str:
        one = {"name": "a", "signal": "ttft", "target": target, "threshold": threshold}
        return Spec.model_validate({"service": "s", "objectives": [one]}).hash

    assert written("2s") == written("2.0s") == written("2000ms") == written("2s", "95.0%")
    assert len({written("2s"), written("2.1s"), written("2s", "99")}) == 3


def test_files_and_folders_are_read_and_each_service_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(WHOLE)
    (tmp_path / "b.yml").write_text(WHOLE.replace("service: chat", "service: code"))
    (tmp_path / "notes.txt").write_text("not a spec")
    assert [spec.service for spec in load([tmp_path])] == ["chat", "code"]
    (tmp_path / "b.yml").write_text(WHOLE)
    with pytest.raises(SpecError, match=r"b\.yml:2:1: service chat is already described in .*a\.yaml"):
        load([tmp_path])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda p: None, "cannot be read: No such file or directory"),
        (lambda p: p.mkdir(), "a folder without a .yaml file"),
        (lambda p: p.write_bytes(b"\xff\xfe\x00"), "not UTF-8 text: save it as that"),
        (lambda p: p.symlink_to(p), "cannot be read: Too many levels of symbolic links"),
    ],
    ids=["missing", "empty folder", "binary", "a link to itself"],
)
def test_a_file_that_cannot_be_read_is_a_problem_like_any_other(tmp_path: Path, make: object, said: str) -> None:
    path = tmp_path / "slo.yaml"
    make(path)  # type: ignore[operator]
    with pytest.raises(SpecError, match=said):
        load([path])


def test_a_name_that_no_file_can_have_is_a_problem_too() -> None:
    with pytest.raises(SpecError, match="cannot be read: File name too long"):
        load(["x" * 300])


def test_two_services_may_share_a_file() -> None:
    assert [s.service for s in parse(WHOLE + "---" + WHOLE.replace("service: chat", "service: code"))] == [
        "chat",
        "code",
    ]


def test_the_json_schema_accepts_what_the_models_accept_and_refuses_the_unknown_key() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    data = documents(WHOLE, "x")[0].data
    plain = _floats(data)
    jsonschema.validate(plain, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**plain, "objectifs": []}, schema)  # type: ignore[dict-item]


def _floats(value: object) -> object:
    if isinstance(value, dict):
        return {key: _floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_floats(item) for item in value]
    return float(value) if isinstance(value, Decimal) else value


def test_a_mapping_where_a_list_belongs_is_said_in_words_of_yaml() -> None:
    policy = "policy: {notify: page}"
    text = f"service: chat\nobjectives:\n  - {{name: a, signal: ttft, percentile: 95, threshold: 1s, {policy}}}\n"
    with pytest.raises(SpecError, match=r"policy: a list is needed: write each item behind a dash"):
        parse(text)


@pytest.mark.parametrize(
    ("owners", "expected"),
    [(("a", "a"), "a"), (("a", "b"), None), (("a", None), None), ((None, None), None)],
    ids=["one owns all", "two own some", "one owns some", "nobody owns any"],
)
def test_a_service_has_the_owner_of_all_its_objectives(owners: tuple[str | None, ...], expected: str | None) -> None:
    rows = (
        f"{{name: o{number}, signal: availability, target: 99%{f', owner: {owner}' if owner else ''}}}"
        for number, owner in enumerate(owners)
    )
    (found,) = parse(f"service: chat\nobjectives: [{', '.join(rows)}]")
    assert found.owner == expected
