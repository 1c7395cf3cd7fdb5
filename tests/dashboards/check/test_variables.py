"""What the rules of variables take for a use of one."""

from dashboards.check import variables
from dashboards.model import JsonObject


def board(*texts: str) -> JsonObject:
    listed: list[JsonObject] = [{"type": "query", "name": "model_name"}]
    return {"templating": {"list": listed}, "panels": [{"targets": [{"expr": text} for text in texts]}]}


def test_a_variable_stands_in_a_matcher_or_as_quoted_strings() -> None:
    for text in ('x{m=~"$model_name"}', 'x{m=~"($model_name)?"}', "model IN (${model_name:sqlstring})"):
        assert list(variables.matchers(board(text))) == [], text
    for text in ('x{m="$model_name"}', 'x{m=~"${model_name:regex}"}', "model = ${model_name:sqlstring}"):
        assert list(variables.matchers(board(text))) != [], text


def test_grafanas_own_variables_are_always_there() -> None:
    assert list(variables.known(board("rate(x[$__rate_interval])", "${__field.labels.metric}", "$model_name"))) == []
    assert list(variables.known(board("$instance"))) == ["instance"]


def test_a_variable_that_is_nowhere_asked_is_named() -> None:
    assert list(variables.used(board("up"))) == ["model_name"]
    assert list(variables.used(board("${model_name:sqlstring}"))) == []
