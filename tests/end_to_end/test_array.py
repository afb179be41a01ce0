"""An array between variants, as an operator has it: a command, a question at a terminal, writing beforehand."""

import os
import pty
import shutil
import sys

import pytest

needs_fio = pytest.mark.skipif(not shutil.which("fio"), reason="There is no fio here.")


@needs_fio
def test_the_array_is_made_what_each_variant_says_until_the_operator_says_no(shared):
    """Measurements until then are kept; what was typed before he was asked is no answer."""
    array = shared.folder / "array"
    reconfigure = f"open({str(array)!r}, 'a').write('disks'); print('pool 0: no flash')"
    path = shared.scenario(
        array={"raid": "RAID 10"},
        precondition={"size": "32MiB", "round": "1s", "rounds": 1},
        variants=[
            {"name": "disks", "before": {"command": [sys.executable, "-c", reconfigure]}},
            {"name": "cache", "before": {"ask": "Add the flash as a cache."}},
        ],
    )
    operator, terminal = pty.openpty()
    command = shared.start_anew("run", path, stdin=terminal)
    os.close(terminal)
    try:
        os.write(operator, b"\n")
        command.wait_for("cache: Add the flash as a cache.")
        os.write(operator, b"nearly\nno\n")
        code = command.wait()
    finally:
        os.close(operator)
    said = " ".join(command.text.split())
    assert code == 4 and "Traceback" not in said
    assert "The operator answered 'no' to 'Add the flash as a cache.' (cache)" in said
    [disks] = shared.manifests()
    assert array.read_text() == "disks" and disks.hook.output == "pool 0: no flash"
    assert disks.status == "complete" and len(disks.precondition.rounds_ms) == 1
    page = (shared.newest() / "report.html").read_text()
    assert disks.ended.before == "cache"
    assert "The experiment ended before “cache”: The operator answered" in page
    assert "pool 0: no flash" in page and "was filled and overwritten at random" in page
    shared.nothing_left()


@needs_fio
def test_storage_is_probed_before_and_after_a_run_as_slow_as_the_database_meets_it(shared):
    disks = {"spindles": 64, "read_ms": 20, "write_ms": 0, "sync_ms": 1, "mb_per_s": 1000}
    variants = [{"name": "disks", "buffer_pool": "16MiB", "emulated_array": {"data": disks}}]
    code, said = shared.run("run", shared.scenario(probe={"seconds": "1s"}, variants=variants))
    assert code == 0, said
    [run] = shared.manifests()
    for probe in (run.probes.before, run.probes.after):
        [alone] = [s for s in probe.steps if s.pattern.name == "8k-random-read" and s.outstanding == 1]
        assert probe.emulated and alone.mean_ms >= 20
    page = (shared.newest() / "report.html").read_text()
    assert "EMULATED" in page and "8 KiB random read" in page
    shared.nothing_left()
