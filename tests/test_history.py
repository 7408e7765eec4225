"""Which snapshots stay when old ones are removed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from warehouse.history import Entry, Withdrawal, retained

NOW = datetime(2026, 3, 15, 12, tzinfo=UTC)


def nightly(count: int) -> list[Entry]:
    """Entries of the last nights before NOW, one a night at noon, oldest first."""
    found = []
    for days in range(count, 0, -1):
        at = NOW - timedelta(days=days)
        found.append(Entry(f"{at:%Y%m%dT%H%M%SZ}-{days:08x}", f"sha256:{days}", "", at, at))
    return found


def days_kept(kept: set[str]) -> list[str]:
    return sorted(name[:8] for name in kept)


def test_the_newest_of_each_of_the_last_days_and_months_is_kept() -> None:
    kept = retained(nightly(400), NOW, 14, 12)
    monthly = [f"2025{month:02}{day}" for month, day in ((4, 30), (5, 31), (6, 30), (7, 31), (8, 31), (9, 30), (10, 31),
                                                         (11, 30), (12, 31))]  # fmt: skip
    assert days_kept(kept) == [*monthly, "20260131", "20260228", *(f"202603{day:02}" for day in range(1, 15))]


def test_of_several_in_a_day_the_last_is_kept_and_days_without_one_do_not_count() -> None:
    at = [NOW - timedelta(days=90, hours=hours) for hours in (3, 2, 1)] + [NOW - timedelta(days=100), NOW]
    found = [Entry(f"{number}", "", "", one, one) for number, one in sorted(enumerate(at), key=lambda pair: pair[1])]
    assert retained(found, NOW, 2, 0) == {"4", "2"}
    assert retained(found, NOW, 3, 0) == {"4", "2", "3"}
    assert retained(found, NOW + timedelta(days=3), 0, 0) == {"4"}


def test_whatever_was_the_latest_within_two_days_is_kept_even_if_it_was_withdrawn() -> None:
    hours = [60, 50, 49, 47, 1]
    found = []
    for number, before in enumerate(hours):
        at = NOW - timedelta(hours=before)
        found.append(Entry(f"{number}", "", "", at, at, Withdrawal(NOW, "x") if number == 3 else None))
    # The third was the latest until 47 hours ago.
    assert retained(found, NOW, 0, 0) == {"2", "3", "4"}


def test_a_snapshot_that_was_rolled_back_to_counts_from_its_last_time_as_the_latest() -> None:
    month, hour = NOW - timedelta(days=30), NOW - timedelta(hours=1)
    back = NOW - timedelta(days=10)
    bad = Entry("bad", "", "", NOW - timedelta(days=29), NOW - timedelta(days=29), Withdrawal(back, "x"))
    found = [bad, Entry("good", "", "", month, back), Entry("new", "", "", hour, hour)]
    assert retained(found, NOW, 0, 0) == {"good", "new"}
    assert retained(found, NOW + timedelta(days=3), 0, 0) == {"new"}
    assert retained(found, NOW + timedelta(days=3), 9, 9) == {"good", "new"}
