"""Who stands where: ranks, cohorts and records under a policy, standings as the platforms show them, and movements.

The rules are the statements below `sql/`. The relations that they read (`runs`, `submissions` and so on) are those of
the connection, as tables or as views over files; it must have no unfinished result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from warehouse.contracts import RANKING_POLICY, TABLES
from warehouse.statements import statement


class UnknownPolicyError(ValueError):
    """No ranking policy of that name is registered."""


@dataclass(frozen=True)
class Policy:
    """One version of the ranking rules. Once published it stays as it is: another rule is another policy.

    Args:
        name: the policy's name in `ranks.policy` and `snapshot.ranking_policy`.
        folder: folder of `sql/`, or an absolute one, with the statements `ranks`, `cohorts` and `records` over `runs`
            and `submissions`; the last statement of each is a select with the columns of its table. They may name
            `$policy`.
    """

    name: str
    folder: str


# The tables that a policy makes.
RANKED = ("ranks", "cohorts", "records")
BATCH_ROWS = 16_384
POLICIES: dict[str, Policy] = {policy.name: policy for policy in [Policy(RANKING_POLICY, "ranking_v1")]}


def rank(connection: duckdb.DuckDBPyConnection, policy_name: str = RANKING_POLICY) -> dict[str, pa.Table]:
    """The tables of `RANKED` of the relations `runs` and `submissions`; rows in no order.

    Raises:
        UnknownPolicyError: where no such policy is registered.
    """
    return {name: ranked(connection, name, policy_name).read_all() for name in RANKED}


def ranked(
    connection: duckdb.DuckDBPyConnection, table: str, policy_name: str = RANKING_POLICY
) -> pa.RecordBatchReader:
    """One of the tables of `RANKED`, as `rank` has it, in batches: take them before the next statement.

    Raises:
        UnknownPolicyError: where no such policy is registered.
    """
    policy = _policy(policy_name)
    return _rows(connection, table, f"{policy.folder}/{table}", {"policy": policy.name})


def standings(connection: duckdb.DuckDBPyConnection) -> pa.RecordBatchReader:
    """The table `standings` of the relations `results` and `submissions`, in batches; rows in no order."""
    return _rows(connection, "standings", "standings", {})


def movements(
    connection: duckdb.DuckDBPyConnection,
    previous_snapshot_id: str,
    policy_name: str = RANKING_POLICY,
) -> pa.RecordBatchReader:
    """The table `movements`, from `previous_runs` and `previous_ranks` to `runs`, `ranks` and `cohorts`; in no order.

    Both snapshots' ranks may hold several policies; `cohorts` must be those of the policy asked for.

    Raises:
        UnknownPolicyError: where no such policy is registered.
    """
    policy = _policy(policy_name)
    parameters = {"policy": policy.name, "previous_snapshot_id": previous_snapshot_id}
    return _rows(connection, "movements", "movements", parameters)


def _policy(name: str) -> Policy:
    try:
        return POLICIES[name]
    except KeyError:
        raise UnknownPolicyError(f"no ranking policy {name!r}; there are: {', '.join(sorted(POLICIES))}") from None


def _rows(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    statement_name: str,
    parameters: Mapping[str, str],
) -> pa.RecordBatchReader:
    *before, last = connection.extract_statements(statement(statement_name))
    for one in before:
        connection.execute(one, {name: parameters[name] for name in one.named_parameters})
    named = {name: parameters[name] for name in last.named_parameters}
    rows = connection.sql(last, params=named or None).to_arrow_reader(BATCH_ROWS)
    return rows.cast(TABLES[table].arrow_schema())
