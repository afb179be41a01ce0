"""A database in folders of a variant: exact there and back, removed with the last of it, and nobody else's."""

import os
import shutil
from pathlib import Path

import pytest
from support.embedded_servers import Make, filled, rows

from stallmark.engines.abilities import Folders
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.embedded_ownership import OUTSIDE_MARKER
from stallmark.errors import StallmarkError

LABEL = "what is kept"


@pytest.fixture
def places(tmp_path: Path) -> list[Folders]:
    """Two places: one with the log in a folder of its own, that is there already, and one with it beside the data."""
    (tmp_path / "log").mkdir()
    return [Folders(str(tmp_path / "fast"), str(tmp_path / "log")), Folders(str(tmp_path / "slow"))]


@pytest.mark.parametrize("apart", [False, True], ids=["WAL inside", "WAL apart"])
def test_a_copy_is_restored_into_one_place_after_another_and_home(apart, make_server: Make, places, tmp_path: Path):
    wal = tmp_path / "wal" if apart else None
    server = make_server(wal_folder=wal, fresh=apart)
    engine, home = filled(server), server.directories()
    before = rows(engine)
    engine.backup.keep(LABEL)
    for to in (places[0], places[1], places[0], places[0]):
        engine.execute("DELETE FROM t")
        engine.backup.restore(to)
        assert server.running and rows(engine) == before
        lies = engine.directories()
        assert lies["data"] == Path(to.data) / "data"
        assert lies["wal"] == (Path(to.log) if to.log else lies["data"] / "pg_wal")
        assert sum((folder / "data").exists() for folder in (server.folder, *map(_data, places))) == 1
        assert engine.query("SHOW data_directory") == [(str(lies["data"]),)]
    engine.execute("DELETE FROM t")
    engine.backup.restore()
    assert engine.directories() == home and rows(engine) == before
    assert _left(places) == []


def test_what_a_closed_server_had_elsewhere_is_gone_and_restored_at_the_next_start(make_server: Make, places):
    engine = filled(make_server())
    before = rows(engine)
    engine.backup.keep(LABEL)
    engine.backup.restore(places[0])
    engine.execute("DELETE FROM t")
    engine.close()
    assert _left(places) == [] and engine.server.exists
    assert rows(EmbeddedEngine(make_server(), "x")) == before


def test_what_a_killed_run_left_elsewhere_is_ended_and_removed(make_server: Make, places):
    engine = filled(make_server())
    before = rows(engine)
    engine.backup.keep(LABEL)
    engine.backup.restore(places[0])
    lock, engine.server._lock = engine.server._lock, None
    assert lock is not None
    os.close(lock)  # as of a process that is gone, while its server runs on
    again = make_server()
    assert rows(EmbeddedEngine(again, "x")) == before
    assert again.directories()["data"] == again.folder / "data"
    assert _left(places) == []


def test_removing_a_database_removes_what_is_elsewhere(make_server: Make, places):
    engine = filled(make_server())
    engine.backup.keep(LABEL)
    engine.backup.restore(places[0])
    engine.server.remove()
    assert _left(places) == [] and not engine.server.folder.exists()


@pytest.mark.parametrize("which", ["data", "log"])
def test_a_folder_that_holds_something_is_refused_and_nothing_is_lost(which, make_server: Make, places):
    engine = filled(make_server())
    before = rows(engine)
    engine.backup.keep(LABEL)
    theirs = Path(getattr(places[0], which))
    theirs.mkdir(exist_ok=True)
    (theirs / "theirs").write_text("kept")
    with pytest.raises(StallmarkError, match=str(theirs)):
        engine.backup.restore(places[0])
    assert (theirs / "theirs").read_text() == "kept"
    engine.server.start()
    assert rows(engine) == before


def test_folders_that_cannot_be_are_refused_before_anything_is_copied(make_server: Make, places, monkeypatch):
    engine = filled(make_server())
    folder = engine.server.folder
    inside = str(folder / "within")
    for to, size, named in [
        (Folders(inside), 1, inside),
        (Folders(places[1].data, inside), 1, inside),
        (Folders(places[1].data, places[1].data), 1, places[1].data),
        (Folders(places[1].data, filegroups={"growing": "/x"}), 1, "filegroups"),
    ]:
        with pytest.raises(StallmarkError, match=named):
            engine.backup.refuse_folders(to, size)
    engine.backup.refuse_folders(places[0], 1)
    monkeypatch.setattr("stallmark.engines.postgres.embedded_copies.shares_blocks", lambda folder: False)
    free = shutil.disk_usage(folder).free
    with pytest.raises(StallmarkError, match=places[1].data):
        engine.backup.refuse_folders(places[1], 2 * free)
    assert _left(places) == []


def _data(place: Folders) -> Path:
    return Path(place.data)


def _left(places: list[Folders]) -> list[str]:
    """Return what is in the folders of the places, mark included."""
    folders = [Path(folder) for place in places for folder in (place.data, place.log) if folder]
    return [name for folder in folders if folder.exists() for name in os.listdir(folder)]


def test_a_folder_is_nobodys_without_its_mark(make_server: Make, places):
    engine = filled(make_server())
    engine.backup.keep(LABEL)
    engine.backup.restore(places[0])
    (Path(places[0].log) / OUTSIDE_MARKER).write_text("of another database")
    (Path(places[0].log) / "theirs").write_text("kept")
    engine.backup.restore()
    assert (Path(places[0].log) / "theirs").exists()
    assert not (Path(places[0].data) / "data").exists()
