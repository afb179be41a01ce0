"""The command line: what goes to standard output, what to standard error, and the exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from pydantic_core import SchemaError, SchemaValidator, core_schema
from support import record_kinds
from support.command_line import signals_as_before, stallmark
from support.documents import shell_commands

from stallmark import stopping
from stallmark.capabilities import installed
from stallmark.cli.command import Unloaded
from stallmark.cli.main import main
from stallmark.errors import CallFailed, ErrorClass, StallmarkError
from stallmark.loaders import loader_for
from stallmark.scenarios.read import shipped
from stallmark.transactions import WORKLOADS


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("STALLMARK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("STALLMARK_SERVER", raising=False)
    monkeypatch.chdir(tmp_path)
    with signals_as_before():
        yield tmp_path / "home"


@pytest.mark.parametrize("command", ["", "doctor", "build", "check", "run", "report", "list"])
def test_help(command):
    result = stallmark(*command.split(), "--help")
    assert result.exit_code == 0 and "Usage:" in result.output


def test_every_command_is_in_a_group_of_the_help():
    text = stallmark("--help").output
    assert all(re.search(rf"^  {name} ", text, re.MULTILINE) for name in main.commands)


@pytest.mark.parametrize("name", main.commands)
def test_the_help_line_of_a_command_is_its_first_sentence(name):
    unloaded = main.commands[name]
    assert isinstance(unloaded, Unloaded)
    command = unloaded.load()
    assert command.name == name and command.get_short_help_str(150) == unloaded.short_help


@pytest.mark.parametrize(("given", "meant"), [("bnak", "bank"), ("werehouse", "warehouse")])
def test_a_misspelt_workload_is_guessed(given, meant):
    assert f"did you mean {meant}?" in stallmark("build", given, "--scale", "branches=1").output


@pytest.mark.parametrize(
    ("given", "meant"), [(["rnu"], "run"), (["db", "lst"], "list"), (["probe", "--secnds"], "--seconds")]
)
def test_a_misspelt_command_or_option_is_guessed(given, meant):
    result = stallmark(*given)
    assert result.exit_code == 2 and "Did you mean" in result.stderr and f"'{meant}'" in result.stderr


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("run demo --server=", "--server"), ("run demo --set a=1 --set=", "--set"),
        ("build bank --data-dir=", "--data-dir"),
        ("export runs --csv=", "--csv"), ("report  --json", "RUN..."), ("sql runs ", "SELECT"), ("db remove ", "NAME"),
    ],
)  # fmt: skip
def test_nothing_on_the_command_line_may_be_empty(given, named):
    """A variable of a shell that is not set would else name this folder, or the embedded server."""
    result = stallmark(*given.split(" "))
    assert result.exit_code == 2 and f"{named}" in result.stderr and "is empty" in result.stderr, result.output


@pytest.mark.parametrize("given", ["probe . --seconds nan", "run demo --rate nan", "run demo --rate inf"])
def test_what_is_not_a_number_is_in_no_range(given):
    result = stallmark(*given.split())
    assert result.exit_code == 2 and "is not in the range" in result.stderr, result.output


def test_an_empty_file_does_not_stand_for_the_embedded_server(tmp_path):
    (url := tmp_path / "url").touch(0o600)
    result = stallmark("run", "demo", "--server", f"@{url}")
    assert result.exit_code == 3 and "is empty: write the URL into it" in result.stderr, result.output


def test_a_deep_look_is_the_selftest(monkeypatch):
    asked = []

    def look(*given, **options):
        asked.append((given[0], options))
        raise StallmarkError("That is enough.")

    monkeypatch.setattr("stallmark.lab.selftest_checks.selftest", look)
    for command in (["doctor", "--deep"], ["selftest"]):
        assert stallmark(*command, "--seconds", "7", "--cap-memory").exit_code == 3
    assert asked[0] == asked[1] and asked[0][1] == {"seconds": 7, "keep": False, "may_cap_memory": True}


def test_options_of_a_deep_look_are_refused_without_it():
    result = stallmark("doctor", "--keep")
    assert result.exit_code == 2 and "--keep is an option of --deep" in result.stderr


@pytest.mark.thorough
def test_list_names_every_scenario_and_what_it_answers():
    result = stallmark("list")
    assert result.exit_code == 0
    for name in shipped():
        assert name in result.stdout
    assert result.stdout.count("answers") == len(shipped())


def test_list_for_machines():
    listed = json.loads(stallmark("list", "--json").stdout)
    assert [each["name"] for each in listed] == shipped()
    depth = {"history", "trades_per_account"}
    assert all(each.keys() - depth == {"name", "title", "answers", "needs", "takes", "takes_s"} for each in listed)
    deep = {each["name"] for each in listed if each.keys() >= depth}
    assert deep > {"demo", "buffer-pool"} and not deep & {"mail", "ceiling-emulated"}


def test_list_tells_the_depth_of_a_brokerage(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("STALLMARK_HOME", str(tmp_path))
    mine = tmp_path / "mine.yaml"
    brokerage = "{name: brokerage, scale: {customers: 2000, days: 40}}"
    mine.write_text(f"{{name: mine, workload: {brokerage}, users: 1, measure: 2h, variants: [{{name: a}}]}}")
    [listed] = json.loads(stallmark("list", str(mine), "--json").stdout)
    assert listed["trades_per_account"] == pytest.approx(460.8)
    assert listed["history"] == "2,000 customers, 40 initial trade days (461 trades per account)"
    assert listed["history"] in " ".join(stallmark("list", str(mine)).stdout.split())


def test_list_estimates_a_file_of_ones_own(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("STALLMARK_HOME", str(tmp_path))
    mine = tmp_path / "mine.yaml"
    bank = "{name: bank, scale: {branches: 9}}"
    mine.write_text(f"{{name: mine, workload: {bank}, users: 1, measure: 2h, variants: [{{name: a}}, {{name: b}}]}}")
    [listed] = json.loads(stallmark("list", str(mine), "--json").stdout)
    assert not listed.keys() & {"history", "trades_per_account"}
    assert listed["name"] == "mine" and listed["takes"].startswith("about 4 hours") and listed["takes_s"] > 4 * 3600
    assert "to load the database" in stallmark("list", str(mine)).stdout
    assert stallmark("list", "no-such").exit_code == 3


def test_doctor_for_machines():
    result = stallmark("doctor", "--json")
    findings = json.loads(result.stdout)
    assert all(finding.keys() == {"what", "state", "sentence"} for finding in findings)
    assert result.exit_code == (3 if any(finding["state"] == "missing" for finding in findings) else 0)


def test_doctor_fails_where_something_is_missing():
    result = stallmark("doctor", "--server", "postgresql://nobody@127.0.0.1:1/nothing")
    assert result.exit_code == 3 and "missing" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["fly"],
        ["run"],
        ["run", "demo", "--port", "0"],
        ["run", "demo", "--out", "here", "--out", "there"],
        ["array", "create", "one", "--size", "1GiB", "--size", "2GiB"],
        ["build", "bnak", "--scale", "branches=1"],
        ["build", "demo", "--scale", "branches=1"],
        ["build", "demo", "--seed", "1"],
        ["build", "bank", "--scale", "many"],
        ["build", "bank", "--scale", "branches=x"],
        ["build", "bank", "--scale", "branches=1", "--workers", "0"],
        ["build", "bank", "--scale", "branches=1", "--seed", "-1"],
        ["report"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_ends_with_2(arguments):
    result = stallmark(*arguments)
    assert result.exit_code == 2 and "Usage:" in result.stderr


@pytest.mark.parametrize(
    "line",
    [
        "run demo --set measure=soon", "run demo --set measure", "run demo --set measure=", "run demo --set nosuch=1",
        "run buffer-pool --set workload.scale.customers=1500", "run buffer-pool --set workload.scale.branches=0",
        "run demo --set workload.mix.foo=1", 'run demo --set search={"of":"users","from":1,"to":5}',
        "run saturation --set users=5", "run two-devices --set variants.0.folder=/tmp", "run ceiling --users 5",
        "run ceiling --rate 3", "run cells-emulated --set loads.bank.users=0",
        "profile --out there --from FILE --map a=b",
        "run demo --set users.0.x=1", "run demo --users 5 --set users=6", "run two-devices --device new",
        "run two-devices --device one=here", "run device-ramp", "run device-ramp --users 5", "run demo --profile runs",
        "run demo --timezone Mars",
        "run demo --server mysql://x", "run demo --server postgresql://u:secret@h/d", "run demo --server mssql://h",
        "run demo --server postgresql://h/d --data-dir there", "run saturation --device a=b",
        "run saturation --junit FILE", "run demo --json --markdown -", "run demo --junit -", "run -f FILE -f FILE",
        "run sizing", "report runs --fail-if slower", "report runs --timezone Mars", "report runs --summary FILE",
        "report runs --out -", "compare runs --fail-if p95<3", "compare runs --junit FILE", "plan runs --difference 0",
        "whatif runs --read 0ms", "whatif runs --read soon", "size runs runs --slo fast", "export runs --csv -",
        "probe here --pattern odd", "build bank --part 4/3", "build bank --scale branches=0", "new FILE --from nosuch",
        "check bank --scale days=1", "characterise bank --pool much", "characterise bank --server mssql://h/d",
        "characterise demo --scale branches=1", "copies --server postgresql://h/d",
        "array create one --size 1GiB --spindles 0", "array create one --size 1GiB --cache 1GiB --tier 1GiB",
    ],
)  # fmt: skip
def test_a_mistake_in_the_value_of_an_option_ends_with_2(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    (tmp_path / "FILE").write_text("SELECT 1;")
    result = stallmark(*line.split())
    assert result.exit_code == 2 and result.stderr.count("Error:") == 1, result.output
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("here", "FILE")] == []


@pytest.mark.parametrize(
    ("scenario", "options", "needed"),
    [
        ("two-devices", "", "2 devices"), ("two-devices", "--device one=here --data-dir there", "2 devices"),
        ("device-ramp", "", "1 device"),
    ],
)  # fmt: skip
def test_a_comparison_of_devices_without_them_is_refused_with_how_many(scenario, options, needed):
    result = stallmark("run", scenario, *options.split())
    assert result.exit_code == 2
    assert f"{scenario} needs {needed}: name each by --device NAME=FOLDER." in " ".join(result.stderr.split())


ONE_AT_A_TIME = [one.words[1:] for one in shell_commands() if one.text.startswith("stallmark run two-devices --set")]


@pytest.mark.parametrize("is_copy", [False, True], ids=["shipped", "copy"])
@pytest.mark.parametrize(
    ("words", "reached"),
    [
        *((words, "nowhere/mnt/disk") for words in ONE_AT_A_TIME),
        (["run", "two-devices", "--wal-dir", "nowhere/wal"], "nowhere/wal"),
        (["run", "two-devices", "--set", "variants.0.place={data: nowhere/old}"], "nowhere/old"),
        (["run", "two-devices", "--server", "postgresql://nobody@127.0.0.1:1/nothing"], "127.0.0.1"),
    ],
    ids=lambda value: " ".join(value[2:]) if isinstance(value, list) else "",
)
def test_a_database_that_is_placed_otherwise_needs_no_device(words, reached, is_copy):
    """Each is refused further on, by what it names."""
    assert len(ONE_AT_A_TIME) == 2
    if is_copy:
        assert stallmark("new", "mine.yaml", "--from", "two-devices").exit_code == 0
        words = ["mine.yaml" if word == "two-devices" else word for word in words]
    result = stallmark(*(word.replace("/mnt/disk", "nowhere/mnt/disk") for word in words))
    assert (result.exit_code, result.stderr.count("Error:")) == (3, 1), result.output
    assert reached in result.stderr and "--device" not in result.stderr


@pytest.mark.parametrize(
    ("workload", "scale", "said"),
    [
        ("bank", "branches=1,branches=2", "'branches=2' is given twice: write --scale branches=10"),
        ("brokerage", "days=1,days=2", "'days=2' is given twice: write --scale customers=1000,days=10"),
        *(
            ("brokerage", f"days={value}", f"'days={value}' is not a measure: write --scale customers=1000,days=10")
            for value in ("nan", "1e9", "-1", "many", "", "²")
        ),
    ],
)  # fmt: skip
def test_a_scale_that_cannot_be_read_is_answered_in_the_workload_s_own_measures(workload, scale, said):
    result = stallmark("build", workload, "--scale", scale)
    assert result.exit_code == 2 and said in " ".join(result.stderr.split()), result.stderr


@pytest.mark.parametrize(
    ("workload", "scale", "code", "said"),
    [
        ("brokerage", "size=20GB", 3, "brokerage (customers 2,000, days 214.5, compressibility 2.0) is absent"),
        ("bank+brokerage", "size=1GB,branches=1", 3, "(branches 1, customers 1,000, days 21.0, compressibility 2.0)"),
        ("brokerage", "size=20", 2, "size: 20 has no unit"), ("brokerage", "size=", 2, "'' is not a size"),
        ("brokerage", "size=20GB,customers=1000", 2, "leave out `size` or `customers`."),
        ("bank", "size=20GB", 2, "no 'size': it is `branches: N`."), ("bank+mail", "size=20GB", 2, "no measure 'size'"),
    ],
)  # fmt: skip
def test_a_size_stands_for_the_scale_of_a_brokerage(workload, scale, code, said):
    result = stallmark("check", workload, "--scale", scale)
    assert result.exit_code == code and said in " ".join(result.stderr.split()), result.stderr


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_scale_that_an_answer_shows_can_be_had(workload):
    result = stallmark("check", workload, "--scale", loader_for(workload).example)
    assert result.exit_code == 3 and "is absent: run `stallmark build` first" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["run", "dmo"], 3, "did you mean demo?"),
        (["run", "demo", "--set", "measure=5"], 2, "--set measure=5: measure: 5 has no unit: write 5s or 5min."),
        (["build", "dmo"], 3, "did you mean demo?"),
        (["build", "bank"], 2, "write `branches: 10`"),
        (["build", "bank", "--scale", "branches=0"], 2, "branches from 1 to"),
        (["build", "bank", "--scale", "branches=1.5"], 2, "branches from 1 to"),
        (["build", "bank", "--scale", "streets=1"], 2, "it is `branches: N`"),
        (["build", "bank", "--scale", "branches=1", "--part", "3/2"], 2, "'--part': 3/2 is not a share"),
        (["report", "nowhere"], 3, "nowhere does not exist: name the folder of a run"),
        (["report", __file__], 3, "test_main.py is not a folder: name the folder of a run"),
        (["compare", __file__], 3, "test_main.py is not a folder: name the folder of a run"),
        (["runs", "--out", "nowhere"], 3, "nowhere holds no experiment: run one first, or name the folder"),
        (["report", "."], 3, "holds no run record"),
        (["run", "demo", "--server", "postgresql://x@y/z", "--port", "5"], 2, "place the embedded server"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_ends_with_one_sentence(home, arguments, code, sentence):
    result = stallmark(*arguments)
    assert result.exit_code == code, result.output
    assert result.stdout == "" and result.stderr.count("Error:") == 1
    assert sentence in result.stderr
    assert "Input should" not in result.stderr and not home.exists()


@pytest.mark.parametrize("command", ["status", "live", "run --resume"])
def test_a_probe_is_said_not_to_be_continued_where_that_was_asked(command, tmp_path):
    record_kinds.probed(tmp_path / "p")
    result = stallmark(*command.split(), "p")
    assert result.exit_code == 3 and "p holds runs without a database" in result.stderr, result.output
    assert ("not continued: make them again" in " ".join(result.stderr.split())) == ("--resume" in command)
    assert "`stallmark report`" in result.stderr


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("build bank --part 4/3", "for instance 3/8"), ("run demo --timezone Mars", "UTC or +01:00"),
        ("attach runs FILE --timezone Mars", "UTC or +01:00"), ("new FILE --from nosuch", "user-ramp-sqlserver"),
        ("run demo --duration soon", "5min or 1h30m"), ("size runs runs --slo fast", "a time as 10ms"),
    ],
)  # fmt: skip
def test_a_reason_in_a_sentence_of_click_names_its_option_once_and_has_no_full_stop(line, end, tmp_path):
    (tmp_path / "runs").mkdir()
    result = stallmark(*line.split())
    option = next(word for word in line.split() if word.startswith("--"))
    assert result.exit_code == 2 and f"{option}': " in result.stderr, result.output
    reason = result.stderr.partition(f"{option}': ")[2].rstrip()
    assert reason.endswith(end) and option not in reason


@pytest.mark.parametrize(
    "server",
    [
        "postgresql://me:secret@db/bank",
        "postgresql://me@db/bank?password=secret",
        "postgresql://me@db/bank?sslpassword=secret",
        "host=db user=me password=secret",
        "host=db user=me password = 'secret'",
        "mssql+pyodbc:///?odbc_connect=Server%3Ddb%3BPWD%3Dsecret",
    ],
)
def test_a_password_on_the_command_line_is_refused_and_not_repeated(server):
    result = stallmark("doctor", "--server", server)
    assert result.exit_code == 2 and "put it into PGPASSWORD" in result.stderr
    assert "secret" not in result.output


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (StallmarkError("No [such] thing."), 3, "Error: No [such] thing."),
        (CallFailed(ErrorClass.CONNECTION_LOST, "08006", "it went away"), 3, "connection lost (08006): it went away"),
        (OSError(28, "No space left on device", "/x/y"), 3, "/x/y: No space left on device."),
        (MemoryError(), 3, "machine has not enough memory"),
        (click.FileError("/x/y", "no such file"), 3, "/x/y"),
        (click.Abort(), 3, "no answer"),
        (stopping.StopSignal(signal.SIGINT), 130, "Stopped by Ctrl-C. What was done is kept"),
        (stopping.StopSignal(signal.SIGTERM), 143, "Stopped by a signal (SIGTERM). What was done is kept"),
    ],
    ids=["ours", "server", "system", "memory", "file", "unanswered", "Ctrl-C", "terminated"],
)
def test_errors_end_as_a_sentence(monkeypatch, error, code, sentence):
    def fail(_):
        raise error

    monkeypatch.setattr("stallmark.cli.doctor.examine", fail)
    result = stallmark("doctor")
    assert (result.exit_code, result.stdout) == (code, "")
    assert sentence in result.stderr


def test_ctrl_c_at_a_question_is_ctrl_c(monkeypatch):
    def ask(_):
        try:
            raise stopping.StopSignal(signal.SIGINT)
        except KeyboardInterrupt:  # as click's prompts do
            raise click.Abort() from None

    monkeypatch.setattr("stallmark.cli.doctor.examine", ask)
    assert stallmark("doctor").exit_code == 130


class Pressing:
    def __repr__(self) -> str:
        signal.raise_signal(signal.SIGTERM)
        return "pressing"


def test_a_signal_that_pydantic_made_an_error_of_is_that_signal(monkeypatch):
    def build(_):
        SchemaValidator(core_schema.nullable_schema(core_schema.literal_schema([Pressing()])))

    monkeypatch.setattr("stallmark.cli.doctor.examine", build)
    result = stallmark("doctor")
    assert result.exit_code == 143 and "Stopped by a signal (SIGTERM)" in result.stderr
    with pytest.raises(SchemaError) as other:
        SchemaValidator(core_schema.literal_schema([]))
    assert stopping.lost_in(other.value) is None


def test_a_process_of_ours_that_reads_no_more_is_no_reader_of_the_output(monkeypatch):
    def fail(_):
        os.write(writing, b"an order")

    reading, writing = os.pipe()
    os.close(reading)
    monkeypatch.setattr("stallmark.cli.doctor.examine", fail)
    result = stallmark("doctor")
    os.close(writing)
    assert result.exit_code == 70 and "BrokenPipeError" in result.stderr


PRESSED = """
import os, signal
from contextlib import contextmanager
from stallmark.cli import entry

