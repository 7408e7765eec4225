"""A digest of rows is that of what they say, not of how they are stored."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.digests import RowsDigest

SCHEMA = pa.schema(
    [
        ("text", pa.string()),
        ("integer", pa.int64()),
        ("double", pa.float64()),
        ("truth", pa.bool_()),
        ("moment", pa.timestamp("us", tz="UTC")),
        ("words", pa.list_(pa.string())),
    ]
)
ROW = st.fixed_dictionaries(
    {
        "text": st.none() | st.text(max_size=5),
        "integer": st.none() | st.integers(-(2**63), 2**63 - 1),
        "double": st.none() | st.floats(allow_nan=False),
        "truth": st.none() | st.booleans(),
        "moment": st.none() | st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)),
        "words": st.none() | st.lists(st.none() | st.text(max_size=3), max_size=3),
    }
)


def digest(batches: Iterable[pa.RecordBatch], schema: pa.Schema = SCHEMA, without: tuple[str, ...] = ()) -> str:
    account = RowsDigest(schema, without)
    for batch in batches:
        account.update(batch)
    return account.digest()


def of(*values: Any, kind: pa.DataType | None = None) -> str:
    """Digest of one column in one batch."""
    schema = pa.schema([("a", kind or pa.string())])
    return digest([pa.record_batch([pa.array(values, schema.field("a").type)], schema=schema)], schema)


@settings(deadline=None, max_examples=100)
@given(st.lists(ROW, max_size=12), st.lists(st.integers(0, 12), max_size=4))
def test_chunks_make_no_difference(rows: list[dict[str, Any]], cuts: list[int]) -> None:
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    whole = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    pieces = [whole.slice(first, last - first) for first, last in itertools.pairwise(bounds)]
    fresh = [pa.RecordBatch.from_pylist(piece.to_pylist(), schema=SCHEMA) for piece in pieces]
    inside = pa.RecordBatch.from_pylist(rows[:1] + rows + rows[:1], schema=SCHEMA).slice(len(rows[:1]), len(rows))
    digests = {
        digest([whole]),
        digest(pieces),
        digest(fresh),
        digest([inside]),
        digest(table.to_batches(max_chunksize=2)),
    }
    assert len(digests) == 1


@settings(deadline=None, max_examples=100)
@given(st.lists(ROW, min_size=1, max_size=6), st.data())
def test_any_change_of_a_value_changes_the_digest(rows: list[dict[str, Any]], data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(rows) - 1))
    name = data.draw(st.sampled_from(SCHEMA.names))
    changed = [dict(row) for row in rows]
    changed[number][name] = data.draw(ROW)[name]
    before = digest([pa.RecordBatch.from_pylist(rows, schema=SCHEMA)])
    after = digest([pa.RecordBatch.from_pylist(changed, schema=SCHEMA)])
    assert (before == after) == (rows[number][name] == changed[number][name]) or rows[number][name] == 0.0


def test_nothing_is_not_empty_zero_or_false() -> None:
    assert of(None) != of("")
    assert of(None, kind=pa.int64()) != of(0, kind=pa.int64())
    assert of(None, kind=pa.float64()) != of(0.0, kind=pa.float64())
    assert of(None, kind=pa.bool_()) != of(False, kind=pa.bool_())
    words = pa.list_(pa.string())
    assert len({of(None, kind=words), of([], kind=words), of([None], kind=words), of([""], kind=words)}) == 4


def test_boundaries_between_values_rows_and_lists_count() -> None:
    assert len({of("ab", "c"), of("a", "bc"), of("abc"), of("abc", ""), of("", "abc"), of("abc", None)}) == 6
    words = pa.list_(pa.string())
    assert of(["a", "b"], [], kind=words) != of(["a"], ["b"], kind=words) != of([], ["a", "b"], kind=words)
    assert of(["ab"], kind=words) != of(["a", "b"], kind=words)


def test_the_order_of_rows_counts() -> None:
    assert of("a", "b") != of("b", "a")
    assert of(None, "a") != of("a", None)


def test_what_hides_under_a_null_does_not_count() -> None:
    values = pa.array([1, 2, 3])
    masked = pa.Array.from_buffers(pa.int64(), 3, [pa.array([True, False, True]).buffers()[1], values.buffers()[1]])
    assert masked.to_pylist() == [1, None, 3]
    schema = pa.schema([("a", pa.int64())])
    assert digest([pa.record_batch([masked], schema=schema)], schema) == of(1, None, 3, kind=pa.int64())


def test_a_table_of_no_rows_has_one_digest() -> None:
    empty = pa.RecordBatch.from_pylist([], schema=SCHEMA)
    assert digest([]) == digest([empty]) == digest([empty, empty])
    assert digest([]) != digest([pa.RecordBatch.from_pylist([{}], schema=SCHEMA)])


def test_columns_that_take_no_part_may_change() -> None:
    rows = [{"text": "a", "moment": datetime(2025, 1, 1, tzinfo=UTC)}, {"text": "b"}]
    others = [{"text": "a"}, {"text": "b", "moment": datetime(2026, 1, 1, tzinfo=UTC)}]
    batches = [[pa.RecordBatch.from_pylist(given, schema=SCHEMA)] for given in (rows, others)]
    assert digest(batches[0]) != digest(batches[1])
    assert digest(batches[0], without=("moment",)) == digest(batches[1], without=("moment",))


def test_a_values_column_counts() -> None:
    schema = pa.schema([("a", pa.string()), ("b", pa.string())])
    first, second = ([pa.RecordBatch.from_pylist([row], schema=schema)] for row in ({"a": "x"}, {"b": "x"}))
    assert digest(first, schema) != digest(second, schema)


@pytest.mark.parametrize("value", [math.inf, -math.inf, 5e-324, 1.7976931348623157e308])
def test_doubles_at_the_ends_are_told_apart(value: float) -> None:
    assert of(value, kind=pa.float64()) != of(math.nextafter(value, 0), kind=pa.float64())


def test_the_number_of_rows_is_known() -> None:
    account = RowsDigest(SCHEMA)
    for count in (3, 0, 4):
        account.update(pa.RecordBatch.from_pylist([{}] * count, schema=SCHEMA))
    assert account.rows == 7
    assert account.digest() == account.digest()
