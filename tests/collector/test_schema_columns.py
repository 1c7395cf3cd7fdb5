"""What a column may hold, by its kind."""

import pytest
from sqlalchemy import BigInteger, Column, Double, Text

from collector import schema, schema_columns

KINDS = {
    "text": (Text, False),
    "whole": (BigInteger, False),
    "whole_or_null": (BigInteger, True),
    "real": (Double, False),
    "real_or_null": (Double, True),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_of_one_type_and_null_where_it_says_so(kind: str) -> None:
    column: Column[object] = getattr(schema_columns, kind)("name", "What it is.")
    of, may_be_null = KINDS[kind]
    assert isinstance(column.type, of)
    assert (column.nullable, column.primary_key, column.comment) == (may_be_null, False, "What it is.")


def test_a_key_is_never_made_by_the_database_itself() -> None:
    key = schema_columns.whole("at_s", "When.", key=True)
    assert (key.primary_key, key.autoincrement, key.nullable) == (True, False, False)


def test_what_tables_have_in_common_reads_the_same_in_each() -> None:
    for make in (schema_columns.environment, schema_columns.service, schema_columns.model, schema_columns.objective):
        one = make()
        said = {t.c[one.name].comment for t in schema.metadata.sorted_tables if one.name in t.c}
        assert said == {one.comment}
    of_alert = [column.name for column in schema_columns.of_alert("Its name.", "Its tier.")]
    assert of_alert == [column.name for column in schema.alert.primary_key]
    assert [column.name for column in schema_columns.whose()] == ["environment", "service", "model"]
    assert [make().name for make in (schema_columns.start, schema_columns.step)] == ["start_s", "step_s"]