later = entry.later

@contextmanager
def pressed():
    with later():
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
        yield

entry.later = pressed
entry.main()
"""


def test_ctrl_c_while_its_packages_are_imported_ends_with_130_and_one_sentence():
    ended = subprocess.run([sys.executable, "-c", PRESSED], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr.count("\n")) == (130, 1), ended.stderr


def test_a_path_is_said_as_it_is():
    said = stallmark("report", "disks:x:1").output
    assert "disks:x:1" in said.replace("\n", "")


@pytest.mark.parametrize("error", [StallmarkError("It broke."), stopping.StopSignal(signal.SIGINT)])
def test_what_is_left_to_do_is_said_behind_the_reason(monkeypatch, error):
    def fail(_):
        error.add_note("The memory is still capped.")
        raise error

    monkeypatch.setattr("stallmark.cli.doctor.examine", fail)
    said = " ".join(stallmark("doctor").stderr.split())
    assert said.endswith("The memory is still capped.") and "as before" not in said
    assert "It broke." in said or "Stopped by Ctrl-C. What was done is kept." in said


HEAVY = {
    "numpy", "pyarrow", "scipy", "pydantic", "sqlalchemy", "locust", "gevent", "faker", "plotly", "duckdb", "docker",
    "psycopg", "pyodbc",
}  # fmt: skip
FOR_HELP = {
    f"stallmark{module}"
    for module in (
        "", ".capabilities", ".cli", ".cli.command", ".cli.entry", ".cli.main", ".stopping",
        *(f".{each.name}" for each in installed()),
    )
}  # fmt: skip


def modules_after(*lines: str, **environment: str) -> set[str]:
    """Return the modules that a process has imported after these command lines, one after the other."""
    code = f"""
