"""Leftovers of killed processes outside the folders of databases: found, listed, removed; nothing of a live one."""

import mmap
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support.command_line import stallmark

from stallmark.engines.postgres import embedded_ownership
from stallmark.processes import leftovers_of_dead_processes, size_of, temporary_name

OLD = 1_700_000_000
makes_links = pytest.mark.skipif(os.name != "posix", reason="creating links needs a privilege on Windows")


@pytest.fixture
def memory(tmp_path, monkeypatch) -> Path:
    """Shared memory, and a folder for temporary files beside it, both empty."""
    for name in ("memory", "temporary"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr("stallmark.processes.SHARED_MEMORY", tmp_path / "memory")
    monkeypatch.setattr(embedded_ownership, "SHARED_MEMORY", tmp_path / "memory")
    monkeypatch.setattr(embedded_ownership, "_SEGMENTS", tmp_path / "segments")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("STALLMARK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "memory"


@pytest.fixture
def killed(memory) -> list[Path]:
    """Leftovers of a process that is gone, beside what is not its own."""
    with subprocess.Popen(["true"]) as gone:
        pass
    temporary = Path(tempfile.gettempdir())
    left = [memory / f"stallmark-devices-{gone.pid}-x", temporary / f"stallmark-warehouse-{gone.pid}-x"]
    (memory / f"{temporary_name('devices')}x").touch()
    (memory / f"stallmark-mine-{gone.pid}").touch()
    (temporary / f"other-devices-{gone.pid}-x").touch()
    left[0].write_bytes(bytes(4096))
    left[1].mkdir()
    (left[1] / "table.parquet").write_bytes(bytes(100))
    return left


def everything(memory: Path) -> set[Path]:
    return {*memory.iterdir(), *Path(tempfile.gettempdir()).iterdir()}


def test_the_number_of_a_process_that_is_gone_is_enough_and_nothing_else_is(killed):
    assert [(one.place, one.bytes) for one in leftovers_of_dead_processes()] == [(killed[0], 4096), (killed[1], 100)]


@pytest.mark.thorough
def test_whatever_command_comes_next_removes_it(memory, killed):
    before = everything(memory)
    assert stallmark("list", "--json").exit_code == 0
    assert before - everything(memory) == set(killed)


def run_probe(**environment: str) -> int:
    probe = f"""
import os, signal, tempfile
from pathlib import Path
from stallmark.storage.probe_file import LEAST_BYTES, make_probe_file
tempfile.tempdir = {tempfile.gettempdir()!r}
with make_probe_file(Path("array"), LEAST_BYTES):
    if "killed" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
"""
    return subprocess.run([sys.executable, "-c", probe], env=os.environ | environment, check=False).returncode


@pytest.fixture
def array(memory, tmp_path) -> Path:
    """A folder elsewhere, with the file of a killed probe."""
    (array := tmp_path / "array").mkdir()
    run_probe(killed="1")
    return array


@pytest.mark.thorough
@makes_links
def test_a_probe_that_ends_leaves_nothing(memory, tmp_path):
    before = everything(memory)
    (array := tmp_path / "array").mkdir()
    assert run_probe() == 0
    assert everything(memory) == before and not any(array.iterdir())


@pytest.mark.thorough
@makes_links
def test_a_command_that_only_reads_looks_at_no_file_elsewhere(memory, array, monkeypatch):
    """Storage that hangs, as an unreachable NFS does, would stop it."""
    [left], links = array.iterdir(), everything(memory)
    looked = []
    for name in ("stat", "open", "unlink", "is_dir"):
        works = getattr(Path, name)

        def look(path: Path, *arguments, works=works, **options):
            if array in (path, *path.parents):
                looked.append(path)
            return works(path, *arguments, **options)

        monkeypatch.setattr(Path, name, look)
    assert stallmark("list", "--json").exit_code == 0 and not looked and everything(memory) == links
    stallmark("doctor")
    assert left in looked


@makes_links
@pytest.mark.parametrize("command", ["run", "probe"])
def test_a_file_elsewhere_is_removed_by_the_next_command_that_needs_storage(memory, array, tmp_path, command):
    [left], [link] = array.iterdir(), everything(memory)
    (mine := tmp_path / left.name).write_bytes(left.read_bytes()[1:])
    (other := link.with_name(f"{link.name}-other")).symlink_to(mine)
    assert "".join(str(left).split()) in "".join(stallmark("doctor").stdout.split())
    assert stallmark(command, "no-such").exit_code in (2, 3)
    assert not everything(memory) and not left.exists() and not other.is_symlink() and mine.exists()


@pytest.mark.thorough
@makes_links
def test_its_link_stays_while_the_folder_is_away_and_goes_when_only_the_file_is(memory, array):
    [left], links = array.iterdir(), everything(memory)
    away = array.rename(array.with_name("away"))
    assert "left behind" not in stallmark("doctor", "--remove-leftovers").stdout
    stallmark("run", "no-such")
    assert everything(memory) == links
    away.rename(array)
    assert "".join(str(left).split()) in "".join(stallmark("doctor").stdout.split())
    left.unlink()
    stallmark("run", "no-such")
    assert not everything(memory)


@pytest.mark.thorough
@makes_links
@pytest.mark.parametrize("fails", ["open", "unlink"])
def test_its_link_stays_while_the_file_cannot_be_read_or_removed(memory, array, monkeypatch, fails):
    [left], links = array.iterdir(), everything(memory)
    works = getattr(Path, fails)

    def on_failed_storage(path: Path, *arguments, **options):
        if path == left:
            raise OSError(5, "Input/output error")
        return works(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, fails, on_failed_storage)
        stallmark("run", "no-such")
        assert left.exists() and everything(memory) == links
        listed = "(Input/output error)" in " ".join(stallmark("doctor", "--remove-leftovers").stdout.split())
        assert listed == (fails == "unlink") and everything(memory) == links
    stallmark("run", "no-such")
    assert not left.exists() and not everything(memory)


@pytest.mark.thorough
@makes_links
def test_a_file_that_another_command_removes_meanwhile_ends_no_command(memory, array, monkeypatch):
    [left], [link] = array.iterdir(), everything(memory)
    path_open = Path.open

    def open_last(path: Path, *arguments, **options):
        file = path_open(path, *arguments, **options)
        if path == left:
            left.unlink()
            link.unlink()
        return file

    monkeypatch.setattr(Path, "open", open_last)
    assert str(left.name) in "".join(stallmark("doctor").stdout.split()) and not left.exists()


def test_the_size_of_a_link_is_its_own(tmp_path):
    (folder := tmp_path / "folder").mkdir()
    (folder / "file").write_bytes(bytes(5000))
    (link := tmp_path / "link").symlink_to(folder)
    assert size_of(folder) == 5000 and size_of(link) < 5000


def test_doctor_lists_it_and_removes_it_when_told_to(memory, killed):
    before = everything(memory)
    said = "".join(stallmark("doctor").stdout.split())
    assert all("".join(str(path).split()) in said for path in killed) and everything(memory) == before
    assert "removed" in stallmark("doctor", "--remove-leftovers").stdout
    assert before - everything(memory) == set(killed)
    assert "left behind" not in stallmark("doctor").stdout


def test_shared_memory_of_a_postgresql_is_left_when_no_process_maps_it_and_none_that_is_mapped_lists_it(memory):
    handles = {"list": 1, "listed": 123_456, "left": 234_567, "new": 345_678}
    files = {name: memory / f"PostgreSQL.{handle}" for name, handle in handles.items()}
    for path in files.values():
        path.write_bytes(bytes(4096))
    files["list"].write_bytes(bytes(100) + handles["listed"].to_bytes(4, "little") + bytes(100))
    for name in ("list", "listed", "left"):
        os.utime(files[name], (OLD, OLD))
    with files["list"].open("r+b") as file, mmap.mmap(file.fileno(), 0):
        assert [one.place for one in embedded_ownership.leftover_segments()] == [files["left"]]
    [one] = [one for one in embedded_ownership.leftover_segments() if one.place == files["listed"]]
    one.remove()
    assert not files["listed"].exists()


def test_where_a_process_does_not_show_what_it_maps_nothing_is_taken_for_left(memory, monkeypatch):
    path = memory / "PostgreSQL.77777"
    path.touch()
    os.utime(path, (OLD, OLD))
    read = Path.read_text

    def hidden(file: Path, **options) -> str:
        if file.name == "maps":
            raise PermissionError
        return "postgres\n" if file.name == "comm" else read(file, **options)

    monkeypatch.setattr(Path, "read_text", hidden)
    assert list(embedded_ownership.leftover_segments()) == []


@pytest.mark.thorough
def test_the_sockets_of_a_server_that_is_about_to_start_are_left_alone(memory):
    """A file has its name before its content, and another command can look in between."""
    sockets = Path(tempfile.gettempdir()) / f"stallmark-{os.getuid()}-0123456789ab"
    sockets.mkdir(mode=0o700)
    (sockets / "database").touch()
    assert list(embedded_ownership.leftover_servers()) == [] and not Path("lock").exists()
    assert stallmark("list", "--json").exit_code == 0 and sockets.exists()
