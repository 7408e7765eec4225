"""Canonical JSON, digests and names: in Python, in the SQL macros, and both alike."""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse import identity
from warehouse.database import connect

CONFORMANCE = os.environ.get("KERNELMART_CONFORMANCE")
# One connection for all: opening one costs far more than a query.
SQL = connect(threads=1)

NUMBERS = {
    0.0: "0",
    1.0: "1",
    -1.5: "-1.5",
    100.0: "100",
    4057360.0: "4057360",
    1.0048658277929109e-05: "0.000010048658277929109",
    1e-6: "0.000001",
    9.999999e-7: "9.999999e-7",
    1e-7: "1e-7",
    4.6e-25: "4.6e-25",
    -1.25e-9: "-1.25e-9",
    5e-324: "5e-324",
    1.7976931348623157e308: "1.7976931348623157e+308",
    123456789012345680.0: "123456789012345680",
    9007199254740992.0: "9007199254740992",
    1e16: "10000000000000000",
    -1e20: "-100000000000000000000",
    1e21: "1e+21",
    1.5e300: "1.5e+300",
    0.1 + 0.2: "0.30000000000000004",
    1 / 3: "0.3333333333333333",
}


def sql_column(expression: str, values: list[Any], kind: pa.DataType) -> list[Any]:
    """A SQL expression over column `x`, row by row."""
    SQL.register("given_rows", pa.table({"i": range(len(values)), "x": pa.array(values, kind)}))
    return [value for (value,) in SQL.execute(f"select {expression} from given_rows order by i").fetchall()]


def sql_numbers(values: list[float]) -> list[str | None]:
    return sql_column("jcs_number(x)", values, pa.float64())


def test_numbers_are_written_as_ecmascript_writes_them() -> None:
    for value, text in NUMBERS.items():
        assert identity.canonical_json(value) == text
    assert sql_numbers(list(NUMBERS)) == list(NUMBERS.values())
    assert sql_numbers([-0.0]) == ["0"]


@pytest.mark.skipif(not CONFORMANCE, reason="KERNELMART_CONFORMANCE is not set")
def test_the_shared_vectors_of_numbers_come_out() -> None:
    vectors = json.loads(Path(str(CONFORMANCE), "golden/canonical_numbers.json").read_bytes())
    values = [float.fromhex(vector["double_hex"]) for vector in vectors]
    wanted = [vector["canonical"] for vector in vectors]
    assert len(wanted) == 26
    assert [identity.canonical_json(value) for value in values] == wanted
    assert sql_numbers(values) == wanted


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.one_of(
            st.floats(allow_nan=False, allow_infinity=False),
            st.builds(
                lambda digits, shift: float(f"{digits}e{shift}"), st.integers(-(10**17), 10**17), st.integers(-40, 8)
            ),
            st.integers(-(10**22), 10**22).map(float),
            st.integers(0, 2**64 - 1)
            .map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])
            .filter(math.isfinite),
        ),
        min_size=50,
        max_size=200,
    )
)
def test_the_macro_writes_every_double_as_the_library_does(values: list[float]) -> None:
    assert sql_numbers(values) == [rfc8785.dumps(value).decode() for value in values]


def test_what_has_no_canonical_form_is_refused_in_python_and_absent_in_sql() -> None:
    for value in (math.nan, math.inf, -math.inf, 2**53, -(2**53), "\ud800", {"a": [1, {"b": math.nan}]}, {1}):
        with pytest.raises(identity.CanonicalError):
            identity.canonical_json(value)
    assert sql_numbers([math.nan, math.inf, -math.inf]) == [None, None, None]
    assert identity.canonical_json([2**53 - 1, -(2**53 - 1)]) == "[9007199254740991,-9007199254740991]"


def test_keys_are_sorted_by_utf16_units_without_white_space() -> None:
    value = {"\ufb33": 1, "\U0001f600": 2, "b": [True, None, "x"], "a": {}, "€": 3}
    assert identity.canonical_json(value) == '{"a":{},"b":[true,null,"x"],"€":3,"😀":2,"\ufb33":1}'


def sql_strings(values: list[str | None]) -> list[str | None]:
    return sql_column("jcs_string(x)", values, pa.string())


def test_every_control_character_is_escaped_as_json_asks() -> None:
    texts = [chr(code) for code in range(0x100)] + [f"a{chr(code)}b" for code in range(0x20)]
    assert sql_strings(list(texts)) == [json.dumps(text, ensure_ascii=False) for text in texts]
    assert sql_strings(["\x1f\x7f/é\u2028", None]) == ['"\\u001f\x7f/é\u2028"', None]


@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.one_of(
            st.text(st.characters(codec="utf-8")),
            st.text(st.sampled_from('\\"\\\\\b\f\n\r\t\x00\x1f\x7funbtrf0/😀€')),
        ),
        min_size=20,
        max_size=60,
    )
)
def test_the_macro_writes_every_text_as_json_does(values: list[str]) -> None:
    wanted = [json.dumps(value, ensure_ascii=False) for value in values]
    assert sql_strings(list(values)) == wanted
    assert [identity.canonical_json(value) for value in values] == wanted


