"""What cannot be is refused before anything is loaded or measured, with a sentence that says what to do."""

import json
import os
import socket
from pathlib import Path


def refused(tool, *arguments: str) -> str:
    code, said = tool.run(*arguments)
    assert code == 3, said
    assert said.count("Error:") == 1, said
    return " ".join(said.split())


def test_an_unknown_scenario(fresh):
    assert "did you mean user-ramp?" in refused(fresh, "run", "user-rump")
    assert not fresh.home.exists()


def test_a_scenario_with_a_mistake(fresh):
    assert "measure: 5 has no unit" in refused(fresh, "run", fresh.scenario(measure=5))
    assert not fresh.home.exists()


def test_a_scale_that_the_disk_cannot_take(fresh):
    scale = {"name": "bank", "scale": {"branches": 20_000}}
    said = refused(fresh, "run", fresh.scenario(workload=scale, variants=[{"name": "only"}]))
    assert "The disk is too small" in said and "Choose a smaller scale" in said
    assert not list(fresh.runs.glob("*"))


def test_a_cap_below_the_minimum_is_refused_before_any_variant_runs(shared):
    variants = [{"name": "right"}, {"name": "tiny", "buffer_pool": "1 %"}]
    before = set(shared.runs.glob("*"))
    said = refused(shared, "run", shared.scenario(variants=variants, reset="continue"))
    assert "tiny" in said and "minimum" in said and "8 MiB" in said
    assert set(shared.runs.glob("*")) == before


def test_more_users_than_the_server_takes(shared):
    said = refused(shared, "run", shared.scenario(users=2000))
    assert "2,000 users" in said and "ask for fewer, or name a larger server with --server" in said


def test_a_port_in_use(fresh):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused(fresh, "build", "bank", "--scale", "branches=1", "--port", str(port))
    assert str(port) in said and "in use" in said.lower()


def test_the_web_page_s_port_in_use(shared):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused(shared, "run", shared.scenario(), "--web", str(port))
    assert f"Port {port} is not free for the web page" in said


def test_a_database_of_another_scale_or_of_another_version(fresh):
    folder = fresh.folder / "database"
    place = ("--data-dir", str(folder))
    assert fresh.run("build", "bank", "--scale", "branches=1", *place)[0] == 0
    said = refused(fresh, "build", "bank", "--scale", "branches=2", *place)
    assert "its scale is branches 1, asked is branches 2" in said
    (folder / "data" / "PG_VERSION").write_text("16\n")
    said = refused(fresh, "check", "bank", "--scale", "branches=1", *place)
    assert "was made by PostgreSQL 16" in said and "--data-dir" in said


def test_a_database_that_was_driven_is_nothing_to_start_from(fresh):
    folder = fresh.folder / "database"
    place = ("--data-dir", str(folder))
    assert fresh.run("run", fresh.scenario(), *place)[0] == 0
    said = refused(fresh, "run", fresh.scenario(reset="restore"), *place)
    assert "Load has been driven against bank (branches 1) since it was loaded" in said
    assert f"remove {folder} to have it loaded anew, or use `reset: continue`" in said
    assert fresh.run("run", fresh.scenario(), *place)[0] == 0


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
            if not any(word in program.name for word in ("cc", "gcc", "clang", "c89", "c99")):
                place = programs / program.name
                if not place.exists():
                    place.symlink_to(program)
    fresh.environment["PATH"] = str(programs)
    device = {"data": {"spindles": 1, "read_ms": 1, "write_ms": 1, "sync_ms": 1, "mb_per_s": 100}}
    said = refused(fresh, "run", fresh.scenario(device=device))
    assert "compiler" in said and "gcc" in said
    code, said = fresh.run("doctor", "--json")
    assert code == 0
    assert {"C compiler": "limited"}.items() <= {f["what"]: f["state"] for f in json.loads(said)}.items()


def test_a_folder_that_cannot_be_written(fresh):
    place = fresh.folder / "file"
    place.write_text("in the way")
    assert "file" in refused(
        fresh, "build", "bank", "--scale", "branches=1", "--data-dir", str(place / "database")
    )
    said = refused(fresh, "run", fresh.scenario(), "--out", str(place / "runs"))
    assert "No record can be written to" in said and "--out" in said


def test_two_at_once_in_one_folder(shared):
    command, _ = shared.start_measuring()
    code, said = shared.run_beside("run", shared.scenario())
    assert code == 3 and f"is in use by another Stallmark (process {command.process.pid})" in said
    command.press_ctrl_c()
    assert command.wait() == 130


def test_report_of_what_is_no_record(fresh):
    assert "holds no run record" in refused(fresh, "report", str(fresh.folder))
    assert "does not exist" in refused(fresh, "report", str(fresh.folder / "nothing"))
