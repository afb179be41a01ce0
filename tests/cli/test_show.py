"""The facts that an experiment tells its display, in sentences."""

import io

from rich.console import Console

from stallmark.analysis.shallow_history import shallow_history
from stallmark.cli.show import ShowInSentences
from stallmark.experiment.estimate import Estimate
from stallmark.experiment.progress import Show
from stallmark.record.trade_history import trade_history


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
