"""KernelBot's Parquet files made into typed rows, whatever types an export has chosen.

Both families of submissions files, the per-case one (struct `run_result`) and the flat aggregate one, come out as
`ROWS`. Only the leaf columns that the tables need are read; never `code`, `stdout`, `stderr` or a compiler's output.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from assets import columns
from assets.kernelbot.opening import one_line, open_parquet
from warehouse.errors import UnreadableError
from warehouse.identity import MAXIMUM_INTEGER, canonical_json
from warehouse.memory import give_back
from warehouse.raw import RawFile

PARSER = "kernelbot/1"
BATCH_ROWS = 16_384
_LONGEST_RAW_TEXT = 2_000
_SHORT_RAW_TEXT = 60

_CASE_FIELDS = ("spec", "runs", "mean", "std", "best", "worst")
CASE = pa.struct([("index", pa.int64()), *[(name, pa.string()) for name in _CASE_FIELDS]])
ROWS = pa.schema(
    [
        ("item", pa.int64()),
        ("submission_id", pa.int64()),
        ("leaderboard_id", pa.string()),
        ("problem_name", pa.string()),
        ("user_id", pa.string()),
        ("user_name", pa.string()),
        ("code_id", pa.string()),
        ("file_name", pa.string()),
        ("submitted_at", columns.INSTANT),
        ("upstream_status", pa.string()),
        ("upstream_run_id", pa.string()),
        ("mode", pa.string()),
        ("score", pa.float64()),
        ("passed", pa.bool_()),
        ("label", pa.string()),
        ("verdict", pa.string()),
        ("compiled", pa.bool_()),
        ("ran", pa.bool_()),
        ("content", pa.string()),
        ("system", pa.string()),
        ("labels", pa.string()),
        ("cases", pa.list_(CASE)),
    ]
)

Family = Literal["per_case", "aggregate", "boards", "sources", "unknown"]

_COMMON = ["submission_id", "leaderboard_id", "user_id", "file_name", "code_id", "submission_time"]
_TOP_COLUMNS: dict[Family, list[str]] = {
    "per_case": [*_COMMON, "run_id", "run_mode", "run_score", "run_passed"],
    "aggregate": [*_COMMON, "problem_name", "user_name", "status", "score", "passed", "mode", "runner"],
    "boards": ["id", "name", "deadline"],
    "sources": ["submission_id", "content_digest", "size_bytes"],
    "unknown": [],
}
# Known and of no use to the tables, or read only when asked for.
_UNUSED: dict[Family, set[str]] = {
    "per_case": {
        "code", "run_start_time", "run_end_time", "run_result", "run_compilation", "run_meta", "run_system_info",
        "__index_level_0__",
    },
    "aggregate": {"code", "__index_level_0__"},
    "boards": {"lang", "description", "reference", "gpu_types", "__index_level_0__"},
    "sources": {"file_name", "__index_level_0__"},
    "unknown": set(),
}  # fmt: skip
_SYSTEM_FIELDS = {"cpu", "gpu", "platform", "torch", "device_count", "runtime"}
_RESULT_FIELD = re.compile(
    r"check|(benchmark|test)-count|test\.[0-9]+\.\w+"
    r"|benchmark\.(0|[1-9][0-9]{0,5})\.(spec|runs|mean|std|best|worst|err|report)"
)
_CASE_FIELD = re.compile(r"benchmark\.(0|[1-9][0-9]{0,5})\.(spec|runs|mean|std|best|worst)")


@dataclass
class SubmissionsFile:
    """One Parquet file being read: `rows()` streams it; `rejects` and `drift` are complete once that has ended."""

    source: RawFile
    rejects: list[dict[str, Any]] = field(default_factory=list)
    drift: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._parquet = open_parquet(self.source)
        if twice := [name for name, count in Counter(self.schema.names).items() if count > 1]:
            raise UnreadableError(f"{self.source.locator}: it has the column {twice[0]!r} twice; fetch it again")
        for name, kind in self._unexpected():
            self.drift[(name, kind, "")] += 1

    @cached_property
    def schema(self) -> pa.Schema:
        """The file's Arrow schema."""
        return self._parquet.schema_arrow

    @cached_property
    def family(self) -> Family:
        """Which of the platform's schemas the file has, by its columns."""
        names = set(self.schema.names)
        if {"submission_id", "run_result"} <= names or {"submission_id", "run_mode"} <= names:
            return "per_case"
        if {"submission_id", "score"} <= names:
            return "aggregate"
        if set(_TOP_COLUMNS["sources"]) <= names:
            return "sources"
        return "boards" if set(_TOP_COLUMNS["boards"]) <= names and "submission_id" not in names else "unknown"

    @property
    def rows_read(self) -> int:
        """Rows in the file."""
        return int(self.metadata.num_rows)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Typed rows in the file's order, as `ROWS`; a row that cannot be typed goes to `rejects`.

        Raises:
            UnreadableError: where the file breaks off or its bytes are damaged.
        """
        if self.family == "unknown":
            yield from self._reject_all("UNKNOWN_SCHEMA", "the file is of neither known family of submissions")
            return
        first = 0
        for batch in self._batches(self.columns):
            typed = self._typed(batch, first, self._ambiguous.slice(first, batch.num_rows))
            first += batch.num_rows
            yield typed
            # A batch of some hundred leaf columns is many small pieces of memory; without this, all the file's pile up.
            give_back()

    @property
    def metadata(self) -> pq.FileMetaData:
        """The file's footer."""
        return self._parquet.metadata

    def require_readable(self) -> None:
        """Read all that the tables need, to nothing.

        Raises:
            UnreadableError: where the file breaks off or its bytes are damaged.
        """
        for _ in self._batches(self.columns):
            pass

    def table(self, names: list[str]) -> pa.Table:
        """Some columns of all rows: for the small files.

        Raises:
            UnreadableError: where the file breaks off or its bytes are damaged.
        """
        with self._naming():
            return self._parquet.read(columns=names)

    @property
    def key_columns(self) -> list[str]:
        """What has to be read before `columns` is known: of a per-case file what tells its rows apart."""
        names = ["submission_id", "run_id"] if self.family == "per_case" else []
        return names if set(names) <= set(self.schema.names) else []

    @cached_property
    def columns(self) -> list[str]:
        """What the tables need of the file: names of columns, and dotted paths of leaves.

        Raises:
            UnreadableError: where what tells is damaged.
        """
        if self.family == "unknown":
            return [name for name in self.schema.names if not _is_code(name)]
        return self._leaves(whole_result=bool(pc.any(self._ambiguous).as_py()))

    def _batches(self, leaves: list[str]) -> Iterator[pa.RecordBatch]:
        with self._naming():
            yield from self._parquet.iter_batches(batch_size=BATCH_ROWS, columns=leaves)

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Name the file in what pyarrow complains of."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise UnreadableError(f"{self.source.locator}: cannot be read to its end: {one_line(error)}") from error

    def _leaves(self, *, whole_result: bool) -> list[str]:
        wanted = [name for name in _TOP_COLUMNS[self.family] if name in self.schema.names]
        if self.family == "per_case":
            if "run_system_info" in self.schema.names:
                wanted.append("run_system_info")
            wanted += [
                f"{name}.success" for name in ("run_compilation", "run_meta") if "success" in self._struct_fields(name)
            ]
            fields = self._struct_fields("run_result")
            if whole_result:
                wanted.append("run_result")
            else:
                wanted += [f"run_result.{name}" for name in fields if name == "check" or _CASE_FIELD.fullmatch(name)]
        return wanted

    def _struct_fields(self, name: str) -> list[str]:
        if name not in self.schema.names:
            return []
        kind = self.schema.field(name).type
        return [kind.field(i).name for i in range(kind.num_fields)] if pa.types.is_struct(kind) else []

    def _unexpected(self) -> Iterator[tuple[str, str]]:
        """Fields that the family does not have, and fields of the family that the file does not have."""
        known = set(_TOP_COLUMNS[self.family])
        names = set(self.schema.names)
        if self.family == "unknown":
            return
        for name in sorted(names - known - _UNUSED[self.family]):
            yield name, "added"
        for name in sorted(
            (known | ({"run_result", "run_system_info"} if self.family == "per_case" else set())) - names
        ):
            yield name, "missing"
        if self.family == "per_case":
            for name in ("run_result", "run_system_info"):
                kind = self.schema.field(name).type if name in names else pa.null()
                if not pa.types.is_struct(kind) and not pa.types.is_null(kind):
                    yield name, "retyped"
            for name in self._struct_fields("run_result"):
                if not _RESULT_FIELD.fullmatch(name):
                    yield f"run_result.{name}", "added"
            for name in self._struct_fields("run_system_info"):
                if name not in _SYSTEM_FIELDS:
                    yield f"run_system_info.{name}", "added"
            for name in sorted(_SYSTEM_FIELDS - set(self._struct_fields("run_system_info"))):
                yield f"run_system_info.{name}", "missing"

    @cached_property
    def _ambiguous(self) -> pa.Array:
        """Mask of the rows that only their content tells apart: without a run id, or with one that is there twice.

        A hash of each row is all that is held of a file that may have millions.
        """
        if self.family != "per_case":
            return pa.nulls(0, pa.bool_())
        if not self.key_columns or not self.rows_read:
            return pa.repeat(True, self.rows_read)
        hashes, absent = [np.empty(0, np.uint64)], []
        for keys in self._keys():
            hashes.append(pl.DataFrame(keys).hash_rows().to_numpy())
            absent.append(pc.is_null(keys["run"]))
        mask = pa.chunked_array(absent, pa.bool_()).combine_chunks()
        suspected = _repeated(np.concatenate(hashes))
        return pc.or_(mask, self._twice(suspected)) if suspected.any() else mask

    def _keys(self) -> Iterator[pa.RecordBatch]:
        """Submission and run of each row: `submission`, `run`."""
        for batch in self._batches(self.key_columns):
            submission = columns.integer(batch["submission_id"]).values
            yield pa.record_batch({"submission": submission, "run": columns.name(batch["run_id"]).values})

    def _twice(self, suspected: NDArray[np.bool_]) -> pa.Array:
        """Mask of those suspected rows whose submission and run are there twice."""
        numbers = np.flatnonzero(suspected)
        found, first = [], 0
        for keys in self._keys():
            found.append(keys.filter(pa.array(suspected[first : first + keys.num_rows])))
            first += keys.num_rows
        marked = pa.Table.from_batches(found).append_column("row", pa.array(numbers))
        counted = marked.group_by(["submission", "run"]).aggregate([([], "count_all")])
        twice = counted.filter(pc.greater(counted["count_all"], 1)).drop("count_all")
        mask = np.zeros(len(suspected), np.bool_)
        mask[marked.join(twice, ["submission", "run"], join_type="inner")["row"].to_numpy()] = True
        return pa.array(mask)

    def _typed(self, batch: pa.RecordBatch, first: int, ambiguous: pa.Array) -> pa.RecordBatch:
        count = batch.num_rows
        problems: dict[int, tuple[str, str]] = {}

        def column(name: str, convert: Any, code: str | None = None) -> pa.Array:
            if name not in batch.schema.names:
                return convert(pa.nulls(count)).values
            if pa.types.is_nested(batch.schema.field(name).type) and code is None:
                self.drift[(name, "retyped", str(batch.schema.field(name).type)[:200])] += 1
                return convert(pa.nulls(count)).values
            values, unusable = convert(batch.column(name))
            if pc.any(unusable).as_py():
                for row in pc.indices_nonzero(unusable).to_pylist():
                    if code is None and convert not in (columns.text, columns.name):
                        self.drift[(name, "retyped", "a value that is no " + convert.__name__)] += 1
                    else:
                        problems.setdefault(row, (code or "BAD_TEXT", f"{name} {_unusable_detail(code)}"))
            return values

        submission = column("submission_id", columns.integer, "BAD_ID")
        for row in pc.indices_nonzero(pc.is_null(submission)).to_pylist():
            problems.setdefault(row, ("BAD_ID", "submission_id is no 64-bit integer"))
        shared = {
            "item": pa.array(range(first, first + count), pa.int64()),
            "submission_id": submission,
            "leaderboard_id": column("leaderboard_id", columns.name),
            "user_id": column("user_id", columns.name),
            "code_id": column("code_id", columns.name),
            "file_name": column("file_name", columns.name),
            "submitted_at": column("submission_time", columns.instant, "BAD_TIME"),
        }
        if self.family == "aggregate":
            specific = {
                "problem_name": column("problem_name", columns.name),
                "user_name": column("user_name", columns.name),
                "upstream_status": column("status", columns.name),
                "mode": column("mode", columns.name),
                "score": column("score", columns.number),
                "passed": column("passed", columns.truth),
                "label": column("runner", columns.name),
            }
        else:
            specific = self._per_case(batch, column, problems)
            specific["content"] = self._contents(batch, specific, ambiguous)
        made = {**shared, **specific}
        arrays = [made[name] if name in made else pa.nulls(count, ROWS.field(name).type) for name in ROWS.names]
        typed = pa.RecordBatch.from_arrays(arrays, schema=ROWS)
        if not problems:
            return typed
        for row, (reason, detail) in sorted(problems.items()):
            self._reject(batch, row, first, reason, detail)
        return typed.filter(pc.invert(pc.is_in(pa.array(range(count)), value_set=pa.array(list(problems)))))

    def _per_case(
        self, batch: pa.RecordBatch, column: Any, problems: dict[int, tuple[str, str]]
    ) -> dict[str, pa.Array]:
        count = batch.num_rows
        result = _fields_of(batch, "run_result")
        machine = _fields_of(batch, "run_system_info")

        def nested(name: str, array: pa.Array) -> pa.Array:
            values, unusable = columns.text(array)
            for row in pc.indices_nonzero(unusable).to_pylist():
                problems.setdefault(row, ("BAD_TEXT", f"{name} {_unusable_detail(None)}"))
            return values

        cases = {
            name: nested(f"run_result.{name}", array) for name, array in result.items() if _CASE_FIELD.fullmatch(name)
        }
        run_id = column("run_id", columns.name)
        # A slash would let one run's id imitate that of another's case.
        for row in pc.indices_nonzero(pc.fill_null(pc.match_substring(run_id, "/"), False)).to_pylist():
            problems.setdefault(row, ("BAD_ID", "run_id has a slash"))
        system = {
            name: nested(f"run_system_info.{name}", array) if _is_text(array.type) else array
            for name, array in machine.items()
        }
        success = {
            name: columns.truth(_fields_of(batch, name).get("success", pa.nulls(count))).values
            for name in ("run_compilation", "run_meta")
        }
        return {
            "upstream_run_id": run_id,
            "mode": column("run_mode", columns.name),
            "score": column("run_score", columns.number),
            "passed": column("run_passed", columns.truth),
            "label": columns.name(system.get("gpu", pa.nulls(count))).values,
            "verdict": nested("run_result.check", result["check"])
            if "check" in result
            else pa.nulls(count, pa.string()),
            "compiled": success["run_compilation"],
            "ran": success["run_meta"],
            "system": _json_objects(system, count),
            "labels": _json_objects(
                {name: columns.name(system[name]).values for name in ("platform", "torch") if name in system}, count
            ),
            "cases": _cases(cases, count),
        }

    def _contents(self, batch: pa.RecordBatch, typed: dict[str, pa.Array], ambiguous: pa.Array) -> pa.Array:
        """SHA-256 of `{run_passed, run_score, run_result}` without absent fields, for the rows that need it."""
        rows = pc.indices_nonzero(ambiguous).to_pylist()
        digests: list[str | None] = [None] * batch.num_rows
        if rows:
            # Slices, since not every type of text can be taken from.
            column = batch.column("run_result") if "run_result" in batch.schema.names else None
            results = [_pylist(column.slice(row, 1))[0] if column is not None else None for row in rows]
            for row, result in zip(rows, results, strict=True):
                stated = {"run_passed": typed["passed"][row].as_py(), "run_score": typed["score"][row].as_py()}
                digests[row] = content_digest({**stated, "run_result": result})
        return pa.array(digests, pa.string())

    def _reject(
        self, batch: pa.RecordBatch, row: int, first: int, reason: str, detail: str, longest: int = _LONGEST_RAW_TEXT
    ) -> None:
        raw = {name: _pylist(batch.column(name).slice(row, 1))[0] for name in batch.schema.names if not _is_code(name)}
        self.rejects.append(
            {"item": str(first + row), "reason": reason, "detail": detail, "raw": raw_json(raw, longest)}
        )

    def _reject_all(self, reason: str, detail: str) -> Iterator[pa.RecordBatch]:
        first = 0
        for batch in self._batches(self.columns):
            for row in range(batch.num_rows):
                # A whole file of them: of each row enough to know it by.
                self._reject(batch, row, first, reason, detail, longest=_SHORT_RAW_TEXT)
            first += batch.num_rows
            yield from ()