def test_members_without_a_value_are_left_out() -> None:
    text = (
        """concat_ws(',', jcs_member('a', jcs_number(1.0)), jcs_member('b', null), jcs_member('c', jcs_string('')))"""
    )
    assert SQL.execute(f"select {text}").fetchall() == [('"a":1,"c":""',)]
    assert SQL.execute("""select jcs_strings(['a"', 'b']), jcs_strings([])""").fetchall() == [('["a\\"","b"]', "[]")]


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Asia/Kolkata"])
def test_an_instant_is_cut_to_milliseconds_in_any_zone_of_the_session(zone: str) -> None:
    with connect() as connection:
        connection.execute("set timezone = $zone", {"zone": zone})
        written = [
            connection.execute("select instant($t::timestamptz)", {"t": moment}).fetchall()[0][0]
            for moment in (
                datetime(2025, 6, 1, 9, 11, 14, 635_999, UTC),
                datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
                datetime(1, 1, 1, tzinfo=UTC),
                datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC),
                None,
            )
        ]
    assert written == [
        "2025-06-01T09:11:14.635Z",
        "1969-12-31T23:59:59.999Z",
        "0001-01-01T00:00:00.000Z",
        "9999-12-31T23:59:59.999Z",
        None,
    ]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999), min_size=20, max_size=60))
def test_every_instant_is_cut_as_python_cuts_it(microseconds: list[int]) -> None:
    epoch = datetime(1970, 1, 1)
    wanted = [
        (epoch + timedelta(microseconds=ticks)).isoformat(timespec="milliseconds") + "Z" for ticks in microseconds
    ]
    assert sql_column("instant(x)", microseconds, pa.timestamp("us", tz="UTC")) == wanted


@pytest.mark.parametrize(
    ("value", "rounded"),
    [(4175913.45, 4175913), (0.5, 1), (1.5, 2), (2.5, 3), (0.49999999999999994, 1), (0.3, 0), (2.0**52 + 1, 2**52 + 2)],
)
def test_nanoseconds_are_rounded_half_up_in_doubles(value: float, rounded: int) -> None:
    assert SQL.execute("select nearest_integer($x::double)", {"x": value}).fetchall() == [(rounded,)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("AMD Instinct MI300X", "amd-instinct-mi300x"),
        ("--B200__Nebius--", "b200-nebius"),
        ("Größe 7", "gr-e-7"),
        ("...", ""),
        ("", ""),
        ("a" * 120, "a" * 100),
        ("a" * 99 + "--b", "a" * 99),
    ],
)
def test_a_name_in_kebab_case(text: str, name: str) -> None:
    assert identity.kebab(text) == name


@settings(deadline=None, max_examples=200)
@given(st.text())
def test_kebab_case_never_has_hyphens_at_its_ends_or_two_together(text: str) -> None:
    name = identity.kebab(text)
    assert len(name) <= 100
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert not name.startswith("-")
    assert not name.endswith("-")
    assert "--" not in name
    assert identity.kebab(name) == name


def test_a_digest_names_its_algorithm_and_is_of_the_bytes() -> None:
    empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert identity.digest("") == identity.digest(b"") == empty
    assert identity.digest("é") == identity.digest("é".encode()) == "sha256:" + hashlib.sha256(b"\xc3\xa9").hexdigest()
    assert SQL.execute("select digest('é'), digest(null)").fetchall() == [(identity.digest("é"), None)]


def test_a_document_is_digested_without_its_metadata() -> None:
    text, digest = identity.document("Suite", {"statistic": "unspecified", "problem": "qr"}, identity.LOCAL_API_VERSION)
    assert text == '{"apiVersion":"kernelmart/v1","kind":"Suite","spec":{"problem":"qr","statistic":"unspecified"}}'
    assert digest == "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    registry, _ = identity.document("Suite", {})
    assert registry == '{"apiVersion":"kernelindex.dev/v1alpha1","kind":"Suite","spec":{}}'


def test_the_correctness_key_is_that_of_the_registry() -> None:
    kernelbot = "sha256:75d791047b83c1d8df134f951e02ec3283b19cd5ce6c8820d9f73cc9c2a123c8"
    assert identity.correctness_key({"comparator": "kernelbot_eval"}) == kernelbot
    assert identity.correctness_key({"comparator": "sol_execbench_eval"}) != kernelbot


def test_a_comparison_key_is_the_digest_of_its_parts() -> None:
    row = {
        "correctness_key": "sha256:c",
        "environment_digest": "sha256:e",
        "problem_digest": "sha256:p",
        "protocol_digest": "sha256:t",
        "workload_digest": "sha256:w",
        "primary_metric": "latency",
        "primary_statistic": "mean",
        "primary_unit": "ns",
    }
    parts = {
        "v": 1,
        "operation": "sha256:p",
        "workload": "sha256:w",
        "protocol": "sha256:t",
        "environment": "sha256:e",
        "correctness": "sha256:c",
        "metric": "latency:mean:ns",
    }
    SQL.register("row_given", pa.Table.from_pylist([row]))
    found = SQL.execute("select comparison_key(row_given) from row_given").fetchall()
    assert found == [(identity.digest(identity.canonical_json(parts)),)]


def test_a_connection_is_closed_to_extensions_and_in_utc(tmp_path: Path) -> None:
    with connect(tmp_path / "a.duckdb", temporary=tmp_path, threads=1) as connection:
        settings_found = {
            name: connection.execute(f"select current_setting('{name}')").fetchall()[0][0]
            for name in ("timezone", "autoinstall_known_extensions", "autoload_known_extensions", "threads")
        }
    assert settings_found == {
        "timezone": "UTC",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "threads": 1,
    }
    with (
        connect(tmp_path / "a.duckdb", read_only=True) as connection,
        pytest.raises(duckdb.InvalidInputException, match="read-only"),
    ):
        connection.execute("create table t (a int)")
