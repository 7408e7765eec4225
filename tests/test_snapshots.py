"""What is published is whole, what becomes of it later, and that nothing but its own ingest's leavings ever goes."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest

from assets import published
from pipelines.resources import Request, Warehouse
from tests.commands import as_json, printed, refused, run
from tests.small_snapshot import draft, publish
from tests.three_snapshots import Three, publish_three, results
from warehouse import files, history, life, snapshots
from warehouse.errors import SnapshotError
from warehouse.history import Entry, Withdrawal
from warehouse.home import Home
from warehouse.snapshots import Snapshot


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Three:
    """Three snapshots; no test may change them."""
    return publish_three(tmp_path_factory.mktemp("three"))


@pytest.fixture
def three(made: Three, tmp_path: Path) -> Three:
    """A copy of them."""
    shutil.copytree(made.home.root, tmp_path / "home", symlinks=True)
    return Three(Home(tmp_path / "home"))


@pytest.fixture(scope="module")
def drafted(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with a snapshot and a draft of another."""
    home = publish(tmp_path_factory.mktemp("drafted"))
    draft(home, results(1))
    return home


@pytest.fixture
def home(drafted: Home, tmp_path: Path) -> Home:
    """A copy of it."""
    shutil.copytree(drafted.root, tmp_path / "home", symlinks=True)
    return Home(tmp_path / "home")


def writable(path: Path) -> Path:
    """A published file or folder that may be written to."""
    for one in (path.parent, path):
        one.chmod(one.stat().st_mode | stat.S_IWUSR)
    return path


def flip(path: Path) -> None:
    """Change one bit in the middle of a file."""
    content = bytearray(writable(path).read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def entries(home: Home) -> list[Entry]:
    return history.read(snapshots.history_path(home))[0]


def ids(home: Home) -> list[str]:
    return [snapshot.folder.name for snapshot in snapshots.published(home)]


def latest(home: Home) -> str:
    return snapshots.required(home).folder.name


# Publishing


def state_again(built: Snapshot) -> None:
    """Have a draft's manifest state the files that are there."""
    manifest = built.manifest
    for name in manifest["files"]:
        path = built.folder / name
        manifest["files"][name] = {"sha256": files.sha256(path), "size_bytes": path.stat().st_size}
    files.write_json(built.folder / "manifest.json", manifest)


def in_database(statement: str) -> Callable[[Snapshot], None]:
    def change(built: Snapshot) -> None:
        with duckdb.connect(str(built.database)) as connection:
            connection.execute(statement)
        state_again(built)

    return change


def flip_a_bit(built: Snapshot) -> None:
    flip(built.parquet("ranks")[0])


def leave_a_log(built: Snapshot) -> None:
    (built.folder / "kernelmart.duckdb.wal").write_bytes(b"")


def lose_a_file(built: Snapshot) -> None:
    (built.folder / "datapackage.json").unlink()


def state_other_rows(built: Snapshot) -> None:
    manifest = built.manifest
    manifest["tables"]["runs"]["rows"] += 1
    files.write_json(built.folder / "manifest.json", manifest)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (flip_a_bit, r"ranks/all-[0-9a-f]{8}\.parquet: its bytes are not those that were published"),
        (leave_a_log, r"kernelmart\.duckdb\.wal: no such file was published"),
        (lose_a_file, r"datapackage\.json: the file is gone"),
        (state_other_rows, r"runs has 14 rows by the manifest, 13 in DuckDB and 13 in Parquet"),
        (
            in_database("delete from authors where author_id = '1'"),
            r"authors has \d+ rows by the manifest, \d+ in Duck",
        ),
        (in_database("create view broken as select error('no answer')"), "Invalid Input Error: no answer"),
        (
            in_database("create macro broken(s) as error('no value for ' || s)"),
            "Invalid Input Error: no value for ",
        ),
        (in_database("create or replace macro digest(content) as sha256(content)"), "has digests that are not its own"),
    ],
)
def test_a_draft_that_is_not_whole_is_never_published(
    home: Home, change: Callable[[Snapshot], None], says: str
) -> None:
    before = ids(home)
    built = snapshots.draft_of(home)
    assert built is not None
    change(built)
    with pytest.raises(SnapshotError, match=says) as raised:
        snapshots.publish(home, built)
    assert "\n" not in str(raised.value)
    assert ids(home) == before == [latest(home)]


