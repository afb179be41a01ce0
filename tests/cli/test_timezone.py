"""`--timezone`: the zone of every time that a command shows; records and JSON keep UTC."""

import json
import re
from pathlib import Path

import pytest
from support.command_line import stallmark
from support.profiles import write_made_profile
from support.sizings import write_sizing_of
from support.synthetic import Truth, make_run

from stallmark import format
from stallmark.analysis.profile.demand import demand_of
from stallmark.cli.main import main
from stallmark.record.profile.manifest import read_profile

SHOWN = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}")


@pytest.fixture
def made(tmp_path: Path, monkeypatch) -> Path:
    """A folder with a profile, a sizing and an experiment of two variants."""
    monkeypatch.chdir(tmp_path)
    demand = demand_of(write_made_profile(tmp_path / "profile", 300))
    write_sizing_of(tmp_path / "sizing", demand, "array", replay=(1.25, 1.38))
    for number, name in enumerate(("a", "b"), 1):
        make_run(tmp_path / "stallmark-runs" / "one" / name, Truth(variant=name, sequence=number, measured_s=5))
    return tmp_path


@pytest.mark.parametrize(
    ("command", "page"),
    [
        ("report profile", "profile/report.html"),
        ("report stallmark-runs/one", "stallmark-runs/one/report.html"),
        ("compare stallmark-runs/one", "stallmark-runs/one/comparison.html"),
        ("characterise stallmark-runs/one", "stallmark-runs/one/locality.html"),
        ("size profile sizing", "sizing/sizing.html"),
        ("status sizing", None),
        ("runs", None),
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
    assert "Europe/Berlin" in stallmark("runs", "--timezone", "local").stdout
    monkeypatch.setenv("TZ", ":/nowhere")
    result = stallmark("runs", "--timezone", "local")
    assert result.exit_code == 3 and "is no time zone" in result.stderr


def test_an_unknown_zone_is_refused_with_a_known_one(made):
    result = stallmark("runs", "--timezone", "Europe/Berln")
    assert result.exit_code == 3 and "did you mean Europe/Berlin?" in " ".join(result.stderr.split())


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
