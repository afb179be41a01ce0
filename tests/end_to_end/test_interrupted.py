"""Whatever is killed, and whenever: one sentence, no process left, what was measured kept, the next run works.

All these tests share a home, so that each of them starts from what the one before left behind. A server that is killed
is in test_several_workloads.py.
"""

import signal
from pathlib import Path

import pytest
from support.small_disks import fill, small_disk
from support.tool import Command, Tool
from support.waiting import eventually

from stallmark.record.reader import Record


def end_of(command: Command, tool: Tool) -> int:
    code = command.wait()
    assert "Traceback" not in command.text, command.text
    tool.nothing_left()
    return code


def assert_kept(folder: Path, because: str) -> Record:
    """The record is there, says why it is incomplete, and has what was measured."""
    record = Record(folder)
    assert record.incomplete_because and because in record.incomplete_because
    assert sum(record.table("transactions")["committed"].to_pylist()) > 0
    return record


def test_ctrl_c_while_users_work(tool):
    command, folder = tool.start_measuring()
    command.press_ctrl_c()
    assert end_of(command, tool) == 130
    assert command.text.count("Stopped by Ctrl-C") == 1
    assert_kept(folder, "Ctrl-C")
    assert not list(folder.glob("*.arrows"))
    assert (folder.parent / "report.html").exists()


def test_the_tool_is_terminated_while_users_warm_up(tool):
    command, folder = tool.start_measuring(warm_up="60s")
    command.process.terminate()
    assert end_of(command, tool) == 143
    assert_kept(folder, "stopped by a signal")


def test_ctrl_c_while_preparing_keeps_the_variant_before(tool):
    reset = "continue" if tool.cannot("backup") else "restore"
    changes = {"reset": reset, "variants": [{"name": "one"}, {"name": "two"}]}
    command = tool.start("run", tool.scenario(**changes))
    command.wait_for("one: checking consistency: done")
    eventually(lambda: tool.manifests()[0].status == "complete", "the first record closed")
    command.press_ctrl_c()
    assert end_of(command, tool) == 130, command.text
    assert command.text.count("Stopped by Ctrl-C") == 1
    assert tool.manifests()[0].status == "complete"
    assert (tool.newest() / "report.html").exists()


def test_ctrl_c_while_loading_and_the_next_build_completes(new_tool):
    command = new_tool.start("build", "bank", "--scale", "branches=20")
    eventually(lambda: new_tool.running("stallmark.loaders.worker"), "a loader at work")
    command.press_ctrl_c()
    assert end_of(command, new_tool) == 130
    assert "Stopped by Ctrl-C" in command.text


def test_the_tool_is_killed_while_measuring(tool):
    command, folder = tool.start_measuring()
    command.process.kill()
    tool.nothing_left()
    assert_kept(folder, "killed before it could close the record")
    code, said = tool.run("report", str(folder.parent))
    assert code == 0 and "killed before it could close the record" in " ".join(said.split())
    code, said = tool.run("run", tool.scenario())
    assert code == 0, said
    code, said = tool.run("check", "bank", "--scale", "branches=1")
    assert code == 0 and "BROKEN" not in said, said


def test_the_disk_of_the_record_fills_while_measuring(shared, tmp_path):
    with small_disk(tmp_path / "disk", 24) as disk:
        command = shared.start("run", shared.scenario(measure="600s"), "--out", str(disk))

        def measuring() -> Path | None:
            assert command.process.poll() is None, command.text
            found = [path.parent for path in disk.glob("*/*/manifest.json")]
            return found[0] if found and Record(found[0]).table("transactions").num_rows else None

        folder = eventually(measuring, "a record with transactions")
        fill(disk)
        assert end_of(command, shared) == 4
        said = " ".join(command.text.split())
        assert "Incomplete:" in said and "--resume" in said
        because = str(assert_kept(folder, "No space left on device").incomplete_because)
        assert f"{folder}/" in because and because in said
        report = ("report", str(folder.parent), "--out", str(tmp_path / "report.html"))
        code, said = shared.run(*report)
        assert code == 0 and "No space left on device" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(("module", "part"), [("executor", "executor"), ("locust_conductor", "conductor")])
def test_a_part_of_the_driver_is_killed_while_measuring(tool, module, part):
    command, folder = tool.start_measuring()
    [process] = tool.running(f"stallmark.driver.{module}")
    process.send_signal(signal.SIGKILL)
    assert end_of(command, tool) == 4
    assert "Incomplete:" in command.text and part in command.text and "killed by signal 9 (SIGKILL)" in command.text
    record = assert_kept(folder, part)
    [of_transfers] = record.manifest.workload.counted.values()
    reported = sum(record.table("transactions")["committed"].to_pylist())
    assert record.manifest.unheard.lost == 1
    assert of_transfers.after and of_transfers.after - of_transfers.before >= reported
    assert (folder.parent / "report.html").exists()


def test_the_guard_is_killed_while_measuring(shared):
    """The server then is an orphan: the next run (of the last test here) ends it."""
    command, folder = shared.start_measuring()
    [guard] = shared.running("guard-of-postgres")
    guard.kill()
    code = command.wait()
    assert code == 4 and "Traceback" not in command.text, command.text
    assert_kept(folder, "server")


def test_after_all_that_and_a_restore_that_was_cut_a_run_is_complete(shared):
    [data] = shared.home.glob("embedded/*/data")
    assert (data.parent / "snapshot").exists()
    data.rename(data.with_name("data.old"))
    code, said = shared.run("run", shared.scenario(reset="restore"))
    assert code == 0, said
    assert not data.with_name("data.old").exists()
