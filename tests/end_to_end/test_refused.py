"""The impossible is refused before anything is loaded or measured, with a sentence that says what to do."""

import os
import socket
from pathlib import Path

import pytest

from stallmark.engines.postgres.embedded_server import most_connections


def refused(tool, *arguments: str) -> str:
    code, said = tool.run(*arguments)
    assert code == 3, said
    assert said.count("Error:") == 1, said
    return " ".join(said.split())


def test_a_cap_below_the_minimum_is_refused_before_any_variant_runs(tool):
    if why := tool.cannot("memory"):
        pytest.skip(f"On this server {why}.")
    variants = [{"name": "right"}, {"name": "tiny", "buffer_pool": "1 %"}]
    before = set(tool.runs.glob("*"))
    said = refused(tool, "run", tool.scenario(variants=variants, reset="continue"))
    assert "tiny" in said and "minimum" in said and f"{128 if tool.server else 8} MiB" in said
    assert set(tool.runs.glob("*")) == before


def test_more_users_than_the_server_takes(shared):
    if most_connections() > 10_000:
        pytest.skip("This machine has memory for all users that a scenario may ask for.")
    said = refused(shared, "run", shared.scenario(users=10_000))
    assert "10,000 users" in said and "ask for fewer, or name a server elsewhere with --server" in said


def test_a_port_in_use(fresh):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused(fresh, "build", "bank", "--scale", "branches=1", "--port", str(port))
    assert str(port) in said and "in use" in said.lower()


def test_the_live_page_s_port_in_use(tool):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused(tool, "run", tool.scenario(), "--web", str(port))
    assert f"Port {port} is not free for the live page" in said


def test_a_database_of_another_scale_one_that_was_driven_and_one_of_another_version(new_tool):
    folder = new_tool.folder / "database"
    place, remedy = ((), "drop it") if new_tool.server else (("--data-dir", str(folder)), f"remove {folder}")
    assert new_tool.run("run", new_tool.scenario(), *place)[0] == 0
    code, said = new_tool.run("check", "bank", *place)  # no scale is asked for: what it holds
    assert code == 0, said
    if new_tool.server:
        assert "holds bank, not mail" in refused(new_tool, "check", "mail", *place)
    said = refused(new_tool, "build", "bank", "--scale", "branches=2", *place)
    assert "its scale is branches 1, asked is branches 2" in said
    if not new_tool.cannot("backup"):
        said = refused(new_tool, "run", new_tool.scenario(reset="restore"), *place)
        assert "Load has been driven against bank (branches 1) since it was loaded" in said
        assert f"{remedy} to have it loaded again, or use `reset: continue`" in said
    if not new_tool.server:
        (folder / "data" / "PG_VERSION").write_text("16\n")
        said = refused(new_tool, "check", "bank", "--scale", "branches=1", *place)
        assert "was made by PostgreSQL 16" in said and "--data-dir" in said


def test_a_folder_that_is_not_ours_is_left_alone(fresh):
    folder = fresh.folder / "letters"
    folder.mkdir()
    (folder / "to-mother").write_text("Dear mother")
    said = refused(fresh, "build", "bank", "--scale", "branches=1", "--data-dir", str(folder))
    assert "holds files that Stallmark did not make" in said
    assert [path.name for path in folder.iterdir()] == ["to-mother"]


def test_no_compiler(fresh):
    programs = fresh.folder / "programs"
    programs.mkdir()
    for directory in os.environ["PATH"].split(os.pathsep):
        for program in Path(directory).glob("*") if Path(directory).is_dir() else ():
            place = programs / program.name
            if not any(word in program.name for word in ("cc", "clang", "c89", "c99")) and not place.exists():
                place.symlink_to(program)
    fresh.environment["PATH"] = str(programs)
    device = {"data": {"spindles": 1, "read_ms": 1, "write_ms": 1, "sync_ms": 1, "mb_per_s": 100}}
    said = refused(fresh, "run", fresh.scenario(emulated_array=device))
    assert "compiler" in said and "gcc" in said and "Loading" not in said
    said = refused(fresh, "characterise", "bank", "--scale", "branches=1")
    assert "traces of I/O need a C compiler" in said and "Loading" not in said


def test_a_folder_for_the_database_that_cannot_be_written(fresh):
    place = fresh.folder / "file"
    place.write_text("in the way")
    assert "file" in refused(fresh, "build", "bank", "--scale", "branches=1", "--data-dir", str(place / "database"))


def test_two_at_once_on_one_server(tool):
    command, _ = tool.start_measuring()
    code, said = tool.run_beside("run", tool.scenario())
    there = (
        "Another Stallmark drives" if tool.server else f"in use by another Stallmark (process {command.process.pid})"
    )
    assert code == 3 and there in " ".join(said.split()), said
    command.press_ctrl_c()
    assert command.wait() == 130
    tool.nothing_left()
