"""The end of a command: its exit codes as they are documented, and an output that nobody reads or that is full."""

import ast
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryFile

import click
import pytest
from support.command_line import stallmark
from support.prepared import Prepared
from support.profiles import write_made_profile
from support.sizings import write_sizing_of
from support.synthetic import Truth, make_run
from support.waiting import TIMEOUT_S

import stallmark as stallmark_package
from stallmark.cli import exit_codes
from stallmark.cli.exit_codes import UNEXPECTED
from stallmark.cli.main import main
from stallmark.cli.report import reporting
from stallmark.errors import StallmarkError
from stallmark.experiment.runner import ExperimentEnd, Runner
from stallmark.sizing.demand import demand_of
from stallmark.stopping import StopSignal
from stallmark.storage.probe_file import ProbeFile

pytestmark = pytest.mark.thorough

CI = Path(__file__).parents[2] / "docs" / "ci.md"
CODES = {
    exit_codes.CONDITION_BROKEN, exit_codes.FAILED, exit_codes.INCOMPLETE, exit_codes.VERDICT, exit_codes.INCONCLUSIVE,
    exit_codes.CUT_OFF, exit_codes.UNEXPECTED,
}  # fmt: skip
OF_CLICK = {0, 2}
TWO = "{name: two, workload: {name: bank, scale: {branches: 1}}, users: 1, measure: 5s, variants: [{name: a}]}"
OF_SIGNALS = {StopSignal(number).exit_code for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)}


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("STALLMARK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("STALLMARK_SERVER", raising=False)
    monkeypatch.chdir(tmp_path)


def documented() -> set[int]:
    section = CI.read_text().partition("## Exit codes")[2].partition("\n## ")[0]
    return {int(code) for row in re.findall(r"^\| ([\d, ]+) \|", section, re.MULTILINE) for code in row.split(",")}


def test_the_documented_exit_codes_are_those_that_there_are():
    in_help = {int(code) for code in re.findall(r"\b\d+\b", str(main.help).partition("Exit codes:")[2])}
    assert documented() == in_help == CODES | OF_CLICK | OF_SIGNALS


def test_every_command_ends_with_a_code_that_has_a_name():
    for file in Path(exit_codes.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in ("sys.exit", "SystemExit", "os._exit"):
                assert not isinstance(call.args[0], ast.Constant), f"{file}:{call.lineno}"


def test_only_one_kind_of_console_prints():
    """rich's own ends with 1 if nobody reads it."""
    files = Path(stallmark_package.__file__).parent.rglob("*.py")
    assert [file for file in files if re.search(r"\bConsole\(", file.read_text())] == []


def a_run(end: ExperimentEnd) -> Callable[[pytest.MonkeyPatch, Path], None]:
    def given(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        monkeypatch.setattr("stallmark.experiment.target.Target.engine", lambda *_: nullcontext())
        monkeypatch.setattr(Runner, "run", lambda _: end)
        monkeypatch.setattr("stallmark.cli.run.show_report", lambda *_: [])

    return given


def raising(error: Exception | KeyboardInterrupt) -> Callable[[pytest.MonkeyPatch, Path], None]:
    def given(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        def fail(_):
            raise error

        monkeypatch.setattr("stallmark.cli.doctor.examine", fail)
        monkeypatch.setattr("platformdirs.user_log_dir", lambda _: str(folder))

    return given


def four_runs(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    for number, name in enumerate(("a", "b", "a", "b"), 1):
        truth = Truth(variant=name, sequence=number, repeat=(number + 1) // 2, seed=number, measured_s=5)
        make_run(folder / "runs" / f"{number}-{name}", truth)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with four runs, a profile and a sizing."""
    folder = tmp_path_factory.mktemp("records")
    four_runs(pytest.MonkeyPatch(), folder)
    demand = demand_of(write_made_profile(folder / "profile", 300))
    write_sizing_of(folder / "sizing", demand, "array", replay=(1.25, 1.38))
    return folder


@pytest.mark.parametrize(
    ("code", "given", "command"),
    [
        (0, None, "--version"),
        (1, a_run(ExperimentEnd(None, False)), "run two.yaml"),
        (2, None, "run"),
        (3, raising(StallmarkError("It is away.")), "doctor"),
        (4, a_run(ExperimentEnd("somebody unplugged it", True)), "run two.yaml"),
        (5, four_runs, "compare runs --fail-if worse"),
        (70, raising(RuntimeError("odd")), "doctor"),
        (129, raising(StopSignal(signal.SIGHUP)), "doctor"),
        (130, raising(StopSignal(signal.SIGINT)), "doctor"),
        (143, raising(StopSignal(signal.SIGTERM)), "doctor"),
    ],
)
def test_each_documented_exit_code_can_be_had(monkeypatch, tmp_path, code, given, command):
    (tmp_path / "two.yaml").write_text(TWO)
    if given:
        given(monkeypatch, tmp_path)
    result = stallmark(*command.split())
    assert result.exit_code == code, result.output
    assert code in documented()


LIGHT = {"--help", "run -h", "--version", "fly"}
"""Commands that import little: these are started as a shell does, all others from a process that is prepared."""


def started(command: str, **streams) -> subprocess.CompletedProcess:
    arguments = command.split()
    with TemporaryFile("w+") as output, TemporaryFile("w+") as errors:
        to = {"stdout": output, "stderr": errors} | streams
        if command in LIGHT:
            code = subprocess.run(
                [sys.executable, "-m", "stallmark.cli.entry", *arguments], check=False, **to
            ).returncode
        else:
            numbers = [stream if isinstance(stream, int) else stream.fileno() for stream in to.values()]
            code = Prepared(tuple(arguments), Path.cwd(), os.environ, *numbers).wait(TIMEOUT_S)
        for stream in (output, errors):
            stream.seek(0)
        return subprocess.CompletedProcess(arguments, code, output.read(), errors.read())


@pytest.fixture
def unread():
    """A pipe whose reader has gone."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


COMMANDS = ["list one.yaml", "list --json one.yaml", "doctor", "--help", "run -h", "--version", "schema", "runs"]


@pytest.mark.parametrize("command", COMMANDS)
def test_output_that_nobody_reads_ends_with_141_and_no_word(tmp_path, unread, command):
    """Both what click prints and what rich does, which would end with 1, the code of lost data."""
    prepare(tmp_path)
    ended = started(command, stdout=unread)
    assert (ended.returncode, ended.stderr) == (exit_codes.CUT_OFF, "")


@pytest.mark.parametrize(
    "command",
    [
        "compare runs", "compare runs --json", "compare runs --markdown -", "report runs", "report profile",
        "whatif runs", "characterise runs", "plan runs", "export --csv csv runs", "size profile sizing",
        "status sizing",
    ],
)  # fmt: skip
def test_tables_that_nobody_reads_end_with_141_and_no_word(records, monkeypatch, unread, command):
    monkeypatch.chdir(records)
    ended = started(command, stdout=unread)
    assert (ended.returncode, ended.stderr) == (exit_codes.CUT_OFF, "")


@pytest.mark.parametrize(("command", "code"), [("run", 2), ("fly", 2), ("report nowhere", 3), ("list one.yaml", 0)])
def test_an_error_that_nobody_reads_keeps_its_code(tmp_path, unread, command, code):
    prepare(tmp_path)
    assert started(command, stderr=unread).returncode == code
    assert started(command, stdout=unread, stderr=unread).returncode == (code or exit_codes.CUT_OFF)


@pytest.mark.server
def test_progress_that_nobody_reads_ends_a_run_with_141_and_leaves_its_record(tmp_path, unread):
    prepare(tmp_path)
    ended = started("run one.yaml", stderr=unread)
    assert (ended.returncode, ended.stdout) == (exit_codes.CUT_OFF, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("command", COMMANDS)
def test_output_that_the_disk_has_no_room_for_is_one_sentence(tmp_path, command):
    prepare(tmp_path)
    with Path("/dev/full").open("w") as full:
        ended = started(command, stdout=full)
        assert command != "--help" or started("fly", stderr=full).returncode == 2
    assert ended.returncode == 3 and ended.stderr.count("\n") == 1 and ended.stderr.startswith("Error:")


def prepare(folder: Path) -> None:
    """Make a scenario, and an experiment of one run."""
    scenario = "{name: one, workload: {name: bank, scale: {branches: 1}}, users: 1, measure: 5s, variants: [{name: a}]}"
    (folder / "one.yaml").write_text(scenario)
    make_run(folder / "stallmark-runs" / "one" / "01-a", Truth(measured_s=5))


@pytest.mark.parametrize(
    "named", ["probe . --out runs", "profile --server postgresql://127.0.0.1/d --for 1h --out runs/p"]
)
def test_work_that_was_stopped_says_so_although_its_report_fails(named, monkeypatch):
    def stop(folder: Path) -> None:
        folder.mkdir(parents=True)
        for name in ("manifest.json", "profile.json"):
            (folder / name).write_text("{")
        raise StopSignal(signal.SIGINT)

    room = "stallmark.storage"
    monkeypatch.setattr(f"{room}.programs.find_tool", lambda **_: None)
    monkeypatch.setattr(f"{room}.probe.refuse_memory", lambda folder: None)
    monkeypatch.setattr("stallmark.probe.runner.shown_file", lambda *_: nullcontext(ProbeFile(Path(), 1, True)))
    monkeypatch.setattr("stallmark.probe.runner.record_probe", lambda folder, *_: stop(folder))
    monkeypatch.setattr("stallmark.profile.collection.Collection.run", lambda collection: stop(collection.folder))
    result = stallmark(*named.split())
    assert result.exit_code == 130 and "There is no report" in result.output, result.output


def test_a_report_that_fails_is_the_error_of_work_that_ended_well():
    def fail() -> None:
        raise StallmarkError("no room")

    said: list[str] = []
    with pytest.raises(StallmarkError, match="no room"), reporting(fail, lambda: True, said.append):
        pass
    with pytest.raises(StopSignal), reporting(fail, lambda: False, said.append):
        raise StopSignal(signal.SIGINT)
    assert not said


def test_a_damaged_record_does_not_take_the_place_of_why_an_experiment_ended(monkeypatch, tmp_path):
    end = ExperimentEnd("somebody unplugged it", True)
    a_run(end)(monkeypatch, tmp_path)
    monkeypatch.setattr(
        Runner, "run", lambda runner: (runner.folder / "01" / "manifest.json").mkdir(parents=True) or end
    )
    (tmp_path / "two.yaml").write_text(TWO)
    result = stallmark("run", "two.yaml")
    assert result.exit_code == 4 and result.output.endswith("Incomplete: somebody unplugged it.\n"), result.output


# An error that nobody foresaw: one sentence, a log without secrets, an exit code of its own


@pytest.fixture
def broken(monkeypatch):
    @click.command()
    def command():
        raise KeyError("hunter2-and-more")

    monkeypatch.setitem(main.commands, "list", command)
    monkeypatch.setenv("PGPASSWORD", "hunter2-and-more")


def test_an_unforeseen_error_is_logged_without_secrets(broken, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    result = stallmark("list")
    assert result.exit_code == UNEXPECTED == 70
    assert "Traceback" not in result.output and result.output.count("KeyError") == 1
    [log] = tmp_path.rglob("error-*.log")
    assert str(log) in result.output.replace("\n", "")
    text = log.read_text()
    assert "Traceback" in text and "test_ending.py" in text and "hunter2" not in text
    assert log.stat().st_mode & 0o077 == 0


def test_without_a_folder_for_logs_it_is_a_temporary_file(broken, monkeypatch, tmp_path):
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(file))
    monkeypatch.setenv("HOME", str(file))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = stallmark("list")
    assert result.exit_code == UNEXPECTED
    [log] = tmp_path.glob("error-*.log")
    assert "Traceback" in log.read_text()


def test_a_wrong_command_line_is_no_mistake_of_stallmark(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    result = stallmark("list", "--nothing")
    assert result.exit_code == 2 and re.search("No such option", result.output)
    assert not list(Path(tmp_path).rglob("error-*.log"))


class NotForeseen(BaseException):
    """An exception that is no Exception. Libraries in Rust raise such ones where they fail."""


def test_without_any_place_for_a_log_it_is_shown_and_the_code_is_the_same(broken, monkeypatch):
    monkeypatch.setattr("stallmark.cli.exit_codes.write_crash_log", lambda _: None)
    result = stallmark("list")
    assert result.exit_code == UNEXPECTED
    assert "Traceback" in result.stderr and "hunter2" not in result.stderr


def test_an_error_that_is_no_exception_is_one_all_the_same(monkeypatch, tmp_path):
    @click.command()
    def command():
        raise NotForeseen

    monkeypatch.setitem(main.commands, "list", command)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert stallmark("list").exit_code == UNEXPECTED
