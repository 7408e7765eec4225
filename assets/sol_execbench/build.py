"""From SOL-ExecBench's saved answers to parts of its tables; answers that did not change are not normalised again."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from assets.sol_execbench import kernel_parts
from assets.sol_execbench.groups import single, united
from assets.sol_execbench.kernel_parts import KernelParts, columns_of
from assets.sol_execbench.normalise import VERSION, Batch, in_order
from assets.sol_execbench.read import Answer, UnreadableAnswer, parse, read
from assets.sol_execbench.results import shared_tables
from assets.sol_execbench.terms import SOURCE
from warehouse.contracts import SCHEMA_VERSION, SCORES, TABLES
from warehouse.errors import UnreadableError
from warehouse.parts import Part, PartStore, part_key
from warehouse.raw import Collection, RawFile

PATTERNS = ("kernels.json", "kernels/*.json", "submissions/*.json", "leaderboards/*.json")
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
    good = {(file.locator, file.content_digest) for file in last_good.files} if last_good else set()

    def check(file: RawFile) -> None:
        file.require_whole()
        # What the last ingest was made of has been read.
        if (file.locator, file.content_digest) not in good:
            _check(file)

    return collection.with_last_good(check, last_good)


def build_tables(store: PartStore, collection: Collection) -> dict[str, list[str]]:
    """Parts of every table of the source: for each table name, its Parquet files relative to the store.

    Kernels whose answers did not change are not read again; an unchanged source costs one look.

    Raises:
        UnreadableError: for an answer that an earlier reader could read, and this one cannot.
    """
    key = part_key(collection.inputs(), VERSION, SCHEMA_VERSION)
    if store.find(_STAGE, key) is None:
        try:
            _merge(store, key, collection)
        except UnreadableAnswer as error:
            raise UnreadableError(str(error)) from error
    part = Part(store.root / _STAGE / key)
    return {name: [f"{_STAGE}/{key}/{name}.parquet"] for name in part.facts["rows"]}


def _merge(store: PartStore, key: str, collection: Collection) -> None:
    """Make the tables of the whole source from what its kernels make."""
    fetched_at = max(file.fetched_at for file in collection.files)
    listings, others = in_order(_answer(file) for file in collection.files)
    listing = Batch(fetched_at, collection.revision)
    listed, surprises = listing.read_listing(listings)
    parts = KernelParts(store, fetched_at, collection.revision)
    alone = parts.make(single(others, listed))
    together = united(parts.mentions(alone))
    made = list(parts.make(together).values())
    for one in made:
        surprises.add(one.surprises)
    with store.making(_STAGE, key, {}) as writer:
        own = listing.tables.tables()
        for name in kernel_parts.TABLE_NAMES:
            rows = chain(own[name].to_batches() if name in own else (), parts.rows_of(name, made))
            writer.write(name, rows, SCORES.arrow_schema() if name == "scores" else TABLES[name].arrow_schema())
        shared = shared_tables(
            *columns_of(writer.part, "submissions", "author_key"),
            *columns_of(writer.part, "scores", "runner", "version_label"),
        )
        for name, table in {**shared, "drift": surprises.drift(fetched_at)}.items():
            writer.write(name, table, TABLES[name].arrow_schema())


def _answer(file: RawFile) -> Answer:
    return Answer(file.locator, file.content_digest, file.size_bytes, file.path.read_bytes, file.fetched_at)


def _check(file: RawFile) -> None:
    answer = _answer(file)
    try:
        if answer.kind in ("listing", "definition", "submissions"):
            read(answer)
        elif answer.kind == "leaderboard":
            parse(answer)
    except UnreadableAnswer as error:
        raise UnreadableError(str(error)) from error
