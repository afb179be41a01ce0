"""The page, the table and the JSON of how a load reads: everything known is shown, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest
from support.html_page import Page
from support.synthetic import make_run
from support.terminal import printed
from support.traces import MIB, TRUTH, make_pools, make_traced, put_samples, put_trace

from stallmark.analysis.locality import characterise
from stallmark.record.reader import find_records
from stallmark.report.locality import locality_document
from stallmark.report.renderers import in_terminal, render
from stallmark.report.text import sentence

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("locality")
    make_pools(folder / "pools")
    put_samples(folder / "pools" / "1", trade_status=60, market_watch=12)
    make_traced(folder / "one")
    make_run(folder / "untraced", replace(TRUTH, pool_bytes=16 * MIB))
    few = make_run(folder / "few", replace(TRUTH, pool_bytes=16 * MIB))
    put_trace(few, np.linspace(6, 30, 5), np.zeros(5, int), np.arange(5))
    return {one.name: characterise(find_records([one])) for one in folder.iterdir()}


CHARTS = {
    "pools": {"pools", "flash", "footprint", "skew", "tables"},
    "one": {"pools", "flash", "footprint", "skew", "tables"},
    "untraced": set(),
    "few": {"footprint"},
}


@pytest.mark.parametrize("name", CHARTS)
def test_a_page_has_a_chart_of_everything_known_and_every_sentence(made, name):
    found = made[name]
    html = render(locality_document(found))
    page = Page(html)
    assert {one for one in CHARTS["one"] if f'id="chart-{one}"' in html} == CHARTS[name]
    text = " ".join(page.text.split())
    for one in [*found.findings, *found.cautions]:
        assert " ".join(sentence(one).split()) in text
    assert ("Behind the traced pool" in text) is (found.traced is not None)


@pytest.mark.parametrize("name", CHARTS)
@pytest.mark.parametrize("width", [50, 80, 160])
def test_a_terminal_shows_it_at_every_width(made, name, width):
    text = printed(in_terminal(locality_document(made[name]).brief), width)
    assert max(map(len, text.splitlines())) <= width
    assert "How brokerage reads" in text and ("Skew" in text) is (made[name].traced is not None)


def test_a_type_that_was_sampled_too_rarely_shows_no_share(made):
    text = printed(in_terminal(locality_document(made["pools"]).brief), 120)
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line.startswith(("Trade-Status", "Market-"))}
    assert rows["Market-Watch"][-1] == "–" and rows["Trade-Status"][-1] == "%"
