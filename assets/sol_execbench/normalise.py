"""Saved answers of SOL-ExecBench as tables of the contract: group by group, and then together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from assets.sol_execbench.groups import Group, single, united
from assets.sol_execbench.kernels import Listed, Mentions, read_kernels, read_listing
from assets.sol_execbench.ledger import Ledger, Surprises
from assets.sol_execbench.read import Answer
from assets.sol_execbench.results import shared_tables
from assets.sol_execbench.tables import Tables

# Of this reader: another one makes other rows of the same answers.
VERSION = "sol-execbench/1"


@dataclass(frozen=True)
class Reading:
    """What a group's answers made: where its rows are among those of its batch (first row and the one after the last,
    by table), what is odd, and what they name."""

    rows: Mapping[str, tuple[int, int]]
    surprises: Surprises
    mentions: Mentions


@dataclass
class Batch:
    """Groups that are read one after another into the same tables.

    Args:
        fetched_at: when answers were fetched, of those that do not say so themselves.
        revision: upstream's revision, where it has one.
    """

    fetched_at: datetime
    revision: str | None
    tables: Tables = field(default_factory=Tables)

    def read(self, group: Group) -> Reading:
        """Read a group.

        Raises:
            UnreadableAnswer: where an answer has no rows that one could read, or a leaderboard is not JSON.
        """
        first = self.tables.counts()
        ledger = Ledger(group.answers, self.tables)
        mentions = read_kernels(ledger, self.tables, group.answers, group.listed, whole=group.whole)
        ledger.close(self.fetched_at, self.revision, VERSION)
        last = self.tables.counts()
        return Reading({name: (first[name], last[name]) for name in first}, ledger.surprises, mentions)

    def read_listing(self, answers: list[Answer]) -> tuple[Listed, Surprises]:
        """Read the listing: what it says of each kernel, and what is odd about it.

        Raises:
            UnreadableAnswer: where it has no rows that one could read.
        """
        ledger = Ledger(answers, self.tables)
        listed = read_listing(ledger, answers)
        ledger.close(self.fetched_at, self.revision, VERSION)
        return listed, ledger.surprises


def in_order(answers: Iterable[Answer]) -> tuple[list[Answer], list[Answer]]:
    """Listings, and all other answers; each once, by name."""
    distinct = {(answer.locator, answer.content_digest): answer for answer in answers}
    ordered = [distinct[key] for key in sorted(distinct)]
    listings = [answer for answer in ordered if answer.kind == "listing"]
    return listings, [answer for answer in ordered if answer.kind != "listing"]


def normalise(answers: Iterable[Answer], fetched_at: datetime, revision: str | None) -> dict[str, pa.Table]:
    """The tables that SOL-ExecBench's answers make.

    Args:
        answers: listing, definitions, pages of submissions and leaderboards in any order; tables are made of the
            first three, a leaderboard's form is looked at, and others are recorded, not read.
        fetched_at: when they were fetched, for `source_files` and `drift`.
        revision: upstream's revision, where it has one.

    Returns:
        Arrow tables of the contract by name: problems, cases, submissions, authors, implementations, protocols,
        environments, rejects, drift, source_files, and results with the schema of `contracts.RESULTS`.

    Raises:
        UnreadableAnswer: where an answer has no rows that one could read, or a leaderboard is not JSON.
    """
    listings, others = in_order(answers)
    alone = Batch(fetched_at, revision)
    listed, surprises = alone.read_listing(listings)
    mentions = {group: Batch(fetched_at, revision).read(group).mentions for group in single(others, listed)}
    for group in united(mentions):
        surprises.add(alone.read(group).surprises)
    tables = alone.tables.tables()
    shared = shared_tables(
        tables["submissions"]["author_key"], tables["results"]["runner"], tables["results"]["version_label"]
    )
    return {**tables, **shared, "drift": surprises.drift(fetched_at)}
