"""The documentation holds together: links, lengths, reference pages, and a site that builds."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.documents import GENERATED, PAGES, ROOT, anchors, links, scenarios, sentences, shell_commands

from stallmark.analysis.bottleneck import DeviceKind
from stallmark.analysis.compare.summary import Verdict
from stallmark.analysis.finding import Finding, Severity
from stallmark.analysis.metrics import PRIMARIES
from stallmark.analysis.steady import SteadyKind
from stallmark.analysis.validity_gates import GateKind
from stallmark.cli.exit_codes import CONDITION_BROKEN, FAILED, INCOMPLETE, INCONCLUSIVE, UNEXPECTED, VERDICT
from stallmark.report.text import mark_word, term
from stallmark.scenarios.read import read_any_scenario

MOST_WORDS = 25
README_LINES = 120


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path):
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists() and target.is_relative_to(ROOT), f"{page.name}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{page.name}: {link}: {sorted(anchors(target))}"


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in GENERATED], ids=lambda page: page.name)
def test_sentences_are_short(page: Path):
    assert [one for one in sentences(page) if len(one.split()) > MOST_WORDS] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in GENERATED], ids=lambda page: page.name)
def test_sentences_name_the_thing_first(page: Path):
    assert [one for one in sentences(page) if re.match(r"(Who|What|Whether|Whose)\b.*\.$", one)] == []


def test_scenarios_on_pages_are_scenarios(tmp_path: Path):
    shown = scenarios()
    assert len(shown) >= 2
    for number, (_, text) in enumerate(shown):
        file = tmp_path / f"{number}.yaml"
        file.write_text(text)
        read_any_scenario(str(file))


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES


def test_every_page_is_in_the_sites_navigation():
    listed = set(re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert {page.name for page in (ROOT / "docs").glob("*.md")} <= listed


def test_every_page_of_a_question_has_a_command():
    text = (ROOT / "mkdocs.yml").read_text().partition("- Questions:")[2].partition("- Servers:")[0]
    asked = set(re.findall(r": ([\w-]+\.md)$", text, re.MULTILINE)) - {"locks.md"}
    assert len(asked) > 5 and asked <= {command.page for command in shell_commands()}


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (
            "reading-the-report.md",
            {mark_word(Finding(kind, Severity.CAUTION, {})) for kind in (*DeviceKind, *SteadyKind)},
        ),
        ("numbers.md", set(map(term, GateKind))),
        ("verdicts.md", {*map(term, Verdict), *PRIMARIES}),
        (
            "ci.md",
            {f"| {code} |" for code in (CONDITION_BROKEN, FAILED, INCOMPLETE, VERDICT, INCONCLUSIVE, UNEXPECTED)},
        ),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_page_names_all_there_is(page: str, words: set[str]):
    text = (ROOT / "docs" / page).read_text()
    assert {one for one in words if one not in text} <= {"invalid"}


@pytest.mark.thorough
def test_the_site_builds_strictly(tmp_path: Path):
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    page = (tmp_path / "site/index.html").read_text()
    assert 'href="how-much-memory.html"' in page
    fetched = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', page)
    assert not fetched, "a page needs no network"


def test_every_answer_of_the_architecture_is_a_file():
    rows = re.findall(r"^\| [^|]*\? \| (.*) \|$", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE)
    answers = [name for row in rows for name in re.findall(r"`([\w./]+)`", row)]
    assert 20 <= len(rows) <= len(answers)
    assert [name for name in answers if not (ROOT / "src" / "stallmark" / name).exists()] == []
