"""The data dictionary says what the contracts say."""

from __future__ import annotations

from warehouse.codes import CODES
from warehouse.contracts import PARQUET_ONLY, TABLES
from warehouse.dictionary import FILE, dictionary


def test_the_data_dictionary_is_that_of_the_contracts() -> None:
    assert FILE.read_text(encoding="utf-8") == dictionary(), "run 'make docs'"


def test_the_data_dictionary_has_every_column() -> None:
    text = dictionary()
    codes = sum(len(meanings) for meanings in CODES.values())
    tables = (*TABLES.values(), *PARQUET_ONLY.values())
    assert text.count("\n| `") == sum(len(table.columns) for table in tables) + codes
    assert "| `run_id` | VARCHAR | P | Stable id of the run, the same whatever else is in the data. |" in text
