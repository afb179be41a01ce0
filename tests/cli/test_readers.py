"""Commands that read records leave them, and the pages that a run wrote, as they are."""

import json
from pathlib import Path

import pytest
from support.command_line import stallmark
from support.profiles import write_made_profile
from support.sizings import write_sizing_of
from support.synthetic import Truth, make_run
from support.synthetic_loads import alone_and_together, make_loads_run

from stallmark.analysis.profile.demand import demand_of


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
def test_a_page_changes_no_record_and_no_other_page(folder, monkeypatch, command, page):
    monkeypatch.chdir(folder)
    before = files(folder)
    done = stallmark(*command.split())
    assert done.exit_code == 0, done.output
    after = files(folder)
    (folder / page).unlink()
    assert after.pop(page) and after == before
