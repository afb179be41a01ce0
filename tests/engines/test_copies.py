"""The copy that every restore starts from, and WAL in a folder of its own: exact, resumable, nobody else's."""

import shutil
from pathlib import Path

import pytest
from support.embedded_servers import Make, filled, rows

from stallmark.engines.postgres import embedded_copies
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.embedded_server import EmbeddedServer
from stallmark.errors import StallmarkError

LABEL = "what is kept"


@pytest.mark.parametrize("apart", [False, True], ids=["WAL inside", "WAL apart"])
def test_restore_brings_back_the_exact_rows_as_often_as_asked(apart, make_server: Make, tmp_path: Path):
    wal = tmp_path / "wal" if apart else None
    server = make_server(wal_folder=wal, fresh=apart)
    engine = filled(server)
    before = rows(engine)
    assert engine.backup.label() is None
    engine.backup.keep(LABEL)
    assert engine.backup.label() == LABEL and server.running
    for _ in range(2):
        engine.execute("UPDATE t SET s = 'changed'; CREATE TABLE more (i integer); CHECKPOINT")
        engine.backup.restore()
        assert server.running
        assert rows(engine) == before
        assert engine.query("SELECT to_regclass('more')") == [(None,)]
        if wal:
            assert (server.data / "pg_wal").resolve() == wal == engine.directories()["wal"]
            assert any(len(path.name) == 24 for path in wal.iterdir())
    # What the restored server writes survives it.
    engine.execute("INSERT INTO t VALUES (0, 'new')")
    server.stop()
    server.start()
    assert rows(engine) == [(0, "new"), *before]


def test_a_copy_says_what_it_is_of_and_gives_way_to_the_next(table: EmbeddedEngine):
    table.backup.keep("one")
    table.execute("DELETE FROM t")
    table.backup.keep("two")
    assert table.backup.label() == "two"
    table.backup.restore()
    assert rows(table) == []
    table.backup.drop()
    assert table.backup.label() is None
    assert not (table.server.folder / "snapshot").exists()


@pytest.mark.parametrize("apart", [False, True], ids=["WAL inside", "WAL apart"])
def test_a_restore_that_was_cut_is_made_good_at_the_next_start(apart, make_server: Make, tmp_path: Path):
    wal = tmp_path / "wal" if apart else None
    engine = filled(make_server(wal_folder=wal, fresh=apart))
    before = rows(engine)
    engine.backup.keep(LABEL)
    engine.execute("DELETE FROM t")
    engine.server.close()
    folder = engine.server.folder
    engine.server.data.rename(folder / "data.old")  # killed while it removed the old and copied the new
    (folder / "data.new").mkdir()
    assert rows(EmbeddedEngine(make_server(wal_folder=wal), "x")) == before
    assert not list(folder.glob("*.new")) and not list(folder.glob("*.old"))


def test_a_copy_that_was_cut_is_none_and_takes_no_space(table: EmbeddedEngine):
    draft = table.server.folder / "snapshot.new"
    draft.mkdir()
    (draft / "of").write_text(LABEL)
    assert table.backup.label() is None
    table.server.close()
    table.server.start()
    assert not draft.exists() and table.backup.label() is None


def test_a_full_disk_during_a_copy_is_a_sentence_and_loses_nothing(table: EmbeddedEngine, monkeypatch):
    before = rows(table)
    full = ["sh", "-c", "echo 'cp: error writing: No space left on device' >&2; exit 1"]
    monkeypatch.setattr(embedded_copies, "_CP", full)
    with pytest.raises(StallmarkError, match="No space left on device"):
        table.backup.keep(LABEL)
    assert table.backup.label() is None
    table.server.start()
    assert rows(table) == before