def test_a_published_snapshot_is_closed_and_cannot_be_written_to(home: Home) -> None:
    built = snapshots.draft_of(home)
    assert built is not None
    snapshot = snapshots.publish(home, built)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (snapshot.folder, *snapshot.folder.rglob("*"))}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o555}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o444}
    assert [path.name for path in snapshot.folder.iterdir() if path.is_file()].count("kernelmart.duckdb") == 1
    assert not list(snapshot.folder.glob("*.wal"))
    assert (latest(home), list(snapshots.damage_beside(home))) == (snapshot.folder.name, [])


def test_two_snapshots_never_have_one_name(home: Home) -> None:
    built = snapshots.draft_of(home)
    assert built is not None
    (home.snapshots / built.snapshot_id).mkdir()
    with pytest.raises(SnapshotError, match=f"{built.snapshot_id}: a snapshot of this name is there already"):
        snapshots.publish(home, built)
    assert snapshots.draft_of(home) is not None


def test_a_statement_that_outgrows_the_memory_leaves_nothing_in_the_published_folder(three: Three) -> None:
    snapshot = snapshots.required(three.home)
    before = sorted(snapshot.folder.rglob("*"))
    with snapshot.open() as connection:
        (place,) = connection.execute("select current_setting('temp_directory')").fetchall()[0]
        connection.execute("from range(3_000_000) as a(x) order by hash(x)").fetchmany(1)
        assert not Path(place).is_relative_to(three.home.root)
        assert sorted(snapshot.folder.rglob("*")) == before
    assert not Path(place).exists()


@pytest.mark.parametrize("alone", [True, False])
def test_a_draft_that_a_check_finds_wrong_is_never_published_however_it_is_asked_for(
    tmp_path: Path, alone: bool
) -> None:
    # It was put together by hand: its problems' documents are not those that their digests name.
    home = Home(tmp_path)
    draft(home)
    chosen = [published.snapshot] if alone else [published.snapshot, *published.draft_checks]
    done = dg.materialize(
        chosen, resources={"warehouse": Warehouse(folder=str(tmp_path)), "request": Request()}, raise_on_error=False
    )
    assert not done.success
    assert snapshots.latest(home) is None
    assert ids(home) == []


# The history


def test_the_history_has_every_snapshot_in_order(three: Three) -> None:
    found = entries(three.home)
    assert [entry.snapshot_id for entry in found] == three.ids
    assert [entry.content_digest for entry in found] == [one.manifest["content_digest"] for one in three.snapshots]
    assert [entry.manifest_sha256 for entry in found] == [
        files.sha256(one.folder / "manifest.json") for one in three.snapshots
    ]
    assert all(entry.withdrawn is None and entry.published_at <= entry.latest_at for entry in found)


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"snapshots": [{"snapshot_id": 5}], "digest": ""}', None])
def test_a_history_that_is_gone_or_damaged_takes_in_every_snapshot_that_there_is(
    three: Three, damage: bytes | None
) -> None:
    path = snapshots.history_path(three.home)
    before = entries(three.home)
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    assert list(snapshots.damage_beside(three.home)) == [f"{path}: the history of the pointer is gone or damaged"]
    life.recover(three.home)
    after = entries(three.home)
    assert [(one.snapshot_id, one.content_digest) for one in after] == [
        (one.snapshot_id, one.content_digest) for one in before
    ]
    assert ids(three.home) == three.ids
    assert list(snapshots.damage_beside(three.home)) == []


def test_a_history_of_which_one_letter_changed_costs_no_snapshot_and_no_withdrawal(three: Three) -> None:
    first, second, third = three.ids
    life.roll_back(three.home, "wrong units")
    path = snapshots.history_path(three.home)
    other = first[:-1] + ("0" if first[-1] != "0" else "1")
    path.write_text(path.read_text().replace(first, other))
    assert not history.read(path)[1]
    life.recover(three.home)
    assert ids(three.home) == [first, second, third]
    withdrawn = {entry.snapshot_id: entry.withdrawn for entry in entries(three.home)}
    assert withdrawn.keys() == {first, second, third, other}
    assert [name for name, why in withdrawn.items() if why] == [third]