def _repeated(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Mask of the values that are there more than once."""
    ordered = np.sort(hashes)
    return np.isin(hashes, ordered[1:][ordered[1:] == ordered[:-1]])


def is_bulk(path: str) -> bool:
    """Whether a leaf, by its dotted path, holds source text or what is known of a compilation and an execution."""
    top, _, rest = path.lower().partition(".")
    return top == "code" or (top in ("run_compilation", "run_meta") and rest != "success")


def _is_code(name: str) -> bool:
    """Whether a column holds source text, however its name is written."""
    return name.lower() == "code"


def content_digest(content: dict[str, Any]) -> str:
    """SHA-256 (64 hex digits) of a per-case row's content, without absent fields and figures that are not finite."""
    return hashlib.sha256(canonical_json(_present(content)).encode()).hexdigest()


def raw_json(raw: dict[str, Any], longest: int = _LONGEST_RAW_TEXT) -> str:
    """A rejected row as canonical JSON: long text cut, bytes read as far as they go, unwritable numbers as text."""
    return canonical_json(_writable(raw, longest))


def _present(value: Any) -> Any:
    """The value without absent fields and numbers that have no canonical form; what JSON has no form for is text."""
    match value:
        case dict():
            kept = {name: _present(entry) for name, entry in value.items()}
            return {name: entry for name, entry in kept.items() if entry is not None}
        case list():
            return [_present(entry) for entry in value]
        case bool() | str() | None:
            return value
        case int():
            return value if abs(value) <= MAXIMUM_INTEGER else None
        case float():
            return value if math.isfinite(value) else None
        case bytes():
            return value.decode("utf-8", errors="replace")
        case _:
            return str(value)


def _writable(value: Any, longest: int = _LONGEST_RAW_TEXT) -> Any:
    match value:
        case dict():
            return {
                _writable(str(name), longest): _writable(entry, longest)
                for name, entry in value.items()
                if entry is not None
            }
        case list() | tuple():
            return [_writable(entry, longest) for entry in value]
        case bytes():
            return _writable(value[: 4 * longest].decode("utf-8", errors="replace"), longest)
        case str():
            clean = value.encode("utf-8", errors="replace").decode("utf-8")
            return clean if len(clean) <= longest else clean[:longest] + "…"
        case bool() | None:
            return value
        case int() | float() if math.isfinite(value) and abs(value) < 2**53:
            return value
        case _:
            return str(value)


def _pylist(array: pa.Array) -> list[Any]:
    """Python values; text that is not UTF-8 comes as bytes."""
    try:
        return list(array.to_pylist())
    except (UnicodeDecodeError, ValueError, OverflowError):
        if pa.types.is_struct(array.type):
            fields = [(array.type.field(i).name, _pylist(child)) for i, child in enumerate(array.flatten())]
            return [{name: values[row] for name, values in fields} for row in range(len(array))]
        if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
            return list(array.cast(pa.large_binary()).to_pylist())
        return list(array.cast(pa.string()).to_pylist())


def _fields_of(batch: pa.RecordBatch, name: str) -> dict[str, pa.Array]:
    if name not in batch.schema.names or not pa.types.is_struct(batch.schema.field(name).type):
        return {}
    array = batch.column(name)
    # `flatten` carries the nulls of the struct into its fields.
    return {array.type.field(i).name: child for i, child in enumerate(array.flatten())}


def _cases(fields: dict[str, pa.Array], count: int) -> pa.Array:
    """The cases of each row as a list in order of their index; a case is there where any of its fields is."""
    indices = sorted({int(name.split(".")[1]) for name in fields})
    pieces: list[pa.Table] = []
    per_row = pa.repeat(0, count).cast(pa.int32())
    for index in indices:
        arrays = [fields.get(f"benchmark.{index}.{name}", pa.nulls(count, pa.string())) for name in _CASE_FIELDS]
        present = pc.is_valid(pc.coalesce(*arrays))
        per_row = pc.add(per_row, present.cast(pa.int32()))
        rows = pc.indices_nonzero(present)
        columns_of_case = [rows, pa.repeat(index, len(rows)), *[array.take(rows) for array in arrays]]
        pieces.append(pa.Table.from_arrays(columns_of_case, names=["row", "index", *_CASE_FIELDS]))
    if not pieces:
        return pa.nulls(count, pa.list_(CASE))
    long = pa.concat_tables(pieces).sort_by([("row", "ascending"), ("index", "ascending")]).combine_chunks()
    ends = pc.cumulative_sum(per_row)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    values = pa.StructArray.from_arrays([_chunk(long[name]) for name in ("index", *_CASE_FIELDS)], fields=list(CASE))
    return pa.ListArray.from_arrays(offsets, values)


def _chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _json_objects(fields: dict[str, pa.Array], count: int) -> pa.Array:
    """One canonical JSON object a row, without absent fields; each distinct value is written out once."""
    members = []
    for name in sorted(fields, key=lambda name: name.encode("utf-16-be")):
        array = columns.plain(fields[name])
        if pa.types.is_nested(array.type):
            texts = [_member(name, value) for value in _pylist(array)]
            members.append(pa.array(texts, pa.string()))
        else:
            encoded = array.dictionary_encode()
            texts = [_member(name, value) for value in encoded.dictionary.to_pylist()]
            members.append(pa.array(texts, pa.string()).take(encoded.indices))
    if not members:
        return pa.repeat("{}", count)
    # `null_handling="skip"` would drop a row whose members are all absent, so each brings its comma along.
    inside = pc.binary_join_element_wise(*[pc.fill_null(member, "") for member in members], "")
    return pc.binary_join_element_wise("{", pc.utf8_slice_codeunits(inside, 1), "}", "")


def _member(name: str, value: Any) -> str | None:
    value = _writable(_present(value))
    return None if value is None else f",{canonical_json(name)}:{canonical_json(value)}"


def _is_text(kind: pa.DataType) -> bool:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(inner) or pa.types.is_large_string(inner) or pa.types.is_binary(inner))


def _unusable_detail(code: str | None) -> str:
    return {"BAD_ID": "is no 64-bit integer", "BAD_TIME": "is no time between the years 1 and 9999"}.get(
        code or "", "is not UTF-8 text"
    )