import sys
from contextlib import suppress
from stallmark.cli.entry import main
for line in {lines}:
    sys.argv = line.split()
    with suppress(SystemExit):
        main()
print("LOADED", *sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | environment, check=False
    )
    return set(done.stdout.rpartition("LOADED")[2].split())


def test_help_and_the_completion_of_a_name_import_no_command():
    words = {"COMP_WORDS": "stallmark ru", "COMP_CWORD": "1", "_STALLMARK_COMPLETE": "bash_complete"}
    for loaded in (modules_after("stallmark --help", "stallmark --version"), modules_after("stallmark", **words)):
        assert {name for name in loaded if name.partition(".")[0] == "stallmark"} == FOR_HELP
        assert not (HEAVY | {"rich", "humanize", "psutil"}) & loaded


def test_mistakes_in_arguments_import_nothing_heavy():
    loaded = modules_after("stallmark rnu", *(f"stallmark {name} --no-such-option" for name in main.commands))
    assert "stallmark.cli.compare" in loaded and not HEAVY & loaded


@pytest.mark.thorough
def test_what_only_reads_files_loads_no_driver_and_no_database():
    loaded = modules_after("stallmark list", "stallmark status")
    assert "stallmark.scenarios.model" in loaded and "stallmark.cli.runs" in loaded
    assert not {"psycopg", "locust", "plotly", "scipy.stats", "docker", "pyodbc", "duckdb"} & loaded