def test_a_copy_that_the_disk_cannot_take_is_refused_before_it_begins(table: EmbeddedEngine, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9 - 10**6, 10**6))
    monkeypatch.setattr(embedded_copies, "shares_blocks", lambda _: False)
    with pytest.raises(StallmarkError, match=r"the copy .* needs [\d.]+\sMiB, 977\sKiB are free .*reset: continue"):
        table.backup.keep(LABEL)
    monkeypatch.setattr(embedded_copies, "shares_blocks", lambda _: True)
    table.backup.keep(LABEL)
    assert table.backup.label() == LABEL


def test_there_are_never_more_than_two_of_the_data(table: EmbeddedEngine, monkeypatch):
    real, seen = embedded_copies._copy, []

    def look(sources, target):
        seen.append({path.name for path in table.server.folder.iterdir() if path.is_dir()})
        real(sources, target)

    monkeypatch.setattr(embedded_copies, "_copy", look)
    table.backup.keep(LABEL)
    table.backup.keep(LABEL)
    table.backup.restore()
    assert seen == [{"data", "snapshot.new"}, {"data", "snapshot.new"}, {"snapshot"}]


# WAL in a folder of its own.


@pytest.fixture
def wal(tmp_path: Path) -> Path:
    """As a mount point is: it cannot be removed, and a file system has left its mark in it."""
    wal = tmp_path / "wal"
    (wal / "lost+found").mkdir(parents=True)
    return wal


def test_a_wal_folder_is_emptied_and_never_replaced(wal: Path, make_server: Make):
    engine = filled(make_server(wal_folder=wal, fresh=True))
    before, number = rows(engine), wal.stat().st_ino
    engine.backup.keep(LABEL)
    (wal / "left over").touch()
    engine.backup.restore()
    assert rows(engine) == before
    assert wal.stat().st_ino == number and (wal / "lost+found").is_dir()
    assert not (wal / "left over").exists() and not (wal / "pg_wal").exists()


def test_a_wal_folder_that_a_killed_initdb_left_is_used_again(wal: Path, make_server: Make, monkeypatch):
    def killed(data: Path, wal: Path) -> None:
        (wal / "000000010000000000000001").write_text("half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("stallmark.engines.postgres.embedded_server.place_wal", killed)
        server = make_server(wal_folder=wal, fresh=True)
        with pytest.raises(KeyboardInterrupt):
            server.start()
        server.close()
    server = make_server(wal_folder=wal)
    server.start()
    assert server.running and server.directories()["wal"] == wal


def test_a_wal_folder_that_holds_something_is_refused(wal: Path, make_server: Make):
    (wal / "letter").write_text("mine")
    with pytest.raises(StallmarkError, match="not empty"):
        make_server("new", wal_folder=wal, fresh=True).start()
    assert sorted(path.name for path in wal.iterdir()) == ["letter", "lost+found"]


def test_the_wal_of_another_database_is_refused_even_where_ours_once_was(wal: Path, make_server: Make):
    first: EmbeddedServer = make_server("first", wal_folder=wal, fresh=True)
    first.start()
    first.close()
    second = make_server("second", wal_folder=wal, fresh=True)
    with pytest.raises(StallmarkError, match="not this database's"):
        second.start()
    for path in wal.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    second.start()
    shutil.rmtree(first.data)
    with pytest.raises(StallmarkError, match="not this database's"):
        make_server("first", wal_folder=wal).start()
    assert second.running


def test_wal_that_lies_elsewhere_than_named_is_refused(make_server: Make, tmp_path: Path):
    apart = make_server("apart", wal_folder=tmp_path / "wal", fresh=True)
    apart.start()
    apart.close()
    for other in (None, tmp_path / "elsewhere"):
        server = make_server("apart", wal_folder=other)
        with pytest.raises(StallmarkError, match=f"is in {tmp_path}/wal: name that folder with --wal-dir"):
            server.start()
        server.close()
    with pytest.raises(StallmarkError, match="--wal-dir"):
        make_server("inside", wal_folder=tmp_path / "elsewhere").start()
