"""Commands that read records leave them, and the pages that a run wrote, as they are."""

import io
import json
import pickle
import re
from pathlib import Path

import pytest
from rich.console import Console
from support.command_line import stallmark
from support.profiles import write_made_profile
from support.read_once import kept_summaries, read_once
from support.sizings import write_sizing_of
from support.synthetic import Truth, make_run
from support.synthetic_loads import alone_and_together, make_loads_run

from stallmark import format
from stallmark.analysis.environment_cautions import shallow_history
from stallmark.analysis.experiment import summarise
from stallmark.analysis.loads import summarise_loads
from stallmark.cli import build, output, summaries
from stallmark.cli.main import main
from stallmark.cli.output import ShowInSentences
from stallmark.experiment.estimate import Estimate
from stallmark.experiment.progress import Show
from stallmark.record.manifest.workload import trade_history
from stallmark.record.profile import read_profile
from stallmark.record.reader import find_records
from stallmark.sizing.demand import demand_of
from stallmark.transactions.brokerage import WORKLOAD
from stallmark.transactions.checks import KEYS, ConditionResult

pytestmark = pytest.mark.thorough

__all__ = ["kept_summaries", "read_once"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder of two experiments, one of several loads, a profile and a sizing, with the page of each."""
    root = tmp_path_factory.mktemp("read")
    demand = demand_of(write_made_profile(root / "profile", 300))
    write_sizing_of(root / "sizing", demand, "array", replay=(1.25, 1.38))
    for number, name in enumerate("abcd", 1):
        make_run(root / "ab" / name, Truth(variant="ab"[number % 2], repeat=(number + 1) // 2, sequence=number))
    make_run(root / "other" / "a", Truth(variant="a", seed=9))
    for number, name in enumerate(("disks", "cache")):
        steps = alone_and_together({"mail": (60.0, 30.0 + number), "bank": (200.0, 80.0 + number)})
        make_loads_run(root / "loads" / name, steps, name, sequence=number)
    for made in ("profile", "sizing", "ab", "other", "loads"):
        (root / made / "report.html").write_text("as it was")
    return root


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    "command",
    [
        "report ab --json", "report ab other --json", "report ab/a --json", "report loads --json",
        "report profile --json", "report sizing --json", "characterise ab --json", "size profile sizing --json",
        "compare ab --json", "compare ab --markdown -", "compare loads --json", "whatif ab", "plan ab", "status ab",
        'sql ab from"users"', "status sizing --json", "runs --out .",
    ],
)  # fmt: skip
@pytest.mark.usefixtures("read_once")
def test_output_for_machines_and_questions_write_no_file(folder, monkeypatch, command):
    monkeypatch.chdir(folder)
    before = files(folder)
    done = stallmark(*command.split())
    assert done.exit_code in (0, 3), done.output
    if done.exit_code == 0 and command.split()[0] in ("report", "compare", "size") and "--json" in command:
        found = json.loads(done.stdout)
        assert {one["report"] for one in (found["loads"].values() if "compare loads" in command else [found])} == {None}
    assert files(folder) == before


@pytest.mark.parametrize(
    ("command", "page"),
    [
        ("report ab/a", "ab/a-report.html"),
        ("report ab other", "ab/report-of-several.html"),
        ("report ab/a ab/b", "ab/a-report-of-several.html"),
        ("compare ab", "ab/comparison.html"),
        ("characterise ab/a", "ab/a-locality.html"),
    ],
)
@pytest.mark.usefixtures("read_once")
def test_a_page_changes_no_record_and_no_other_page(folder, monkeypatch, command, page):
    monkeypatch.chdir(folder)
    before = files(folder)
    done = stallmark(*command.split())
    assert done.exit_code == 0, done.output
    after = files(folder)
    (folder / page).unlink()
    assert after.pop(page) and after == before


# Long records are summarised in processes of their own, and to the same figures


class Pool:
    """Arguments and results of a process are pickled; starting one would take seconds."""

    def __init__(self, workers: int, **_):
        assert workers == 2

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def map(self, function, *arguments):
        for one in zip(*arguments, strict=True):
            sent, what = pickle.loads(pickle.dumps((function, one)))
            yield pickle.loads(pickle.dumps(sent(*what)))


def test_long_records_are_summarised_side_by_side_to_the_same_figures(tmp_path, monkeypatch):
    for number, tps in enumerate((300.0, 360.0), 1):
        make_run(tmp_path / f"{number:02d}", Truth(tps=tps, variant=f"v{number}", sequence=number, measured_s=10))
    monkeypatch.setattr(summaries, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(summaries.os, "cpu_count", lambda: 2)
    here = summaries.on_all_cores(find_records([tmp_path]), summarise)
    monkeypatch.setattr(summaries, "LONG_BYTES", 0)
    apart = summaries.on_all_cores(find_records([tmp_path]), summarise)
    assert apart.steps == here.steps and [step.key for step in apart.steps] == ["run1-step1", "run2-step1"]


def test_as_many_records_are_summarised_at_once_as_there_is_memory_for(tmp_path, monkeypatch):
    for number in (1, 2):
        make_run(tmp_path / f"{number:02d}", Truth(variant=f"v{number}", sequence=number, measured_s=10))
    records = find_records([tmp_path])
    monkeypatch.setattr(summaries, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(summaries.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(summaries, "LONG_BYTES", 0)
    assert summaries.on_all_cores(records, lambda _, each: each) is not map
    for record in records:
        last = record.manifest.steps[-1]
        record.manifest = record.manifest.changed(steps=(*record.manifest.steps[:-1], last.changed(end_s=86_400.0)))
    assert summaries.on_all_cores(records, lambda _, each: each) is map


def test_a_run_of_several_loads_is_read_in_one_process_to_the_same_figures(tmp_path, monkeypatch):
    steps = alone_and_together({"mail": (60.0, 30.0), "bank": (200.0, 80.0)})
    for number in (1, 2):
        make_loads_run(tmp_path / str(number), steps, repeat=number, sequence=number)
    monkeypatch.setattr(summaries, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(summaries.os, "cpu_count", lambda: 2)
    here = summaries.on_all_cores(find_records([tmp_path]), summarise_loads)
    monkeypatch.setattr(summaries, "LONG_BYTES", 0)
    apart = summaries.on_all_cores(find_records([tmp_path]), summarise_loads)
    assert apart.whole.steps == here.whole.steps and apart.points == here.points
    assert {name: view.steps for name, view in apart.loads.items()} == {n: v.steps for n, v in here.loads.items()}
    assert list(apart.loads) == ["mail", "bank"] and [len(view.runs) for view in apart.loads.values()] == [2, 2]


# The list that `stallmark check` prints: exact and statistical apart, cost marks, 80 columns


BROKEN = ConditionResult(
    "balances [all] add up", False, "scan", False, 1_200, 9.94, "id 1; sum 2 | id 2; sum 3 … and 1198 more"
)
KEYLESS = ConditionResult(
    "the keys are there", False, "cheap", False, 2, 0.0, "bank.a: a_pkey is missing | …", "defects"
)
LIKELY = ConditionResult("half of them", True, "cheap", True, 0, 0.0, "")
REFUSED = ConditionResult("an order", False, "scan", None, 0, 0.1, "", refused="no such function (42883)")
LEFT_OUT = ConditionResult("as loaded", True, "scan", None, 0, 0.0, "")


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch):
    """Prints findings on a terminal of 80 columns and returns the lines."""

    def show(*findings: ConditionResult) -> list[str]:
        console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
        for module in (build, output):
            monkeypatch.setattr(module, "out", console)
        build.show_findings(findings)
        return [line.rstrip() for line in console.file.getvalue().splitlines()]

    return show


def test_exact_and_statistical_stand_apart(printed) -> None:
    assert printed(LIKELY, BROKEN) == [
        "Exact",
        "BROKEN   scan  balances [all] add up: 1,200 rows, id 1; sum 2 | id 2; sum 3 …",
        "               and 1198 more (9.9 s)",
        "Statistical, each with the tolerance that its SQL states",
        "holds    cheap half of them (0.0 s)",
    ]


def test_what_was_counted_is_said(printed) -> None:
    assert printed(KEYLESS) == [
        "Exact",
        "BROKEN   cheap the keys are there: 2 defects, bank.a: a_pkey is missing | … (0.0",
        "               s)",
    ]


def test_what_was_left_out_is_listed_and_why(printed) -> None:
    lines = printed(LEFT_OUT)
    assert lines[1] == "left out scan  as loaded"
    assert lines[2].startswith("Left out is what holds for a database as it was loaded")


def test_what_the_server_refused_is_listed_in_its_words(printed) -> None:
    assert printed(REFUSED) == ["Exact", "REFUSED  scan  an order: no such function (42883)"]


def test_every_condition_has_a_line_of_its_own(printed) -> None:
    findings = [ConditionResult(c.name, c.statistical, c.cost, True, 0, 99.9, "") for c in WORKLOAD.conditions]
    findings.insert(0, ConditionResult(KEYS, False, "cheap", True, 0, 9.9, ""))
    assert len(printed(*findings)) == len(findings) + 2


# The facts that an experiment tells its display, in sentences


def lines(display: type[Show]) -> list[str]:
    show = display(Console(file=io.StringIO(), width=400))
    finding = shallow_history(trade_history("brokerage", {"customers": 5_000, "days": 5}), ["memory"], "PostgreSQL")
    assert finding
    show.tell(finding)
    show.expect(Estimate(60.0, (90.0, 90.0), load_s=60.0, chooses=True))
    assert show.left_s and 240 < show.left_s <= 245
    return show.console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def test_commands_that_run_experiments_say_findings_and_estimates():
    caution, expected = lines(ShowInSentences)
    assert "memory is judged wrongly" in caution
    assert expected.startswith("at most 2 runs, at most 2 minutes of load in all; it takes at most about 4 minutes, ")


def test_a_display_without_words_keeps_the_facts():
    assert lines(Show) == []


# `--timezone`: the zone of every time that a command shows; records and JSON keep UTC


SHOWN = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}")


@pytest.fixture
def made(folder: Path, monkeypatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.usefixtures("read_once")
@pytest.mark.parametrize(
    ("command", "page"),
    [
        ("report profile", "profile/report.html"),
        ("report ab", "ab/report.html"),
        ("compare ab", "ab/comparison.html"),
        ("characterise ab", "ab/locality.html"),
        ("size profile sizing", "sizing/sizing.html"),
        ("status sizing", None),
        ("runs --out .", None),
    ],
)
def test_every_time_is_shown_in_the_zone_asked_for_and_names_it(made, command, page):
    def shown(*more: str) -> str:
        result = stallmark(*command.split(), *more)
        assert result.exit_code == 0, result.output
        return result.stdout + ((made / page).read_text() if page else "")

    usual, local = shown(), shown("--timezone", "Asia/Tokyo")
    assert SHOWN.search(usual) and "UTC" in usual and "Asia/Tokyo" not in usual
    assert "Asia/Tokyo" in local and "UTC" not in re.sub(r"<script.*?</script>", "", local, flags=re.DOTALL)
    assert set(SHOWN.findall(usual)).isdisjoint(SHOWN.findall(local))
    assert format.zone() == "UTC"


def test_json_keeps_utc_but_in_sentences(made):
    [usual, local] = (
        json.loads(stallmark("report", "profile", "--json", *more).stdout)
        for more in ([], ["--timezone", "Asia/Tokyo"])
    )
    for one in (*usual["findings"], *local["findings"]):
        one.pop("sentence")
    assert usual == local and usual["begin"].endswith("+00:00")


def test_the_heat_map_names_its_zone(made):
    assert stallmark("report", "profile", "--timezone", "+05:45").exit_code == 0
    assert ">hour of the day, UTC+05:45<" in (made / "profile" / "report.html").read_text()


def test_local_is_the_zone_of_this_machine(made, monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    assert "Europe/Berlin" in stallmark("runs", "--out", ".", "--timezone", "local").stdout
    monkeypatch.setenv("TZ", ":/nowhere")
    result = stallmark("runs", "--out", ".", "--timezone", "local")
    assert result.exit_code == 2 and "is not a time zone" in result.stderr


def test_an_unknown_zone_is_refused_with_a_known_one(made):
    result = stallmark("runs", "--out", ".", "--timezone", "Europe/Berln")
    assert result.exit_code == 2 and "did you mean Europe/Berlin?" in " ".join(result.stderr.split())


def test_every_command_that_shows_times_has_the_option():
    named = {
        name
        for name, command in main.commands.items()
        if any("--timezone" in one.opts for one in command.load().params)
    }
    assert named == {"attach", "characterise", "compare", "probe", "profile", "report", "run", "runs", "size", "status"}


def test_an_imported_profile_is_shown_in_the_zone_of_its_files(tmp_path):
    file = tmp_path / "iostat.txt"
    stamps = ("03/02/2026 10:00:00", "03/02/2026 10:01:00", "03/02/2026 10:02:00")
    head = "Linux 6.1.0 (db) \t03/02/2026 \t_x86_64_\t(4 CPU)\n\n"
    row = "Device r/s rkB/s w/s wkB/s r_await w_await\nsda 10 80 5 40 1.0 2.0\n\n"
    file.write_text(head + "".join(f"{stamp}\n{row}" for stamp in stamps))
    options = ("--class", "sda=data", "--dates", "month-first", "--timezone", "Europe/Berlin")
    result = stallmark("profile", "--from", file, "--out", tmp_path / "out", *options)
    assert result.exit_code == 0, result.output
    assert "10:00 Europe/Berlin" in " ".join(result.stdout.split())
    assert read_profile(tmp_path / "out").started.startswith("2026-03-02T09:0")
