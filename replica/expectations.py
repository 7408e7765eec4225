"""What must come out of a generated corpus, in plain data: counts for each file, and the fate of each odd row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

KERNELBOT = "gpumode-kernelbot"
SOL_EXECBENCH = "sol-execbench"

# Text that breaks whatever pastes it into SQL, a path, a terminal, a page or a spreadsheet. All of it has a UTF-8 form.
hostile_text: list[str] = [
    "single ' and double \" quotes",
    "'; drop table runs; --",
    "nul\x00inside",
    "../../etc/passwd",
    "C:\\Windows\\..\\x",
    "right \u202eto left\u202c",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J",
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1:A9)",
    "line\nbreak\r\ncarriage\ttab",
    "<script>alert(1)</script>&amp;",
    "%s {0} ${HOME} `id` \\x41",
    "\ufeffmark\u200bzero width\u2028separator\x0cfeed",
    "日本語 العربية עברית हिन्दी Ελληνικά 🦀👩‍🔬",
    "null",
    "[bold]markup[/bold] | pipe",
    "n" * 100_000,
]


@dataclass(frozen=True)
class Expectation:
    """The fate of one row (or of one case of a row).

    `source` and `locator` name the file as the warehouse does (relative to the source). `item` is the row number from
    zero as text (Parquet), `<row>/benchmark/<n>` for a case that is rejected out of a kept row, `kernels/<n>`,
    `definition` or `submissions/<n>` (JSON). `outcome` is `kept`, `duplicate` or `rejected`; `reason` is the code of a
    rejected row. For kept rows `run_ids` are all runs of the row, `eligible` and `reasons` hold for each of them (None
    where nothing is promised). `flags` are kinds of flag (the part before the colon) that each of those runs carries;
    others may be there too. `observed_at` is the instant in the run's document, where the row is about time.
    """

    source: str
    locator: str
    item: str
    outcome: str
    reason: str | None = None
    run_ids: list[str] | None = None
    eligible: bool | None = None
    reasons: list[str] | None = None
    flags: list[str] = field(default_factory=list)
    observed_at: str | None = None
    note: str = ""


@dataclass
class FileCounts:
    """Rows of one file by outcome; the runs that its kept rows give, and how many of them ranking-v1 lets in."""

    rows_kept: int = 0
    rows_duplicate: int = 0
    rows_rejected: int = 0
    runs: int = 0
    eligible_runs: int = 0

    @property
    def rows_read(self) -> int:
        """All rows of the file."""
        return self.rows_kept + self.rows_duplicate + self.rows_rejected

    def add(self, expectation: Expectation) -> None:
        """Counts a row's expectation; that of a single case counts nothing, its row does."""
        if "/benchmark/" in expectation.item:
            return
        if expectation.outcome == "kept":
            self.rows_kept += 1
            self.runs += len(expectation.run_ids or [])
            self.eligible_runs += len(expectation.run_ids or []) if expectation.eligible else 0
        elif expectation.outcome == "duplicate":
            self.rows_duplicate += 1
        else:
            self.rows_rejected += 1


@dataclass
class Corpus:
    """A corpus on disk. `files` is keyed by (source, locator); every file that was written has an entry."""

    folder: Path
    seed: int
    scale: float
    traps: bool
    code: bool
    files: dict[tuple[str, str], FileCounts] = field(default_factory=dict)
    expectations: list[Expectation] = field(default_factory=list)

    def count(self, source: str, locator: str, counts: FileCounts, expectations: Sequence[Expectation] = ()) -> None:
        """Records a file: the counts of its ordinary rows, and the rows that have an expectation of their own."""
        for expectation in expectations:
            counts.add(expectation)
        self.files[source, locator] = counts
        self.expectations.extend(expectations)

    def of(self, locator: str, source: str = KERNELBOT) -> list[Expectation]:
        """The expectations of one file, in row order."""
        return [one for one in self.expectations if (one.source, one.locator) == (source, locator)]