@pytest.mark.parametrize(
    "when", ["0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59-14:00"]
)
@pytest.mark.parametrize("field", ["published_at", "latest_at"])
def test_an_instant_that_no_clock_tells_is_damage_to_a_history(three: Three, field: str, when: str) -> None:
    path = snapshots.history_path(three.home)
    first, *others = entries(three.home)
    history.write(path, [Entry(**{**vars(first), field: datetime.fromisoformat(when)}), *others])
    assert not history.read(path)[1]
    assert first.snapshot_id in printed(three.home.root, "snapshots", "list")
    assert printed(three.home.root, "snapshots", "prune") == "kept: 3 snapshots\n"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("created_at", "0001-01-01T00:00:00+14:00"), ("created_at", "2026-01-01T00:00:00"), ("created_at", 5),
        ("inputs", []), ("inputs", {"a": 5}), ("inputs", {"a": {"files": 5}}), ("inputs", {"a": {"files": [5]}}),
        ("inputs", {"a": {"files": [], "revision": 7}}), ("tables", {}), ("tables", {"runs": 5}),
        ("tables", {"runs": {"rows": "x", "digests": {}}}), ("tables", {"runs": {"rows": 10**400, "digests": {}}}),
        ("tables", {"runs": {"rows": 1, "digests": {"\ud800": ""}}}), ("files", {"a": 5}),
        ("files", {"a": {"size_bytes": "1", "sha256": ""}}), ("content_digest", None), ("snapshot_id", 5),
    ],
)  # fmt: skip
def test_a_manifest_of_another_form_is_named_by_every_command_and_is_no_traceback(
    three: Three, name: str, value: Any
) -> None:
    path = writable(three.snapshots[2].folder / "manifest.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))
    root = three.home.root
    assert "its manifest is damaged" in printed(root, "snapshots", "list")
    assert as_json(root, "snapshots", "list")["snapshots"][0]["damaged"]
    assert f"{path}: the manifest is gone or cannot be read" in run(root, "snapshots", "verify").stdout
    for words in (("export", "--format", "csv", "--to", str(root / "x")), ("sql", "select 1"), ("raw", "prune")):
        run(root, *words)
    assert printed(root, "snapshots", "prune") == "kept: 3 snapshots\n"


# What a dead ingest leaves


def test_a_snapshot_that_was_never_the_latest_goes_when_the_next_ingest_begins(home: Home) -> None:
    built = snapshots.draft_of(home)
    assert built is not None
    orphan = home.snapshots / built.snapshot_id
    built.folder.rename(orphan)
    (home.snapshots / "my own notes").mkdir()
    life.recover(home)
    assert not orphan.exists()
    assert (home.snapshots / "my own notes").exists()
    assert ids(home) == [latest(home)]


def test_a_snapshot_whose_ingest_died_before_the_history_was_written_belongs_to_it(three: Three) -> None:
    path = snapshots.history_path(three.home)
    history.write(path, entries(three.home)[:2])
    life.recover(three.home)
    assert [entry.snapshot_id for entry in entries(three.home)] == three.ids


@pytest.mark.parametrize("content", [b"", b"{", b'{"path": 5}', b'{"path": "../../elsewhere"}', b'{"path": "latest"}'])
def test_a_damaged_pointer_goes_back_to_the_newest_sound_snapshot(three: Three, content: bytes) -> None:
    first, second, third = three.ids
    pointer = three.home.snapshots / "latest.json"
    pointer.write_bytes(content)
    with pytest.raises(SnapshotError, match=r"latest\.json: the pointer to the latest snapshot cannot be read"):
        snapshots.latest(three.home)
    life.recover(three.home)
    assert latest(three.home) == third
    pointer.unlink()
    flip(three.snapshots[2].database)
    life.recover(three.home)
    assert latest(three.home) == second
    assert ids(three.home) == [first, second, third]


def test_a_pointer_to_a_snapshot_that_was_removed_goes_back_to_the_one_before(three: Three) -> None:
    files.remove_tree(three.snapshots[2].folder)
    life.recover(three.home)
    assert latest(three.home) == three.ids[1] == (three.home.snapshots / "latest").readlink().name
    assert list(snapshots.damage_beside(three.home)) == []


def test_a_link_that_was_left_behind_is_moved_and_what_it_led_to_is_untouched(three: Three) -> None:
    link = three.home.snapshots / "latest"
    link.unlink()
    link.symlink_to(three.ids[0])
    left = three.home.snapshots / f"{files.ASIDE}1"
    left.symlink_to(three.ids[1])
    (problem,) = snapshots.damage_beside(three.home)
    assert problem == f"{link}: the link does not lead to the snapshot that the pointer names"
    with three.home.locked():
        life.recover(three.home)
    assert link.readlink().name == three.ids[2]
    assert not left.is_symlink()
    assert stat.S_IMODE(three.snapshots[1].folder.stat().st_mode) == 0o555
    assert [list(snapshots.damage_of(three.home, one)) for one in three.snapshots] == [[], [], []]


def test_an_empty_home_has_nothing_to_put_right(tmp_path: Path) -> None:
    life.recover(Home(tmp_path))
    Home(tmp_path).snapshots.mkdir()
    life.recover(Home(tmp_path))
    assert list(Home(tmp_path).snapshots.iterdir()) == []
    assert list(snapshots.damage_beside(Home(tmp_path))) == []


# Rollback


def test_a_rollback_makes_the_one_before_the_latest_again_and_withdraws_the_newer(three: Three) -> None:
    first, second, third = three.ids
    newest = snapshots.required(three.home)
    assert snapshots.withdrawn_reason(three.home, newest) is None
    text = printed(three.home.root, "snapshots", "rollback", "--reason", " wrong \x1b[31munits ")
    assert text == f"withdrawn: snapshot {third}\nlatest: snapshot {second}\n"
    assert latest(three.home) == second == (three.home.snapshots / "latest").readlink().name
    assert [entry.snapshot_id for entry in entries(three.home)] == [first, third, second]
    reason = snapshots.withdrawn_reason(three.home, newest)
    assert reason is not None
    assert reason.startswith("wrong \x1b[31munits (20")
    listed = as_json(three.home.root, "snapshots", "list")["snapshots"]
    assert [(row["latest"], (row["withdrawn"] or {}).get("reason")) for row in listed] == [
        (False, "wrong \x1b[31munits"),
        (True, None),
        (False, None),
    ]
    assert r"withdrawn: wrong \x1b[31munits" in printed(three.home.root, "snapshots", "list")
    # The withdrawn one stays for whoever reads it.
    assert f"{third}: all" in printed(three.home.root, "snapshots", "verify", third)
    assert printed(three.home.root, "snapshots", "rollback", "--reason", "again").endswith(
        f"latest: snapshot {first}\n"
    )
    assert "no sound snapshot was published before" in refused(
        three.home.root, "snapshots", "rollback", "--reason", "more"
    )


def test_a_rollback_to_a_named_snapshot_withdraws_all_that_came_after_it(three: Three) -> None:
    first, second, third = three.ids
    text = printed(three.home.root, "snapshots", "rollback", "--to", first, "--reason", "since Monday")
    assert text == f"withdrawn: snapshot {third}\nwithdrawn: snapshot {second}\nlatest: snapshot {first}\n"
    assert refused(three.home.root, "snapshots", "rollback", "--to", second, "--reason", "x").endswith(
        f"{second} was withdrawn: since Monday"
    )
    assert "is the latest already" in refused(three.home.root, "snapshots", "rollback", "--to", first, "--reason", "x")
    assert "there is no snapshot 1999" in refused(
        three.home.root, "snapshots", "rollback", "--to", "1999", "--reason", "x"
    )


def test_a_rollback_never_goes_to_a_damaged_snapshot(three: Three) -> None:
    first, second, third = three.ids
    flip(three.snapshots[1].parquet("runs")[0])
    line = refused(three.home.root, "snapshots", "rollback", "--to", second, "--reason", "x")
    assert line.endswith("its bytes are not those that were published; name another snapshot")
    assert latest(three.home) == third
    assert life.roll_back(three.home, "x").snapshot.folder.name == first


def test_a_content_that_is_published_again_is_withdrawn_no_more(three: Three) -> None:
    withdrawn = snapshots.required(three.home)
    life.roll_back(three.home, "wrong units")
    built = draft(three.home, results(2))
    with pytest.raises(SnapshotError, match=r"its content was withdrawn \(wrong units .*; ingest with --force"):
        snapshots.publish(three.home, built)
    again = snapshots.publish(three.home, built, forced=True)
    assert again.manifest["content_digest"] == withdrawn.manifest["content_digest"]
    assert snapshots.withdrawn_reason(three.home, again) is None
    assert [bool(entry.withdrawn) for entry in entries(three.home)] == [False, True, False, False]
    # Back to the same content would be back to nothing else.
    assert life.roll_back(three.home, "still wrong").snapshot.folder.name == three.ids[1]


def test_a_rollback_that_died_before_the_pointer_moved_is_finished_and_not_done_twice(three: Three) -> None:
    first, second, third = three.ids
    died = Withdrawal(datetime.now(UTC), "wrong units")
    pointer = (three.home.snapshots / "latest.json").read_bytes()
    life.roll_back(three.home, "wrong units")
    (three.home.snapshots / "latest.json").write_bytes(pointer)
    assert latest(three.home) == third
    again = life.roll_back(three.home, "once more")
    assert (again.snapshot.folder.name, again.withdrawn) == (second, ())
    (three.home.snapshots / "latest.json").write_bytes(pointer)
    life.recover(three.home)
    assert latest(three.home) == second
    assert [entry.snapshot_id for entry in entries(three.home)] == [first, third, second]
    assert died.reason == next(entry.withdrawn.reason for entry in entries(three.home) if entry.withdrawn)


def test_a_rollback_wants_a_reason_and_a_home_that_nobody_holds(three: Three, tmp_path: Path) -> None:
    assert "Missing option '--reason'" in refused(three.home.root, "snapshots", "rollback", code=2)
    assert "say why with --reason" in refused(three.home.root, "snapshots", "rollback", "--reason", " ", code=2)
    with three.home.locked():
        for words in (("rollback", "--reason", "x"), ("prune",)):
            assert "another ingest holds this home" in refused(three.home.root, "snapshots", *words)
    assert "there is no snapshot yet" in refused(tmp_path / "no", "snapshots", "rollback", "--reason", "x")
    assert "there is no snapshot yet" in refused(tmp_path / "no", "snapshots", "prune")
    assert not (tmp_path / "no").exists()


# Pruning


def test_old_snapshots_are_removed_and_the_history_keeps_what_was_withdrawn(three: Three) -> None:
    first, second, third = three.ids
    life.roll_back(three.home, "wrong units")
    later = datetime.now(UTC) + timedelta(days=3)
    assert life.prune(three.home, daily=1, monthly=0, now=later, dry=True) == [first, third]
    assert ids(three.home) == [first, second, third]
    assert life.prune(three.home, daily=1, monthly=0, now=later) == [first, third]
    assert ids(three.home) == [second] == [latest(three.home)]
    assert snapshots.withdrawn_reason(three.home, draft(three.home, results(2))) is not None
    assert life.prune(three.home, daily=0, monthly=0, now=later) == []
    assert list(snapshots.damage_of(three.home, snapshots.required(three.home))) == []


def test_the_prune_command_keeps_what_somebody_may_still_read(three: Three) -> None:
    first, second, third = three.ids
    assert (
        printed(three.home.root, "snapshots", "prune", "--keep-daily", "0", "--keep-monthly", "0")
        == "kept: 3 snapshots\n"
    )
    # As if the first two had been replaced three days ago.
    old = datetime.now(UTC) - timedelta(days=3)
    path = snapshots.history_path(three.home)
    moved = [
        Entry(one.snapshot_id, one.content_digest, one.manifest_sha256, old, old) for one in entries(three.home)[:2]
    ]
    history.write(path, [*moved, entries(three.home)[2]])
    pointer = three.home.snapshots / "latest.json"
    pointer.write_text(json.dumps(json.loads(pointer.read_text()) | {"published_at": old.isoformat()}))
    text = printed(three.home.root, "snapshots", "prune", "--keep-daily", "2", "--keep-monthly", "1", "--dry-run")
    assert text == f"would remove: snapshot {first}\nwould keep: 2 snapshots\n"
    text = printed(three.home.root, "snapshots", "prune", "--keep-daily", "0", "--keep-monthly", "0")
    assert text == f"removed: snapshot {first}\nremoved: snapshot {second}\nkept: 1 snapshot\n"
    assert ids(three.home) == [third]


# Looking


def test_verify_names_every_file_of_which_a_bit_changed(three: Three) -> None:
    snapshot = snapshots.required(three.home)
    changed = sorted(path for path in snapshot.folder.rglob("*") if path.is_file())
    kinds = {path.suffix for path in changed}
    assert kinds >= {".duckdb", ".parquet", ".json", ".md"}
    for path in changed:
        if path.name != "manifest.json":
            flip(path)
    result = run(three.home.root, "snapshots", "verify")
    assert [line.partition(": ")[0] for line in result.stdout.splitlines()] == [
        str(path) for path in changed if path.name != "manifest.json"
    ]
    assert result.exit_code == 1
    assert f"{len(changed) - 1} published files damaged" in result.stderr
    assert snapshots.sound(three.home) is None


@pytest.mark.parametrize("number", [0, 2])
def test_verify_names_a_manifest_of_which_a_letter_changed(three: Three, number: int) -> None:
    path = writable(three.snapshots[number].folder / "manifest.json")
    path.write_text(path.read_text().replace('"content_digest": "sha256:', '"content_digest": "sha256;'))
    result = run(three.home.root, "snapshots", "verify", "--all")
    damaged = [line for line in result.stdout.splitlines() if " files are as published" not in line]
    assert damaged == [f"{path}: its bytes are not those that were published"]
    assert result.exit_code == 1


def test_verify_names_what_is_missing_what_is_extra_and_what_lies_beside_the_snapshots(three: Three) -> None:
    first, second, third = three.snapshots
    writable(first.folder / "manifest.json").unlink()
    (writable(second.database).parent / "kernelmart.duckdb.wal").write_bytes(b"1")
    gone = third.parquet("ranks")[0]
    writable(gone).unlink()
    snapshots.history_path(three.home).write_bytes(b"{")
    lines = run(three.home.root, "snapshots", "verify", "--all").stdout.splitlines()
    assert lines == [
        f"{snapshots.history_path(three.home)}: the history of the pointer is gone or damaged",
        f"{first.folder / 'manifest.json'}: the manifest is gone or cannot be read",
        f"{second.folder / 'kernelmart.duckdb.wal'}: no such file was published",
        f"{gone}: the file is gone",
    ]
    assert (
        refused(three.home.root, "snapshots", "verify", "--all", "x", code=2) == "name snapshots, or take --all of them"
    )
    (three.home.snapshots / "latest.json").unlink()
    assert "latest.json: the pointer to the latest snapshot cannot be read" in refused(
        three.home.root, "snapshots", "verify"
    )


def test_the_list_shows_a_snapshot_with_a_damaged_manifest_as_that(three: Three) -> None:
    writable(three.snapshots[0].folder / "manifest.json").write_bytes(b"{")
    assert "its manifest is damaged" in printed(three.home.root, "snapshots", "list").splitlines()[-1]
    assert [row.get("damaged", False) for row in as_json(three.home.root, "snapshots", "list")["snapshots"]] == [
        False,
        False,
        True,
    ]


def test_the_list_names_the_sources_that_a_snapshot_was_made_from(small_home_folder: Path) -> None:
    (row,) = as_json(small_home_folder, "snapshots", "list")["snapshots"]
    assert row["inputs"].keys() == {"gpumode-kernelbot", "sol-execbench"}
    count = row["inputs"]["gpumode-kernelbot"]["files"]
    assert f"gpumode-kernelbot, {count} files; sol-execbench, " in " ".join(
        printed(small_home_folder, "snapshots", "list").split()
    )
