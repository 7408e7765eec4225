"""From SOL-ExecBench's saved answers to parts of its tables; answers that did not change are not normalised again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from assets.sol_execbench.definitions import SOURCE
from assets.sol_execbench.normalise import VERSION, normalise
from assets.sol_execbench.read import Answer, UnreadableAnswer, parse, read
from warehouse.contracts import RESULTS, SCHEMA_VERSION, SCORES, TABLES
from warehouse.database import connect
from warehouse.errors import UnreadableError
from warehouse.parts import Part, PartStore, part_key
from warehouse.raw import Collection, RawFile
from warehouse.statements import statement

PATTERNS = ("kernels.json", "kernels/*.json", "submissions/*.json", "leaderboards/*.json")
TERMS: dict[str, Any] = {
    "source": SOURCE,
    "name": "NVIDIA SOL-ExecBench",
    "url": "https://research.nvidia.com/benchmarks/sol-execbench",
    "license": "site terms of the public leaderboard",
    "attribution": "NVIDIA SOL-ExecBench",
    "terms": "Facts of the public leaderboard may be republished with the source's name.",
    "redistributable": True,
    "freshness_days": 7,
}
# The tables of the contract that this source has rows of.
TABLE_NAMES = (
    "problems", "cases", "authors", "submissions", "implementations", "protocols", "environments", "runs", "scores",
    "source_files", "rejects", "drift",
)  # fmt: skip
_STAGE = f"{SOURCE}/tables"


def check_answers(collection: Collection, last_good: Collection | None) -> Collection:
    """Every answer looked at; one that cannot be read gives way to its last good content.

    Raises:
        UnreadableError: for an answer that cannot be read and was never good, and where there is no listing.
    """
    listed = {file.locator for file in collection.files} | {locator for locator, _ in collection.unreadable}
    if "kernels.json" not in listed:
        missing = f"{SOURCE}: there is no kernels.json; fetch the listing of kernels"
        if last_good is None:
            raise UnreadableError(missing)
        return replace(last_good, stale=(missing,))
    return collection.with_last_good(_check, last_good)


def build_tables(store: PartStore, collection: Collection) -> dict[str, list[str]]:
    """Parts of every table of the source: for each table name, its Parquet files relative to the store."""
    key = part_key(collection.inputs(), VERSION, SCHEMA_VERSION)
    if store.find(_STAGE, key) is None:
        fetched_at = max(file.fetched_at for file in collection.files)
        answers = [_answer(file) for file in collection.files]
        tables = normalise(answers, fetched_at, collection.revision)
        results = tables.pop("results")
        with store.making(_STAGE, key, {}) as writer:
            for name, table in tables.items():
                writer.write(name, table, TABLES[name].arrow_schema())
            with connect() as connection:
                connection.register("results", results.cast(RESULTS.arrow_schema()))
                for name, contract in (("runs", TABLES["runs"]), ("scores", SCORES)):
                    rows: pa.Table = connection.sql(statement(name)).to_arrow_table()
                    writer.write(name, rows, contract.arrow_schema())
    part = Part(store.root / _STAGE / key)
    return {name: [f"{_STAGE}/{key}/{name}.parquet"] for name in part.facts["rows"]}


def _answer(file: RawFile) -> Answer:
    return Answer(file.locator, file.content_digest, file.size_bytes, file.path.read_bytes)


def _check(file: RawFile) -> None:
    file.require_whole()
    answer = _answer(file)
    try:
        if answer.kind in ("listing", "definition", "submissions"):
            read(answer)
        elif answer.kind == "leaderboard":
            parse(answer)
    except UnreadableAnswer as error:
        raise UnreadableError(str(error)) from error
