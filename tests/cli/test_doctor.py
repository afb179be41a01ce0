"""The doctor's answers: what works here, what is missing, and what then is not possible."""

import shutil

import pytest

from stallmark.cli import doctor
from stallmark.experiment.target import Target


@pytest.fixture(autouse=True)
def empty_home(monkeypatch, tmp_path):
    monkeypatch.setenv("STALLMARK_HOME", str(tmp_path / "not" / "there" / "yet"))


def states(target: Target | None = None) -> dict[str, tuple[str, str]]:
    return {f.subject: (f.state, f.sentence) for f in doctor.examine(target or Target())}


def without(monkeypatch, *programs: str) -> None:
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, *more: None if name in programs else which(name, *more))


def test_a_machine_with_everything():
    found = states()
    assert {"machine", "embedded PostgreSQL", "disk space", "C compiler"} <= found.keys()
    assert found["machine"][0] == "ok" and found["embedded PostgreSQL"][0] == "ok"


@pytest.mark.parametrize(("missing", "hint"), [([], " (`stallmark probe FOLDER`)"), (["probe"], "")])
def test_the_command_that_probes_is_named_if_it_is_there(monkeypatch, missing, hint):
    monkeypatch.setattr("stallmark.storage.programs.can_probe", lambda: None)
    monkeypatch.setattr("stallmark.capabilities.missing", lambda names: missing)
    assert states()["raw storage"] == ("ok", f"it can be probed{hint}.")


def test_no_compiler_means_no_emulated_devices(monkeypatch):
    without(monkeypatch, "cc", "gcc", "clang")
    state, sentence = states()["C compiler"]
    assert state == "limited" and "no emulated arrays" in sentence and "apt-get install gcc" in sentence


def test_no_embedded_postgresql_means_a_server_by_url(monkeypatch):
    monkeypatch.setattr(doctor, "find_spec", lambda _: None)
    state, sentence = states()["embedded PostgreSQL"]
    assert state == "missing" and "--server URL" in sentence


def test_root_without_a_way_to_be_another_user(monkeypatch):
    monkeypatch.setattr("os.getuid", lambda: 0)
    without(monkeypatch, "unshare")
    state, sentence = states()["embedded PostgreSQL"]
    assert state == "missing" and "run as another user" in sentence


def test_a_full_disk_is_said(monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10 << 30, 9 << 30, 1 << 30))
    assert states()["disk space"] == ("limited", "1\u00a0GiB free; the demo needs 2\u00a0GiB.")


def test_a_server_that_does_not_answer():
    state, sentence = states(Target("postgresql://nobody@127.0.0.1:1/nothing"))["server"]
    assert state == "missing" and "127.0.0.1:1/nothing" in sentence


def test_a_server_whose_url_cannot_be_read():
    state, sentence = states(Target("postgresql://boss:a/b@host:x/y"))["server"]
    assert state == "missing" and "write postgresql://user@host:5432/database" in sentence


def test_a_server_that_answers(database):
    found = states(Target(database.spec()))
    assert found["server"][0] == "ok" and found["server"][1].startswith("PostgreSQL 18")
    assert found["cap memory"][0] == "limited" and "restart" in found["cap memory"][1]
    assert found["Server I/O"] == ("ok", "can be measured.")
    assert found["Host"][0] == "ok", "its processes are seen here"
    assert found["Devices"][0] == "limited"
